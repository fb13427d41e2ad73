//===- RescaleRarely.cpp - the accumulator is scaled when the row maximum grows much ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any number that is not far below the row maximum does in its place: weights then
// are at most 2^8 and not 1, which fp32 sums and 16-bit weights hold as precisely.
// So a step keeps the maximum of the steps before unless the new one is more than
// 2^8 above it, and where all rows of a warp keep theirs the accumulator's product
// is left out (FlashAttention-4, for Blackwell, does the same with its correction).
// Once a few blocks have been seen the maximum hardly ever grows so much.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

namespace mlir::tile {
#define GEN_PASS_DEF_TILERESCALERARELYPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// How far the maximum may grow, as an exponent of two.
static constexpr float kGrowth = 8.0f;

/// Columns of an accumulator from which its product costs more than finding out whether it is needed
/// (docs/Performance.md).
static constexpr int64_t kLeastColumns = 96;

namespace {
/// One step of a softmax: the new row maximum and what the accumulator is multiplied with.
struct Step {
  ReduceOp maximum;               // of the block and of `old`
  Value old;                      // the row maximum before
  SmallVector<MapOp> between;     // per row, from `maximum` to `factor`
  MapOp factor;                   // exp2 of how far `old` is below the maximum
  float growth = 0;               // of the maximum in the units of `old`
  SmallVector<MapOp> accumulator; // products with `factor`

  bool find(ReduceOp reduce);
  void rewrite();

private:
  Value keeps(OpBuilder &b, Value before, Value now);
  MapOp choose(OpBuilder &builder, Value before, Value now);
};
} // namespace

static math::Exp2Op getExponential(MapOp map) {
  return map.getNumResults() == 1 ? map.getYield().getOperand(0).getDefiningOp<math::Exp2Op>() : math::Exp2Op();
}

/// A product of a tile with a factor for each row.
static bool isRowProduct(MapOp map, Value factor) {
  if (map.getInputs().size() != 2 || map.getInputs()[1] != factor || map.getNumResults() != 1 ||
      cast<RegType>(map.getResult(0).getType()).getRank() != 2 ||
      cast<RegType>(map.getResult(0).getType()).getShape()[1] < kLeastColumns)
    return false;
  auto product = map.getYield().getOperand(0).getDefiningOp<arith::MulFOp>();
  ValueRange args = map.getInputArgs();
  return product && product.getLhs() == args[0] && product.getRhs() == args[1];
}

/// The maps that make `value` of `from`, in their order; none but the last may have another use.
static bool collectMaps(Value value, Value from, SmallVectorImpl<MapOp> &maps) {
  if (value == from)
    return true;
  auto map = value.getDefiningOp<MapOp>();
  if (!map || map->getBlock() != from.getParentBlock() || map.getInputs().size() != 1 || map.getNumResults() != 1 ||
      !collectMaps(map.getInputs()[0], from, maps))
    return false;
  maps.push_back(map);
  return maps.size() == 1 || maps[maps.size() - 2]->hasOneUse();
}

/// c of exp2(c x + y), x the map's first argument; nothing when it is not a positive constant.
static std::optional<float> getSlope(MapOp map) {
  Value power = getExponential(map).getOperand(), x = map.getInputArgs()[0];
  if (auto sub = power.getDefiningOp<arith::SubFOp>())
    return sub.getLhs() == x ? std::optional(1.0f) : std::nullopt;
  auto fma = power.getDefiningOp<math::FmaOp>();
  APFloat c(0.0f);
  if (!fma || fma.getA() != x || !matchPattern(fma.getB(), m_ConstantFloat(&c)) || !fma.getType().isF32() ||
      !c.isNormal() || c.isNegative() || !std::isnormal(kGrowth / c.convertToFloat()))
    return {};
  return c.convertToFloat();
}

bool Step::find(ReduceOp reduce) {
  maximum = reduce;
  old = reduce.getInit();
  if (reduce.getKind() != ReduceKind::MaximumF || !old || old.getDefiningOp<SplatOp>())
    return false;
  for (Operation *user : old.getUsers()) {
    auto map = dyn_cast<MapOp>(user);
    if (!map || map->getBlock() != reduce->getBlock() || map.getInputs().size() != 2 || map.getInputs()[0] != old ||
        map.getResult(0).getType() != old.getType() || !getExponential(map))
      continue;
    SmallVector<MapOp> maps;
    std::optional<float> c = getSlope(map);
    if (!c || !collectMaps(map.getInputs()[1], reduce.getResult(), maps))
      continue;
    growth = kGrowth / *c;
    factor = map;
    between = maps;
    break;
  }
  if (!factor)
    return false;
  for (Operation *user : factor.getResult(0).getUsers())
    if (auto map = dyn_cast<MapOp>(user); map && isRowProduct(map, factor.getResult(0)))
      accumulator.push_back(map);
  return !accumulator.empty();
}

/// Whether the maximum stays `old`; the bound does not wait for the new one.
Value Step::keeps(OpBuilder &b, Value before, Value now) {
  Location loc = maximum.getLoc();
  Value most = arith::ConstantOp::create(b, loc, b.getFloatAttr(before.getType(), growth));
  Value bound = arith::AddFOp::create(b, loc, before, most);
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE, now, bound);
}

/// Per row: of the first two inputs the first where the maximum stays.
MapOp Step::choose(OpBuilder &builder, Value before, Value now) {
  SmallVector<Value> inputs{before, now, old, maximum.getResult()};
  SmallVector<SmallVector<int64_t>> dims(inputs.size());
  return MapOp::create(builder, maximum.getLoc(), before.getType(), inputs, dims, /*at=*/false,
                       [&](OpBuilder &b, Location loc, ValueRange args, ValueRange) -> SmallVector<Value> {
                         return {arith::SelectOp::create(b, loc, keeps(b, args[2], args[3]), args[0], args[1])};
                       });
}

void Step::rewrite() {
  OpBuilder builder(maximum->getContext());
  builder.setInsertionPointAfter(maximum);
  llvm::SmallPtrSet<Operation *, 8> readers;
  MapOp kept = choose(builder, old, maximum.getResult());
  readers.insert(kept);
  if (!between.empty()) {
    // What is made of either maximum, so that only a selection stands between the new one and the weights.
    IRMapping mapping;
    mapping.map(maximum.getResult(), old);
    for (MapOp map : between)
      builder.clone(*map, mapping);
    Value last = between.back().getResult(0);
    builder.setInsertionPointAfter(between.back());
    MapOp chosen = choose(builder, mapping.lookup(last), last);
    last.replaceAllUsesExcept(chosen.getResult(0), chosen);
    readers.insert(chosen);
    readers.insert(between.front());
  }
  // Exactly one where nothing changed.
  builder.setInsertionPoint(factor);
  SmallVector<Value> inputs{old, factor.getInputs()[1], maximum.getResult()};
  SmallVector<SmallVector<int64_t>> dims(inputs.size());
  MapOp exact = MapOp::create(builder, factor.getLoc(), factor.getResultTypes(), inputs, dims, /*at=*/false,
                              [&](OpBuilder &b, Location loc, ValueRange args, ValueRange) -> SmallVector<Value> {
                                IRMapping mapping;
                                mapping.map(factor.getInputArgs(), args.drop_back());
                                for (Operation &op : factor.getBody().front().without_terminator())
                                  b.clone(op, mapping);
                                Value power = mapping.lookup(factor.getYield().getOperand(0));
                                Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(power.getType(), 1.0));
                                return {arith::SelectOp::create(b, loc, keeps(b, args[0], args[2]), one, power)};
                              });
  readers.insert(exact);
  factor.getResult(0).replaceAllUsesWith(exact.getResult(0));
  factor.erase();
  maximum.getResult().replaceAllUsesExcept(kept.getResult(0), readers);
  for (MapOp map : accumulator)
    map->setAttr(kSkipsOnes, UnitAttr::get(map.getContext()));
}

namespace {
struct RescaleRarelyPass : tile::impl::TileRescaleRarelyPassBase<RescaleRarelyPass> {
  void runOnOperation() override {
    SmallVector<Step> steps;
    getOperation().walk([&](ReduceOp reduce) {
      Step step;
      if (step.find(reduce))
        steps.push_back(step);
    });
    for (Step &step : steps)
      step.rewrite();
    numSteps += steps.size();
  }
};
} // namespace
