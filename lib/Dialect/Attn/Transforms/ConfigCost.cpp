//===- ConfigCost.cpp - the cost model of kernel configs ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cycles of a multiprocessor for a row of a typical request. A step (a tile of
// rows against a tile of keys) takes its products, at the rate of the tensor
// cores, and its softmax, at the rate of exponentials or of instruction issue;
// groups of warps hide the shorter of the two behind the longer, the better the
// more of them there are. The mask's own range program says how many steps a
// tile takes and how many of them evaluate the mask, for tiles spread over
// requests of two lengths; so wide tiles pay for what they visit in vain.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/LogitBounds.h"
#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using ::attn::TargetInfo;

// Of an SM of the A100 and later (CUDA C++ Programming Guide, arithmetic instructions; H100 white paper).
static constexpr double kExponentials = 16, kLanes = 128;
static constexpr double kProductsWgmma = 2048, kProductsMma = 1024; // multiply-adds of 16-bit numbers a cycle

// Instructions of the softmax for a score, for a row and step, and of a mask for a score (counted in the SASS of head
// dim 128: 443 of a thread for 64 scores).
static constexpr double kPerScore = 5.2, kPerRow = 128, kPerMasked = 4;
// Of them those that bounded logits do without: the maximum of a score and of a row (451 of a soft-cap, not 616).
static constexpr double kMaximumPerScore = 1, kMaximumPerRow = 96;

// Fitted to docs/Performance.md (head dims 64, 128, 192 and 256 at 4k): the part of the shorter that stays visible.
static double getVisible(int64_t groups) { return groups >= 3 ? 0.55 : groups == 2 ? 0.6 : 1.0; }

/// Instructions that a hook runs for each score.
static double countHook(AttentionOp op, HookKind kind) {
  VariantOp variant = op.lookupVariant();
  HookOp hook = variant ? variant.getHook(kind) : HookOp();
  double count = 0;
  if (hook)
    hook.getBody().walk([&](Operation *inner) {
      if (isa<math::TanhOp, math::ExpOp, math::LogOp, math::SinOp, math::CosOp, math::PowFOp>(inner))
        count += 8;
      else if (!inner->hasTrait<OpTrait::ConstantLike>() && !isa<QPosOp, KVPosOp, RowOp, YieldOp>(inner))
        count += 1;
    });
  return count;
}

/// Steps of the tiles of a request, and how many of them evaluate the mask.
static std::pair<double, double> countSteps(AttentionOp op, ConfigAttr config, int64_t length, int64_t tiles) {
  RangeProgram program = analyzeMask(op.lookupVariant());
  int64_t tokens = std::max<int64_t>(config.getRows() / config.getPack(), 1), keys = config.getKeys();
  double steps = 0, masked = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    int64_t first = length * i / tiles;
    // Widths of windows come at run time; lengths of documents and prefixes stand in memory.
    SmallVector<int64_t> inputs{first, std::min(tokens, length - first), length, length, 0};
    inputs.append(program.numParams, 1024);
    std::array<int64_t, 4> range = evaluateRange(program, inputs, length / 2);
    int64_t lo = range[0] / keys, hi = llvm::divideCeil(std::max(range[3], range[0]), keys);
    int64_t fullLo = llvm::divideCeil(range[1], keys), fullHi = range[2] / keys;
    steps += std::max<int64_t>(hi - lo, 1);
    masked += std::max<int64_t>(hi - lo - std::max<int64_t>(fullHi - fullLo, 0), 0);
  }
  return {steps / tiles, masked / tiles};
}

/// Instructions of a consumer's thread for softmax and mask of a block, times the copies of the block, up to which LLVM
/// and ptxas take no longer than they should; plain causal blocks of 192 keys have 3916 in four copies.
static constexpr double kCopied = 5400;

bool mlir::attn::choosePeel(AttentionOp op, int64_t rows, int64_t keys, int64_t consumers) {
  // What few rows do for a block is little, and their copies of whole blocks need no predicates.
  if (rows < 64)
    return true;
  VariantOp variant = op.lookupVariant();
  if (variant && (variant.getHook(HookKind::Key) || variant.getHook(HookKind::Value)))
    return false;
  if (consumers == 0)
    return true;
  // The first block of a kernel and of an item, blocks without the mask and those behind them; those before them where
  // the mask drops keys at both ends.
  SmallVector<int64_t> inputs{4096, 128, 8192, 8192, 0};
  RangeProgram program = analyzeMask(variant);
  inputs.append(program.numParams, 1024);
  std::array<int64_t, 4> range = evaluateRange(program, inputs, 0);
  int64_t copies = range[1] > range[0] ? 5 : 4;
  double perScore = kPerScore + countHook(op, HookKind::Logits) + kPerMasked + countHook(op, HookKind::Mask);
  return copies * keys / 2 * perScore <= kCopied; // 64 rows of 128 threads
}

double mlir::attn::estimateCost(AttentionOp op, ConfigAttr config, const TargetInfo &target) {
  double rows = config.getRows(), keys = config.getKeys();
  double dqk = llvm::alignTo(op.getHeadDimQk(), 16), dvo = llvm::alignTo(op.getHeadDimVo(), 16);
  int64_t consumers = config.getConsumers();
  double scores = rows * keys, products, visible, item;
  if (consumers) {
    // A product of 64 rows takes keys / 2 cycles for 16 columns, or as long as its operands are read from shared memory
    // at 128 bytes a cycle; Q in registers is not.
    double query = std::max(keys / 2, (config.getQInRegisters() ? 0 : 16) + keys / 4) / (keys / 2);
    products = scores / kProductsWgmma * (dqk * query * (config.getQInRegisters() ? 1 : 1.02) + dvo);
    visible = getVisible(consumers);
    // Without a second stage for Q the next item's products do not start behind this one's last; without a third those
    // of short items wait until the results before them have left.
    int64_t queries = getQueryStages(op, config, target);
    item = queries == 1 ? 2500 : queries == 2 ? 900 : 600;
  } else {
    // Every warp reads all of K and V from shared memory, which takes as long as the products of 14 rows.
    double warpRows = rows / config.getWarps() * config.getGroups();
    products = scores / kProductsMma * (dqk + dvo) * std::max(1.0, 14 / warpRows + 0.5);
    visible = 1;
    item = 2500;
  }
  double perScore = kPerScore + countHook(op, HookKind::Logits), perRow = dvo + kPerRow;
  if (hasBoundedLogits(op)) {
    perScore -= kMaximumPerScore;
    perRow = kPerRow - kMaximumPerRow;
  }
  double softmax = (scores * perScore + rows * perRow) / kLanes;
  softmax = std::max(softmax, scores / kExponentials + rows * perRow / kLanes);
  double mask = scores * (kPerMasked + countHook(op, HookKind::Mask)) / kLanes;
  double step = std::max(products, softmax) + visible * std::min(products, softmax);
  // Barriers and the first fragments of a step.
  step += config.getStages() > 1 ? 250 : 600;
  double cost = 0;
  for (int64_t length : {2048, 8192}) {
    auto [steps, masked] = countSteps(op, config, length, 8);
    cost += (steps * step + masked * mask + item) / rows / length;
  }
  return cost;
}
