//===- SelectConfig.cpp - chooses and checks kernel configs ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cost model, on a GPU:
// * Tile classes 16, 64 and 128 are all offered where they fit: the planner
//   takes the smallest that holds a request's packed rows, so decode reads K and
//   V once for a whole GQA group and prefill does not waste rows.
// * 64 and 128 rows: every warp reads all of K and V from shared memory, which is
//   the limit with 16 rows a warp (it takes as long as the products of 14 rows).
//   So 32 rows a warp and 64 keys, where the registers allow it, and two CTAs an
//   SM, whose softmax and products overlap: with 64 keys in two stages, or else
//   32 in three.
// * Otherwise 16 rows a warp, and the most keys with two stages that fit, up to
//   128: a step costs about 1 + 16 / keys of its products (barriers, maximum,
//   rescale). Below 16 keys (of a group) the second product has no full k16 step.
//   One stage is taken only when two do not fit with 16 keys.
// * 16 rows: one warp a group of keys, four groups (a warp's 16 x D accumulator
//   is D / 2 registers), two stages of 128 keys; three where only fewer keys fit.
// * Packing: the GQA group where it fits into the rows (16 and 64), 1 for 128.
// * Tensor copies need 16-bit K and V, and pages that divide the tile's keys.
// On the host: 16 rows x 64 keys, one thread, whose tiles stay in the L1 and L2
// caches.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/SelectConfig.h"

using namespace mlir;
using namespace mlir::attn;
using ::attn::TargetInfo;

/// Registers of a thread (PTX ISA: 255 is the most that an instruction can name).
static constexpr int64_t kRegisters = 255;

static int64_t bytesOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType().getIntOrFloatBitWidth() / 8;
}

static bool isEightBit(AttentionOp op) { return bytesOf(op.getK()) == 1; }

static bool hasHook(AttentionOp op, HookKind kind) {
  VariantOp variant = op.lookupVariant();
  return variant && variant.getHook(kind);
}

static bool readsMemory(HookOp hook) {
  return hook.getBody().walk([](memref::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

ConfigNeeds mlir::attn::estimateNeeds(AttentionOp op, ConfigAttr config, const TargetInfo &target) {
  int64_t dqk = op.getHeadDimQk(), dvo = op.getHeadDimVo(), q = bytesOf(op.getQ()), kv = bytesOf(op.getK());
  int64_t rows = config.getRows(), keys = config.getKeys(), groups = config.getGroups();
  ConfigNeeds needs;
  bool qInRegisters = rows <= 16 || config.getQInRegisters();
  if (!qInRegisters)
    needs.sharedMemory += rows * dqk * q;
  needs.sharedMemory += config.getStages() * keys * (dqk + dvo) * kv;
  // Warpgroup products take B from shared memory only, so what a hook or a conversion made goes back there.
  if (target.wgmma && config.getConsumers() > 0) {
    if (isEightBit(op) || hasHook(op, HookKind::Key))
      needs.sharedMemory += keys * dqk * q;
    if (isEightBit(op) || hasHook(op, HookKind::Value))
      needs.sharedMemory += keys * dvo * q;
  }
  // The states of the groups meet in shared memory, in the place of K and V.
  if (groups > 1)
    needs.sharedMemory = std::max(needs.sharedMemory, groups * rows * (dvo + 2) * 4);
  needs.sharedMemory += 1024; // barriers, alignment of stages
  // Registers: output and scores in fp32, a part of the weights in 16 bits (scores die as they are made), Q where it is
  // there, two 16-wide operands, addresses.
  int64_t threads = 32 * config.getWarps();
  int64_t scores = rows * keys / groups; // of a group
  int64_t perGroup = groups > 1 ? threads / groups : threads;
  int64_t words = rows * dvo + scores + scores / 4;
  if (qInRegisters)
    words += rows * dqk / 2;
  needs.registers = (words + perGroup - 1) / perGroup + 40;
  // Hooks that run on every score: their coordinates, and loads that are issued together.
  int64_t mine = (scores + perGroup - 1) / perGroup;
  for (HookKind kind : {HookKind::Logits, HookKind::Mask})
    if (hasHook(op, kind))
      needs.registers += readsMemory(op.lookupVariant().getHook(kind)) ? 16 + 2 * mine
                         : kind == HookKind::Logits                    ? 16
                                                                       : 0;
  return needs;
}

LogicalResult mlir::attn::verifyConfig(AttentionOp op, ConfigAttr config, const TargetInfo *target) {
  auto error = [&]() { return op.emitOpError() << "config " << config << ": "; };
  int64_t rows = config.getRows(), keys = config.getKeys(), groups = config.getGroups(), pack = config.getPack();
  if (rows < 1 || keys < 1 || groups < 1 || pack < 1 || config.getStages() < 1 || config.getWarps() < 1)
    return error() << "rows, keys, stages, warps, groups and pack must be at least 1";
  if (rows > 1024 || keys > 1024 || config.getStages() > 32 || config.getWarps() > 32)
    return error() << "expected at most 1024 rows and keys, 32 stages and 32 warps";
  if (config.getOrder() != ItemOrder::List)
    return error() << "no kernel takes its items from a counter yet; use order = list";
  if (keys % groups != 0)
    return error() << keys << " keys do not divide into " << groups << " groups";
  if (keys / groups % 8 != 0 || rows % 8 != 0)
    return error() << "rows and the keys of a group must be multiples of 8, got " << rows << " and " << keys / groups;
  if (pack != 1 && pack != op.getGroup())
    return error() << "pack is " << pack << ", expected 1 or " << op.getGroup() << ", the query heads of a KV head";
  if (pack > rows)
    return error() << "packs " << pack << " heads into " << rows << " rows; use pack = 1 or more rows";
  if (!target || !target->isGpu())
    return success();
  if (rows % 16 != 0 || keys / groups % 16 != 0)
    return error() << "rows and the keys of a group must be multiples of 16 on " << target->chip << ", got " << rows
                   << " and " << keys / groups;
  if (groups > 1 && config.getWarps() % groups != 0)
    return error() << config.getWarps() << " warps do not divide into " << groups << " groups";
  int64_t warpsOfGroup = config.getWarps() / groups;
  if (rows % (16 * warpsOfGroup) != 0)
    return error() << warpsOfGroup << " warps of 16 rows do not divide " << rows << " rows";
  if (config.getConsumers() > 0 && !target->wgmma)
    return error() << target->chip << " has no warpgroup products; use consumers = 0";
  if (config.getLoad() == LoadPath::Tma && !target->tma)
    return error() << target->chip << " has no tensor copies; use load = gather";
  ConfigNeeds needs = estimateNeeds(op, config, *target);
  if (needs.sharedMemory > target->sharedPerCta)
    return error() << "needs " << needs.sharedMemory << " bytes of shared memory, " << target->chip << " has "
                   << target->sharedPerCta << ", " << needs.sharedMemory - target->sharedPerCta
                   << " too few; use fewer keys, stages or rows";
  if (needs.registers > kRegisters)
    return error() << "needs about " << needs.registers << " registers a thread, " << target->chip << " has "
                   << kRegisters << ", " << needs.registers - kRegisters
                   << " too few; use fewer keys or rows, or more warps";
  return success();
}

/// Whether K or V pass through registers on their way to the products: then there is no room for 32 rows a warp.
static bool transformsHeads(AttentionOp op) {
  return isEightBit(op) || hasHook(op, HookKind::Key) || hasHook(op, HookKind::Value);
}

static ConfigAttr makeConfig(AttentionOp op, int64_t rows, int64_t keys, int64_t stages, int64_t warps, int64_t groups,
                             bool tableOfRows, int64_t consumers, LoadPath load) {
  int64_t pack = rows < 128 && op.getGroup() <= rows ? op.getGroup() : 1;
  return ConfigAttr::get(op.getContext(), rows, keys, stages, warps, groups, pack, tableOfRows, consumers,
                         /*q_in_registers=*/false, load, ItemOrder::List);
}

static LoadPath chooseLoad(AttentionOp op, const TargetInfo &target, int64_t rows, int64_t keys) {
  if (!target.tma || !target.wgmma || rows < 64 || isEightBit(op))
    return LoadPath::Gather;
  int64_t page = op.getPageSize();
  // One box a page: pages below 8 rows are faster by gather.
  bool boxes = op.getFormat().getKind() == FormatKind::Ragged || (page >= 8 && (keys % page == 0 || page % keys == 0));
  return boxes ? LoadPath::Tma : LoadPath::Gather;
}

SmallVector<ConfigAttr> mlir::attn::selectConfigs(AttentionOp op, const TargetInfo &target) {
  SmallVector<ConfigAttr> configs;
  if (!target.isGpu()) {
    configs.push_back(makeConfig(op, 16, 64, 1, 1, 1, true, 0, LoadPath::Gather));
    return configs;
  }
  auto fits = [&](ConfigAttr config) {
    ConfigNeeds needs = estimateNeeds(op, config, target);
    return needs.sharedMemory <= target.sharedPerCta && needs.registers <= kRegisters;
  };
  for (int64_t rows : {16, 64, 128}) {
    int64_t groups = rows == 16 ? 4 : 1;
    bool consumers = rows >= 64 && !transformsHeads(op) && chooseLoad(op, target, rows, 64) == LoadPath::Tma;
    auto make = [&](int64_t keys, int64_t stages, int64_t warps) {
      return makeConfig(op, rows, keys, stages, warps, groups, /*tableOfRows=*/rows < 128, consumers ? rows / 64 : 0,
                        consumers ? chooseLoad(op, target, rows, keys) : LoadPath::Gather);
    };
    auto choose = [&]() -> ConfigAttr {
      if (rows >= 64 && !consumers && !transformsHeads(op)) {
        ConfigAttr most = make(64, 2, rows / 32), less = make(32, 3, rows / 32);
        for (ConfigAttr config : {most, less})
          if (fits(config) && 2 * (estimateNeeds(op, config, target).sharedMemory + 1024) <= target.sharedPerSm)
            return config;
        if (fits(most))
          return most;
      }
      int64_t warps = rows == 16 ? 4 : rows / 16;
      for (int64_t stages : {2, 1})
        for (int64_t keys = 128; keys >= 16 * groups; keys /= 2)
          if (fits(make(keys, stages, warps))) {
            if (rows == 16 && stages == 2 && keys < 128 && fits(make(keys, 3, warps)))
              stages = 3;
            return make(keys, stages, warps);
          }
      return {};
    };
    if (ConfigAttr config = choose())
      configs.push_back(config);
  }
  return configs;
}
