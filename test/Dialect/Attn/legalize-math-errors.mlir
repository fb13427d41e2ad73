// RUN: attn-opt %s --attn-legalize-math -split-input-file -verify-diagnostics

func.func @f(%x: f32) -> f32 {
  // expected-error@+1 {{'math.erf' op is not on the closed list of math functions (exp, exp2, log, log2, tanh, sin, cos, sqrt, rsqrt, absf, fma, floor, ceil)}}
  %0 = math.erf %x : f32
  return %0 : f32
}

// -----

func.func @f(%x: f64) -> f64 {
  // expected-error@+1 {{math is legalised for f32 and vectors of f32 only, got 'f64'; extend to f32 first}}
  %0 = math.exp %x : f64
  return %0 : f64
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{math is legalised for f32 and vectors of f32 only, got 'tensor<4xf32>'; extend to f32 first}}
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
