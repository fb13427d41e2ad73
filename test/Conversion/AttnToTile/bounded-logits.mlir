// Softmax of bounded logits keeps no row maximum: the constant 0 stands for it.

// RUN: attn-opt %s --attn-select-config=target=host --attn-to-tile | FileCheck %s
// RUN: attn-opt %s --attn-select-config=target=sm_80 --attn-to-tile | FileCheck %s
// RUN: attn-opt %s --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s
// RUN: sed -e 's/-55.0/-9.7/;s/ 55.0/ 9.7/;s/bf16/f16/g' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s

// Just too wide for weights of bf16, and for those of f16; the lower side alone.
// RUN: sed -e 's/ 55.0/ 55.5/' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s --check-prefix=MAXIMUM
// RUN: sed -e 's/-55.0/-55.5/' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s --check-prefix=MAXIMUM
// RUN: sed -e 's/-55.0/-9.8/;s/ 55.0/ 9.7/;s/bf16/f16/g' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s --check-prefix=MAXIMUM

// The hyperbolic tangent of a bounded soft-cap may err absolutely, one whose yield is no multiple of it may not; nor one of
// logits that are not bounded.
// RUN: sed -e 's|^    %%1 = arith.minimumf.*|    %%t = math.tanh %%x : f32\n    %%1 = arith.mulf %%t, %%most : f32|' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s --check-prefix=CAP
// RUN: sed -e 's|^    %%1 = arith.minimumf.*|    %%t = math.tanh %%x : f32\n    %%1 = arith.minimumf %%t, %%most : f32|' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s --check-prefix=PRECISE
// RUN: sed -e 's/ 55.0/ 56.0/;s|^    %%1 = arith.minimumf.*|    %%t = math.tanh %%x : f32\n    %%1 = arith.mulf %%t, %%most : f32|' %s | attn-opt --attn-select-config=target=sm_90a --attn-to-tile | FileCheck %s --check-prefix=PRECISE
// CAP: tile.kernel
// CAP: math.tanh %{{.*}} {attn.absolute_error} : f32
// PRECISE: tile.kernel
// PRECISE: math.tanh %{{[a-z0-9]+}} : f32

// Every pass takes the form and keeps its meaning. Sums stay with the lanes; waits stand behind the first weights.
// RUN: attn-opt %s --pass-pipeline='builtin.module(attn-select-config{target=sm_90a},attn-to-tile,attn-keep-kernels,attn-legalize-math{target=gpu},canonicalize,cse)' -o %t.l.mlir
// RUN: attn-interpret %t.l.mlir --kernel=clamped_r16 --through --runs=1 --longest=3 --split=2
// RUN: attn-interpret %t.l.mlir --kernel=clamped_r64 --through --runs=1 --longest=2
// RUN: attn-opt %t.l.mlir --pass-pipeline='builtin.module(tile.kernel(attn-schedule-kernel))' | FileCheck %s --check-prefix=ROLES

attn.variant @clamped() {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %least = arith.constant -55.0 : f32
    %most = arith.constant 55.0 : f32
    %0 = arith.maximumf %x, %least : f32
    %1 = arith.minimumf %0, %most : f32
    attn.yield %1 : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

// CHECK-LABEL: tile.kernel @clamped_r16(
// CHECK: %[[Y:.*]] = tile.mask
// CHECK: %[[P:.*]] = tile.map (%[[X:.*]] = %[[Y]]
// CHECK-NEXT: math.exp2 %[[X]] fastmath<afn>
// CHECK-NOT: maximumf
// CHECK: %[[S:.*]] = tile.reduce addf %[[P]]
// CHECK: tile.map arith.addf(%{{.*}}, %[[S]]
// CHECK: tile.dot %{{.*}} acc %{{[a-z0-9]+}} :
// lse = log2 of the sum.
// CHECK: math.log2 %{{.*}} fastmath<afn>
// CHECK-NEXT: tile.yield
// Pieces are merged as those of other kernels are.
// CHECK-LABEL: tile.kernel @clamped_merge(
// CHECK: maximumf

// ROLES-LABEL: tile.kernel @clamped_r128(
// ROLES: scf.while
// ROLES: scf.for
// ROLES: scf.for
// ROLES: %[[S:.*]] = tile.dot_async
// ROLES: %[[O:.*]] = tile.dot_async
// ROLES: tile.await %[[S]]
// ROLES: math.exp2
// ROLES: %[[T:.*]] = tile.reduce addf %{{.*}} scope thread
// ROLES: tile.map arith.addf(
// ROLES: %[[A:.*]] = tile.await %[[O]] after %[[T]] terms
// ROLES: scf.yield {{.*}}%[[A]] :
// ROLES-LABEL: tile.kernel @clamped_merge(

// MAXIMUM-LABEL: tile.kernel @clamped_r128(
// MAXIMUM: tile.reduce maximumf

func.func @attend(%q: memref<?x4x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x2x64xbf16>, %v: memref<?x2x64xbf16>,
                  %kv_indptr: memref<?xi32>, %o: memref<?x4x64xbf16>, %lse: memref<?x4xf32>) {
  attn.attention @clamped()
    q(%q, %qo_indptr : memref<?x4x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x2x64xbf16>, memref<?x2x64xbf16>) indptr(%kv_indptr : memref<?xi32>)
    outs(%o : memref<?x4x64xbf16>, %lse : memref<?x4xf32>) {format = #attn.format<ragged>}
  return
}
