// RUN: attn-run %s --batch=%S/Inputs/sink_window.json --device=cpu --check

// Sinks and a causal window (examples/variants/sink_window.mlir) over a composed format: level 0 holds the prefixes that
// requests share, level 1 what each request has of its own. Positions are global, so the window sees true distances.

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

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>,
                  %shared_indptr: memref<?xi32>, %shared_pages: memref<?xi32>, %shared_last: memref<?xi32>, %shared_rows: memref<?xi32>,
                  %own_indptr: memref<?xi32>, %own_pages: memref<?xi32>, %own_last: memref<?xi32>, %own_rows: memref<?xi32>,
                  %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>, %sinks: memref<?xf32>, %left: index) {
  attn.attention @sink_window(%sinks, %left : memref<?xf32>, index)
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%shared_indptr, %own_indptr : memref<?xi32>, memref<?xi32>)
    indices(%shared_pages, %own_pages : memref<?xi32>, memref<?xi32>)
    last(%shared_last, %own_last : memref<?xi32>, memref<?xi32>)
    row_indptr(%shared_rows, %own_rows : memref<?xi32>, memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
