// RUN: attn-opt %s -split-input-file -verify-diagnostics

// merge_c1
func.func @f(%s: memref<?x8x64xf32>, %l: memref<?x8xf32>, %o: memref<?x8x64xbf16>) {
  // expected-error@+1 {{needs at least one state and one lse for each, got 2 and 1 [merge_c1]}}
  attn.merge states(%s, %s : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%l : memref<?x8xf32>) outs(%o : memref<?x8x64xbf16>)
  return
}

// -----

// merge_c2: o
func.func @f(%s0: memref<?x8x64xf32>, %l0: memref<?x8xf32>, %o: memref<?x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{'o' must be [tokens, heads, head dim], got 'memref<?x64xbf16>' [merge_c2]}}
  attn.merge states(%s0 : memref<?x8x64xf32>) lse(%l0 : memref<?x8xf32>)
    outs(%o : memref<?x64xbf16>, %lse : memref<?x8xf32>)
  return
}

// -----

// merge_c2: o's type
func.func @f(%s0: memref<?x8x64xf32>, %l0: memref<?x8xf32>, %o: memref<?x8x64xf64>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{'o' must have element type bf16, f16 or f32, got 'memref<?x8x64xf64>' [merge_c2]}}
  attn.merge states(%s0 : memref<?x8x64xf32>) lse(%l0 : memref<?x8xf32>)
    outs(%o : memref<?x8x64xf64>, %lse : memref<?x8xf32>)
  return
}

// -----

// merge_c2: states
func.func @f(%s0: memref<?x8x64xbf16>, %l0: memref<?x8xf32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{each state must be f32 of the shape of 'o', got 'memref<?x8x64xbf16>' [merge_c2]}}
  attn.merge states(%s0 : memref<?x8x64xbf16>) lse(%l0 : memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>)
  return
}

// -----

// merge_c2: lse
func.func @f(%s0: memref<?x8x64xf32>, %l0: memref<?x4xf32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{each lse must be f32 [tokens, heads] of the rows of 'o', got 'memref<?x4xf32>' [merge_c2]}}
  attn.merge states(%s0 : memref<?x8x64xf32>) lse(%l0 : memref<?x4xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>)
  return
}

// -----

// merge_c3
func.func @f(%s0: memref<?x8x64xf32, strided<[1024, 128, 2]>>, %l0: memref<?x8xf32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{'state' must have a contiguous last dimension (stride 1), got 'memref<?x8x64xf32, strided<[1024, 128, 2]>>' [merge_c3]}}
  attn.merge states(%s0 : memref<?x8x64xf32, strided<[1024, 128, 2]>>) lse(%l0 : memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>)
  return
}

// -----

// merge_c4: one base each
func.func @f(%s0: memref<?x8x64xf32>, %l0: memref<?x8xf32>, %s1: memref<?x8x64xf32>, %l1: memref<?x8xf32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{'lse_bases' needs one base per state, got 1 for 2 states [merge_c4]}}
  attn.merge states(%s0, %s1 : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%l0, %l1 : memref<?x8xf32>, memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {lse_bases = [#attn.lse_base<natural>]}
  return
}

// -----

// merge_c4: equal bases
func.func @f(%s0: memref<?x8x64xf32>, %l0: memref<?x8xf32>, %s1: memref<?x8x64xf32>, %l1: memref<?x8xf32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{states must have the lse base of the result, natural; convert the lse of the state of base base2 first [merge_c4]}}
  attn.merge states(%s0, %s1 : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%l0, %l1 : memref<?x8xf32>, memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {lse_bases = [#attn.lse_base<natural>, #attn.lse_base<base2>]}
  return
}

// -----

// merge_c4: natural by default
func.func @f(%s0: memref<?x8x64xf32>, %l0: memref<?x8xf32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  // expected-error@+1 {{states without 'lse_bases' are natural, but 'lse_base' is base2 [merge_c4]}}
  attn.merge states(%s0 : memref<?x8x64xf32>) lse(%l0 : memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {lse_base = #attn.lse_base<base2>}
  return
}

// -----

// append_c1
func.func @f(%kn: memref<?x2x64xbf16>, %vn: memref<?x2x64xbf16>, %i: memref<?xf32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %t: memref<?xi32>) {
  // expected-error@+1 {{'indptr' must have rank 1 and element type i32 or i64, got 'memref<?xf32>' [append_c1]}}
  attn.append (%kn, %vn, %i : memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xf32>) into (%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    table (%t, %t, %t : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  return
}

// -----

// append_c2
func.func @f(%kn: memref<?x4x64xbf16>, %vn: memref<?x2x64xbf16>, %i: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %t: memref<?xi32>) {
  // expected-error@+1 {{'k_new' must be [tokens, heads, head dim] and 'k' [pages, page size, heads, head dim] of one element type, static but for tokens and pages, got 'memref<?x4x64xbf16>' and 'memref<?x16x2x64xbf16>' [append_c2]}}
  attn.append (%kn, %vn, %i : memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>) into (%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    table (%t, %t, %t : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  return
}

// -----

// append_c2: k and v
func.func @f(%kn: memref<?x2x64xbf16>, %vn: memref<?x2x64xbf16>, %i: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x8x2x64xbf16>, %t: memref<?xi32>) {
  // expected-error@+1 {{'k' and 'v' must have one page size and number of heads, got 'memref<?x16x2x64xbf16>' and 'memref<?x8x2x64xbf16>' [append_c2]}}
  attn.append (%kn, %vn, %i : memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>) into (%k, %v : memref<?x16x2x64xbf16>, memref<?x8x2x64xbf16>)
    table (%t, %t, %t : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  return
}

// -----

// append_c3
func.func @f(%kn: memref<?x2x64xbf16>, %vn: memref<?x2x64xbf16, strided<[256, 128, 2]>>, %i: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %t: memref<?xi32>) {
  // expected-error@+1 {{'v_new' must have a contiguous last dimension (stride 1), got 'memref<?x2x64xbf16, strided<[256, 128, 2]>>' [append_c3]}}
  attn.append (%kn, %vn, %i : memref<?x2x64xbf16>, memref<?x2x64xbf16, strided<[256, 128, 2]>>, memref<?xi32>) into (%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    table (%t, %t, %t : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  return
}
