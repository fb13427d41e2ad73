func.func @attend(%q: memref<?x32x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x128xbf16>, %v: memref<?x16x8x128xbf16>, %indptr: memref<?xi32>, %indices: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x32x128xbf16>, %lse: memref<?x32xf32>) {
  attn.attention q(%q, %qo : memref<?x32x128xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>) indptr(%indptr : memref<?xi32>) indices(%indices : memref<?xi32>) last(%last : memref<?xi32>) outs(%o : memref<?x32x128xbf16>, %lse : memref<?x32xf32>) {format = #attn.format<paged>}
  return
}
