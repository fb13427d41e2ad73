//===- RoleRegisters.h - registers of the roles of a kernel ----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the roles of a kernel share the 64 k registers of a multiprocessor: what
// tile-warp-specialize writes on them, and what the chooser of configs counts on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_ROLEREGISTERS_H
#define ATTN_TARGET_ROLEREGISTERS_H

#include <cstdint>

namespace attn {

/// What a kernel's roles are made for.
struct RoleWork {
  int64_t consumers = 1; // warpgroups
  bool pages = false;    // producers look up pages
  bool gather = false;   // threads copy K and V row by row
  int64_t columns = 0;   // of the widest stage or product
  bool hooks = false;    // a role transforms K or V
  int64_t range = 0;     // instructions of the range program, which producers run for every item
};

/// Registers of a thread, in multiples of 8.
struct RoleRegisters {
  int64_t consumer, producer, transformer;
  int64_t gatherWarps; // of the role that copies row by row
};

RoleRegisters getRoleRegisters(const RoleWork &work);

} // namespace attn

#endif
