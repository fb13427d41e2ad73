// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/all_hooks.json --device=cpu --check

// Every hook at once: rotary query and key (a part of the head only), scaled values, soft-capped
// logits with ALiBi, a window, a sink, and a gate on the output. Parameters of every kind.

attn.variant @all_hooks(%cap: f32, %slopes: memref<8xf32>, %left: index, %sinks: memref<?xf32>,
                        %value_scale: memref<?xbf16>, %gate: memref<?x?xf32>) {
  attn.hook query (%x: vector<64xf32>, %at: !attn.coord) {
    %p = attn.q_pos %at
    %y = attn.rope %x at %p {theta = 10000.0 : f64, rotary = 32 : i64} : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %y = attn.rope %x at %p {theta = 10000.0 : f64, rotary = 32 : i64} : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
  attn.hook value (%x: vector<64xf32>, %at: !attn.coord) {
    %h = attn.kv_head %at
    %s16 = memref.load %value_scale[%h] : memref<?xbf16>
    %s = arith.extf %s16 : bf16 to f32
    %v = vector.broadcast %s : f32 to vector<64xf32>
    %y = arith.mulf %x, %v : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %slope = memref.load %slopes[%h] : memref<8xf32>
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %k, %q : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %0 = arith.divf %x, %cap : f32
    %1 = math.tanh %0 : f32
    %2 = arith.mulf %1, %cap : f32
    %y = math.fma %slope, %df, %2 : f32
    attn.yield %y : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %causal = arith.cmpi sle, %k, %q : index
    %near = arith.cmpi sle, %d, %left : index
    %in = arith.andi %causal, %near : i1
    attn.yield %in : i1
  }
  attn.hook sink (%at: !attn.coord) {
    %h = attn.q_head %at
    %s = memref.load %sinks[%h] : memref<?xf32>
    attn.yield %s : f32
  }
  attn.hook output (%x: vector<64xf32>, %at: !attn.coord) {
    %one = arith.constant 1.0 : f32
    %r = attn.request %at
    %h = attn.q_head %at
    %g = memref.load %gate[%r, %h] : memref<?x?xf32>
    %0 = arith.negf %g : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.divf %one, %2 : f32
    %v = vector.broadcast %3 : f32 to vector<64xf32>
    %y = arith.mulf %x, %v : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
}

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xbf16>,
                  %v: memref<?x16x2x64xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>, %cap: f32,
                  %slopes: memref<8xf32>, %left: index, %sinks: memref<?xf32>, %value_scale: memref<?xbf16>,
                  %gate: memref<?x?xf32>, %scale: f32) {
  attn.attention @all_hooks(%cap, %slopes, %left, %sinks, %value_scale, %gate : f32, memref<8xf32>, index, memref<?xf32>, memref<?xbf16>, memref<?x?xf32>) scale %scale
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>, lse_base = #attn.lse_base<base2>}
  return
}
