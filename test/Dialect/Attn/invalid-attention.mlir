// RUN: attn-opt %s -split-input-file -verify-diagnostics

// format_c1
// expected-error@+1 {{bsr needs 'row_block', the query rows of a row block, above 0 [format_c1]}}
module attributes {a = #attn.format<bsr>} {}

// -----

// format_c1
// expected-error@+1 {{'row_block' is for bsr only, got 4 with paged [format_c1]}}
module attributes {a = #attn.format<paged, row_block = 4>} {}

// -----

// config_c1
// expected-error@+1 {{'keys' must be 1 to 1024, got 0 [config_c1]}}
module attributes {a = #attn.config<rows = 64, keys = 0>} {}

// -----

// attention_c1: an indices operand per level
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{format paged with 1 levels needs 1 'indices' operands, got 0 [attention_c1]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c1: a last operand per level
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %last1: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{format paged with 1 levels needs 1 'last' operands, got 2 [attention_c1]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0, %last1 : memref<?xi32>, memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c1: ragged has no pages
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{format ragged with 1 levels needs 0 'indices' operands, got 1 [attention_c1]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<ragged>}
  return
}

// -----

// attention_c2
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %ind1: memref<?xi32>, %idx0: memref<?xi32>, %idx1: memref<?xi32>, %last0: memref<?xi32>, %last1: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{needs one 'row_indptr' operand per level (none for a single level of one entry per request), got 0 for 2 levels [attention_c2]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0, %ind1 : memref<?xi32>, memref<?xi32>)
    indices(%idx0, %idx1 : memref<?xi32>, memref<?xi32>)
    last(%last0, %last1 : memref<?xi32>, memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c3: rank and type
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi16>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'qo_indptr' must have rank 1 and element type i32 or i64, got 'memref<?xi16>' [attention_c3]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi16>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c3: contiguous
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32, strided<[2]>>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'indptr' must be contiguous, got 'memref<?xi32, strided<[2]>>' [attention_c3]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32, strided<[2]>>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c3: one type of page numbers
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %ind1: memref<?xi32>, %idx0: memref<?xi32>, %idx1: memref<?xi64>, %last0: memref<?xi32>, %last1: memref<?xi32>, %row0: memref<?xi32>, %row1: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'indices' of all levels must have one element type [attention_c3]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0, %ind1 : memref<?xi32>, memref<?xi32>)
    indices(%idx0, %idx1 : memref<?xi32>, memref<?xi64>)
    last(%last0, %last1 : memref<?xi32>, memref<?xi32>)
    row_indptr(%row0, %row1 : memref<?xi32>, memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c4: mixed
func.func @f(%q: memref<?x8x64xbf16>, %qo: tensor<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{operands must be all memrefs or all tensors, got 'memref<?x8x64xbf16>' and 'tensor<?xi32>' [attention_c4]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, tensor<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c4: results
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{expected 0 results of the types of the inits, got 'tensor<?x8x64xbf16>' [attention_c4]}}
  %r = attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>} -> tensor<?x8x64xbf16>
  return
}

// -----

// attention_c5: rank of q
func.func @f(%q: memref<?x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'q' must be [tokens, heads, head dim], got 'memref<?x64xbf16>' [attention_c5]}}
  attn.attention q(%q, %qo : memref<?x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c5: rank of k
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' must be [pages, page size, heads, head dim], got 'memref<?x2x64xbf16>' [attention_c5]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c6
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x?x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' must have static heads, head dim and page size above 0 (only tokens or pages are dynamic) [attention_c6]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x?x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c6: an extent of 0
func.func @f(%q: memref<?x0x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'q' must have static heads, head dim and page size above 0 (only tokens or pages are dynamic) [attention_c6]}}
  attn.attention q(%q, %qo : memref<?x0x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: heads of q and o
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x4x64xbf16>) {
  // expected-error@+1 {{'q' and 'o' differ in heads: 8 and 4 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x4x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: tokens of q and o
func.func @f(%q: memref<3x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<4x8x64xbf16>) {
  // expected-error@+1 {{'q' and 'o' differ in tokens: 3 and 4 [attention_c7]}}
  attn.attention q(%q, %qo : memref<3x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<4x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: heads of k and v
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x4x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' and 'v' differ in heads: 2 and 4 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x4x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: groups
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x3x64xbf16>, %v: memref<?x16x3x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{query heads must be a multiple of KV heads, got 8 and 3 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x3x64xbf16>, memref<?x16x3x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: head dim of q and k
func.func @f(%q: memref<?x8x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'q' and 'k' differ in head dim: 128 and 64 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: head dim of v and o
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x128xbf16>) {
  // expected-error@+1 {{'v' and 'o' differ in head dim: 64 and 128 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x128xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: pages
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<5x16x2x64xbf16>, %v: memref<6x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' and 'v' differ in pages: 5 and 6 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<5x16x2x64xbf16>, memref<6x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c7: page size
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x8x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' and 'v' differ in page size: 16 and 8 [attention_c7]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x8x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c8: head dim 12
func.func @f(%q: memref<?x8x12xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x12xbf16>, %v: memref<?x16x2x12xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x12xbf16>) {
  // expected-error@+1 {{head dimensions (q and k 12, v and o 12) must be a multiple of 8 up to 256 and the same for q, k, v and o, or (192, 128), or 512 [attention_c8]}}
  attn.attention q(%q, %qo : memref<?x8x12xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x12xbf16>, memref<?x16x2x12xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x12xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c8: head dim 264
func.func @f(%q: memref<?x8x264xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x264xbf16>, %v: memref<?x16x2x264xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x264xbf16>) {
  // expected-error@+1 {{head dimensions (q and k 264, v and o 264) must be a multiple of 8 up to 256 and the same for q, k, v and o, or (192, 128), or 512 [attention_c8]}}
  attn.attention q(%q, %qo : memref<?x8x264xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x264xbf16>, memref<?x16x2x264xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x264xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c8: head dim 1024
func.func @f(%q: memref<?x8x1024xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x1024xbf16>, %v: memref<?x16x2x1024xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x1024xbf16>) {
  // expected-error@+1 {{head dimensions (q and k 1024, v and o 1024) must be a multiple of 8 up to 256 and the same for q, k, v and o, or (192, 128), or 512 [attention_c8]}}
  attn.attention q(%q, %qo : memref<?x8x1024xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x1024xbf16>, memref<?x16x2x1024xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x1024xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c8: (128, 64)
func.func @f(%q: memref<?x8x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x128xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{head dimensions (q and k 128, v and o 64) must be}}
  attn.attention q(%q, %qo : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x128xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c9: q and o
func.func @f(%q: memref<?x8x64xf64>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'q' and 'o' must have element type bf16, f16 or f32, got 'f64' and 'bf16' [attention_c9]}}
  attn.attention q(%q, %qo : memref<?x8x64xf64>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c9: k and v
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' and 'v' must have one element type, got 'bf16' and 'f16' [attention_c9]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c9: q and k
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xf16>, %v: memref<?x16x2x64xf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' and 'v' must have the element type of q ('bf16'), or f8E4M3FN or f8E5M2 with a 16-bit q, got 'f16' [attention_c9]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xf16>, memref<?x16x2x64xf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c9: fp8 needs a 16-bit q
func.func @f(%q: memref<?x8x64xf32>, %qo: memref<?xi32>, %k: memref<?x16x2x64xf8E4M3FN>, %v: memref<?x16x2x64xf8E4M3FN>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' and 'v' must have the element type of q ('f32'), or f8E4M3FN or f8E5M2 with a 16-bit q, got 'f8E4M3FN' [attention_c9]}}
  attn.attention q(%q, %qo : memref<?x8x64xf32>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xf8E4M3FN>, memref<?x16x2x64xf8E4M3FN>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c10: stride 1
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16, strided<[4096, 256, 128, 2]>>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'k' must have a contiguous last dimension (stride 1), got 'memref<?x16x2x64xbf16, strided<[4096, 256, 128, 2]>>' [attention_c10]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16, strided<[4096, 256, 128, 2]>>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c10: strided layout
func.func @f(%q: memref<?x8x64xbf16, affine_map<(d0, d1, d2) -> (d0, d1, d2 mod 8)>>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'q' must have a strided layout, got 'memref<?x8x64xbf16, affine_map<(d0, d1, d2) -> (d0, d1, d2 mod 8)>>' [attention_c10]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16, affine_map<(d0, d1, d2) -> (d0, d1, d2 mod 8)>>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c11: lse's type
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>, %lse: memref<?x4xf32>) {
  // expected-error@+1 {{'lse' must be f32 [tokens, query heads], got 'memref<?x4xf32>' [attention_c11]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x4xf32>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c11: base without lse
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'lse_base' is base2 but there is no lse operand [attention_c11]}}
  attn.attention q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>, lse_base = #attn.lse_base<base2>}
  return
}

// -----

// attention_c11: normalizer none has no lse
attn.variant @sig() normalizer(none) {
}
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{@sig has normalizer none, which gives no lse; drop the operand [attention_c11]}}
  attn.attention @sig()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c12: no such variant
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'@nothing' does not name an attn.variant [attention_c12]}}
  attn.attention @nothing()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c12: another symbol
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{'@f' does not name an attn.variant [attention_c12]}}
  attn.attention @f()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c12: parameters without a variant
func.func @f(%q: memref<?x8x64xbf16>, %t: memref<?xi32>, %k: memref<?x2x64xbf16>, %p: f32) {
  // expected-error@+1 {{has parameters but no variant [attention_c12]}}
  "attn.attention"(%p, %q, %t, %k, %k, %t, %q) {format = #attn.format<ragged>, operandSegmentSizes = array<i32: 1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0>} :
    (f32, memref<?x8x64xbf16>, memref<?xi32>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>, memref<?x8x64xbf16>) -> ()
  return
}

// -----

// attention_c1: no level
func.func @f(%q: memref<?x8x64xbf16>, %t: memref<?xi32>, %k: memref<?x2x64xbf16>) {
  // expected-error@+1 {{needs one 'indptr' operand per level, got none [attention_c1]}}
  "attn.attention"(%q, %t, %k, %k, %q) {format = #attn.format<ragged>, operandSegmentSizes = array<i32: 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0>} :
    (memref<?x8x64xbf16>, memref<?xi32>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x8x64xbf16>) -> ()
  return
}

// -----

// attention_c13: how many
attn.variant @cap(%c: f32) {
}
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{@cap has 1 parameters, got 0 [attention_c13]}}
  attn.attention @cap()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c13: types
// expected-note@+1 {{variant declared here}}
attn.variant @cap(%c: f32) {
}
func.func @f(%p0: index, %q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{parameter 0 of @cap is 'f32', got 'index' [attention_c13]}}
  attn.attention @cap(%p0 : index)
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c14
attn.variant @key() {
  // expected-note@+1 {{hook declared here}}
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    attn.yield %x : vector<128xf32>
  }
}
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{the key hook of @key takes 'vector<128xf32>', but the head dim of q and k is 64 [attention_c14]}}
  attn.attention @key()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c14: v
attn.variant @key() {
  // expected-note@+1 {{hook declared here}}
  attn.hook value (%x: vector<128xf32>, %at: !attn.coord) {
    attn.yield %x : vector<128xf32>
  }
}
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{the value hook of @key takes 'vector<128xf32>', but the head dim of v and o is 64 [attention_c14]}}
  attn.attention @key()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}

// -----

// attention_c15
attn.variant @key() {
  // expected-note@+1 {{hook declared here}}
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    %n = attn.kv_len %at
    attn.yield %x : vector<64xf32>
  }
}
func.func @f(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind0: memref<?xi32>, %idx0: memref<?xi32>, %last0: memref<?xi32>, %row0: memref<?xi32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{the key hook of @key reads request, kv_len or qo_len, but levels with 'row_indptr' share keys among requests; use kv_pos, or a single level without 'row_indptr' [attention_c15]}}
  attn.attention @key()
    q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ind0 : memref<?xi32>)
    indices(%idx0 : memref<?xi32>)
    last(%last0 : memref<?xi32>)
    row_indptr(%row0 : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}
