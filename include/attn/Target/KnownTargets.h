//===- KnownTargets.h - limits and abilities of the machines -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes ask here what a machine can do and never compare chip names.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_KNOWNTARGETS_H
#define ATTN_TARGET_KNOWNTARGETS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace attn {

struct TargetInfo {
  llvm::StringRef chip;        // "sm_80"; "host"
  llvm::StringRef ptxFeatures; // of the NVPTX back end, e.g. "+ptx86"
  int64_t sharedPerCta;        // bytes of shared memory that one CTA may ask for
  int64_t sharedPerSm;         // bytes that resident CTAs share (each takes 1 KiB more than it asks for)
  int64_t registersPerSm;      // 32-bit registers
  int64_t threadsPerSm;
  bool asyncCopy;       // cp.async
  bool tma;             // cp.async.bulk.tensor, mbarrier transactions
  bool wgmma;           // wgmma.mma_async
  bool setMaxRegisters; // setmaxnreg
  bool fp8Convert;      // cvt e4m3/e5m2 to f16
  bool isGpu() const { return registersPerSm != 0; }
};

/// The machine `chip`, or null.
const TargetInfo *findTarget(llvm::StringRef chip);
/// All machines, in order.
llvm::ArrayRef<TargetInfo> knownTargets();
/// "host, sm_80, ..." for messages.
std::string knownTargetNames();

} // namespace attn

#endif
