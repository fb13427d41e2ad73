func.func @twice(%q: memref<?x1x16xf16>, %ind: memref<?xi32>) {
  attn.attention q(%q, %ind : memref<?x1x16xf16>, memref<?xi32>) kv(%q, %q : memref<?x1x16xf16>, memref<?x1x16xf16>)
    indptr(%ind : memref<?xi32>) outs(%q : memref<?x1x16xf16>) {format = #attn.format<ragged>}
  attn.attention q(%q, %ind : memref<?x1x16xf16>, memref<?xi32>) kv(%q, %q : memref<?x1x16xf16>, memref<?x1x16xf16>)
    indptr(%ind : memref<?xi32>) outs(%q : memref<?x1x16xf16>) {format = #attn.format<ragged>}
  return
}
