// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/sink_window.json --device=cpu --check

// A learned sink logit per head (it takes a share of the softmax and gives no value) and a causal window.

attn.variant @sink_window(%sinks: memref<?xf32>, %left: index) {
  attn.hook sink (%at: !attn.coord) {
    %h = attn.q_head %at
    %s = memref.load %sinks[%h] : memref<?xf32>
    attn.yield %s : f32
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
}

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xbf16>,
                  %v: memref<?x16x2x64xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>,
                  %sinks: memref<?xf32>, %left: index) {
  attn.attention @sink_window(%sinks, %left : memref<?xf32>, index)
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
