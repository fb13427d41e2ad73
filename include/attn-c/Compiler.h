//===- Compiler.h - C API of the compiler -*- C -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IR text in, bundle out. Every function that can fail returns a status other
// than ATTN_COMPILER_OK and leaves a text that attnCompilerLastError gives to
// the same thread. Handles may be used by one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_C_COMPILER_H
#define ATTN_C_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define ATTN_COMPILER_EXPORT
#else
#define ATTN_COMPILER_EXPORT __attribute__((visibility("default")))
#endif

typedef enum AttnCompilerStatus {
  ATTN_COMPILER_OK = 0,
  ATTN_COMPILER_INVALID_ARGUMENT = 1, /* an argument of the call */
  ATTN_COMPILER_FAILED = 2            /* the IR, or the tools it needs */
} AttnCompilerStatus;

/* Version of this interface; a caller compares it with ATTN_COMPILER_API_VERSION. */
#define ATTN_COMPILER_API_VERSION 2
ATTN_COMPILER_EXPORT uint32_t attnCompilerApiVersion(void);

/* Text of the last failure in this thread, "" when there was none. Valid until the thread's next call. */
ATTN_COMPILER_EXPORT const char *attnCompilerLastError(void);

typedef struct AttnCompileOptions {
  uint32_t size;         /* sizeof(AttnCompileOptions) */
  const char *target;    /* "host", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a" */
  const char *emit;      /* "tile", "llvm", "ptx", "cubin", "obj", "bundle" */
  const char *kernel;    /* one kernel's name, or NULL */
  const char *ptxas;     /* path, or NULL: found on PATH or under CUDA_HOME */
  const char *cache_dir; /* directory of the cache of bundles, or NULL: none */
  const char *tuned;     /* NULL: built-in table of measured configs; "off"; or a file of attn-tune */
  uint32_t isolate;      /* not 0: seconds that code generation may take in a child process; its death is an error */
} AttnCompileOptions;

typedef struct AttnCompileResult AttnCompileResult;

/* Compiles `ir` (text or bytecode, `ir_bytes` long; it has one attn.attention op). On success `*result` is a
 * handle that attnCompileResultDestroy frees; on failure it is NULL. */
ATTN_COMPILER_EXPORT AttnCompilerStatus attnCompile(const char *ir, size_t ir_bytes, const AttnCompileOptions *options,
                                                    AttnCompileResult **result);
ATTN_COMPILER_EXPORT const void *attnCompileResultData(const AttnCompileResult *result);
ATTN_COMPILER_EXPORT size_t attnCompileResultSize(const AttnCompileResult *result);
/* 1 when the bundle came from the cache. */
ATTN_COMPILER_EXPORT int attnCompileResultFromCache(const AttnCompileResult *result);
/* "kernel\tconfig\tsource\n" for each tile class; source: "given", "model" or a table's name. "" from the cache. */
ATTN_COMPILER_EXPORT const char *attnCompileResultConfigs(const AttnCompileResult *result);
/* "stage\tmilliseconds\n" for each stage. */
ATTN_COMPILER_EXPORT const char *attnCompileResultTimes(const AttnCompileResult *result);
ATTN_COMPILER_EXPORT void attnCompileResultDestroy(AttnCompileResult *result);

#ifdef __cplusplus
}
#endif

#endif
