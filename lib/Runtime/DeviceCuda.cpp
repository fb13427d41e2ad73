//===- DeviceCuda.cpp - GPUs through the driver API -----------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each call makes the device's primary context current for its own duration,
// so it does not matter which device the calling thread works on. The primary
// context is the one that frameworks use: their pointers and streams work.
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"
#include "Devices.h"

#include <dlfcn.h>

using namespace attnrt;
using cuda::driver;

static cuda::Driver loadDriver() {
  cuda::Driver table;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    table.problem = "libcuda.so.1 was not found; install the NVIDIA driver, or use the cpu device";
    return table;
  }
#define F(symbol, member, arguments)                                                                                   \
  table.member = reinterpret_cast<decltype(table.member)>(dlsym(library, symbol));                                     \
  if (!table.member) {                                                                                                 \
    table.problem = "libcuda.so.1 has no '" symbol "'; install a driver of CUDA 11.7 or later";                        \
    return table;                                                                                                      \
  }
  ATTNRT_CUDA_FUNCTIONS(F)
#undef F
  table.tensorMapEncodeTiled =
      reinterpret_cast<decltype(table.tensorMapEncodeTiled)>(dlsym(library, "cuTensorMapEncodeTiled"));
  if (cuda::Result result = table.init(0)) {
    const char *name = nullptr;
    table.getErrorName(result, &name);
    table.problem =
        std::string("cuInit failed with ") + (name ? name : "an unknown error") + "; is there a GPU on this machine?";
  }
  return table;
}

const cuda::Driver &cuda::driver() {
  static const Driver table = loadDriver();
  return table;
}

namespace {

Status check(cuda::Result result, const char *call, const std::string &what = "") {
  if (result == cuda::Success)
    return Status();
  const char *name = nullptr, *text = nullptr;
  driver().getErrorName(result, &name);
  driver().getErrorString(result, &text);
  std::string message = std::string("cuda: ") + call + " failed with " + (name ? name : std::to_string(result).c_str());
  if (text)
    message += std::string(" (") + text + ")";
  if (!what.empty())
    message += ": " + what;
  return Status(result == cuda::ErrorOutOfMemory ? Code::OutOfMemory : Code::DeviceError, message);
}

cuda::Pointer address(const void *pointer) { return reinterpret_cast<cuda::Pointer>(pointer); }

struct GraphHandle {
  cuda::Graph graph;
  cuda::GraphExec exec;
};

class CudaDevice final : public Device {
public:
  CudaDevice(int ordinal) : Device(DeviceKind::CUDA, ordinal) {}
  ~CudaDevice() override {
    if (context)
      driver().primaryCtxRelease(id);
  }

  Status initialise() {
    ATTNRT_TRY(check(driver().deviceGet(&id, number), "cuDeviceGet"));
    char buffer[256] = {};
    ATTNRT_TRY(check(driver().deviceGetName(buffer, sizeof(buffer) - 1, id), "cuDeviceGetName"));
    text = buffer;
    int major = 0, minor = 0;
    ATTNRT_TRY(check(driver().deviceGetAttribute(&units, cuda::MultiprocessorCount, id), "cuDeviceGetAttribute"));
    int bytes = 0;
    ATTNRT_TRY(check(driver().deviceGetAttribute(&bytes, cuda::L2CacheSize, id), "cuDeviceGetAttribute"));
    cache = bytes;
    ATTNRT_TRY(check(driver().deviceGetAttribute(&major, cuda::CapabilityMajor, id), "cuDeviceGetAttribute"));
    ATTNRT_TRY(check(driver().deviceGetAttribute(&minor, cuda::CapabilityMinor, id), "cuDeviceGetAttribute"));
    capability = 10 * major + minor;
    return check(driver().primaryCtxRetain(&context, id), "cuDevicePrimaryCtxRetain");
  }

  /// Makes the context current until the end of the scope.
  struct Current {
    explicit Current(const CudaDevice &device) { status = check(driver().ctxPush(device.context), "cuCtxPushCurrent"); }
    ~Current() {
      cuda::Context old;
      if (status.ok())
        driver().ctxPop(&old);
    }
    Status status;
  };

  template <typename Body> Status with(Body body) {
    Current current(*this);
    if (!current.status.ok())
      return current.status;
    return body();
  }

  Status alloc(size_t bytes, void *&pointer) override {
    return with([&] {
      cuda::Pointer result = 0;
      Status status =
          check(driver().memAlloc(&result, bytes ? bytes : 256), "cuMemAlloc", std::to_string(bytes) + " bytes");
      pointer = reinterpret_cast<void *>(result);
      return status;
    });
  }
  Status free(void *pointer) override {
    if (!pointer)
      return Status();
    return with([&] { return check(driver().memFree(address(pointer)), "cuMemFree"); });
  }
  Status allocHost(size_t bytes, void *&pointer) override {
    return with([&] {
      return check(driver().memHostAlloc(&pointer, bytes ? bytes : 256, 1), "cuMemHostAlloc",
                   std::to_string(bytes) + " bytes");
    });
  }
  Status freeHost(void *pointer) override {
    if (!pointer)
      return Status();
    return with([&] { return check(driver().memFreeHost(pointer), "cuMemFreeHost"); });
  }
  Status copyToDevice(void *target, const void *source, size_t bytes, void *stream) override {
    if (!bytes)
      return Status();
    return with(
        [&] { return check(driver().copyToDevice(address(target), source, bytes, stream), "cuMemcpyHtoDAsync"); });
  }
  Status copyToHost(void *target, const void *source, size_t bytes, void *stream) override {
    if (!bytes)
      return Status();
    return with(
        [&] { return check(driver().copyToHost(target, address(source), bytes, stream), "cuMemcpyDtoHAsync"); });
  }
  Status copyOnDevice(void *target, const void *source, size_t bytes, void *stream) override {
    if (!bytes)
      return Status();
    return with([&] {
      return check(driver().copyOnDevice(address(target), address(source), bytes, stream), "cuMemcpyDtoDAsync");
    });
  }
  Status fill(void *target, uint8_t byte, size_t bytes, void *stream) override {
    if (!bytes)
      return Status();
    return with([&] { return check(driver().memset8(address(target), byte, bytes, stream), "cuMemsetD8Async"); });
  }

  Status createStream(void *&stream) override {
    return with([&] { return check(driver().streamCreate(&stream, cuda::StreamNonBlocking), "cuStreamCreate"); });
  }
  Status destroyStream(void *stream) override {
    return with([&] { return check(driver().streamDestroy(stream), "cuStreamDestroy"); });
  }
  Status synchronize(void *stream) override {
    return with([&] { return check(driver().streamSynchronize(stream), "cuStreamSynchronize"); });
  }
  Status createEvent(void *&event) override {
    return with([&] { return check(driver().eventCreate(&event, cuda::EventDefault), "cuEventCreate"); });
  }
  Status destroyEvent(void *event) override {
    return with([&] { return check(driver().eventDestroy(event), "cuEventDestroy"); });
  }
  Status recordEvent(void *event, void *stream) override {
    return with([&] { return check(driver().eventRecord(event, stream), "cuEventRecord"); });
  }
  Status waitEvent(void *event) override {
    return with([&] { return check(driver().eventSynchronize(event), "cuEventSynchronize"); });
  }
  Status elapsed(void *from, void *to, float &milliseconds) override {
    return with([&] { return check(driver().eventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime"); });
  }
  Status beginCapture(void *stream) override {
    return with([&] { return check(driver().beginCapture(stream, cuda::CaptureThreadLocal), "cuStreamBeginCapture"); });
  }
  Status endCapture(void *stream, void *&graph) override {
    return with([&] {
      GraphHandle handle = {};
      ATTNRT_TRY(check(driver().endCapture(stream, &handle.graph), "cuStreamEndCapture"));
      Status status = check(driver().graphInstantiate(&handle.exec, handle.graph, 0), "cuGraphInstantiate");
      if (!status.ok()) {
        driver().graphDestroy(handle.graph);
        return status;
      }
      graph = new GraphHandle(handle);
      return Status();
    });
  }
  Status launchGraph(void *graph, void *stream) override {
    return with(
        [&] { return check(driver().graphLaunch(static_cast<GraphHandle *>(graph)->exec, stream), "cuGraphLaunch"); });
  }
  Status destroyGraph(void *graph) override {
    if (!graph)
      return Status();
    return with([&] {
      auto *handle = static_cast<GraphHandle *>(graph);
      Status first = check(driver().graphExecDestroy(handle->exec), "cuGraphExecDestroy");
      Status second = check(driver().graphDestroy(handle->graph), "cuGraphDestroy");
      delete handle;
      return first.ok() ? second : first;
    });
  }

  Status loadModule(BlobDesc::Kind kind, const char *data, size_t bytes, void *&module) override {
    return with([&] {
      // PTX is read up to its terminating zero, which the blob need not have.
      std::string ptx;
      if (kind == BlobDesc::Ptx) {
        ptx.assign(data, bytes);
        data = ptx.c_str();
      }
      char log[4096] = {};
      int options[] = {cuda::JitErrorLogBuffer, cuda::JitErrorLogBufferSize};
      void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
      cuda::Result result = driver().moduleLoad(&module, data, 2, options, values);
      return check(result, "cuModuleLoadData", log[0] ? std::string(log) : "the bundle's code for '" + text + "'");
    });
  }

  void unloadModule(void *module) override {
    Status ignored = with([&] { return check(driver().moduleUnload(module), "cuModuleUnload"); });
    (void)ignored;
  }

  Status resolve(void *module, const KernelDesc &desc, LoadedKernel &kernel) override {
    return with([&] {
      ATTNRT_TRY(check(driver().moduleGetFunction(&kernel.function, module, desc.symbol.c_str()), "cuModuleGetFunction",
                       "symbol '" + desc.symbol + "'"));
      kernel.threads = desc.threads;
      kernel.smem = desc.smem;
      if (desc.smem > 48 * 1024) // more than that has to be asked for
        ATTNRT_TRY(
            check(driver().funcSetAttribute(kernel.function, cuda::MaxDynamicSharedBytes, static_cast<int>(desc.smem)),
                  "cuFuncSetAttribute",
                  "kernel '" + desc.symbol + "' needs " + std::to_string(desc.smem) + " bytes of shared memory"));
      return Status();
    });
  }

  Status encodeTensorMap(const TensorMapSpec &spec, TensorMap &map) override {
    if (!driver().tensorMapEncodeTiled)
      return Status(Code::Unsupported, "cuda: this driver has no tensor maps; install one of CUDA 12.0 or later");
    int type = cuda::TensorUint8;
    switch (spec.element) {
    case Element::F16:
      type = cuda::TensorFloat16;
      break;
    case Element::BF16:
      type = cuda::TensorBfloat16;
      break;
    case Element::F32:
      type = cuda::TensorFloat32;
      break;
    default:
      break;
    }
    auto step = [](int value, int first) { return value == 0 ? 0 : value == first ? 1 : value == 2 * first ? 2 : 3; };
    const uint32_t ones[5] = {1, 1, 1, 1, 1};
    return with([&] {
      return check(driver().tensorMapEncodeTiled(&map, type, spec.rank, spec.base, spec.dims, spec.strides + 1,
                                                 spec.box, ones, 0, step(spec.swizzle, 32), step(spec.promotion, 64),
                                                 0),
                   "cuTensorMapEncodeTiled");
    });
  }

  Status launch(const LoadedKernel &kernel, int ctas, const AttnWord *, void **params, void *stream) override {
    return with([&] {
      return check(driver().launchKernel(kernel.function, ctas, 1, 1, kernel.threads, 1, 1,
                                         static_cast<unsigned>(kernel.smem), stream, params, nullptr),
                   "cuLaunchKernel");
    });
  }

private:
  cuda::DeviceId id = 0;
  cuda::Context context = nullptr;
};

} // namespace

int attnrt::countCuda() {
  int count = 0;
  if (!driver().problem.empty() || driver().deviceGetCount(&count) != cuda::Success)
    return 0;
  return count;
}

Status attnrt::openCuda(int ordinal, std::shared_ptr<Device> &device) {
  if (!driver().problem.empty())
    return Status(Code::DeviceError, "cuda: " + driver().problem);
  if (countCuda() == 0)
    return Status(Code::DeviceError, "cuda: there is no GPU on this machine; use the cpu device");
  auto result = std::make_shared<CudaDevice>(ordinal);
  ATTNRT_TRY(result->initialise());
  device = std::move(result);
  return Status();
}
