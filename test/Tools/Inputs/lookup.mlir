// A hook that reads a table by key.
attn.variant @lookup(%table: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %b = memref.load %table[%k] : memref<?xf32>
    %y = arith.addf %x, %b : f32
    attn.yield %y : f32
  }
}
func.func @attend(%q: memref<?x1x16xf16>, %ind: memref<?xi32>, %table: memref<?xf32>) {
  attn.attention @lookup(%table : memref<?xf32>)
    q(%q, %ind : memref<?x1x16xf16>, memref<?xi32>) kv(%q, %q : memref<?x1x16xf16>, memref<?x1x16xf16>)
    indptr(%ind : memref<?xi32>) outs(%q : memref<?x1x16xf16>) {format = #attn.format<ragged>}
  return
}
