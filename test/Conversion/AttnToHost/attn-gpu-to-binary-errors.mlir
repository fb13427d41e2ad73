// RUN: not attn-opt %s --attn-gpu-to-binary 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %s --attn-gpu-to-binary="chip=host" 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not attn-opt %s --attn-gpu-to-binary="chip=sm_80 format=elf" 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not attn-opt %s --attn-gpu-to-binary="chip=sm_80 format=bin ptxas=/no/such/ptxas" 2>&1 | FileCheck %s --check-prefix=PTXAS

// CHIP: 'gpu.module' op is for chip '', expected a GPU out of host, sm_80{{.*}}; give the pass a chip
// HOST: 'gpu.module' op is for chip 'host', expected a GPU out of
// FORMAT: unknown format 'elf'; expected auto, bin or ptx
// PTXAS: 'gpu.module' op ptxas failed for sm_80
gpu.module @kernels {
  llvm.func @nothing() attributes {nvvm.kernel} {
    llvm.return
  }
}
