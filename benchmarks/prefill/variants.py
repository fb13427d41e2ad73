"""Hooks of the variants that the benchmarks state, by name."""
import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from statement import CAUSAL

WINDOW = """  attn.hook mask (%at: !attn.coord) {
    %c = arith.constant 1024 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %back = arith.subi %q, %k : index
    %near = arith.cmpi slt, %back, %c : index
    %past = arith.cmpi sle, %k, %q : index
    %in = arith.andi %near, %past : i1
    attn.yield %in : i1
  }
"""
CAP = """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %cap = arith.constant 50.0 : f32
    %inverse = arith.constant 0.02 : f32
    %0 = arith.mulf %x, %inverse : f32
    %1 = math.tanh %0FAST : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  }
"""
ALIBI = """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %slope = memref.load %slopes[%h] : memref<?xf32>
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %k, %q : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %y = math.fma %slope, %df, %x : f32
    attn.yield %y : f32
  }
"""
DOCUMENT = """  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %same = arith.cmpi eq, %qd, %kd : i32
    %past = arith.cmpi sle, %k, %q : index
    %in = arith.andi %same, %past : i1
    attn.yield %in : i1
  }
"""
PREFIX = """  attn.hook mask (%at: !attn.coord) {
    %r = attn.request %at
    %p32 = memref.load %prefix[%r] : memref<?xi32>
    %p = arith.index_cast %p32 : i32 to index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %past = arith.cmpi sle, %k, %q : index
    %inside = arith.cmpi slt, %k, %p : index
    %in = arith.ori %past, %inside : i1
    attn.yield %in : i1
  }
"""
PARAMS = {"alibi": "%slopes: memref<?xf32>", "document": "%doc: memref<?xi32>", "packed": "%doc: memref<?xi32>", "prefix": "%prefix: memref<?xi32>"}
VARIANTS = {"full": "", "causal": CAUSAL, "window": WINDOW, "softcap": CAP.replace("FAST", " fastmath<afn>") + CAUSAL,
            "softcap-exact": CAP.replace("FAST", "") + CAUSAL, "alibi": ALIBI + CAUSAL, "document": DOCUMENT, "packed": DOCUMENT, "prefix": PREFIX}
