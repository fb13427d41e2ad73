//===- WarpSpecializeConsumer.cpp - the consumers of tile-warp-specialize ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy of the kernel's items on the rows of one group: tiles shrink, loads
// become waits at the first use and releases after the last, products are
// issued where they stand and awaited before the first use of their result.
//
//===----------------------------------------------------------------------===//

#include "WarpSpecialize.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::specialize;

//===----------------------------------------------------------------------===//
// Rows of one group
//===----------------------------------------------------------------------===//

static Attribute splitLayout(Attribute layout, int64_t groups) {
  if (auto mma = dyn_cast<MmaAttr>(layout)) {
    SmallVector<int64_t> warps(mma.getWarps());
    warps[0] /= groups;
    return MmaAttr::get(layout.getContext(), warps);
  }
  if (auto operand = dyn_cast<OperandAttr>(layout))
    return OperandAttr::get(layout.getContext(), operand.getKind(), splitLayout(operand.getParent(), groups));
  auto slice = cast<SliceAttr>(layout);
  return SliceAttr::get(layout.getContext(), slice.getDim(), splitLayout(slice.getParent(), groups),
                        slice.getPartial());
}

static RegType splitType(RegType type, int64_t groups) {
  SmallVector<int64_t> shape(type.getShape());
  if (isRowTile(type))
    shape[0] /= groups;
  return RegType::get(type.getContext(), shape, type.getElementType(), splitLayout(type.getLayout(), groups));
}

/// Index `arg` of a body counts the rows of the group: what the body sees is the row of the item.
static void shiftRow(BlockArgument arg, Value row0) {
  OpBuilder builder = OpBuilder::atBlockBegin(arg.getOwner());
  if (arg.use_empty())
    return;
  auto row = arith::AddIOp::create(builder, arg.getLoc(), arg, row0);
  arg.replaceAllUsesExcept(row, row);
}

static void splitRows(ForEachOp items, int64_t groups, Value row0) {
  items.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto transform = dyn_cast<TransformOp>(op)) {
      shiftRow(transform.getBody().getArgument(1), row0);
      return WalkResult::skip();
    }
    auto isRows = [](Value value) {
      auto reg = dyn_cast<RegType>(value.getType());
      return reg && isRowTile(reg);
    };
    OpBuilder builder(op);
    auto shift = [&](OpOperand &row) { row.set(arith::AddIOp::create(builder, op->getLoc(), row.get(), row0)); };
    if (auto map = dyn_cast<MapOp>(op); map && map.getAt() && isRows(map.getResult(0)))
      shiftRow(cast<BlockArgument>(map.getIndexArgs()[0]), row0);
    if (auto mask = dyn_cast<MaskOp>(op); mask && isRows(mask.getValue()))
      shiftRow(cast<BlockArgument>(mask.getIndexArgs()[0]), row0);
    if (auto load = dyn_cast<LoadOp>(op); load && isRows(load.getResult()))
      shift(load.getRowMutable());
    if (auto store = dyn_cast<StoreOp>(op); store && isRows(store.getValue()))
      shift(store.getRowMutable());
    return WalkResult::advance();
  });
}

static void splitTypes(ForEachOp items, int64_t groups) {
  auto split = [&](Value value) {
    if (auto reg = dyn_cast<RegType>(value.getType()))
      value.setType(splitType(reg, groups));
  };
  items.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<TransformOp>(op))
      return WalkResult::skip();
    llvm::for_each(op->getResults(), split);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), split);
    return WalkResult::advance();
  });
}

/// Stages of keys are transformed before they arrive; those of the query in place: what follows reads the stage itself.
static void dropTransforms(Plan &plan, ForEachOp items) {
  SmallVector<TransformOp> before, after;
  plan.items.walk([&](TransformOp transform) { before.push_back(transform); });
  items.walk([&](TransformOp transform) { after.push_back(transform); });
  for (auto [original, transform] : llvm::zip_equal(before, after)) {
    transform.getResult().replaceAllUsesWith(transform.getSource());
    if (!plan.getRing(original.getSource().getDefiningOp<LoadOp>()).rows)
      transform.erase();
  }
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static Operation *getFirstUse(Value value, Block *block) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *at = block->findAncestorOpInBlock(*user);
    if (at && (!first || at->isBeforeInBlock(first)))
      first = at;
  }
  return first;
}

/// The part of `slot` that holds the rows of the group.
static Value getRows(OpBuilder &builder, Location loc, Value slot, int64_t groups, Value row0) {
  auto type = cast<SmemType>(slot.getType());
  if (groups == 1)
    return slot;
  SmallVector<int64_t> shape(type.getShape()), offsets(type.getRank(), 0);
  shape[0] /= groups;
  offsets[0] = ShapedType::kDynamic;
  auto part = SmemType::get(type.getContext(), shape, type.getElementType(), type.getLayout());
  return SubviewOp::create(builder, loc, part, slot, ValueRange(row0), offsets);
}

/// Q as fragments of the A operand, for the products of loops: the one in front of them reads Q once anyway, and
/// fragments that are not there yet leave their registers to it.
static void loadFragments(OpBuilder builder, Location loc, Value rows) {
  for (Operation *user : rows.getUsers())
    if (isa<TransformOp>(user))
      builder.setInsertionPointAfter(user);
  SmallVector<DotOp> dots;
  for (OpOperand &use : rows.getUses())
    if (auto dot = dyn_cast<DotOp>(use.getOwner());
        dot && use.getOperandNumber() == 0 && dot->getParentOfType<scf::ForOp>())
      dots.push_back(dot);
  if (dots.empty())
    return;
  auto smem = cast<SmemType>(rows.getType());
  Attribute parent = cast<RegType>(dots[0].getResult().getType()).getLayout();
  auto type = RegType::get(builder.getContext(), smem.getShape(), smem.getElementType(),
                           OperandAttr::get(builder.getContext(), OperandKind::A, parent));
  Value fragments = LocalLoadOp::create(builder, loc, type, rows);
  for (DotOp dot : dots)
    if (cast<RegType>(dot.getResult().getType()).getLayout() == parent)
      dot.getAMutable().set(fragments);
}

/// True when rows of the load may lie behind the view's end and a product would contract over them.
static bool needsTail(LoadOp load) {
  auto view = load.getView().getDefiningOp<ViewOp>();
  if (!view || !view.getRows())
    return false;
  bool contracted = llvm::any_of(load.getResult().getUses(), [](OpOperand &use) {
    auto dot = dyn_cast<DotOp>(use.getOwner());
    return dot && use.getOperandNumber() == 1 && !dot.getTransposeB();
  });
  if (!contracted)
    return false;
  auto loop = dyn_cast<scf::ForOp>(load->getParentOp());
  return !loop || !loop->hasAttr(kWholeBlocks);
}

/// Zeroes the rows of a stage behind the end of its view: what lies there may be anything, and 0 x NaN is NaN.
static void fillTail(OpBuilder &builder, LoadOp load, Value slot) {
  Location loc = load.getLoc();
  ArrayRef<int64_t> shape = cast<SmemType>(slot.getType()).getShape();
  Value rows = load.getView().getDefiningOp<ViewOp>().getRows();
  Value extent = arith::ConstantIndexOp::create(builder, loc, shape[shape.size() - 2]);
  Value left = arith::SubIOp::create(builder, loc, rows, load.getRow());
  Value tail = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, left, extent);
  scf::IfOp::create(builder, loc, tail, [&](OpBuilder &body, Location) {
    FillRowsOp::create(body, loc, slot, left);
    scf::YieldOp::create(body, loc);
  });
}

/// Scalars and views that `value` is computed from stand before `place`.
static void moveBefore(Value value, Operation *place) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != place->getBlock() || op->isBeforeInBlock(place))
    return;
  for (Value operand : op->getOperands())
    moveBefore(operand, place);
  op->moveBefore(place);
}

static SmallVector<ConsumerWaitOp> makeWaits(Plan &plan, ForEachOp items, Value row0) {
  // The copy has the loads of the kernel in the same order.
  SmallVector<LoadOp> before, after;
  plan.items.walk([&](LoadOp load) { before.push_back(load); });
  items.walk([&](LoadOp load) { after.push_back(load); });
  SmallVector<ConsumerWaitOp> waits;
  for (auto [original, load] : llvm::zip_equal(before, after)) {
    if (!isShared(load))
      continue;
    Ring &ring = plan.getRing(original);
    Location loc = load.getLoc();
    OpBuilder builder(load);
    bool tail = !ring.rows && !ring.gather && needsTail(load);
    if (Operation *first = getFirstUse(load.getResult(), load->getBlock()); first && !ring.rows) {
      // No branch comes between products in flight: zeroes are written in front of them all.
      if (tail)
        for (Operation *op = first; op && !isa<scf::ForOp, scf::IfOp>(op); op = op->getPrevNode())
          if (isa<DotOp>(op))
            first = op;
      moveBefore(load.getRow(), first);
      moveBefore(load.getView(), first);
      builder.setInsertionPoint(first);
    }
    auto wait = ConsumerWaitOp::create(builder, loc, TypeRange(ring.made), ring.ready);
    Value slot = wait.getSlot();
    if (ring.rows) {
      slot = getRows(builder, loc, slot, plan.groups, row0);
      load.getResult().replaceAllUsesWith(slot);
      for (Operation *user : slot.getUsers())
        if (auto transform = dyn_cast<TransformOp>(user))
          transform.getResult().setType(cast<SmemType>(slot.getType()));
      if (plan.queryInRegisters)
        loadFragments(builder, loc, slot);
    } else {
      if (tail)
        fillTail(builder, load, slot);
      load.getResult().replaceAllUsesWith(slot);
    }
    waits.push_back(wait);
    load.erase();
  }
  return waits;
}

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

/// Each product of `block` is issued where it stands. Awaits come in issue order, each before the first use of its
/// result or of that of a product issued later, whichever is first.
static void issueDots(Block &block) {
  SmallVector<DotOp> dots;
  for (auto dot : block.getOps<DotOp>())
    if (isa<SmemType>(dot.getB().getType()))
      dots.push_back(dot);
  SmallVector<Operation *> needed;
  for (DotOp dot : dots) {
    Operation *use = getFirstUse(dot.getResult(), &block);
    needed.push_back(use ? use : block.getTerminator());
  }
  for (size_t i = dots.size(); i-- > 1;)
    if (needed[i]->isBeforeInBlock(needed[i - 1]))
      needed[i - 1] = needed[i];
  for (auto [dot, use] : llvm::zip_equal(dots, needed)) {
    OpBuilder builder(dot);
    auto type = cast<RegType>(dot.getResult().getType());
    auto issued = DotAsyncOp::create(builder, dot.getLoc(), PendingType::get(builder.getContext(), type), dot.getA(),
                                     dot.getB(), dot.getAcc(), dot.getTransposeB());
    builder.setInsertionPoint(use);
    auto await = AwaitOp::create(builder, dot.getLoc(), type, issued.getResult());
    dot.getResult().replaceAllUsesWith(await.getResult());
    // A product that uses the result stands behind the await; later entries may name it as their place.
    for (Operation *&place : needed)
      if (place == dot.getOperation())
        place = issued;
    dot.erase();
  }
}

/// R3: the next value of registers that a product reads is computed behind the product's await.
static void sinkCarried(scf::ForOp loop) {
  for (BlockArgument arg : loop.getRegionIterArgs()) {
    for (Operation *user : arg.getUsers()) {
      auto dot = dyn_cast<DotAsyncOp>(user);
      if (!dot || dot.getA() != arg || dot->getBlock() != loop.getBody())
        continue;
      Operation *await = *dot.getResult().getUsers().begin();
      Operation *next = loop.getTiedLoopYieldedValue(arg)->get().getDefiningOp();
      if (!next || next->getBlock() != loop.getBody() || !next->isBeforeInBlock(await) || !isa<MapOp>(next))
        continue;
      Operation *last = await;
      if (llvm::all_of(next->getUsers(), [&](Operation *other) {
            Operation *at = loop.getBody()->findAncestorOpInBlock(*other);
            return at && last->isBeforeInBlock(at);
          }))
        next->moveAfter(last);
    }
  }
}

//===----------------------------------------------------------------------===//
// Releases
//===----------------------------------------------------------------------===//

static void findEnd(Value slot, Block *block, Operation *&end) {
  for (Operation *user : slot.getUsers()) {
    if (auto part = dyn_cast<SubviewOp>(user)) {
      findEnd(part.getResult(), block, end);
      continue;
    }
    Operation *at = block->findAncestorOpInBlock(*user);
    if (auto dot = dyn_cast<DotAsyncOp>(user); dot && at == user)
      at = *dot.getResult().getUsers().begin();
    if (end->isBeforeInBlock(at))
      end = at;
  }
}

static void makeRelease(ConsumerWaitOp wait) {
  Operation *end = wait;
  findEnd(wait.getSlot(), wait->getBlock(), end);
  OpBuilder builder(wait->getContext());
  builder.setInsertionPointAfter(end);
  ConsumerReleaseOp::create(builder, end->getLoc(), wait.getPipeline());
}

LogicalResult specialize::emitConsumer(Plan &plan, OpBuilder builder, Value row0) {
  auto items = cast<ForEachOp>(builder.clone(*plan.items));
  dropTransforms(plan, items);
  if (plan.groups > 1) {
    splitRows(items, plan.groups, row0);
    splitTypes(items, plan.groups);
  }
  SmallVector<ConsumerWaitOp> waits = makeWaits(plan, items, row0);
  SmallVector<Block *> blocks;
  items.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    issueDots(*block);
  items.walk([&](scf::ForOp loop) { sinkCarried(loop); });
  for (ConsumerWaitOp wait : waits)
    makeRelease(wait);
  // Views that only the producer needs, and what they were made of.
  items.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
  return success();
}
