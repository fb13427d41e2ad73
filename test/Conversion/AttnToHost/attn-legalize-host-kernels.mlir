// RUN: attn-opt %s --attn-legalize-host-kernels --split-input-file --verify-diagnostics | FileCheck %s


// CHECK-LABEL: func.func @mine
// CHECK: math.exp2
func.func @mine(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @kernel
// CHECK-NOT: math.exp2
// CHECK: math.fma
// CHECK-NOT: math.exp2
// CHECK: return
func.func @kernel(%x: f32) -> f32 attributes {attn.words = []} {
  %y = math.exp2 %x : f32
  return %y : f32
}

// -----

func.func @refused(%x: f32) -> f32 attributes {attn.words = []} {
  // expected-error @+1 {{is not on the closed list of math functions}}
  %y = math.erf %x : f32
  return %y : f32
}
