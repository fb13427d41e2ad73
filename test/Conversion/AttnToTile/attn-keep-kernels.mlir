// RUN: attn-opt %s --attn-select-config --attn-to-tile --attn-keep-kernels | FileCheck %s
// A pipeline takes the whole module that attn-to-tile leaves: the statement, its variant and the range function.
// RUN: attn-opt %s --attn-front-pipeline --attn-host-pipeline=width=8 | FileCheck %s --check-prefix=HOST
// RUN: attn-opt %s --attn-select-config=target=sm_80 --attn-to-tile --attn-gpu-pipeline=chip=sm_80 | FileCheck %s --check-prefix=GPU
// What a kernel calls stays, and what that calls.
// RUN: attn-opt %S/Inputs/calls.mlir --attn-keep-kernels | FileCheck %s --check-prefix=CALLS

// CHECK-NOT: attn.variant
// CHECK-NOT: func.func
// CHECK: tile.kernel @causal_r
// CHECK: tile.kernel @causal_merge
// CHECK-NOT: func.func

// HOST-NOT: attn.
// HOST: llvm.func @causal_r16(
// HOST: llvm.func @causal_merge(

// GPU-NOT: attn.attention
// GPU: gpu.module @attn_kernels
// GPU: llvm.func @causal_r16(

// CALLS-NOT: @nobody
// CALLS: func.func @inner
// CALLS: func.func @outer
// CALLS-NOT: @nobody
// CALLS: tile.kernel @kernel

attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x2x64xf16>, %t: memref<?xi32>, %k: memref<?x2x64xf16>, %o: memref<?x2x64xf16>) {
  attn.attention @causal() q(%q, %t : memref<?x2x64xf16>, memref<?xi32>)
    kv(%k, %k : memref<?x2x64xf16>, memref<?x2x64xf16>) indptr(%t : memref<?xi32>)
    outs(%o : memref<?x2x64xf16>) {format = #attn.format<ragged>}
  return
}
