// RUN: attn-opt %s --attn-legalize-math=target=gpu | FileCheck %s --check-prefix=GPU
// RUN: attn-opt %s --attn-legalize-math=target=host | FileCheck %s --check-prefix=HOST --implicit-check-not=math.exp --implicit-check-not=math.log --implicit-check-not=math.tanh --implicit-check-not=math.sin --implicit-check-not=math.cos --implicit-check-not=math.rsqrt --implicit-check-not=math.floor

// What is legal stays as it is: the hardware's approximations on a GPU.
// GPU-LABEL: func.func @approximate(
// GPU-NEXT: math.exp2 %{{.*}} fastmath<afn>
// GPU-NEXT: math.log2 %{{.*}} fastmath<afn>
// GPU-NEXT: math.tanh %{{.*}} fastmath<afn>
// GPU-NEXT: math.sin %{{.*}} fastmath<afn>
// GPU-NEXT: math.cos %{{.*}} fastmath<afn>
// GPU-NEXT: math.rsqrt %{{.*}} fastmath<afn>
// GPU-NEXT: math.sqrt
// GPU-NEXT: math.absf
// GPU-NEXT: math.fma
// GPU-NEXT: return
// HOST-LABEL: func.func @approximate(
// HOST: math.sqrt
// HOST: return
func.func @approximate(%x: f32) -> f32 {
  %0 = math.exp2 %x fastmath<afn> : f32
  %1 = math.log2 %0 fastmath<afn> : f32
  %2 = math.tanh %1 fastmath<afn> : f32
  %3 = math.sin %2 fastmath<afn> : f32
  %4 = math.cos %3 fastmath<afn> : f32
  %5 = math.rsqrt %4 fastmath<afn> : f32
  %6 = math.sqrt %5 : f32
  %7 = math.absf %6 : f32
  %8 = math.fma %7, %7, %7 : f32
  return %8 : f32
}

// exp with afn is one product away from the hardware.
// GPU-LABEL: func.func @exp(
// GPU-NEXT: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// GPU-NEXT: %[[P:.*]] = arith.mulf %{{.*}}, %[[LOG2E]] : f32
// GPU-NEXT: math.exp2 %[[P]] fastmath<afn> : f32
// HOST-LABEL: func.func @exp(
// HOST: arith.bitcast %{{.*}} : i32 to f32
func.func @exp(%x: f32) -> f32 {
  %0 = math.exp %x fastmath<afn> : f32
  return %0 : f32
}

// Without afn: documented expansions; only exp2 remains of the special functions.
// GPU-LABEL: func.func @accurate(
// GPU-NOT: {{math.(exp|log|tanh|sin|cos|rsqrt|floor)[^2]}}
// GPU: math.exp2 %{{.*}} fastmath<afn> : vector<4xf32>
// GPU: return
// HOST-LABEL: func.func @accurate(
// HOST: return
func.func @accurate(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.exp %x : vector<4xf32>
  %1 = math.log %0 : vector<4xf32>
  %2 = math.tanh %1 : vector<4xf32>
  %3 = math.sin %2 : vector<4xf32>
  %4 = math.cos %3 : vector<4xf32>
  %5 = math.rsqrt %4 : vector<4xf32>
  %6 = math.log2 %5 : vector<4xf32>
  %7 = math.exp2 %6 : vector<4xf32>
  %8 = math.floor %7 : vector<4xf32>
  %9 = math.ceil %8 : vector<4xf32>
  return %9 : vector<4xf32>
}

// Hooks are rewritten in place.
// GPU-LABEL: attn.variant @v
// GPU: math.exp2 %{{.*}} fastmath<afn> : f32
// GPU: attn.yield
// HOST-LABEL: attn.variant @v
// HOST: attn.yield
attn.variant @v() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %0 = math.exp %x : f32
    attn.yield %0 : f32
  }
}
