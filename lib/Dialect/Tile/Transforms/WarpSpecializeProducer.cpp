//===- WarpSpecializeProducer.cpp - the producer of tile-warp-specialize ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies the loads, the control flow around them and what both are computed
// from. Values of a loop or a branch that the loads don't need are left behind.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "WarpSpecialize.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::specialize;

namespace {
class Producer {
public:
  Producer(Plan &plan, int64_t number) : plan(plan), number(number) {}
  LogicalResult collectLoads();
  LogicalResult collectTransforms();
  void emit(Block &block, OpBuilder &builder, IRMapping &mapping);

private:
  LogicalResult addOp(Operation *op);
  LogicalResult addValue(Value value);
  void emitFor(scf::ForOp loop, OpBuilder &builder, IRMapping &mapping);
  void emitIf(scf::IfOp branch, OpBuilder &builder, IRMapping &mapping);
  void emitTransform(TransformOp transform, OpBuilder &builder, IRMapping &mapping);
  SmallVector<unsigned> getKept(Operation *op);

  Plan &plan;
  int64_t number;
  llvm::SmallPtrSet<Operation *, 32> needed;
  llvm::DenseSet<Value> results; // of loops and branches
};
} // namespace

/// The number of rows that exist, when the transform of a block behind them must not run: it would look up what nobody
/// has.
static Value getGuard(TransformOp transform) {
  auto view = transform.getSource().getDefiningOp<LoadOp>().getView().getDefiningOp<ViewOp>();
  return view && containsOp<memref::LoadOp>(transform) ? view.getRows() : Value();
}

LogicalResult Producer::addValue(Value value) {
  if (!plan.items.getBody().isAncestor(value.getParentRegion()))
    return success();
  if (isa<RegType, SmemType, PendingType>(value.getType()))
    return emitError(value.getLoc()) << "a load depends on a value of type " << value.getType()
                                     << ", which the producer does not have";
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (parent == plan.items)
      return success();
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop) // an argument inside of an op that is copied whole
      return success();
    if (arg == loop.getInductionVar())
      return addOp(loop);
    return addValue(loop.getResult(arg.getArgNumber() - 1));
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (isa<scf::ForOp, scf::IfOp>(op)) {
    if (!results.insert(value).second)
      return success();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      if (failed(addValue(loop.getInitArgs()[number])))
        return failure();
    for (Region &region : op->getRegions())
      if (!region.empty() && failed(addValue(region.front().getTerminator()->getOperand(number))))
        return failure();
  }
  return addOp(op);
}

LogicalResult Producer::addOp(Operation *op) {
  if (op == plan.items || !needed.insert(op).second)
    return success();
  for (Value operand : op->getOperands()) {
    if (auto transform = dyn_cast<TransformOp>(op)) { // of a stage that the role waits for
      if (Value rows = getGuard(transform))
        if (failed(addValue(rows)) || failed(addValue(transform.getSource().getDefiningOp<LoadOp>().getRow())))
          return failure();
      continue;
    }
    // Initial values of a loop count one by one.
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && llvm::is_contained(loop.getInitArgs(), operand))
      continue;
    if (failed(addValue(operand)))
      return failure();
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      if (failed(addValue(bound)))
        return failure();
  } else if (!isa<scf::IfOp>(op) && op->getNumRegions()) {
    // Another op with regions is copied whole.
    WalkResult result = op->walk([&](Operation *inner) {
      if (inner == op) // its own operands have been added
        return WalkResult::advance();
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentRegion()->getParentOp()) && failed(addValue(operand)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return addOp(op->getParentOp());
}

LogicalResult Producer::collectTransforms() {
  WalkResult result = plan.items.walk([&](TransformOp transform) {
    bool mine = !plan.getRing(transform.getSource().getDefiningOp<LoadOp>()).rows;
    return mine && failed(addOp(transform)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Producer::collectLoads() {
  WalkResult result = plan.items.walk([&](LoadOp load) {
    bool mine = isShared(load) && plan.getRing(load).producer == number;
    return mine && failed(addOp(load)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

SmallVector<unsigned> Producer::getKept(Operation *op) {
  SmallVector<unsigned> kept;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    if (results.contains(op->getResult(i)))
      kept.push_back(i);
  return kept;
}

void Producer::emitFor(scf::ForOp loop, OpBuilder &builder, IRMapping &mapping) {
  SmallVector<unsigned> kept = getKept(loop);
  SmallVector<Value> inits;
  for (unsigned i : kept)
    inits.push_back(mapping.lookupOrDefault(loop.getInitArgs()[i]));
  auto copy =
      scf::ForOp::create(builder, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
                         mapping.lookupOrDefault(loop.getUpperBound()), mapping.lookupOrDefault(loop.getStep()), inits,
                         [&](OpBuilder &body, Location loc, Value iv, ValueRange args) {
                           mapping.map(loop.getInductionVar(), iv);
                           for (auto [i, arg] : llvm::zip(kept, args))
                             mapping.map(loop.getRegionIterArgs()[i], arg);
                           emit(*loop.getBody(), body, mapping);
                           SmallVector<Value> yielded;
                           for (unsigned i : kept)
                             yielded.push_back(mapping.lookupOrDefault(loop.getBody()->getTerminator()->getOperand(i)));
                           scf::YieldOp::create(body, loc, yielded);
                         });
  for (auto [i, result] : llvm::zip(kept, copy.getResults()))
    mapping.map(loop.getResult(i), result);
}

void Producer::emitIf(scf::IfOp branch, OpBuilder &builder, IRMapping &mapping) {
  SmallVector<unsigned> kept = getKept(branch);
  SmallVector<Type> types;
  for (unsigned i : kept)
    types.push_back(branch.getResult(i).getType());
  bool withElse =
      branch.elseBlock() &&
      (!kept.empty() || llvm::any_of(*branch.elseBlock(), [&](Operation &op) { return needed.contains(&op); }));
  auto copy =
      scf::IfOp::create(builder, branch.getLoc(), types, mapping.lookupOrDefault(branch.getCondition()), withElse);
  auto fill = [&](Block *from, Block *to) {
    OpBuilder body = to->mightHaveTerminator() ? OpBuilder(to->getTerminator()) : OpBuilder::atBlockEnd(to);
    emit(*from, body, mapping);
    SmallVector<Value> yielded;
    for (unsigned i : kept)
      yielded.push_back(mapping.lookupOrDefault(from->getTerminator()->getOperand(i)));
    if (!to->mightHaveTerminator())
      scf::YieldOp::create(body, branch.getLoc(), yielded);
  };
  fill(branch.thenBlock(), copy.thenBlock());
  if (withElse)
    fill(branch.elseBlock(), copy.elseBlock());
  for (auto [i, result] : llvm::zip(kept, copy.getResults()))
    mapping.map(branch.getResult(i), result);
}

/// Waits for the stage, computes it anew in its place or into a stage of another pipeline, and hands it on.
void Producer::emitTransform(TransformOp transform, OpBuilder &builder, IRMapping &mapping) {
  Location loc = transform.getLoc();
  auto load = transform.getSource().getDefiningOp<LoadOp>();
  Ring &ring = plan.getRing(load);
  bool apart = ring.made != ring.type;
  Value from = ConsumerWaitOp::create(builder, loc, TypeRange(ring.type), ring.pipeline).getSlot(), to = from;
  if (apart)
    to = ProducerAcquireOp::create(builder, loc, ring.made, ring.ready);
  mapping.map(transform.getSource(), from);
  auto compute = [&](OpBuilder &b) {
    auto copy = cast<TransformOp>(b.clone(*transform, mapping));
    if (apart)
      copy.getIntoMutable().assign(to);
  };
  if (Value rows = getGuard(transform)) {
    Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                         mapping.lookupOrDefault(load.getRow()), mapping.lookupOrDefault(rows));
    auto branch = scf::IfOp::create(builder, loc, exists, /*withElseRegion=*/true);
    OpBuilder some = branch.getThenBodyBuilder(), none = branch.getElseBodyBuilder();
    compute(some);
    FillRowsOp::create(none, loc, to, arith::ConstantIndexOp::create(none, loc, 0));
  } else {
    compute(builder);
  }
  CommitOp::create(builder, loc, ring.ready);
  if (apart)
    ConsumerReleaseOp::create(builder, loc, ring.pipeline);
}

void Producer::emit(Block &block, OpBuilder &builder, IRMapping &mapping) {
  for (Operation &op : block.without_terminator()) {
    if (!needed.contains(&op))
      continue;
    if (auto load = dyn_cast<LoadOp>(op); load && isShared(load)) {
      Ring &ring = plan.getRing(load);
      Value slot = ProducerAcquireOp::create(builder, load.getLoc(), ring.type, ring.pipeline);
      auto copy = LoadAsyncOp::create(builder, load.getLoc(), mapping.lookupOrDefault(load.getView()),
                                      mapping.lookupOrDefault(load.getRow()), slot, ring.pipeline);
      if (ring.gather)
        copy->setAttr(kGather, builder.getUnitAttr());
    } else if (auto transform = dyn_cast<TransformOp>(op)) {
      emitTransform(transform, builder, mapping);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      emitFor(loop, builder, mapping);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      emitIf(branch, builder, mapping);
    } else {
      builder.clone(op, mapping);
    }
  }
}

/// The role's own list of items, with what `producer` has collected.
static void emitProgram(Plan &plan, OpBuilder &builder, Producer &producer) {
  SmallVector<StringRef> fields;
  for (Attribute field : plan.items.getFields())
    fields.push_back(cast<StringAttr>(field).getValue());
  auto items = ForEachOp::create(builder, plan.items.getLoc(), plan.items.getItems(), fields);
  IRMapping mapping;
  mapping.map(plan.items.getBody().getArguments(), items.getBody().getArguments());
  OpBuilder body(items.getBody().front().getTerminator());
  producer.emit(plan.items.getBody().front(), body, mapping);
}

LogicalResult specialize::emitProducer(Plan &plan, OpBuilder builder, int64_t number) {
  Producer producer(plan, number);
  if (failed(producer.collectLoads()))
    return failure();
  emitProgram(plan, builder, producer);
  return success();
}

LogicalResult specialize::emitTransformer(Plan &plan, OpBuilder builder) {
  Producer transformer(plan, -1);
  if (failed(transformer.collectTransforms()))
    return failure();
  emitProgram(plan, builder, transformer);
  return success();
}
