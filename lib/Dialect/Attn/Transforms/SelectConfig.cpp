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
// * Consumers (warpgroup products behind tensor copies, with a producer warp) are
//   taken for the classes of 64 and 128 rows wherever `whyNoConsumers` is silent;
//   Q in fragments, where there are registers for it, spares its reads (1 %).
// On the host: 16 rows x 64 keys, one thread, whose tiles stay in the L1 and L2
// caches.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using ::attn::TargetInfo;

/// Registers of a thread (PTX ISA: 255 is the most that an instruction can name); of a consumer beside a producer warp.
static constexpr int64_t kRegisters = 255, kConsumerRegisters = 240;

static int64_t bytesOf(Value value) {
  return cast<ShapedType>(value.getType()).getElementType().getIntOrFloatBitWidth() / 8;
}

static bool isEightBit(AttentionOp op) { return bytesOf(op.getK()) == 1; }

int64_t mlir::attn::getHeadDimUnit(AttentionOp op) { return isEightBit(op) ? 32 : 16; }

static bool hasHook(AttentionOp op, HookKind kind) {
  VariantOp variant = op.lookupVariant();
  return variant && variant.getHook(kind);
}

/// Of a thread. Two consumers leave less of the 64 k to each other when a role transforms K or V beside them
/// (tile-warp-specialize).
static int64_t registersOf(AttentionOp op, ConfigAttr config) {
  int64_t consumers = config.getConsumers();
  if (consumers == 0)
    return kRegisters;
  if (!hasHook(op, HookKind::Key) && !hasHook(op, HookKind::Value) && !isEightBit(op))
    return kConsumerRegisters;
  return std::min(kConsumerRegisters, (512 / (consumers + 2) / 8 * 8 * (consumers + 2) - 112) / consumers / 8 * 8);
}

/// Whether Q, K or V is computed anew in shared memory before the products read it.
static bool transformsHeads(AttentionOp op) {
  return isEightBit(op) || llvm::any_of(ArrayRef({HookKind::Query, HookKind::Key, HookKind::Value}),
                                        [&](HookKind kind) { return hasHook(op, kind); });
}

std::string mlir::attn::whyNoConsumers(AttentionOp op, int64_t rows, int64_t keys, int64_t pack,
                                       const TargetInfo &target) {
  if (!target.wgmma)
    return target.chip.str() + " has no warpgroup products";
  if (!target.tma)
    return target.chip.str() + " has no tensor copies";
  if (rows % 64 != 0)
    return llvm::formatv("{0} rows are not whole warpgroups of 64", rows);
  if (rows > 256)
    return llvm::formatv("{0} rows do not fit into one tensor copy of 256", rows);
  for (int64_t dim : {op.getHeadDimQk(), op.getHeadDimVo()}) {
    if (dim > 256)
      return llvm::formatv("head dim {0} is more than the 256 columns of a warpgroup's product", dim);
    if (dim * bytesOf(op.getK()) % 16 != 0)
      return llvm::formatv("rows of {0} bytes are not whole 16 bytes, which tensor copies want",
                           dim * bytesOf(op.getK()));
  }
  if (op.getFormat().getKind() == FormatKind::Ragged)
    return "";
  int64_t page = op.getPageSize();
  // One box a page; the swizzle repeats every 8 rows.
  if (page % 8 != 0)
    return llvm::formatv("pages of {0} keys are not whole groups of 8 rows", page);
  if (keys % page != 0 && page % keys != 0)
    return llvm::formatv("pages of {0} keys and tiles of {1} do not divide one another", page, keys);
  return "";
}

/// True when `value` follows from the position of a key; `rows` when from something else that differs between logits.
static bool dependsOnKey(Value value, bool &rows) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<KVPosOp>(op))
    return true;
  rows |= isa<QPosOp, RowOp>(op);
  bool key = false;
  for (Value operand : op->getOperands())
    key |= dependsOnKey(operand, rows);
  return key;
}

/// Registers that the hooks of a step keep beside its tiles, where ptxas has no other warps to hide behind (seen on the
/// example variants): a logits hook's temporaries, the addresses of what a mask reads for each logit.
static int64_t hookRegisters(AttentionOp op) {
  VariantOp variant = op.lookupVariant();
  if (!variant)
    return 0;
  int64_t registers = variant.getHook(HookKind::Logits) ? 16 : 0;
  for (HookKind kind : {HookKind::Logits, HookKind::Mask})
    if (HookOp hook = variant.getHook(kind))
      hook.getBody().walk([&](memref::LoadOp load) {
        bool rows = false, keys = false;
        for (Value index : load.getIndices())
          keys |= dependsOnKey(index, rows);
        if (keys && rows)
          registers = 96;
      });
  return registers;
}

static bool readsMemory(HookOp hook) {
  return hook.getBody().walk([](memref::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool mlir::attn::keepsQInRegisters(AttentionOp op, ConfigAttr config) {
  if (config.getRows() > 16)
    return config.getQInRegisters();
  return op.getHeadDimQk() <= 128 || !transformsHeads(op);
}

/// Whether few registers go to addresses and positions: rows a stride apart or whole pages, keys in order.
static bool hasPlainRows(AttentionOp op) {
  FormatKind kind = op.getFormat().getKind();
  return kind == FormatKind::Ragged || (kind == FormatKind::Paged && op.getPageSize() % 16 == 0);
}

ConfigNeeds mlir::attn::estimateNeeds(AttentionOp op, ConfigAttr config, const TargetInfo &target) {
  int64_t unit = getHeadDimUnit(op), q = bytesOf(op.getQ());
  int64_t dqk = llvm::alignTo(op.getHeadDimQk(), unit), dvo = llvm::alignTo(op.getHeadDimVo(), unit);
  int64_t rows = config.getRows(), keys = config.getKeys(), groups = config.getGroups();
  ConfigNeeds needs;
  bool roles = config.getConsumers() > 0;
  bool qInRegisters = roles ? config.getQInRegisters() : keepsQInRegisters(op, config);
  // Tensor copies fill whole panels of 128 bytes (tile-assign-layouts).
  auto panels = [&](int64_t columns) { return roles && columns > 32 ? llvm::alignTo(columns, 64) : columns; };
  int64_t stage = keys * (panels(dqk) + panels(dvo)) * q;
  if (!qInRegisters || roles || hasHook(op, HookKind::Query))
    needs.sharedMemory += rows * panels(dqk) * q;
  needs.sharedMemory += config.getStages() * (isEightBit(op) ? keys * (dqk + dvo) : stage);
  // 8-bit K and V are widened in shared memory: in stages of their own for consumers, else one after the other.
  if (isEightBit(op))
    needs.sharedMemory += roles ? config.getStages() * stage : 2 * keys * std::max(dqk, dvo);
  // The states of the groups meet in shared memory, in the place of K and V.
  if (groups > 1)
    needs.sharedMemory = std::max(needs.sharedMemory, groups * rows * (dvo + 2) * 4);
  needs.sharedMemory += 1024; // barriers, alignment of stages
  // Registers: output and scores in fp32, a part of the weights in 16 bits (scores die as they are made; with consumers
  // the weights of the block before are read meanwhile), Q where it is there, two 16-wide operands, addresses.
  int64_t threads = 32 * config.getWarps();
  int64_t scores = rows * keys / groups; // of a group
  int64_t perGroup = groups > 1 ? threads / groups : threads;
  int64_t words = rows * dvo + scores + (roles ? scores / 2 : scores / 4);
  if (qInRegisters)
    words += rows * dqk / 2;
  needs.registers = (words + perGroup - 1) / perGroup + 40;
  if (roles) {
    needs.registers += hookRegisters(op);
    return needs;
  }
  // What a transform keeps over its steps, rope's frequencies above all: 8 columns of a thread.
  if (hasHook(op, HookKind::Key) || hasHook(op, HookKind::Value))
    needs.margin += 32;
  // Hooks that run on every score: their coordinates, and loads that are issued together.
  int64_t mine = (scores + perGroup - 1) / perGroup;
  // bsr: positions of the thread's keys, and the loads that they come from.
  if (op.getFormat().getKind() == FormatKind::Bsr && op.lookupVariant())
    needs.margin += 8 + 3 * keys / groups / 4;
  for (HookKind kind : {HookKind::Logits, HookKind::Mask}) {
    if (!hasHook(op, kind))
      continue;
    if (readsMemory(op.lookupVariant().getHook(kind)))
      needs.margin += 40 + 2 * mine;
    else if (kind == HookKind::Logits)
      needs.margin += 12 + mine;
  }
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
  int64_t consumers = config.getConsumers();
  if (config.getLoad() == LoadPath::Tma && !target->tma)
    return error() << target->chip << " has no tensor copies; use load = gather";
  if (consumers > 0) {
    std::string why = whyNoConsumers(op, rows, keys, pack, *target);
    if (!why.empty())
      return error() << why << "; use consumers = 0 and load = gather";
    if (config.getLoad() != LoadPath::Tma)
      return error() << "consumers read what tensor copies load; use load = tma";
    if (groups != 1)
      return error() << "consumers do not split keys into groups; use groups = 1 or consumers = 0";
    if (rows % (64 * consumers) != 0 || config.getWarps() != 4 * consumers)
      return error() << consumers << " consumers of 4 warps and " << rows << " rows in 64s, got " << config.getWarps()
                     << " warps; use " << rows / 64 << " consumers and " << rows / 16 << " warps";
  } else if (config.getLoad() == LoadPath::Tma) {
    return error() << "tensor copies are issued for consumers; use consumers > 0 or load = gather";
  }
  ConfigNeeds needs = estimateNeeds(op, config, *target);
  if (needs.sharedMemory > target->sharedPerCta)
    return error() << "needs " << needs.sharedMemory << " bytes of shared memory, " << target->chip << " has "
                   << target->sharedPerCta << ", " << needs.sharedMemory - target->sharedPerCta
                   << " too few; use fewer keys, stages or rows";
  int64_t registers = registersOf(op, config);
  if (needs.registers > registers)
    return error() << "needs about " << needs.registers << " registers a thread, " << target->chip << " has "
                   << registers << ", " << needs.registers - registers
                   << " too few; use fewer keys or rows, or more warps";
  return success();
}

static int64_t choosePack(AttentionOp op, int64_t rows) {
  return rows < 128 && op.getGroup() <= rows ? op.getGroup() : 1;
}

static ConfigAttr makeConfig(AttentionOp op, int64_t rows, int64_t keys, int64_t stages, int64_t warps, int64_t groups,
                             bool tableOfRows, int64_t consumers, bool qInRegisters, LoadPath load) {
  return ConfigAttr::get(op.getContext(), rows, keys, stages, warps, groups, choosePack(op, rows), tableOfRows,
                         consumers, qInRegisters, load, ItemOrder::List);
}

SmallVector<ConfigAttr> mlir::attn::selectConfigs(AttentionOp op, const TargetInfo &target,
                                                  const RegisterReserve &reserve) {
  SmallVector<ConfigAttr> configs;
  if (!target.isGpu()) {
    configs.push_back(makeConfig(op, 16, 64, 1, 1, 1, true, 0, false, LoadPath::Gather));
    return configs;
  }
  auto fits = [&](ConfigAttr config, bool withMargin) {
    ConfigNeeds needs = estimateNeeds(op, config, target);
    auto more = reserve.find(config.getRows());
    int64_t registers = needs.registers + (withMargin ? needs.margin + (more == reserve.end() ? 0 : more->second) : 0);
    return needs.sharedMemory <= target.sharedPerCta && registers <= registersOf(op, config);
  };
  for (int64_t rows : {16, 64, 128}) {
    if (auto more = reserve.find(rows); more != reserve.end() && more->second > kMaxReserve)
      continue;
    int64_t groups = rows == 16 ? 4 : 1, pack = choosePack(op, rows);
    auto make = [&](int64_t keys, int64_t stages, int64_t warps) {
      return makeConfig(op, rows, keys, stages, warps, groups, /*tableOfRows=*/rows < 128, /*consumers=*/0,
                        /*qInRegisters=*/false, LoadPath::Gather);
    };
    auto makeConsumers = [&](int64_t keys, bool qInRegisters) {
      return makeConfig(op, rows, keys, /*stages=*/2, rows / 16, groups, /*tableOfRows=*/rows < 128, rows / 64,
                        qInRegisters, LoadPath::Tma);
    };
    auto choose = [&]() -> ConfigAttr {
      // Below 64 keys the products of a consumer no longer hide its softmax.
      for (int64_t keys = 128; keys >= 64 && rows >= 64; keys /= 2)
        if (whyNoConsumers(op, rows, keys, pack, target).empty())
          for (bool qInRegisters : {true, false})
            if (ConfigAttr config = makeConsumers(keys, qInRegisters); fits(config, true))
              return config;
      if (rows >= 64 && hasPlainRows(op)) {
        ConfigAttr most = make(64, 2, rows / 32), less = make(32, 3, rows / 32);
        // Addresses and masks differ between formats and machines by about 20 registers.
        auto roomy = [&](ConfigAttr config) {
          ConfigNeeds needs = estimateNeeds(op, config, target);
          return fits(config, true) && needs.registers + needs.margin + 24 <= kRegisters;
        };
        for (ConfigAttr config : {most, less})
          if (roomy(config) && 2 * (estimateNeeds(op, config, target).sharedMemory + 1024) <= target.sharedPerSm)
            return config;
        for (ConfigAttr config : {most, less})
          if (roomy(config))
            return config;
      }
      int64_t warps = rows == 16 ? 4 : rows / 16;
      for (int64_t stages : {2, 1})
        for (int64_t keys = 128; keys >= 16 * groups; keys /= 2)
          if (fits(make(keys, stages, warps), true)) {
            if (rows == 16 && stages == 2 && keys < 128 && fits(make(keys, 3, warps), true))
              stages = 3;
            return make(keys, stages, warps);
          }
      if (reserve.count(rows)) // what needs least was found to spill
        return {};
      // Nothing has room to spare: what needs least.
      for (int64_t stages : {2, 1})
        if (fits(make(16 * groups, stages, warps), false))
          return make(16 * groups, stages, warps);
      return {};
    };
    if (ConfigAttr config = choose())
      configs.push_back(config);
  }
  return configs;
}
