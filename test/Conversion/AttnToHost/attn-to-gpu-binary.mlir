// REQUIRES: ptxas
// RUN: attn-opt %s --attn-to-gpu-binary=chip=sm_80 | FileCheck %s
// RUN: attn-opt %s --attn-to-gpu-binary=chip=sm_90a | FileCheck %s
// RUN: attn-opt %s --attn-to-gpu-binary=chip=sm_80 | attn-opt --gpu-to-llvm | FileCheck %s --check-prefix=LLVM

// Two attentions over different keys of one batch, merged, and new keys appended: one program, all of it on the GPU.
// Machine code starts with the four bytes of ELF.
// CHECK-LABEL: func.func @step
// CHECK: scf.if
// CHECK: gpu.launch_func @step_kernel::@step_kernel
// CHECK: gpu.launch_func @attn_kernels::@attention_r16
// CHECK: gpu.launch_func @attn_kernels::@attention_merge
// CHECK: gpu.launch_func @attn_kernels::@attention_r16_{{[0-9]}}
// CHECK: gpu.launch_func @attn_kernels::@attention_merge_{{[0-9]}}
// CHECK: gpu.launch_func @step_kernel_0::@step_kernel
// CHECK-NOT: attn.merge
// CHECK-DAG: gpu.binary @step_kernel {{.*}}bin = "\7FELF
// CHECK-DAG: gpu.binary @step_kernel_0 {{.*}}bin = "\7FELF
// CHECK-DAG: gpu.binary @attn_kernels {{.*}}bin = "\7FELF
// LLVM-LABEL: llvm.func @step
// LLVM-NOT: gpu.launch_func {{.*}}memref
func.func @step(%q: memref<?x8x64xbf16>, %qi: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>,
                %ti: memref<?xi32>, %pages: memref<?xi32>, %last: memref<?xi32>, %s: memref<?x2x64xbf16>, %si: memref<?xi32>,
                %a: memref<?x8x64xf32>, %b: memref<?x8x64xf32>, %la: memref<?x8xf32>, %lb: memref<?x8xf32>,
                %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>, %qf: memref<?x8x64xbf16>) {
  attn.append (%s, %s, %qi : memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>)
    into (%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>) table (%ti, %pages, %last : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  attn.attention q(%q, %qi : memref<?x8x64xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%ti : memref<?xi32>) indices(%pages : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %la : memref<?x8xf32>) {format = #attn.format<paged>}
  attn.attention q(%q, %qi : memref<?x8x64xbf16>, memref<?xi32>) kv(%s, %s : memref<?x2x64xbf16>, memref<?x2x64xbf16>)
    indptr(%si : memref<?xi32>) outs(%qf : memref<?x8x64xbf16>, %lb : memref<?x8xf32>) {format = #attn.format<ragged>}
  attn.merge states(%a, %b : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%la, %lb : memref<?x8xf32>, memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>)
  return
}
