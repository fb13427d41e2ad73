//===- SelectConfig.h - chooses and checks kernel configs ------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One #attn.config per tile class, from shapes, format, hooks and target. The
// cost model stands in ConfigCost.cpp and in docs/Configs.md.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_SELECTCONFIG_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_SELECTCONFIG_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Target/KnownTargets.h"

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
std::string whyNoConsumers(AttentionOp op, int64_t rows, int64_t keys, const ::attn::TargetInfo &target);

/// Registers that a thread of that config has, of those that compute.
int64_t getRegisterLimit(AttentionOp op, ConfigAttr config);

/// Stages of the query tile of a config with consumers, as tile-warp-specialize makes them: three where they fit beside
/// K and V (one in use, one for the next item, one whose results leave by a bulk copy), else two, else one.
int64_t getQueryStages(AttentionOp op, ConfigAttr config, const ::attn::TargetInfo &target);

/// Checks a config against the op and the machine; reports by how much it does not fit. `target` may be null: then
/// only what holds on every machine is checked.
LogicalResult verifyConfig(AttentionOp op, ConfigAttr config, const ::attn::TargetInfo *target);

/// Tile classes: 16 rows, 64 rows, 128 rows and more. The planner takes the smallest that holds a request's packed
/// rows.
enum class TileClass { Small, Medium, Large };
constexpr TileClass kTileClasses[] = {TileClass::Small, TileClass::Medium, TileClass::Large};
TileClass getTileClass(ConfigAttr config);
/// "small", "medium", "large".
StringRef getName(TileClass tileClass);

/// What the cost model says of a config: cycles of a multiprocessor for a row of a typical request (ConfigCost.cpp).
double estimateCost(AttentionOp op, ConfigAttr config, const ::attn::TargetInfo &target);

/// Whether blocks that need the mask get key loops of their own: not where each copy of a block is long, which takes
/// LLVM and ptxas more time than a kernel should (docs/Performance.md, "Compile time").
bool choosePeel(AttentionOp op, int64_t rows, int64_t keys, int64_t consumers);

/// Configs of an op that the assembler was found to spill or to serialise.
using RefusedConfigs = SmallVector<ConfigAttr>;

/// The configs of one tile class that fit, the model's choice first. One that needs about as many registers as one in
/// `refused` is not among them.
SmallVector<ConfigAttr> listCandidates(AttentionOp op, TileClass tileClass, const ::attn::TargetInfo &target,
                                       const RefusedConfigs &refused = {});

/// The configs for an op on a machine, ascending in rows: the first candidate of each class. Empty when none fits (a
/// head dim too large).
SmallVector<ConfigAttr> selectConfigs(AttentionOp op, const ::attn::TargetInfo &target,
                                      const RefusedConfigs &refused = {});

} // namespace mlir::attn

#endif
