//===- PeelMasks.cpp - key loops are cut where no mask is needed ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask says: nothing is dropped for a block j with lo <= j, j + keys <= hi,
// where j is the induction variable or a constant minus it. The loop is cut at
// both ends of the interval, which is narrowed to steps that load only rows that
// exist; the part between loses the mask. The three loops hand on the same
// values, so nothing drains.
//
// Each loop is a copy of the block, though, and where blocks are long their copies
// are most of what compiling takes. Such kernels (`peel = false`) keep one loop, in
// which a branch leads around the mask.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Softmax.h"
#include "WarpSpecialize.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEPEELMASKSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// Arithmetic on indices in front of a loop.
struct Scalars {
  OpBuilder &builder;
  Location loc;
  Value c(int64_t v) { return arith::ConstantIndexOp::create(builder, loc, v); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value max(Value a, Value b) { return arith::MaxSIOp::create(builder, loc, a, b); }
  Value min(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return arith::DivUIOp::create(builder, loc, a, b); }
};

/// A value of a loop's step as the induction variable, plus or minus, and a part from outside the loop.
struct Affine {
  bool reversed = false;
  SmallVector<std::pair<Value, bool>> terms; // true: subtracted
  Value materialize(Scalars &scalars) const {
    Value sum = scalars.c(0);
    for (auto [term, minus] : terms)
      sum = minus ? scalars.sub(sum, term) : scalars.add(sum, term);
    return sum;
  }
};
} // namespace

/// `value` = iv + terms or terms - iv; nothing when it is something else.
static std::optional<Affine> getAffine(scf::ForOp loop, Value value) {
  if (value == loop.getInductionVar())
    return Affine();
  auto outside = [&](Value v) { return !loop.getRegion().isAncestor(v.getParentRegion()); };
  if (auto add = value.getDefiningOp<arith::AddIOp>()) {
    for (bool swap : {false, true}) {
      Value inner = swap ? add.getRhs() : add.getLhs(), other = swap ? add.getLhs() : add.getRhs();
      if (!outside(other) || outside(inner))
        continue;
      std::optional<Affine> form = getAffine(loop, inner);
      if (form)
        form->terms.push_back({other, false});
      return form;
    }
    return {};
  }
  auto sub = value.getDefiningOp<arith::SubIOp>();
  if (!sub)
    return {};
  if (outside(sub.getRhs()) && !outside(sub.getLhs())) {
    std::optional<Affine> form = getAffine(loop, sub.getLhs());
    if (form)
      form->terms.push_back({sub.getRhs(), true});
    return form;
  }
  if (!outside(sub.getLhs()) || outside(sub.getRhs()))
    return {};
  std::optional<Affine> form = getAffine(loop, sub.getRhs());
  if (!form)
    return {};
  form->reversed = !form->reversed;
  for (auto &term : form->terms)
    term.second = !term.second;
  form->terms.push_back({sub.getLhs(), false});
  return form;
}

/// Bounds of the steps of `loop` that `mask` does not touch and whose loads are of rows that exist: [first, end), whole
/// steps from the lower bound; end is null when it is the loop's. Nothing when a row is not plain arithmetic on the
/// induction variable.
static std::optional<std::pair<Value, Value>> getInterval(OpBuilder &builder, scf::ForOp loop, MaskOp mask) {
  Scalars s{builder, mask.getLoc()};
  Value lo = loop.getLowerBound(), hi = s.max(loop.getUpperBound(), lo), step = loop.getStep();
  // Every condition is: iv at least `least`, iv at most `most`.
  Value least = lo, most;
  auto atMost = [&](Value v) { most = most ? s.min(most, v) : v; };
  std::optional<Affine> key = getAffine(loop, mask.getKey());
  if (!key)
    return {};
  Value offset = key->materialize(s), keys = s.c(mask.getKeys());
  Value room = s.sub(mask.getHi(), keys); // mask.lo <= key <= room
  if (key->reversed) {
    least = s.max(least, s.sub(offset, room));
    if (!loop->hasAttr(specialize::kFromInterval))
      atMost(s.sub(offset, mask.getLo()));
  } else {
    least = s.max(least, s.sub(mask.getLo(), offset));
    atMost(s.sub(room, offset));
  }
  for (auto load : loop.getBody()->getOps<LoadOp>()) {
    auto view = load.getView().getDefiningOp<ViewOp>();
    auto type = dyn_cast<SmemType>(load.getResult().getType());
    if (!type || !view || !view.getRows() || loop.getRegion().isAncestor(view->getParentRegion()))
      continue;
    std::optional<Affine> row = getAffine(loop, load.getRow());
    if (!row)
      return {};
    // row + extent <= rows of the view
    Value last = s.sub(view.getRows(), s.c(type.getShape()[type.getRank() - 2]));
    Value first = row->materialize(s);
    if (row->reversed)
      least = s.max(least, s.sub(first, last));
    else
      atMost(s.sub(last, first));
  }
  // first = lo + ceil((least - lo) / step) * step
  Value one = s.c(1), zero = s.c(0);
  Value skipped = s.div(s.add(s.sub(least, lo), s.sub(step, one)), step);
  Value first = s.min(s.add(lo, s.mul(skipped, step)), hi);
  if (!most)
    return std::pair(first, Value());
  // Steps from `first` to `most`: floor((most - first) / step) + 1.
  Value distance = s.sub(most, first);
  Value some = arith::CmpIOp::create(builder, s.loc, arith::CmpIPredicate::sge, distance, zero);
  Value steps = s.add(s.div(s.max(distance, zero), step), one);
  Value past = s.add(first, s.mul(steps, step));
  Value end = arith::SelectOp::create(builder, s.loc, some, past, first);
  return std::pair(first, s.min(end, hi));
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

/// Every row of a step without a mask sees keys, so its maximum over a product is no empty row's: the guard goes. (What
/// a logits hook makes of a product may be -inf everywhere; there it stays.)
static void dropGuards(scf::ForOp loop) {
  for (auto map : llvm::make_early_inc_range(loop.getBody()->getOps<MapOp>())) {
    if (!isZeroIfEmpty(map))
      continue;
    auto maximum = map.getInputs()[0].getDefiningOp<ReduceOp>();
    if (!maximum || !maximum.getValue().getDefiningOp<DotOp>())
      continue;
    map.getResult(0).replaceAllUsesWith(maximum.getResult());
    map.erase();
  }
}

static bool peel(scf::ForOp loop) {
  SmallVector<MaskOp> masks;
  for (auto mask : loop.getBody()->getOps<MaskOp>())
    if (mask.getKey() && loop.getRegion().isAncestor(mask.getKey().getParentRegion()))
      masks.push_back(mask);
  if (masks.size() != 1)
    return false;
  MaskOp mask = masks.front();
  for (Value bound : {mask.getLo(), mask.getHi()})
    if (loop.getRegion().isAncestor(bound.getParentRegion()))
      return false;
  OpBuilder builder(loop);
  std::optional<std::pair<Value, Value>> interval = getInterval(builder, loop, mask);
  if (!interval)
    return false;
  auto [first, end] = *interval;
  bool bounded = end != nullptr;
  if (!bounded)
    end = loop.getUpperBound();
  // After the cuts the upper bounds are whole steps from the lower bound, so each loop begins where the last one stops.
  scf::ForOp before = cloneLoop(builder, loop, mask, loop.getLowerBound(), first, loop.getInitArgs(), false);
  scf::ForOp full = cloneLoop(builder, loop, mask, first, end, before.getResults(), true);
  full->setAttr(specialize::kWholeBlocks, builder.getUnitAttr());
  dropGuards(full);
  // Nothing comes behind an interval that ends where the loop does.
  ValueRange results = full.getResults();
  if (bounded)
    results = cloneLoop(builder, loop, mask, end, loop.getUpperBound(), results, false).getResults();
  loop.replaceAllUsesWith(results);
  loop.erase();
  return true;
}

namespace {
struct PeelMasksPass : tile::impl::TilePeelMasksPassBase<PeelMasksPass> {
  void runOnOperation() override {
    auto config = getOperation()->getAttrOfType<attn::ConfigAttr>("config");
    if (config && !config.getPeel())
      return branch();
    for (scf::ForOp loop : getLoops(getOperation()))
      if (peel(loop))
        ++numLoops;
  }

  void branch() {
    for (scf::ForOp loop : getLoops(getOperation()))
      for (auto mask : loop.getBody()->getOps<MaskOp>())
        if (mask.getKey()) {
          mask->setAttr(kSkipsWhole, UnitAttr::get(&getContext()));
          ++numBranches;
        }
  }
};
} // namespace
