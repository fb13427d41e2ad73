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
  for (size_t i = 0; i < m.blobs.size(); ++i) {
    void *module = nullptr;
    ATTNRT_TRY(device->loadModule(m.blobs[i].kind, bundle->blob(static_cast<int>(i)), m.blobs[i].bytes, module));
    result->modules.push_back(module);
  }
  for (const KernelDesc &desc : m.kernels) {
    LoadedKernel kernel;
    ATTNRT_TRY(device->resolve(result->modules[desc.blob], desc, kernel));
    result->kernels.push_back(kernel);
  }
  if (m.merge)
    ATTNRT_TRY(device->resolve(result->modules[m.merge->blob], *m.merge, result->mergeKernel));
  executable = std::move(result);
  return Status();
}

Executable::~Executable() {
  for (void *module : modules)
    target->unloadModule(module);
}
