// RUN: attn-opt %s --one-shot-bufferize="bufferize-function-boundaries" -split-input-file -verify-diagnostics

func.func @f(%q: tensor<4x8x64xf16>, %t: tensor<?xi32>, %k: tensor<?x2x64xf16>, %o: tensor<4x8x64xf16>) -> tensor<4x8x64xf16> {
  // expected-error@+2 {{failed to bufferize op}}
  // expected-error@+1 {{operand 0 becomes 'memref<4x8x64xf16, strided<[?, ?, ?], offset: ?>>', but needs a contiguous last dimension; bufferise with function-boundary-type-conversion=identity-layout-map and unknown-type-conversion=identity-layout-map}}
  %r = attn.attention q(%q, %t : tensor<4x8x64xf16>, tensor<?xi32>) kv(%k, %k : tensor<?x2x64xf16>, tensor<?x2x64xf16>)
    indptr(%t : tensor<?xi32>) outs(%o : tensor<4x8x64xf16>) {format = #attn.format<ragged>} -> tensor<4x8x64xf16>
  return %r : tensor<4x8x64xf16>
}

// -----

attn.variant @biased(%table: memref<?xf32>) {
}

func.func @f(%b: tensor<?xf32>, %q: memref<4x8x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>, %o: memref<4x8x64xf16>) -> tensor<4x8x64xf16> {
  %0 = bufferization.to_tensor %q restrict : memref<4x8x64xf16> to tensor<4x8x64xf16>
  %1 = bufferization.to_tensor %t restrict : memref<?xi32> to tensor<?xi32>
  %2 = bufferization.to_tensor %k restrict : memref<?x2x64xf16> to tensor<?x2x64xf16>
  %3 = bufferization.to_tensor %o restrict writable : memref<4x8x64xf16> to tensor<4x8x64xf16>
  // expected-error@+2 {{failed to bufferize op}}
  // expected-error@+1 {{operand 0 becomes 'memref<?xf32, strided<[?], offset: ?>>', but needs the layout of the parameter}}
  %r = attn.attention @biased(%b : tensor<?xf32>) q(%0, %1 : tensor<4x8x64xf16>, tensor<?xi32>) kv(%2, %2 : tensor<?x2x64xf16>, tensor<?x2x64xf16>)
    indptr(%1 : tensor<?xi32>) outs(%3 : tensor<4x8x64xf16>) {format = #attn.format<ragged>} -> tensor<4x8x64xf16>
  return %r : tensor<4x8x64xf16>
}
