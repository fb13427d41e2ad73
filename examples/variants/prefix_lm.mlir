// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/prefix_lm.json --device=cpu --check

// Prefix-LM: the first prefix[request] keys are visible to all rows, the rest is causal.

attn.variant @prefix_lm(%prefix: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %r = attn.request %at
    %p32 = memref.load %prefix[%r] : memref<?xi32>
    %p = arith.index_cast %p32 : i32 to index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %causal = arith.cmpi sle, %k, %q : index
    %inside = arith.cmpi slt, %k, %p : index
    %in = arith.ori %causal, %inside : i1
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x2x64xbf16>,
                  %v: memref<?x2x64xbf16>, %kv_indptr: memref<?xi32>, %o: memref<?x8x64xbf16>,
                  %lse: memref<?x8xf32>, %prefix: memref<?xi32>) {
  attn.attention @prefix_lm(%prefix : memref<?xi32>)
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x2x64xbf16>, memref<?x2x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<ragged>}
  return
}
