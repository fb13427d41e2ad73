attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}
func.func @attend(%q: memref<?x16x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x128xbf16>, %v: memref<?x16x128xbf16>, %indptr: memref<?xi32>, %o: memref<?x16x128xbf16>, %lse: memref<?x16xf32>) {
  attn.attention @causal() q(%q, %qo : memref<?x16x128xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x128xbf16>, memref<?x16x128xbf16>) indptr(%indptr : memref<?xi32>) outs(%o : memref<?x16x128xbf16>, %lse : memref<?x16xf32>) {format = #attn.format<ragged>}
  return
}
