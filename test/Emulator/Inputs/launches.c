//===- launches.c - the launch calls of gpu-to-llvm, on the CPU -*- C -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs every thread of a launch, one after another: for kernels whose threads
// do not wait for each other. A kernel NAME is found as emu_NAME.
//
//===----------------------------------------------------------------------===//

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tid, ctaid[3];
int32_t nvvm_read_ptx_sreg_tid_x(void) { return tid; }
int32_t nvvm_read_ptx_sreg_ctaid_x(void) { return ctaid[0]; }
int32_t nvvm_read_ptx_sreg_ctaid_y(void) { return ctaid[1]; }
float nvvm_ex2_approx(float x) { return exp2f(x); }
float nvvm_lg2_approx_f(float x) { return log2f(x); }

void *mgpuModuleLoadJIT(const char *ptx, int32_t level) {
  (void)level;
  if (!strstr(ptx, ".entry")) {
    fprintf(stderr, "the module's object is no PTX\n");
    abort();
  }
  return NULL;
}
void mgpuModuleUnload(void *module) { (void)module; }
void *mgpuStreamCreate(void) { return NULL; }
void mgpuStreamSynchronize(void *stream) { (void)stream; }
void mgpuStreamDestroy(void *stream) { (void)stream; }

extern void *emu_find(const char *name);
void *mgpuModuleGetFunction(void *module, const char *name) {
  (void)module;
  return emu_find(name);
}
void mgpuLaunchKernel(void (*kernel)(void **), intptr_t gx, intptr_t gy, intptr_t gz, intptr_t bx, intptr_t by,
                      intptr_t bz, int32_t shared, void *stream, void **params, void **extra, int64_t count) {
  (void)shared, (void)stream, (void)extra, (void)count;
  if (gx < 1 || gy < 1 || gz != 1 || by != 1 || bz != 1 || bx < 1 || bx > 1024) {
    fprintf(stderr, "an illegal launch: %ld x %ld x %ld blocks\n", (long)gx, (long)gy, (long)gz);
    abort();
  }
  for (ctaid[1] = 0; ctaid[1] < gy; ++ctaid[1])
    for (ctaid[0] = 0; ctaid[0] < gx; ++ctaid[0])
      for (tid = 0; tid < bx; ++tid)
        kernel(params);
}
