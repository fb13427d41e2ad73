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

using namespace attn;

static constexpr int64_t kTransformer = 72;

/// Whether a warpgroup gathers, beside the one of the other producers: four warps fill a stage faster than two whatever
/// else they execute. But then two consumers make the launch one of 128 registers a thread, which are too few for
/// ptxas to write a product of 256 columns, and leave 24 for producers, which are enough for short range programs only.
static bool hasGatherers(const RoleWork &work) {
  return work.gather && work.consumers <= 2 && !work.hooks && work.range <= 40 && work.columns <= 192;
}

/// Lanes that look up pages need more than the one thread that issues whole boxes, and so does a long range program
/// (that of a window with two run-time sides has 104 instructions: with 24 registers it spills 118 words, with 56
/// eight).
static int64_t getProducer(const RoleWork &work) {
  if (work.range > 60)
    return 72;
  if ((work.pages && !hasGatherers(work)) || work.range > 40)
    return 40;
  return work.consumers >= 3 ? 32 : 24;
}

RoleRegisters attn::getRoleRegisters(const RoleWork &work) {
  int64_t producers = hasGatherers(work) ? 2 : 1, warpgroups = work.consumers + producers + work.hooks;
  int64_t share = std::min<int64_t>(65536 / 128 / warpgroups / 8 * 8, 248); // what a thread is launched with
  int64_t least = getProducer(work), all = share * warpgroups;
  int64_t consumer =
      std::min<int64_t>(240, (all - producers * least - (work.hooks ? kTransformer : 0)) / work.consumers / 8 * 8);
  int64_t rest = all - consumer * work.consumers;
  int64_t transformer = work.hooks ? std::min<int64_t>(rest - least, 160) / 8 * 8 : 0;
  int64_t producer = std::min<int64_t>((rest - transformer) / producers / 8 * 8, 128);
  return {consumer, producer, transformer, hasGatherers(work) ? 4 : 2};
}
