//===- Device.h - where kernels run -----------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One interface over the CPU (kernels in a shared object, run by OpenMP) and
// CUDA (driver API, loaded at run time). Streams, events and graphs are opaque
// pointers; on CUDA a stream is a CUstream, so a caller's own stream works.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_DEVICE_H
#define ATTN_RUNTIME_DEVICE_H

#include "attn/ABI/ABI.h"
#include "attn/Runtime/Bundle.h"
#include "attn/Runtime/Status.h"

#include <memory>
#include <string>

namespace attnrt {

enum class DeviceKind : int { CPU = 0, CUDA = 1 };

/// 128 bytes that a TMA instruction reads: CUtensorMap.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

/// What cuTensorMapEncodeTiled needs, without its types.
struct TensorMapSpec {
  Element element = Element::BF16;
  uint32_t rank = 0;
  void *base = nullptr;
  uint64_t dims[5] = {};
  uint64_t strides[5] = {}; ///< bytes; strides[0] unused
  uint32_t box[5] = {};
  int swizzle = 0;
  int promotion = 0;
};

/// A kernel ready to launch. Owned by the executable that resolved it.
struct LoadedKernel {
  void *function = nullptr;
  int threads = 1;
  int64_t smem = 0;
};

class ATTNRT_API Device {
public:
  /// Opens device number `ordinal`. CPU has one device, number 0.
  static Status open(DeviceKind kind, int ordinal, std::shared_ptr<Device> &device);
  /// The number of devices of that kind; 0 when there is no driver.
  static int count(DeviceKind kind);

  virtual ~Device();
  DeviceKind kind() const { return deviceKind; }
  int ordinal() const { return number; }
  /// Streaming multiprocessors, or threads of the CPU.
  int computeUnits() const { return units; }
  /// Bytes of the cache that all units share (L2); 0: unknown, or not worth planning for.
  int64_t sharedCache() const { return cache; }
  const std::string &name() const { return text; }
  /// 10 * major + minor on CUDA, 0 on the CPU.
  int computeCapability() const { return capability; }

  virtual Status alloc(size_t bytes, void *&pointer) = 0;
  virtual Status free(void *pointer) = 0;
  /// Host memory that asynchronous copies can read (page-locked on CUDA).
  virtual Status allocHost(size_t bytes, void *&pointer) = 0;
  virtual Status freeHost(void *pointer) = 0;
  virtual Status copyToDevice(void *target, const void *source, size_t bytes, void *stream) = 0;
  virtual Status copyToHost(void *target, const void *source, size_t bytes, void *stream) = 0;
  virtual Status copyOnDevice(void *target, const void *source, size_t bytes, void *stream) = 0;
  virtual Status fill(void *target, uint8_t byte, size_t bytes, void *stream) = 0;

  virtual Status createStream(void *&stream) = 0;
  virtual Status destroyStream(void *stream) = 0;
  virtual Status synchronize(void *stream) = 0;
  virtual Status createEvent(void *&event) = 0;
  virtual Status destroyEvent(void *event) = 0;
  virtual Status recordEvent(void *event, void *stream) = 0;
  virtual Status waitEvent(void *event) = 0; ///< the host waits
  virtual Status elapsed(void *from, void *to, float &milliseconds) = 0;
  virtual Status beginCapture(void *stream) = 0;
  virtual Status endCapture(void *stream, void *&graph) = 0;
  virtual Status launchGraph(void *graph, void *stream) = 0;
  virtual Status destroyGraph(void *graph) = 0;

  virtual Status loadModule(BlobDesc::Kind kind, const char *data, size_t bytes, void *&module) = 0;
  virtual void unloadModule(void *module) = 0;
  virtual Status resolve(void *module, const KernelDesc &desc, LoadedKernel &kernel) = 0;
  virtual Status encodeTensorMap(const TensorMapSpec &spec, TensorMap &map) = 0;
  /// Runs `ctas` CTAs. `params` holds a pointer to each word and, after them, to each tensor map.
  virtual Status launch(const LoadedKernel &kernel, int ctas, const AttnWord *words, void **params, void *stream) = 0;

protected:
  Device(DeviceKind kind, int ordinal) : deviceKind(kind), number(ordinal) {}
  DeviceKind deviceKind;
  int number;
  int units = 1;
  int64_t cache = 0;
  int capability = 0;
  std::string text;
};

/// The blob that holds `wanted`'s kernels in a form that a device of that compute capability (10 * major + minor) runs:
/// `wanted` itself, or PTX beside it, which the driver compiles. A cubin runs on its own major version from its minor
/// version on, PTX on every later machine; code for sm_NNa runs on that machine alone (CUDA C++ Programming Guide,
/// "Binary Compatibility", "PTX Compatibility").
ATTNRT_API Status chooseBlob(const Manifest &manifest, int capability, int wanted, int &chosen);

/// A bundle's kernels on one device.
class ATTNRT_API Executable {
public:
  static Status load(std::shared_ptr<const Bundle> bundle, std::shared_ptr<Device> device,
                     std::shared_ptr<Executable> &executable);
  ~Executable();

  const Manifest &manifest() const { return bundle->manifest(); }
  Device &device() const { return *target; }
  const LoadedKernel &kernel(int index) const { return kernels[index]; }
  const LoadedKernel &merge() const { return mergeKernel; }

private:
  std::shared_ptr<const Bundle> bundle;
  std::shared_ptr<Device> target;
  std::vector<void *> modules;
  std::vector<LoadedKernel> kernels;
  LoadedKernel mergeKernel;
};

} // namespace attnrt

#endif // ATTN_RUNTIME_DEVICE_H
