// RUN: attn-run %s --batch=%S/Inputs/softcap.json --device=cpu --check

// Soft-capped causal attention (examples/variants/softcap.mlir) over a composed format: level 0 holds the prefixes that
// requests share, level 1 what each request has of its own. A shared key is read once for all of its requests.

attn.variant @softcap(%cap: f32) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %0 = arith.divf %x, %cap : f32
    %1 = math.tanh %0 fastmath<afn> : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x128xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x128xbf16>, %v: memref<?x16x2x128xbf16>,
                  %shared_indptr: memref<?xi32>, %shared_pages: memref<?xi32>, %shared_last: memref<?xi32>, %shared_rows: memref<?xi32>,
                  %own_indptr: memref<?xi32>, %own_pages: memref<?xi32>, %own_last: memref<?xi32>, %own_rows: memref<?xi32>,
                  %o: memref<?x8x128xbf16>, %lse: memref<?x8xf32>, %cap: f32) {
  attn.attention @softcap(%cap : f32)
    q(%q, %qo_indptr : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x128xbf16>, memref<?x16x2x128xbf16>)
    indptr(%shared_indptr, %own_indptr : memref<?xi32>, memref<?xi32>)
    indices(%shared_pages, %own_pages : memref<?xi32>, memref<?xi32>)
    last(%shared_last, %own_last : memref<?xi32>, memref<?xi32>)
    row_indptr(%shared_rows, %own_rows : memref<?xi32>, memref<?xi32>)
    outs(%o : memref<?x8x128xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
