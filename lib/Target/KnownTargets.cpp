//===- KnownTargets.cpp - limits and abilities of the machines ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory: CUDA C++ Programming Guide, table of compute capabilities.
// ptx86 is the first PTX version with CTA-local tensor copies.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/KnownTargets.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

static const TargetInfo table[] = {
    // chip, features, shared/CTA, shared/SM, registers, threads, cp.async, tma, wgmma, setmaxnreg, fp8
    {"host", "", 0, 0, 0, 0, false, false, false, false, false},
    {"sm_80", "+ptx78", 166912, 167936, 65536, 2048, true, false, false, false, false},
    {"sm_86", "+ptx78", 101376, 102400, 65536, 1536, true, false, false, false, false},
    {"sm_89", "+ptx81", 101376, 102400, 65536, 1536, true, false, false, false, true},
    {"sm_90a", "+ptx86", 232448, 233472, 65536, 2048, true, true, true, true, true},
    // tcgen05 is not used yet: this chip runs the code of the mma.sync generation.
    {"sm_100a", "+ptx86", 232448, 233472, 65536, 2048, true, true, false, true, true},
};

llvm::ArrayRef<TargetInfo> attn::knownTargets() { return table; }

const TargetInfo *attn::findTarget(llvm::StringRef chip) {
  const TargetInfo *found = llvm::find_if(table, [&](const TargetInfo &info) { return info.chip == chip; });
  return found == std::end(table) ? nullptr : found;
}

std::string attn::knownTargetNames() {
  std::string names;
  for (const TargetInfo &info : table)
    names += (names.empty() ? "" : ", ") + info.chip.str();
  return names;
}
