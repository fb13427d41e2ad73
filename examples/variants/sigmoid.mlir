// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/sigmoid.json --device=cpu --check

// Sigmoid attention: each weight is 1 / (1 + exp(-(x + bias))) on its own, nothing is normalised. Masked keys add
// nothing; there is no lse.

attn.variant @sigmoid(%bias: f32) normalizer(none) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %one = arith.constant 1.0 : f32
    %0 = arith.addf %x, %bias : f32
    %1 = arith.negf %0 : f32
    %2 = math.exp %1 : f32
    %3 = arith.addf %2, %one : f32
    %4 = arith.divf %one, %3 : f32
    attn.yield %4 : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xbf16>,
                  %v: memref<?x16x2x64xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x64xbf16>, %bias: f32) {
  attn.attention @sigmoid(%bias : f32)
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}
