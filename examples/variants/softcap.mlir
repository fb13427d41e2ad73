// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/softcap.json --device=cpu --check

// Soft-capped logits (Gemma 2): cap * tanh(x / cap), before the mask. The author asks for the fast hyperbolic
// tangent with `afn`, and with `arcp` for a product with 1 / cap; without the flags the accurate expansion and a
// correctly rounded quotient for each logit are used (docs/Spec.md has the errors).

attn.variant @softcap(%cap: f32) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %0 = arith.divf %x, %cap fastmath<arcp> : f32
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

func.func @attend(%q: memref<?x8x128xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x128xbf16>,
                  %v: memref<?x16x2x128xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x128xbf16>, %lse: memref<?x8xf32>, %cap: f32) {
  attn.attention @softcap(%cap : f32)
    q(%q, %qo_indptr : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x128xbf16>, memref<?x16x2x128xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x128xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
