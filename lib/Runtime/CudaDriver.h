//===- CudaDriver.h - the driver API, by hand -------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The few types and functions of libcuda that the runtime calls, declared here
// because the project builds without the CUDA toolkit. Values are those of the
// driver's stable binary interface. Private to the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CUDADRIVER_H
#define ATTN_LIB_RUNTIME_CUDADRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace attnrt::cuda {

using Result = int;
using DeviceId = int;
using Context = void *;
using Module = void *;
using Function = void *;
using Stream = void *;
using Event = void *;
using Graph = void *;
using GraphExec = void *;
using Pointer = unsigned long long;

constexpr Result Success = 0;
constexpr Result ErrorOutOfMemory = 2;

enum Attribute : int {
  MultiprocessorCount = 16,
  L2CacheSize = 38,
  CapabilityMajor = 75,
  CapabilityMinor = 76,
};
enum FunctionAttribute : int { MaxDynamicSharedBytes = 8 };
enum CaptureMode : int { CaptureThreadLocal = 1 };
enum EventFlags : unsigned { EventDefault = 0 };
enum StreamFlags : unsigned { StreamNonBlocking = 1 };
enum JitOption : int { JitErrorLogBuffer = 5, JitErrorLogBufferSize = 6 };
enum TensorType : int {
  TensorUint8 = 0,
  TensorFloat16 = 6,
  TensorFloat32 = 7,
  TensorBfloat16 = 9,
};

// name in libcuda, member, arguments
#define ATTNRT_CUDA_FUNCTIONS(F)                                                                                       \
  F("cuInit", init, (unsigned))                                                                                        \
  F("cuGetErrorName", getErrorName, (Result, const char **))                                                           \
  F("cuGetErrorString", getErrorString, (Result, const char **))                                                       \
  F("cuDeviceGet", deviceGet, (DeviceId *, int))                                                                       \
  F("cuDeviceGetCount", deviceGetCount, (int *))                                                                       \
  F("cuDeviceGetName", deviceGetName, (char *, int, DeviceId))                                                         \
  F("cuDeviceGetAttribute", deviceGetAttribute, (int *, int, DeviceId))                                                \
  F("cuDevicePrimaryCtxRetain", primaryCtxRetain, (Context *, DeviceId))                                               \
  F("cuDevicePrimaryCtxRelease_v2", primaryCtxRelease, (DeviceId))                                                     \
  F("cuCtxPushCurrent_v2", ctxPush, (Context))                                                                         \
  F("cuCtxPopCurrent_v2", ctxPop, (Context *))                                                                         \
  F("cuModuleLoadDataEx", moduleLoad, (Module *, const void *, unsigned, int *, void **))                              \
  F("cuModuleUnload", moduleUnload, (Module))                                                                          \
  F("cuModuleGetFunction", moduleGetFunction, (Function *, Module, const char *))                                      \
  F("cuFuncSetAttribute", funcSetAttribute, (Function, int, int))                                                      \
  F("cuLaunchKernel", launchKernel,                                                                                    \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void **, void **))        \
  F("cuMemAlloc_v2", memAlloc, (Pointer *, size_t))                                                                    \
  F("cuMemFree_v2", memFree, (Pointer))                                                                                \
  F("cuMemHostAlloc", memHostAlloc, (void **, size_t, unsigned))                                                       \
  F("cuMemFreeHost", memFreeHost, (void *))                                                                            \
  F("cuMemcpyHtoDAsync_v2", copyToDevice, (Pointer, const void *, size_t, Stream))                                     \
  F("cuMemcpyDtoHAsync_v2", copyToHost, (void *, Pointer, size_t, Stream))                                             \
  F("cuMemcpyDtoDAsync_v2", copyOnDevice, (Pointer, Pointer, size_t, Stream))                                          \
  F("cuMemsetD8Async", memset8, (Pointer, unsigned char, size_t, Stream))                                              \
  F("cuStreamCreate", streamCreate, (Stream *, unsigned))                                                              \
  F("cuStreamDestroy_v2", streamDestroy, (Stream))                                                                     \
  F("cuStreamSynchronize", streamSynchronize, (Stream))                                                                \
  F("cuEventCreate", eventCreate, (Event *, unsigned))                                                                 \
  F("cuEventDestroy_v2", eventDestroy, (Event))                                                                        \
  F("cuEventRecord", eventRecord, (Event, Stream))                                                                     \
  F("cuEventSynchronize", eventSynchronize, (Event))                                                                   \
  F("cuEventElapsedTime", eventElapsedTime, (float *, Event, Event))                                                   \
  F("cuStreamBeginCapture_v2", beginCapture, (Stream, int))                                                            \
  F("cuStreamEndCapture", endCapture, (Stream, Graph *))                                                               \
  F("cuGraphInstantiateWithFlags", graphInstantiate, (GraphExec *, Graph, unsigned long long))                         \
  F("cuGraphLaunch", graphLaunch, (GraphExec, Stream))                                                                 \
  F("cuGraphExecDestroy", graphExecDestroy, (GraphExec))                                                               \
  F("cuGraphDestroy", graphDestroy, (Graph))

struct Driver {
#define F(symbol, member, arguments) Result(*member) arguments = nullptr;
  ATTNRT_CUDA_FUNCTIONS(F)
#undef F
  // Missing in drivers older than 12.0; then maps are refused, the rest works.
  Result (*tensorMapEncodeTiled)(void *map, int type, uint32_t rank, void *base, const uint64_t *dims,
                                 const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides,
                                 int interleave, int swizzle, int promotion, int fill) = nullptr;
  /// Why the driver is not usable; empty when it is.
  std::string problem;
};

/// The driver, loaded and initialised once.
const Driver &driver();

} // namespace attnrt::cuda

#endif // ATTN_LIB_RUNTIME_CUDADRIVER_H
