//===- RoleRegisters.cpp - registers of the roles of a kernel ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The launch deals the registers out evenly among the warpgroups; setmaxnreg
// (PTX ISA: 24 to 256, multiples of 8) moves them between roles afterwards, so
// the sum of the roles is that of the launch.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/RoleRegisters.h"
#include <algorithm>
#include <cstdlib>

using namespace attn;

static constexpr int64_t kTransformer = 72;

/// Lanes that look up pages need more than the one thread that issues whole boxes, and so does a long range program
/// (that of a window with two run-time sides has 104 instructions: with 24 registers it spills 118 words, with 56
/// eight).
static int64_t getProducer(const RoleWork &work) {
  if (work.range > 60)
    return 72;
  if (work.pages || work.range > 40)
    return 40;
  return work.consumers >= 3 ? 32 : 24;
}

RoleRegisters attn::getRoleRegisters(const RoleWork &work) {
  int64_t warpgroups = work.consumers + 1 + work.hooks;
  int64_t share = std::min<int64_t>(65536 / 128 / warpgroups / 8 * 8, 248); // what a thread is launched with
  if (getenv("G2_W4") && work.pages && work.consumers == 2)
    return {216, 40, 0};
  int64_t least = getProducer(work), all = share * warpgroups;
  int64_t consumer = std::min<int64_t>(240, (all - least - (work.hooks ? kTransformer : 0)) / work.consumers / 8 * 8);
  int64_t rest = all - consumer * work.consumers;
  int64_t transformer = work.hooks ? std::min<int64_t>(rest - least, 160) / 8 * 8 : 0;
  return {consumer, std::min<int64_t>(rest - transformer, 128), transformer};
}
