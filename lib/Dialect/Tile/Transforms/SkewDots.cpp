//===- SkewDots.cpp - the last product of a step runs beside the first of the next ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   for j: S = Q K(j); P, a = softmax S; O = a O + P V(j)
// becomes
//   if lo < hi: S = Q K(lo); P, a = softmax S; O = a O
//     for j from the second: S = Q K(j); O += P V(before); P, a = softmax S; O = a O
//     O += P V(last)
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "WarpSpecialize.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILESKEWDOTSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// A key loop split at its last product.
struct Split {
  scf::ForOp loop;
  DotOp first, last;                    // Q K and P V
  unsigned carried;                     // number of the loop result that `last` makes
  llvm::SetVector<Operation *> late;    // `last`, and what only it needs to get its operand b
  llvm::SetVector<Operation *> scalars; // ops of the step that `late` repeats
  SmallVector<Value> crossing;          // values of a step that `late` reads
};
} // namespace

/// Adds the ops of the loop's block that make `value` and that only ops of `late` use.
static void addExclusive(Split &split, Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != split.loop.getBody() || split.late.contains(op))
    return;
  for (Operation *user : op->getUsers()) {
    Operation *at = split.loop.getBody()->findAncestorOpInBlock(*user);
    if (!at || !split.late.contains(at))
      return;
  }
  split.late.insert(op);
  for (Value operand : op->getOperands())
    addExclusive(split, operand);
}

/// True when `value` follows from the induction variable and values outside of the loop by scalar ops, which go to
/// `slice` in order.
static bool isRepeatable(scf::ForOp loop, Value value, llvm::SetVector<Operation *> &slice) {
  if (value == loop.getInductionVar() || !loop.getRegion().isAncestor(value.getParentRegion()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() || !isMemoryEffectFree(op) ||
      !llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIntOrIndexOrFloat(); }))
    return false;
  if (!llvm::all_of(op->getOperands(), [&](Value operand) { return isRepeatable(loop, operand, slice); }))
    return false;
  slice.insert(op);
  return true;
}

/// Finds the two products; null when the loop is not of this form, with the reason in `why`.
static std::optional<Split> findSplit(scf::ForOp loop, StringRef &why) {
  Split split{loop, {}, {}, 0, {}, {}, {}};
  SmallVector<DotOp> dots(loop.getBody()->getOps<DotOp>());
  if (dots.size() != 2) {
    why = "it has not two products";
    return {};
  }
  split.first = dots[0];
  split.last = dots[1];
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  auto it = llvm::find(yield.getOperands(), split.last.getResult());
  if (it == yield.getOperands().end() || !split.last.getResult().hasOneUse() || !split.last.getAcc()) {
    why = "its second product is not a carried accumulator";
    return {};
  }
  split.carried = it - yield.getOperands().begin();
  bool pure = true;
  loop.getBody()->walk([&](Operation *op) {
    // What an op with regions does is what the ops in them do, and these are visited too; a transform rewrites a stage
    // of the step.
    pure &= isa<DotOp, LoadOp, LocalLoadOp, TransformOp>(op) || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
            isMemoryEffectFree(op) || isa<memref::LoadOp, func::CallOp, YieldOp, scf::YieldOp>(op);
  });
  if (!pure) {
    why = "it writes to memory";
    return {};
  }
  split.late.insert(split.last);
  addExclusive(split, split.last.getB());
  // What is left of the step may not need the accumulator before the first product is issued.
  Value acc = loop.getRegionIterArgs()[split.carried];
  for (Operation *user : acc.getUsers()) {
    Operation *at = loop.getBody()->findAncestorOpInBlock(*user);
    if ((split.late.contains(at) && at != split.last) || at->isBeforeInBlock(split.first) || at == split.first) {
      why = "its first product needs the accumulator of its second";
      return {};
    }
  }
  llvm::SetVector<Value> crossing;
  auto note = [&](Value value) {
    if (!loop.getRegion().isAncestor(value.getParentRegion()))
      return;
    if (Operation *def = value.getDefiningOp())
      if (split.late.contains(loop.getBody()->findAncestorOpInBlock(*def)))
        return;
    if (!isRepeatable(loop, value, split.scalars))
      crossing.insert(value);
  };
  for (Operation *op : split.late) {
    for (Value operand : op->getOperands())
      note(operand);
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
            note(operand);
      });
  }
  // The accumulator itself may cross: without a factor there is nothing between two products.
  if (llvm::any_of(crossing, [&](Value v) {
        return (isa<BlockArgument>(v) && v != split.last.getAcc()) || isa<SmemType>(v.getType());
      })) {
    why = "its second product reads a carried value or shared memory of the step";
    return {};
  }
  split.crossing = crossing.takeVector();
  return split;
}

/// Clones ops of the step in order: those for which `take` holds.
static void cloneStep(Split &split, OpBuilder &builder, IRMapping &mapping, function_ref<bool(Operation *)> take) {
  for (Operation &op : split.loop.getBody()->without_terminator())
    if (take(&op))
      builder.clone(op, mapping);
}

/// P V of a step whose induction variable is `iv`; `crossing` are that step's values.
static Value cloneLate(Split &split, OpBuilder &builder, Value iv, ValueRange crossing) {
  IRMapping mapping;
  mapping.map(split.loop.getInductionVar(), iv);
  mapping.map(split.crossing, crossing);
  cloneStep(split, builder, mapping,
            [&](Operation *op) { return split.late.contains(op) || split.scalars.contains(op); });
  return mapping.lookup(split.last.getResult());
}

/// What the first step hands on for `value`. A rescaled accumulator that is still zero stays what it is: the factor,
/// exp2 of -inf less a maximum, is zero too.
static Value getFirst(Split &split, IRMapping &first, Value value) {
  auto map = value == split.last.getAcc() ? value.getDefiningOp<MapOp>() : MapOp();
  BlockArgument arg = split.loop.getRegionIterArg(split.carried);
  Value init = split.loop.getInitArgs()[split.carried];
  auto splat = init.getDefiningOp<SplatOp>();
  if (map && splat && matchPattern(splat.getValue(), m_AnyZeroFloat()) && map.getNumResults() == 1 && !map.getAt() &&
      map.getInputs().size() == 2 && map.getInputs()[0] == arg &&
      isa_and_nonnull<arith::MulFOp>(map.getYield().getOperand(0).getDefiningOp()))
    return init;
  return first.lookup(value);
}

static void skew(Split &split) {
  scf::ForOp loop = split.loop;
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  scf::IfOp branch;
  if (!loop->hasAttr(specialize::kAtLeastOnce)) {
    Value some =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
    branch = scf::IfOp::create(builder, loc, loop.getResultTypes(), some, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, loop.getInitArgs());
    builder.setInsertionPointToStart(branch.thenBlock());
  }

  // The first step without its last product.
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  cloneStep(split, builder, first, [&](Operation *op) { return !split.late.contains(op); });
  SmallVector<Value> inits;
  for (auto [i, value] : llvm::enumerate(yield.getOperands()))
    if (i != split.carried)
      inits.push_back(first.lookupOrDefault(value));
  unsigned others = inits.size();
  for (Value value : split.crossing)
    inits.push_back(getFirst(split, first, value));

  // The other steps, each with the last product of the one before.
  Value second = arith::AddIOp::create(builder, loc, loop.getLowerBound(), loop.getStep());
  auto steady = scf::ForOp::create(builder, loc, second, loop.getUpperBound(), loop.getStep(), inits,
                                   [&](OpBuilder &body, Location, Value iv, ValueRange args) {
                                     IRMapping mapping;
                                     mapping.map(loop.getInductionVar(), iv);
                                     unsigned k = 0;
                                     for (auto [i, arg] : llvm::enumerate(loop.getRegionIterArgs()))
                                       if (i != split.carried)
                                         mapping.map(arg, args[k++]);
                                     bool issued = false;
                                     cloneStep(split, body, mapping, [&](Operation *op) {
                                       bool early = !issued && !split.late.contains(op);
                                       issued |= op == split.first;
                                       return early;
                                     });
                                     Value before = arith::SubIOp::create(body, loc, iv, loop.getStep());
                                     Value acc = cloneLate(split, body, before, args.drop_front(others));
                                     mapping.map(loop.getRegionIterArgs()[split.carried], acc);
                                     issued = false;
                                     cloneStep(split, body, mapping, [&](Operation *op) {
                                       bool rest = issued && !split.late.contains(op);
                                       issued |= op == split.first;
                                       return rest;
                                     });
                                     SmallVector<Value> next;
                                     for (auto [i, value] : llvm::enumerate(yield.getOperands()))
                                       if (i != split.carried)
                                         next.push_back(mapping.lookupOrDefault(value));
                                     for (Value value : split.crossing)
                                       next.push_back(mapping.lookup(value));
                                     scf::YieldOp::create(body, loc, next);
                                   });
  if (auto attrs = loop->getDiscardableAttrDictionary())
    steady->setDiscardableAttrs(attrs);
  steady->removeAttr(specialize::kAtLeastOnce);

  // The last product of the last step. The range is a whole number of steps only by chance: count them.
  Value last = createLastStep(builder, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep());
  Value acc = cloneLate(split, builder, last, steady.getResults().drop_front(others));
  SmallVector<Value> results;
  unsigned k = 0;
  for (unsigned i = 0; i < loop.getNumResults(); ++i)
    results.push_back(i == split.carried ? acc : steady.getResult(k++));
  if (branch) {
    scf::YieldOp::create(builder, loc, results);
    results.assign(branch.result_begin(), branch.result_end());
  }
  loop.replaceAllUsesWith(results);
  loop.erase();
}

namespace {
struct SkewDotsPass : tile::impl::TileSkewDotsPassBase<SkewDotsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkLevel(kernel, Level::Logical, "it runs before tile-multibuffer and tile-warp-specialize")))
      return signalPassFailure();
    for (scf::ForOp loop : getProductLoops(kernel)) {
      StringRef why;
      std::optional<Split> split = findSplit(loop, why);
      if (!split) {
        loop.emitOpError() << "cannot be skewed: " << why;
        return signalPassFailure();
      }
      skew(*split);
      ++numLoops;
    }
  }
};
} // namespace
