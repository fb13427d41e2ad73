// RUN: attn-opt %s --convert-attn-to-loops | FileCheck %s --check-prefix=HOST
// RUN: attn-opt %s --convert-attn-to-loops=target=gpu | FileCheck %s --check-prefix=GPU
// RUN: attn-opt %s --convert-attn-to-loops=target=gpu --gpu-kernel-outlining | FileCheck %s --check-prefix=OUT

// HOST-LABEL: func.func @merge
// HOST-NOT: attn.merge
// HOST: scf.parallel
// HOST-COUNT-2: memref.load %{{.*}} : memref<?x8xf32>
// HOST-NOT: math.exp
// HOST: scf.for
// HOST-COUNT-2: memref.load %{{.*}} : memref<?x8x64xf32>
// HOST: arith.truncf {{.*}} : f32 to bf16
// HOST: memref.store {{.*}} : memref<?x8x64xbf16>
// HOST: memref.store {{.*}} : memref<?x8xf32>
// A grid of no blocks is not launched.
// GPU-LABEL: func.func @merge
// GPU: scf.if
// GPU: gpu.launch blocks({{.*}}) in ({{.*}}) threads({{.*}}) in
// GPU: llvm.call_intrinsic "llvm.nvvm.ex2.approx"
// GPU-NOT: math.
// GPU: gpu.terminator
// OUT-LABEL: func.func @merge
// OUT: gpu.launch_func @merge_kernel::@merge_kernel
func.func @merge(%a: memref<?x8x64xf32>, %b: memref<?x8x64xf32>, %la: memref<?x8xf32>, %lb: memref<?x8xf32>,
                 %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>) {
  attn.merge states(%a, %b : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%la, %lb : memref<?x8xf32>, memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>)
  return
}

// HOST-LABEL: func.func @append
// HOST-NOT: attn.append
// HOST: scf.parallel
// HOST: arith.index_cast {{.*}} : i64 to index
// HOST: scf.for
// HOST: memref.store {{.*}} : memref<?x16x2x64xf16>
// HOST: memref.store {{.*}} : memref<?x16x2x32xf16>
// GPU-LABEL: func.func @append
// GPU: gpu.launch
// GPU: memref.store {{.*}} : memref<?x16x2x64xf16>
// OUT: gpu.launch_func @append_kernel::@append_kernel
func.func @append(%kn: memref<?x2x64xf16>, %vn: memref<?x2x32xf16>, %t: memref<?xi32>, %k: memref<?x16x2x64xf16>,
                  %v: memref<?x16x2x32xf16>, %pt: memref<?xi64>) {
  attn.append (%kn, %vn, %t : memref<?x2x64xf16>, memref<?x2x32xf16>, memref<?xi32>)
    into (%k, %v : memref<?x16x2x64xf16>, memref<?x16x2x32xf16>)
    table (%pt, %pt, %pt : memref<?xi64>, memref<?xi64>, memref<?xi64>)
  return
}
