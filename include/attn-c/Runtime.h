//===- Runtime.h - C API of the runtime -*- C -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Load a bundle, plan a batch, run it. Handles are opaque; a call returns a
// code, and attnrtLastError() the text of the calling thread's last failure.
// Structs start with their size, set by ATTNRT_INIT, so that fields can be
// appended. One handle may be used by several threads: its calls exclude
// each other. Destroying null is allowed; a child keeps its parents alive.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_C_RUNTIME_H
#define ATTN_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTNRT_CAPI __attribute__((visibility("default")))
/** Sets all of a struct to zero and its size field. */
#define ATTNRT_INIT(s) (*(s) = (__typeof__(*(s))){0}, (s)->struct_size = sizeof(*(s)))

typedef enum AttnRtCode {
  ATTNRT_OK = 0,
  ATTNRT_INVALID_ARGUMENT = 1,
  ATTNRT_INVALID_BUNDLE = 2,
  ATTNRT_WORKSPACE_TOO_SMALL = 3,
  ATTNRT_EXCEEDS_MAXIMA = 4,
  ATTNRT_DEVICE_ERROR = 5,
  ATTNRT_UNSUPPORTED = 6,
  ATTNRT_IO_ERROR = 7,
  ATTNRT_OUT_OF_MEMORY = 8
} AttnRtCode;

typedef enum AttnRtElement {
  ATTNRT_F32 = 0,
  ATTNRT_BF16 = 1,
  ATTNRT_F16 = 2,
  ATTNRT_E4M3 = 3,
  ATTNRT_E5M2 = 4,
  ATTNRT_I8 = 5,
  ATTNRT_I32 = 6,
  ATTNRT_I64 = 7
} AttnRtElement;

typedef enum AttnRtDeviceKind { ATTNRT_CPU = 0, ATTNRT_CUDA = 1 } AttnRtDeviceKind;
typedef enum AttnRtPolicy {
  ATTNRT_SPLIT_AUTO = 0,
  ATTNRT_SPLIT_NONE = 1,
  ATTNRT_SPLIT_CHUNK = 2,
  ATTNRT_SPLIT_BATCH_INVARIANT = 3
} AttnRtPolicy;

typedef struct AttnRtBundle AttnRtBundle;         /* manifest and blobs */
typedef struct AttnRtDevice AttnRtDevice;         /* CPU or one GPU */
typedef struct AttnRtExecutable AttnRtExecutable; /* a bundle on a device */
typedef struct AttnRtPlan AttnRtPlan;             /* schedule of a batch */

/** Version of the bundles that this library reads (ATTN_ABI_VERSION). */
ATTNRT_CAPI int32_t attnrtAbiVersion(void);
/** Text of the calling thread's last failed call; valid until its next failure. */
ATTNRT_CAPI const char *attnrtLastError(void);
/** Releases a string returned through a char **. */
ATTNRT_CAPI void attnrtFreeString(char *text);

/* ---- bundles ------------------------------------------------------------ */
ATTNRT_CAPI AttnRtCode attnrtBundleOpen(const char *path, AttnRtBundle **bundle);
ATTNRT_CAPI AttnRtCode attnrtBundleFromMemory(const void *data, size_t size, AttnRtBundle **bundle);
ATTNRT_CAPI void attnrtBundleDestroy(AttnRtBundle *bundle);
/** The manifest's JSON text; lives as long as the bundle. */
ATTNRT_CAPI const char *attnrtBundleManifest(const AttnRtBundle *bundle);

/* ---- devices ------------------------------------------------------------ */
ATTNRT_CAPI int32_t attnrtDeviceCount(AttnRtDeviceKind kind);
ATTNRT_CAPI AttnRtCode attnrtDeviceOpen(AttnRtDeviceKind kind, int32_t ordinal, AttnRtDevice **device);
ATTNRT_CAPI void attnrtDeviceDestroy(AttnRtDevice *device);
ATTNRT_CAPI const char *attnrtDeviceName(const AttnRtDevice *device);
/** Streaming multiprocessors, or CPU threads. */
ATTNRT_CAPI int32_t attnrtDeviceUnits(const AttnRtDevice *device);
/** 10 * major + minor; 0 on the CPU. */
ATTNRT_CAPI int32_t attnrtDeviceCapability(const AttnRtDevice *device);
ATTNRT_CAPI AttnRtCode attnrtAlloc(AttnRtDevice *device, size_t bytes, void **pointer);
ATTNRT_CAPI AttnRtCode attnrtFree(AttnRtDevice *device, void *pointer);
ATTNRT_CAPI AttnRtCode attnrtAllocHost(AttnRtDevice *device, size_t bytes, void **pointer);
ATTNRT_CAPI AttnRtCode attnrtFreeHost(AttnRtDevice *device, void *pointer);
ATTNRT_CAPI AttnRtCode attnrtCopyToDevice(AttnRtDevice *device, void *target, const void *source, size_t bytes,
                                          void *stream);
ATTNRT_CAPI AttnRtCode attnrtCopyToHost(AttnRtDevice *device, void *target, const void *source, size_t bytes,
                                        void *stream);
ATTNRT_CAPI AttnRtCode attnrtCopyOnDevice(AttnRtDevice *device, void *target, const void *source, size_t bytes,
                                          void *stream);
ATTNRT_CAPI AttnRtCode attnrtFill(AttnRtDevice *device, void *target, uint8_t byte, size_t bytes, void *stream);
/** A stream is a CUstream on CUDA (null: the default stream) and ignored on the CPU. */
ATTNRT_CAPI AttnRtCode attnrtStreamCreate(AttnRtDevice *device, void **stream);
ATTNRT_CAPI AttnRtCode attnrtStreamDestroy(AttnRtDevice *device, void *stream);
ATTNRT_CAPI AttnRtCode attnrtStreamSynchronize(AttnRtDevice *device, void *stream);
ATTNRT_CAPI AttnRtCode attnrtEventCreate(AttnRtDevice *device, void **event);
ATTNRT_CAPI AttnRtCode attnrtEventDestroy(AttnRtDevice *device, void *event);
ATTNRT_CAPI AttnRtCode attnrtEventRecord(AttnRtDevice *device, void *event, void *stream);
ATTNRT_CAPI AttnRtCode attnrtEventWait(AttnRtDevice *device, void *event);
ATTNRT_CAPI AttnRtCode attnrtEventElapsed(AttnRtDevice *device, void *from, void *to, float *milliseconds);
ATTNRT_CAPI AttnRtCode attnrtCaptureBegin(AttnRtDevice *device, void *stream);
ATTNRT_CAPI AttnRtCode attnrtCaptureEnd(AttnRtDevice *device, void *stream, void **graph);
ATTNRT_CAPI AttnRtCode attnrtGraphLaunch(AttnRtDevice *device, void *graph, void *stream);
ATTNRT_CAPI AttnRtCode attnrtGraphDestroy(AttnRtDevice *device, void *graph);

/* ---- executables -------------------------------------------------------- */
ATTNRT_CAPI AttnRtCode attnrtExecutableLoad(AttnRtBundle *bundle, AttnRtDevice *device, AttnRtExecutable **executable);
ATTNRT_CAPI void attnrtExecutableDestroy(AttnRtExecutable *executable);

/* ---- plans -------------------------------------------------------------- */
typedef struct AttnRtMaxima {
  uint32_t struct_size;
  int32_t levels;   /* 0: the bundle's */
  int64_t requests; /* all zero: sizes follow each batch */
  int64_t tokens;
  int64_t kv_len; /* longest request; for the chunked policies */
} AttnRtMaxima;

typedef struct AttnRtPlanOptions {
  uint32_t struct_size;
  int32_t policy;     /* AttnRtPolicy */
  int64_t chunk;      /* keys; 0: 4096 */
  int32_t ctas;       /* per kernel; 0: units x ctas_per_sm */
  int32_t units;      /* compute units; 0: the device's */
  int32_t causal;     /* 0: as the bundle says, 1: on, 2: off (balance only) */
  int32_t fixed_grid; /* not 0: graph-safe launches */
  AttnRtMaxima maxima;
} AttnRtPlanOptions;

/** Host array of indices. */
typedef struct AttnRtIndices {
  const void *data;
  int64_t size;
  int32_t bits; /* 32 or 64; 0 with size 0: absent */
  int32_t reserved;
} AttnRtIndices;

typedef struct AttnRtLevel {
  AttnRtIndices kv_indptr;  /* host, entries + 1 */
  AttnRtIndices kv_last;    /* host, entries; paged and bsr */
  AttnRtIndices row_indptr; /* host, entries + 1 requests; absent: one request each */
  const void *pages;        /* device; paged and bsr */
} AttnRtLevel;

/** Parameter values for the mask analysis (balance only). */
typedef struct AttnRtPlanParam {
  double f32;
  int64_t index;
  const void *host;  /* host copy of a buffer, or null */
  int64_t host_size; /* elements */
} AttnRtPlanParam;

typedef struct AttnRtBatch {
  uint32_t struct_size;
  int32_t num_levels;
  int32_t num_params; /* 0, or as many as the manifest has */
  int32_t reserved;
  AttnRtIndices qo_indptr; /* host, requests + 1 */
  const AttnRtLevel *levels;
  const AttnRtPlanParam *params;
  AttnRtIndices kv_total; /* bsr, optional */
} AttnRtBatch;

typedef struct AttnRtTensor {
  void *data;
  int32_t element; /* AttnRtElement */
  int32_t rank;
  int64_t sizes[8];
  int64_t strides[8]; /* elements */
} AttnRtTensor;

typedef struct AttnRtParam {
  float f32;
  int32_t reserved;
  int64_t index;
  AttnRtTensor buffer;
} AttnRtParam;

typedef struct AttnRtOperands {
  uint32_t struct_size;
  int32_t num_params;
  int32_t has_scale; /* 0: 1 / sqrt(head_dim_qk) */
  float scale;
  AttnRtTensor q, k, v, o, lse; /* lse.data null: not given */
  const AttnRtParam *params;    /* in the manifest's order */
} AttnRtOperands;

ATTNRT_CAPI AttnRtCode attnrtPlanCreate(AttnRtExecutable *executable, const AttnRtPlanOptions *options,
                                        AttnRtPlan **plan);
ATTNRT_CAPI void attnrtPlanDestroy(AttnRtPlan *plan);
ATTNRT_CAPI AttnRtCode attnrtPlanSize(AttnRtPlan *plan, const AttnRtMaxima *maxima, int64_t *bytes);
ATTNRT_CAPI AttnRtCode attnrtWorkspaceSize(AttnRtPlan *plan, const AttnRtMaxima *maxima, int64_t *bytes);
ATTNRT_CAPI AttnRtCode attnrtWorkspaceSizeForBatch(AttnRtPlan *plan, const AttnRtBatch *batch, int64_t *bytes);
ATTNRT_CAPI AttnRtCode attnrtPlanSetWorkspace(AttnRtPlan *plan, void *pointer, int64_t bytes);
ATTNRT_CAPI AttnRtCode attnrtPlan(AttnRtPlan *plan, const AttnRtBatch *batch, void *stream);
ATTNRT_CAPI AttnRtCode attnrtRun(AttnRtPlan *plan, const AttnRtOperands *operands, void *stream);
/** `pages`: a host copy of each level's page indices; `page_count`: pages of K and V. */
ATTNRT_CAPI AttnRtCode attnrtValidatePages(AttnRtPlan *plan, const AttnRtBatch *batch, const AttnRtIndices *pages,
                                           int64_t page_count);
/** An array of the last plan in device memory, for launches of one's own (attn-to-launch): "items", "cta_indptr" or
 * "counter" of kernel `index` (the merge kernel: -1), "tokens", "pieces", "part_o" or "part_lse". `count` is in records
 * (words for indptr and counter, rows for partial results). */
ATTNRT_CAPI AttnRtCode attnrtPlanArray(AttnRtPlan *plan, int32_t index, const char *name, void **pointer,
                                       int64_t *count);
/** The last plan as JSON or SVG; release with attnrtFreeString. */
ATTNRT_CAPI AttnRtCode attnrtPlanDescribe(AttnRtPlan *plan, char **json);
ATTNRT_CAPI AttnRtCode attnrtPlanSvg(AttnRtPlan *plan, char **svg);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ATTN_C_RUNTIME_H */
