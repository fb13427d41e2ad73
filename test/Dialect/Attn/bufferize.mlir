// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

attn.variant @biased(%table: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %b = memref.load %table[%k] : memref<?xf32>
    %y = arith.addf %x, %b : f32
    attn.yield %y : f32
  }
}

// In place: no allocation, no copy; o and lse are the caller's.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x8x64xf16>, %[[T:[^:]*]]: memref<?xi32>, %[[K:[^:]*]]: memref<?x2x64xf16>, %[[O:[^:]*]]: memref<?x8x64xf16>, %[[LSE:[^:]*]]: memref<?x8xf32>, %[[B:[^:]*]]: memref<?xf32>
// CHECK-NOT: memref.alloc
// CHECK: attn.attention @biased(%[[B]] : memref<?xf32>) q(%[[Q]], %[[T]] : memref<?x8x64xf16>, memref<?xi32>) kv(%[[K]], %[[K]] : {{.*}}) indptr(%[[T]] : memref<?xi32>) outs(%[[O]] : memref<?x8x64xf16>, %[[LSE]] : memref<?x8xf32>) {format = #attn.format<ragged>}
// CHECK-NEXT: return %[[O]], %[[LSE]]
func.func @in_place(%q: tensor<?x8x64xf16>, %t: tensor<?xi32>, %k: tensor<?x2x64xf16>, %o: tensor<?x8x64xf16>, %lse: tensor<?x8xf32>,
                    %b: tensor<?xf32>) -> (tensor<?x8x64xf16>, tensor<?x8xf32>) {
  %r:2 = attn.attention @biased(%b : tensor<?xf32>) q(%q, %t : tensor<?x8x64xf16>, tensor<?xi32>)
    kv(%k, %k : tensor<?x2x64xf16>, tensor<?x2x64xf16>) indptr(%t : tensor<?xi32>)
    outs(%o : tensor<?x8x64xf16>, %lse : tensor<?x8xf32>) {format = #attn.format<ragged>} -> tensor<?x8x64xf16>, tensor<?x8xf32>
  return %r#0, %r#1 : tensor<?x8x64xf16>, tensor<?x8xf32>
}

// The init is used afterwards, so it must not be overwritten.
// CHECK-LABEL: func.func @copy
// CHECK: %[[ALLOC:.*]] = memref.alloc
// CHECK: memref.copy %{{.*}}, %[[ALLOC]]
// CHECK: attn.attention q({{.*}}) kv({{.*}}) indptr({{.*}}) outs(%[[ALLOC]] : memref<4x8x64xf16>)
func.func @copy(%q: tensor<4x8x64xf16>, %t: tensor<?xi32>, %k: tensor<?x2x64xf16>, %o: tensor<4x8x64xf16>)
    -> (tensor<4x8x64xf16>, tensor<4x8x64xf16>) {
  %r = attn.attention q(%q, %t : tensor<4x8x64xf16>, tensor<?xi32>) kv(%k, %k : tensor<?x2x64xf16>, tensor<?x2x64xf16>)
    indptr(%t : tensor<?xi32>) outs(%o : tensor<4x8x64xf16>) {format = #attn.format<ragged>} -> tensor<4x8x64xf16>
  return %r, %o : tensor<4x8x64xf16>, tensor<4x8x64xf16>
}
