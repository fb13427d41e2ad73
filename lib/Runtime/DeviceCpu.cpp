//===- DeviceCpu.cpp - host kernels under OpenMP --------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A blob is a shared object. It goes to an anonymous file and from there to
// the dynamic loader, so nothing is left on disk. Streams mean nothing here:
// every call is done when it returns.
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace attnrt;

namespace {

struct HostModule {
  void *handle = nullptr;
  // Kept open while the library is loaded: the loader knows libraries by path,
  // and /proc/self/fd/N must not come to mean another file in the meantime.
  int file = -1;
};

struct HostEvent {
  std::chrono::steady_clock::time_point time;
};

/// One scratch buffer a thread, 64-byte aligned, kept for the next launch.
struct Scratch {
  void *data = nullptr;
  size_t bytes = 0;
  ~Scratch() { std::free(data); }
  void *get(size_t need) {
    if (need > bytes) {
      std::free(data);
      bytes = (need + 63) / 64 * 64;
      data = std::aligned_alloc(64, bytes);
      if (!data)
        bytes = 0;
    }
    return data;
  }
};

class CpuDevice final : public Device {
public:
  CpuDevice() : Device(DeviceKind::CPU, 0) {
    units = omp_get_max_threads();
    text = "cpu";
  }

  Status alloc(size_t bytes, void *&pointer) override {
    pointer = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
    return pointer ? Status() : Status(Code::OutOfMemory, "cpu: cannot allocate " + std::to_string(bytes) + " bytes");
  }
  Status free(void *pointer) override {
    std::free(pointer);
    return Status();
  }
  Status allocHost(size_t bytes, void *&pointer) override { return alloc(bytes, pointer); }
  Status freeHost(void *pointer) override { return free(pointer); }
  Status copyToDevice(void *target, const void *source, size_t bytes, void *) override {
    std::memcpy(target, source, bytes);
    return Status();
  }
  Status copyToHost(void *target, const void *source, size_t bytes, void *stream) override {
    return copyToDevice(target, source, bytes, stream);
  }
  Status copyOnDevice(void *target, const void *source, size_t bytes, void *stream) override {
    return copyToDevice(target, source, bytes, stream);
  }
  Status fill(void *target, uint8_t byte, size_t bytes, void *) override {
    std::memset(target, byte, bytes);
    return Status();
  }

  Status createStream(void *&stream) override {
    stream = nullptr;
    return Status();
  }
  Status destroyStream(void *) override { return Status(); }
  Status synchronize(void *) override { return Status(); }
  Status createEvent(void *&event) override {
    event = new HostEvent{std::chrono::steady_clock::now()};
    return Status();
  }
  Status destroyEvent(void *event) override {
    delete static_cast<HostEvent *>(event);
    return Status();
  }
  Status recordEvent(void *event, void *) override {
    static_cast<HostEvent *>(event)->time = std::chrono::steady_clock::now();
    return Status();
  }
  Status waitEvent(void *) override { return Status(); }
  Status elapsed(void *from, void *to, float &milliseconds) override {
    milliseconds = std::chrono::duration<float, std::milli>(static_cast<HostEvent *>(to)->time -
                                                            static_cast<HostEvent *>(from)->time)
                       .count();
    return Status();
  }
  Status noGraphs() { return Status(Code::Unsupported, "cpu: there are no graphs on the cpu; call run again instead"); }
  Status beginCapture(void *) override { return noGraphs(); }
  Status endCapture(void *, void *&) override { return noGraphs(); }
  Status launchGraph(void *, void *) override { return noGraphs(); }
  Status destroyGraph(void *) override { return noGraphs(); }

  Status loadModule(BlobDesc::Kind, const char *data, size_t bytes, void *&module) override {
    int file = memfd_create("attn-kernel", MFD_CLOEXEC);
    if (file < 0)
      return Status(Code::IoError, std::string("cpu: cannot create an anonymous file: ") + std::strerror(errno));
    for (size_t done = 0; done < bytes;) {
      ssize_t wrote = write(file, data + done, bytes - done);
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote <= 0) {
        close(file);
        return Status(Code::IoError, std::string("cpu: cannot write the kernel's file: ") + std::strerror(errno));
      }
      done += wrote;
    }
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char *why = dlerror();
      close(file);
      return Status(Code::InvalidBundle,
                    std::string("cpu: cannot load the bundle's shared object: ") + (why ? why : "?"));
    }
    module = new HostModule{handle, file};
    return Status();
  }

  void unloadModule(void *module) override {
    auto *host = static_cast<HostModule *>(module);
    dlclose(host->handle);
    close(host->file);
    delete host;
  }

  Status resolve(void *module, const KernelDesc &desc, LoadedKernel &kernel) override {
    kernel.function = dlsym(static_cast<HostModule *>(module)->handle, desc.symbol.c_str());
    if (!kernel.function)
      return Status(Code::InvalidBundle, "cpu: the bundle's shared object has no symbol '" + desc.symbol + "'");
    kernel.threads = desc.threads;
    kernel.smem = desc.smem;
    return Status();
  }

  Status encodeTensorMap(const TensorMapSpec &, TensorMap &) override {
    return Status(Code::Unsupported, "cpu: there are no tensor maps on the cpu");
  }

  Status launch(const LoadedKernel &kernel, int ctas, const AttnWord *words, void **, void *) override {
    auto function = reinterpret_cast<AttnHostKernel>(kernel.function);
    bool failed = false;
#pragma omp parallel for schedule(dynamic, 1)
    for (int cta = 0; cta < ctas; ++cta) {
      static thread_local Scratch scratch;
      void *buffer = kernel.smem ? scratch.get(kernel.smem) : nullptr;
      if (kernel.smem && !buffer) {
#pragma omp atomic write
        failed = true;
        continue;
      }
      function(words, cta, buffer);
    }
    return failed
               ? Status(Code::OutOfMemory, "cpu: cannot allocate " + std::to_string(kernel.smem) + " bytes of scratch")
               : Status();
  }
};

} // namespace

Status attnrt::openCpu(std::shared_ptr<Device> &device) {
  device = std::make_shared<CpuDevice>();
  return Status();
}
