//===- serve.c - the runtime alone: a bundle, a plan, runs ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/* The C API of the runtime, without LLVM: loads a bundle of examples/variants/causal.mlir for the host, decodes two
 * requests step by step while their lengths grow, and prints what came out. usage: serve BUNDLE */
#include "attn-c/Runtime.h"
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 8, HEADS_KV = 2, DIM = 64, PAGE = 16, PAGES = 8, REQUESTS = 2 };

static void check(AttnRtCode code) {
  if (code == ATTNRT_OK)
    return;
  fprintf(stderr, "serve: %s\n", attnrtLastError());
  exit(1);
}

static AttnRtIndices indices(const int32_t *data, int64_t size) {
  AttnRtIndices out = {data, size, 32, 0};
  return out;
}

static AttnRtTensor tensor(void *data, AttnRtElement element, int rank, const int64_t *sizes) {
  AttnRtTensor out = {data, element, rank, {0}, {0}};
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    out.sizes[i] = sizes[i];
    out.strides[i] = stride;
    stride *= sizes[i];
  }
  return out;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: serve BUNDLE\n");
    return 2;
  }
  AttnRtBundle *bundle;
  AttnRtDevice *device;
  AttnRtExecutable *executable;
  AttnRtPlan *plan;
  check(attnrtBundleOpen(argv[1], &bundle));
  check(attnrtDeviceOpen(ATTNRT_CPU, 0, &device));
  check(attnrtExecutableLoad(bundle, device, &executable));
  AttnRtPlanOptions options;
  ATTNRT_INIT(&options);
  ATTNRT_INIT(&options.maxima);
  options.maxima.requests = options.maxima.tokens = REQUESTS;
  options.maxima.kv_len = PAGES * PAGE; /* sizes are fixed from here on */
  check(attnrtPlanCreate(executable, &options, &plan));

  /* bf16 as bits; q is 0, so each head gets the mean of the values that it sees. */
  static uint16_t q[REQUESTS * HEADS * DIM], k[PAGES * PAGE * HEADS_KV * DIM], v[PAGES * PAGE * HEADS_KV * DIM];
  static uint16_t o[REQUESTS * HEADS * DIM];
  static float lse[REQUESTS * HEADS];
  for (int i = 0; i < PAGES * PAGE * HEADS_KV * DIM; ++i)
    v[i] = 0x4000; /* 2.0 */
  const int64_t qo[] = {REQUESTS, HEADS, DIM}, kv[] = {PAGES, PAGE, HEADS_KV, DIM}, rows[] = {REQUESTS, HEADS};
  AttnRtOperands operands;
  ATTNRT_INIT(&operands);
  operands.q = tensor(q, ATTNRT_BF16, 3, qo);
  operands.k = tensor(k, ATTNRT_BF16, 4, kv);
  operands.v = tensor(v, ATTNRT_BF16, 4, kv);
  operands.o = tensor(o, ATTNRT_BF16, 3, qo);
  operands.lse = tensor(lse, ATTNRT_F32, 2, rows);

  const int32_t qo_indptr[] = {0, 1, 2}, pages[] = {5, 0, 3, 6}, kv_indptr[] = {0, 2, 4};
  for (int step = 0; step < 3; ++step) {
    const int32_t last[] = {8 + step, 1 + step}; /* 24 and 17 keys, then one more each */
    AttnRtLevel level = {indices(kv_indptr, 3), indices(last, 2), {0}, pages};
    AttnRtBatch batch;
    ATTNRT_INIT(&batch);
    batch.qo_indptr = indices(qo_indptr, 3);
    batch.num_levels = 1;
    batch.levels = &level;
    check(attnrtPlan(plan, &batch, NULL));
    check(attnrtRun(plan, &operands, NULL));
    printf("step %d: o %04x %04x, lse %.4f %.4f\n", step, o[0], o[HEADS * DIM], lse[0], lse[HEADS]);
  }
  attnrtPlanDestroy(plan);
  attnrtExecutableDestroy(executable);
  attnrtDeviceDestroy(device);
  attnrtBundleDestroy(bundle);
  return 0;
}
