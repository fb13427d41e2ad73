//===- PeelMasks.cpp - key loops are cut where no mask is needed ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask says: nothing is dropped for a block j with lo <= j, j + keys <= hi. A
// loop over such blocks is cut at both ends of the interval; the part between
// loses the mask. The three loops hand on the same values, so nothing drains.
//
//===----------------------------------------------------------------------===//

#include "WarpSpecialize.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEPEELMASKSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// Bounds of the steps of `loop` that `mask` does not touch: [first, end), whole steps from the lower bound.
static std::pair<Value, Value> getInterval(OpBuilder &builder, scf::ForOp loop, MaskOp mask) {
  Location loc = mask.getLoc();
  auto sub = [&](Value a, Value b) -> Value { return arith::SubIOp::create(builder, loc, a, b); };
  auto add = [&](Value a, Value b) -> Value { return arith::AddIOp::create(builder, loc, a, b); };
  auto max = [&](Value a, Value b) -> Value { return arith::MaxSIOp::create(builder, loc, a, b); };
  auto min = [&](Value a, Value b) -> Value { return arith::MinSIOp::create(builder, loc, a, b); };
  Value lo = loop.getLowerBound(), hi = max(loop.getUpperBound(), lo), step = loop.getStep();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value keys = arith::ConstantIndexOp::create(builder, loc, mask.getKeys());
  // first = lo + ceil(max(mask.lo - lo, 0) / step) * step
  Value before = max(sub(mask.getLo(), lo), zero);
  Value skipped = arith::DivUIOp::create(builder, loc, add(before, sub(step, one)), step);
  Value first = min(add(lo, arith::MulIOp::create(builder, loc, skipped, step)), hi);
  // Steps from `first` whose block ends at mask.hi or before: floor((mask.hi - keys - first) / step) + 1.
  Value room = sub(sub(mask.getHi(), keys), first);
  Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, room, zero);
  Value steps = add(arith::DivUIOp::create(builder, loc, max(room, zero), step), one);
  Value past = add(first, arith::MulIOp::create(builder, loc, steps, step));
  Value end = arith::SelectOp::create(builder, loc, some, past, first);
  return {first, min(end, hi)};
}

/// The loop over [lo, hi) with other initial values; without the mask when `peeled`.
static scf::ForOp cloneLoop(OpBuilder &builder, scf::ForOp loop, MaskOp mask, Value lo, Value hi, ValueRange inits,
                            bool peeled) {
  return scf::ForOp::create(builder, loop.getLoc(), lo, hi, loop.getStep(), inits,
                            [&](OpBuilder &body, Location, Value iv, ValueRange args) {
                              IRMapping mapping;
                              mapping.map(loop.getInductionVar(), iv);
                              mapping.map(loop.getRegionIterArgs(), args);
                              for (Operation &op : *loop.getBody()) {
                                if (peeled && &op == mask)
                                  mapping.map(mask.getResult(), mapping.lookupOrDefault(mask.getValue()));
                                else
                                  body.clone(op, mapping);
                              }
                            });
}

static bool peel(scf::ForOp loop) {
  SmallVector<MaskOp> masks;
  for (auto mask : loop.getBody()->getOps<MaskOp>())
    if (mask.getKey() == loop.getInductionVar())
      masks.push_back(mask);
  if (masks.size() != 1)
    return false;
  MaskOp mask = masks.front();
  for (Value bound : {mask.getLo(), mask.getHi()})
    if (loop.getRegion().isAncestor(bound.getParentRegion()))
      return false;
  OpBuilder builder(loop);
  auto [first, end] = getInterval(builder, loop, mask);
  // After the cuts the upper bounds are whole steps from the lower bound, so each loop begins where the last one stops.
  scf::ForOp before = cloneLoop(builder, loop, mask, loop.getLowerBound(), first, loop.getInitArgs(), false);
  scf::ForOp full = cloneLoop(builder, loop, mask, first, end, before.getResults(), true);
  full->setAttr(specialize::kWholeBlocks, builder.getUnitAttr());
  scf::ForOp after = cloneLoop(builder, loop, mask, end, loop.getUpperBound(), full.getResults(), false);
  loop.replaceAllUsesWith(after.getResults());
  loop.erase();
  return true;
}

namespace {
struct PeelMasksPass : tile::impl::TilePeelMasksPassBase<PeelMasksPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (peel(loop))
        ++numLoops;
  }
};
} // namespace
