//===- Devices.h - the device kinds -----------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_DEVICES_H
#define ATTN_LIB_RUNTIME_DEVICES_H

#include "attn/Runtime/Device.h"

namespace attnrt {

Status openCpu(std::shared_ptr<Device> &device);
Status openCuda(int ordinal, std::shared_ptr<Device> &device);
int countCuda();

} // namespace attnrt

#endif // ATTN_LIB_RUNTIME_DEVICES_H
