//===- SelectConfig.h - chooses and checks kernel configs ------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One #attn.config per tile class, from shapes, format, hooks and target. The
// cost model stands in SelectConfig.cpp and in docs/Configs.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_SELECTCONFIG_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_SELECTCONFIG_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Target/KnownTargets.h"
#include <map>

namespace mlir::attn {

/// What a kernel of that config needs for this op.
struct ConfigNeeds {
  int64_t sharedMemory = 0; // bytes of a CTA
  int64_t registers = 0;    // of a thread, estimated
  int64_t margin = 0;       // more registers, which hooks are likely to take
};
/// Head dims are padded to multiples of this in tiles of a GPU: 16 (a step of the products), 32 for 8-bit K and V.
int64_t getHeadDimUnit(AttentionOp op);

/// Whether a kernel holds its query tile in registers (else in shared memory): few rows, unless K or V need them.
bool keepsQInRegisters(AttentionOp op, ConfigAttr config);

ConfigNeeds estimateNeeds(AttentionOp op, ConfigAttr config, const ::attn::TargetInfo &target);

/// Why a tile of that size cannot have consumers (a producer warp with tensor copies, warpgroup products); empty when
/// it can. The passes behind `attn-gpu-pipeline` take whatever this admits.
std::string whyNoConsumers(AttentionOp op, int64_t rows, int64_t keys, int64_t pack, const ::attn::TargetInfo &target);

/// Checks a config against the op and the machine; reports by how much it does not fit. `target` may be null: then
/// only what holds on every machine is checked.
LogicalResult verifyConfig(AttentionOp op, ConfigAttr config, const ::attn::TargetInfo *target);

/// Registers that a tile class has to leave free beyond the estimate, by its rows: what ptxas was found to need more.
using RegisterReserve = std::map<int64_t, int64_t>;
/// A class that would have to leave more than this free is left out.
constexpr int64_t kMaxReserve = 120;

/// The configs for an op on a machine, ascending in rows. Empty when none fits (a head dim too large).
SmallVector<ConfigAttr> selectConfigs(AttentionOp op, const ::attn::TargetInfo &target,
                                      const RegisterReserve &reserve = {});

} // namespace mlir::attn

#endif
