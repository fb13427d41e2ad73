//===- Device.cpp - opening devices, loading bundles ----------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is the same on every device.
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include <cctype>
#include <cstdlib>

using namespace attnrt;

Device::~Device() = default;

Status Device::open(DeviceKind kind, int ordinal, std::shared_ptr<Device> &device) {
  int available = count(kind);
  const char *name = kind == DeviceKind::CPU ? "cpu" : "cuda";
  if (ordinal < 0 || (available > 0 && ordinal >= available))
    return invalid("device: argument 'ordinal' is " + std::to_string(ordinal) + ", but there are " +
                   std::to_string(available) + " " + name + " devices; number them from 0");
  return kind == DeviceKind::CPU ? openCpu(device) : openCuda(ordinal, device);
}

int Device::count(DeviceKind kind) { return kind == DeviceKind::CPU ? 1 : countCuda(); }

Status attnrt::chooseBlob(const Manifest &manifest, int capability, int wanted, int &chosen) {
  chosen = wanted;
  if (manifest.onHost())
    return Status();
  int compiled = std::atoi(manifest.target.c_str() + 3);
  bool only = !manifest.target.empty() && std::isalpha(static_cast<unsigned char>(manifest.target.back()));
  auto runs = [&](BlobDesc::Kind kind) {
    if (only)
      return capability == compiled;
    return capability >= compiled && (kind == BlobDesc::Ptx || capability / 10 == compiled / 10);
  };
  if (runs(manifest.blobs[wanted].kind))
    return Status();
  for (size_t i = 0; i < manifest.blobs.size(); ++i)
    if (manifest.blobs[i].kind == BlobDesc::Ptx && runs(BlobDesc::Ptx)) {
      chosen = static_cast<int>(i);
      return Status();
    }
  return invalid("executable: the bundle is for target \"" + manifest.target +
                 "\" and the device has compute capability " + std::to_string(capability / 10) + "." +
                 std::to_string(capability % 10) + "; compile it for that machine");
}

Status Executable::load(std::shared_ptr<const Bundle> bundle, std::shared_ptr<Device> device,
                        std::shared_ptr<Executable> &executable) {
  if (!bundle)
    return invalid("executable: argument 'bundle' is null");
  if (!device)
    return invalid("executable: argument 'device' is null");
  const Manifest &m = bundle->manifest();
  if (m.onHost() != (device->kind() == DeviceKind::CPU))
    return invalid("executable: the bundle is for target \"" + m.target + "\" and does not run on device '" +
                   device->name() + "'; compile it for " + (m.onHost() ? "the GPU's sm_NN" : "\"host\""));
  auto result = std::make_shared<Executable>();
  result->bundle = bundle;
  result->target = device;
  result->modules.resize(m.blobs.size());
  auto resolve = [&](const KernelDesc &desc, LoadedKernel &kernel) -> Status {
    int blob = 0;
    ATTNRT_TRY(chooseBlob(m, device->computeCapability(), desc.blob, blob));
    if (!result->modules[blob])
      ATTNRT_TRY(
          device->loadModule(m.blobs[blob].kind, bundle->blob(blob), m.blobs[blob].bytes, result->modules[blob]));
    return device->resolve(result->modules[blob], desc, kernel);
  };
  for (const KernelDesc &desc : m.kernels)
    ATTNRT_TRY(resolve(desc, result->kernels.emplace_back()));
  if (m.merge)
    ATTNRT_TRY(resolve(*m.merge, result->mergeKernel));
  executable = std::move(result);
  return Status();
}

Executable::~Executable() {
  for (void *module : modules)
    if (module)
      target->unloadModule(module);
}
