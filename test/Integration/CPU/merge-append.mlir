// REQUIRES: mlir-runner
// RUN: attn-opt %s --convert-attn-to-loops --convert-linalg-to-loops --convert-scf-to-cf --expand-strided-metadata --finalize-memref-to-llvm \
// RUN:   --convert-math-to-llvm --convert-arith-to-llvm --convert-cf-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-runner -e main --entry-point-result=void --shared-libs=%llvm_libs/libmlir_runner_utils.so,%llvm_libs/libmlir_c_runner_utils.so \
// RUN:   | FileCheck %s

// What merges and appends compute on the host, with values that can be checked by hand.

func.func private @printMemrefF32(memref<*xf32>)

// Three states of one token with two heads. Head 0: lse 0 and ln 3, the third is empty and holds NaN: weights 1/4 and
// 3/4, lse ln 4. Head 1: all empty, o 0 and lse -inf.
func.func @merge() {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = memref.alloc() : memref<1x2x2xf32>
  %b = memref.alloc() : memref<1x2x2xf32>
  %c = memref.alloc() : memref<1x2x2xf32>
  %la = memref.alloc() : memref<1x2xf32>
  %lb = memref.alloc() : memref<1x2xf32>
  %lc = memref.alloc() : memref<1x2xf32>
  %o = memref.alloc() : memref<1x2x2xf32>
  %lse = memref.alloc() : memref<1x2xf32>
  %nan = arith.constant 0x7FC00000 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %ln3 = arith.constant 1.09861229 : f32
  %f0 = arith.constant 0.0 : f32
  %f4 = arith.constant 4.0 : f32
  %f8 = arith.constant 8.0 : f32
  linalg.fill ins(%f4 : f32) outs(%a : memref<1x2x2xf32>)
  linalg.fill ins(%f8 : f32) outs(%b : memref<1x2x2xf32>)
  linalg.fill ins(%nan : f32) outs(%c : memref<1x2x2xf32>)
  linalg.fill ins(%ninf : f32) outs(%la : memref<1x2xf32>)
  linalg.fill ins(%ninf : f32) outs(%lb : memref<1x2xf32>)
  linalg.fill ins(%ninf : f32) outs(%lc : memref<1x2xf32>)
  memref.store %f0, %la[%zero, %zero] : memref<1x2xf32>
  memref.store %ln3, %lb[%zero, %zero] : memref<1x2xf32>
  attn.merge states(%a, %b, %c : memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>)
    lse(%la, %lb, %lc : memref<1x2xf32>, memref<1x2xf32>, memref<1x2xf32>)
    outs(%o : memref<1x2x2xf32>, %lse : memref<1x2xf32>)
  // CHECK: {{\[\[\[}}7, {{ *}}7],
  // CHECK-NEXT: [0, {{ *}}0]]]
  %po = memref.cast %o : memref<1x2x2xf32> to memref<*xf32>
  func.call @printMemrefF32(%po) : (memref<*xf32>) -> ()
  // CHECK: {{\[\[}}1.38629, {{ *}}-inf]]
  %pl = memref.cast %lse : memref<1x2xf32> to memref<*xf32>
  func.call @printMemrefF32(%pl) : (memref<*xf32>) -> ()
  // The same in base 2: lse 0 and log2 3 give log2 4.
  %log3 = arith.constant 1.5849625 : f32
  memref.store %log3, %lb[%zero, %zero] : memref<1x2xf32>
  attn.merge states(%a, %b, %c : memref<1x2x2xf32>, memref<1x2x2xf32>, memref<1x2x2xf32>)
    lse(%la, %lb, %lc : memref<1x2xf32>, memref<1x2xf32>, memref<1x2xf32>)
    outs(%o : memref<1x2x2xf32>, %lse : memref<1x2xf32>)
    {lse_base = #attn.lse_base<base2>, lse_bases = [#attn.lse_base<base2>, #attn.lse_base<base2>, #attn.lse_base<base2>]}
  // CHECK: {{\[\[\[}}7, {{ *}}7],
  func.call @printMemrefF32(%po) : (memref<*xf32>) -> ()
  // CHECK: {{\[\[}}2, {{ *}}-inf]]
  func.call @printMemrefF32(%pl) : (memref<*xf32>) -> ()
  return
}

func.func @table(%t: memref<?xi32>, %at: index, %value: i32) {
  memref.store %value, %t[%at] : memref<?xi32>
  return
}

// Pages of 2 keys. Request 0 has no page and no token, request 1 has pages 3 and 1 with 3 keys of which 2 are new
// (tokens 0 and 1: slot 1 of page 3, slot 0 of page 1), request 2 has page 0 with 2 keys, 1 of them new (token 2: slot 1).
func.func @append() {
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %i3 = arith.constant 3 : index
  %i4 = arith.constant 4 : index
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %kn = memref.alloc() : memref<3x1x2xf32>
  %k = memref.alloc() : memref<4x2x1x2xf32>
  %f0 = arith.constant 0.0 : f32
  linalg.fill ins(%f0 : f32) outs(%k : memref<4x2x1x2xf32>)
  scf.for %i = %i0 to %i3 step %i1 {
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %one = arith.constant 1.0 : f32
    %x = arith.addf %f, %one : f32
    memref.store %x, %kn[%i, %i0, %i0] : memref<3x1x2xf32>
    %ten = arith.constant 10.0 : f32
    %y = arith.mulf %x, %ten : f32
    memref.store %y, %kn[%i, %i0, %i1] : memref<3x1x2xf32>
  }
  %indptr = memref.alloc(%i4) : memref<?xi32>
  %kv_indptr = memref.alloc(%i4) : memref<?xi32>
  %pages = memref.alloc(%i3) : memref<?xi32>
  %last = memref.alloc(%i3) : memref<?xi32>
  func.call @table(%indptr, %i0, %c0) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%indptr, %i1, %c0) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%indptr, %i2, %c2) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%indptr, %i3, %c3) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%kv_indptr, %i0, %c0) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%kv_indptr, %i1, %c0) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%kv_indptr, %i2, %c2) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%kv_indptr, %i3, %c3) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%pages, %i0, %c3) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%pages, %i1, %c1) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%pages, %i2, %c0) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%last, %i0, %c1) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%last, %i1, %c1) : (memref<?xi32>, index, i32) -> ()
  func.call @table(%last, %i2, %c2) : (memref<?xi32>, index, i32) -> ()
  %fresh = memref.cast %kn : memref<3x1x2xf32> to memref<?x1x2xf32>
  %cache = memref.cast %k : memref<4x2x1x2xf32> to memref<?x2x1x2xf32>
  attn.append (%fresh, %fresh, %indptr : memref<?x1x2xf32>, memref<?x1x2xf32>, memref<?xi32>)
    into (%cache, %cache : memref<?x2x1x2xf32>, memref<?x2x1x2xf32>)
    table (%kv_indptr, %pages, %last : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  %flat = memref.collapse_shape %k [[0, 1], [2, 3]] : memref<4x2x1x2xf32> into memref<8x2xf32>
  %print = memref.cast %flat : memref<8x2xf32> to memref<*xf32>
  // Page 0, then 1, 2 and 3.
  // CHECK: {{\[\[}}0, {{ *}}0],
  // CHECK-NEXT: [3, {{ *}}30],
  // CHECK-NEXT: [2, {{ *}}20],
  // CHECK-NEXT: [0, {{ *}}0],
  // CHECK-NEXT: [0, {{ *}}0],
  // CHECK-NEXT: [0, {{ *}}0],
  // CHECK-NEXT: [0, {{ *}}0],
  // CHECK-NEXT: [1, {{ *}}10]]
  func.call @printMemrefF32(%print) : (memref<*xf32>) -> ()
  return
}

func.func @main() {
  func.call @merge() : () -> ()
  func.call @append() : () -> ()
  return
}
