//===- ConfigCandidates.cpp - the configs worth having, best first ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU, of each tile class:
// * Consumers (warpgroup products, with roles that load: tensor copies, or threads
//   that gather where a box would have few rows of one page)
//   wherever `whyNoConsumers` is silent: 64 rows with one, 128 with two, 192
//   with three; 64 to 192 keys (less only where nothing else fits); Q in fragments or in shared memory; two stages
//   of K and V, or three. The cost model orders them. Several consumers take turns
//   (docs/Performance.md) unless a role transforms K or V.
// * Behind them kernels of mma.sync, in an order that was measured
//   (docs/Performance.md). 64 and 128 rows: every warp reads all of K and V from
//   shared memory, which is the limit with 16 rows a warp; so 32 rows a warp and
//   64 keys where registers allow it, and two CTAs an SM, whose softmax and
//   products overlap: with 64 keys in two stages, or else 32 in three. Else 16
//   rows a warp, and the most keys with two stages that fit, up to 128.
// * 16 rows: one warp a group of keys, four groups (a warp's 16 x D accumulator
//   is D / 2 registers), two stages of 128 keys; three where only fewer keys fit.
// * Packing: the GQA group where it fits into the rows (16 and 64), else 1.
// On the host: 16 rows x 64 keys (or 32, 128), one thread, whose tiles stay in the
// L1 and L2 caches.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using ::attn::TargetInfo;

TileClass mlir::attn::getTileClass(ConfigAttr config) {
  return config.getRows() < 64 ? TileClass::Small : config.getRows() < 128 ? TileClass::Medium : TileClass::Large;
}

StringRef mlir::attn::getName(TileClass tileClass) {
  return tileClass == TileClass::Small ? "small" : tileClass == TileClass::Medium ? "medium" : "large";
}

/// Whether few registers go to addresses and positions: rows a stride apart or whole pages, keys in order.
static bool hasPlainRows(AttentionOp op) {
  FormatKind kind = op.getFormat().getKind();
  return kind == FormatKind::Ragged || (kind == FormatKind::Paged && op.getPageSize() % 16 == 0);
}

/// How K and V come to consumers. A tensor copy takes a box of rows that lie in one page and in one tile, and costs the
/// copy engine about 31 cycles whatever its size, so that boxes of few rows are slower than threads that gather (an
/// H200, head dim 128: boxes of 4 rows have 0.6 of the speed of whole tiles, of 8 rows 0.9).
static LoadPath chooseLoad(AttentionOp op, int64_t keys) {
  if (op.getFormat().getKind() == FormatKind::Ragged || std::gcd(op.getPageSize(), keys) >= 8)
    return LoadPath::Tma;
  return LoadPath::Gather;
}

static int64_t choosePack(AttentionOp op, int64_t rows) {
  return rows < 128 && op.getGroup() <= rows ? op.getGroup() : 1;
}

/// What turns save, nearly everywhere (docs/Performance.md); where they do not, a table says so.
static constexpr double kWithoutTurns = 1.02;

namespace {
/// Collects the configs of one class.
class Lister {
public:
  Lister(AttentionOp op, const TargetInfo &target, const RefusedConfigs &refused, TileClass tileClass)
      : op(op), target(target), refused(refused), tileClass(tileClass) {}

  SmallVector<ConfigAttr> list() {
    if (tileClass != TileClass::Small) {
      listConsumers(64);
      // Below 64 keys the products of a consumer hardly hide its softmax.
      if (configs.empty())
        listConsumers(32);
    }
    listMmaSync();
    return std::move(configs);
  }

private:
  AttentionOp op;
  const TargetInfo &target;
  const RefusedConfigs &refused;
  TileClass tileClass;
  SmallVector<ConfigAttr> configs;

  /// Registers that a config has to leave free: each that was refused asks for more of those that need as many.
  bool isRefused(ConfigAttr config, const ConfigNeeds &needs) {
    int64_t step = 0;
    for (ConfigAttr other : refused) {
      if (getTileClass(other) != tileClass || (other.getConsumers() > 0) != (config.getConsumers() > 0))
        continue;
      step += 12;
      if (other == config)
        return true;
      ConfigNeeds had = estimateNeeds(op, other, target);
      int64_t room = getRegisterLimit(op, config) - needs.registers - needs.margin;
      if (room < getRegisterLimit(op, other) - had.registers - had.margin + step)
        return true;
    }
    return false;
  }

  bool fits(ConfigAttr config, bool withMargin, int64_t spare = 0) {
    ConfigNeeds needs = estimateNeeds(op, config, target);
    int64_t registers = needs.registers + (withMargin ? needs.margin : 0) + spare;
    return needs.sharedMemory <= target.sharedPerCta && registers <= getRegisterLimit(op, config) &&
           !isRefused(config, needs);
  }

  void add(ConfigAttr config) {
    if (!llvm::is_contained(configs, config))
      configs.push_back(config);
  }

  ConfigAttr make(int64_t rows, int64_t keys, int64_t stages, int64_t warps, int64_t groups, int64_t consumers = 0,
                  bool qInRegisters = false, bool turns = false) {
    return ConfigAttr::get(op.getContext(), rows, keys, stages, warps, groups, choosePack(op, rows),
                           /*row_table=*/rows < 128, consumers, qInRegisters,
                           consumers ? chooseLoad(op, keys) : LoadPath::Gather, ItemOrder::List, turns,
                           choosePeel(op, rows, keys, consumers));
  }

  /// Whether a role transforms K or V, which leaves consumers no registers for turns.
  bool transformsKeys() {
    VariantOp variant = op.lookupVariant();
    return cast<ShapedType>(op.getK().getType()).getElementTypeBitWidth() == 8 ||
           (variant && (variant.getHook(HookKind::Key) || variant.getHook(HookKind::Value)));
  }

  void listConsumers(int64_t leastKeys) {
    SmallVector<std::tuple<double, size_t, ConfigAttr>> found; // those of one cost in the order of finding
    SmallVector<int64_t> heights{64};
    int64_t mostKeys = 128; // what is known to be good for the few rows of short requests
    if (tileClass == TileClass::Large) {
      heights = {128, 192};
      mostKeys = 192;
    }
    for (int64_t rows : heights)
      for (int64_t keys = leastKeys; keys <= mostKeys; keys += 16)
        for (int64_t stages : {2, 3})
          for (bool qInRegisters : {true, false}) {
            if (!whyNoConsumers(op, rows, keys, target).empty())
              continue;
            bool turns = rows > 64 && !transformsKeys();
            ConfigAttr config = make(rows, keys, stages, rows / 16, 1, rows / 64, qInRegisters, turns);
            // A third stage is no use where it takes the place of the second stage of Q.
            if (!fits(config, true) || (stages > 2 && getQueryStages(op, config, target) == 1))
              continue;
            double cost = estimateCost(op, config, target);
            found.push_back({cost, found.size(), config});
            if (turns)
              found.push_back({kWithoutTurns * cost, found.size(),
                               make(rows, keys, stages, rows / 16, 1, rows / 64, qInRegisters)});
          }
    llvm::sort(found, [](auto &a, auto &b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    for (auto &[cost, number, config] : found)
      add(config);
  }

  void listMmaSync() {
    int64_t rows = tileClass == TileClass::Small ? 16 : tileClass == TileClass::Medium ? 64 : 128;
    int64_t groups = rows == 16 ? 4 : 1;
    if (rows >= 64 && hasPlainRows(op)) {
      ConfigAttr most = make(rows, 64, 2, rows / 32, 1), less = make(rows, 32, 3, rows / 32, 1);
      // Addresses and masks differ between formats and machines by about 20 registers.
      for (ConfigAttr config : {most, less})
        if (fits(config, true, 24) && 2 * (estimateNeeds(op, config, target).sharedMemory + 1024) <= target.sharedPerSm)
          add(config);
      for (ConfigAttr config : {most, less})
        if (fits(config, true, 24))
          add(config);
    }
    int64_t warps = rows == 16 ? 4 : rows / 16;
    for (int64_t stages : {2, 1})
      for (int64_t keys = 128; keys >= 16 * groups; keys /= 2)
        for (int64_t more : {3, 2}) {
          if (more == 3 && (rows != 16 || stages != 2 || keys == 128))
            continue;
          ConfigAttr config = make(rows, keys, more == 3 ? 3 : stages, warps, groups);
          if (fits(config, true))
            add(config);
        }
    // Nothing has room to spare: what needs least, unless that was found not to fit.
    if (configs.empty() && llvm::none_of(refused, [&](ConfigAttr c) { return getTileClass(c) == tileClass; }))
      for (int64_t stages : {2, 1})
        if (ConfigAttr config = make(rows, 16 * groups, stages, warps, groups); fits(config, false))
          add(config);
  }
};
} // namespace

SmallVector<ConfigAttr> mlir::attn::listCandidates(AttentionOp op, TileClass tileClass, const TargetInfo &target,
                                                   const RefusedConfigs &refused) {
  if (!target.isGpu()) {
    SmallVector<ConfigAttr> configs;
    if (tileClass == TileClass::Small)
      for (int64_t keys : {64, 32, 128})
        configs.push_back(ConfigAttr::get(op.getContext(), 16, keys, 1, 1, 1, choosePack(op, 16), /*row_table=*/true, 0,
                                          false, LoadPath::Gather, ItemOrder::List, /*turns=*/false, /*peel=*/true));
    return configs;
  }
  return Lister(op, target, refused, tileClass).list();
}

SmallVector<ConfigAttr> mlir::attn::selectConfigs(AttentionOp op, const TargetInfo &target,
                                                  const RefusedConfigs &refused) {
  SmallVector<ConfigAttr> configs;
  for (TileClass tileClass : kTileClasses)
    if (SmallVector<ConfigAttr> candidates = listCandidates(op, tileClass, target, refused); !candidates.empty())
      configs.push_back(candidates.front());
  return configs;
}
