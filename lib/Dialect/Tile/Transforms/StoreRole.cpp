//===- StoreRole.cpp - whole output tiles leave through the query's stage ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   consumer: ...; if whole: store O to rows of o; release Q
// becomes
//   consumer: ...; if whole: all rows there ? write O to the stage that held Q : store O; hand the stage on
//   store:    for_each item: wait for the stage; if whole and all rows there: copy it to o; free it
// The consumers go on while the copy runs; ragged tiles are stored as before,
// because a bulk copy writes all its rows.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILESTOREROLEPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
struct Output {
  RoleOp consumer, producer;
  ForEachOp items;
  ConsumerWaitOp query;
  StoreOp store;
  ViewOp view;
  bool find(KernelOp kernel);
  void emit();

private:
  bool findStore();
  void emitRole(Value chained, int64_t rows);
};
} // namespace

/// Scalars of the item that follow from its fields alone.
static bool isScalar(Value value, ForEachOp items) {
  if (!items.getBody().isAncestor(value.getParentRegion()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return cast<BlockArgument>(value).getOwner() == &items.getBody().front();
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && value.getType().isIntOrIndex() &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isScalar(operand, items); });
}

static Value cloneScalar(Value value, ForEachOp items, IRMapping &mapping, OpBuilder &builder) {
  if (mapping.contains(value) || !items.getBody().isAncestor(value.getParentRegion()))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    cloneScalar(operand, items, mapping, builder);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// A store of the group's rows, with the type of the query tile, under branches on scalars.
bool Output::findStore() {
  SmemType slot = query.getSlot().getType();
  items.walk([&](StoreOp op) {
    auto type = dyn_cast<RegType>(op.getValue().getType());
    auto made = op.getView().getDefiningOp<ViewOp>();
    if (!type || type.getRank() != 2 || !made || made.getPages() || !made.getRows() ||
        op.getView().getType().isPacked())
      return;
    SmallVector<int64_t> rows(slot.getShape());
    rows[0] /= consumer.getGroups();
    auto source = cast<MemRefType>(made.getSource().getType());
    if (type.getShape() != ArrayRef(rows) || type.getElementType() != slot.getElementType() || source.getRank() != 3)
      return;
    bool scalars = isScalar(made.getRows(), items) &&
                   llvm::all_of(made.getOffsets(), [&](Value offset) { return isScalar(offset, items); });
    for (Operation *parent = op->getParentOp(); parent != items; parent = parent->getParentOp()) {
      auto branch = dyn_cast<scf::IfOp>(parent);
      scalars &= branch && isScalar(branch.getCondition(), items);
    }
    if (scalars) {
      store = op;
      view = made;
    }
  });
  return store != nullptr;
}

bool Output::find(KernelOp kernel) {
  kernel.walk([&](RoleOp role) {
    if (containsOp<DotAsyncOp>(role))
      consumer = role;
    else if (containsOp<LoadAsyncOp>(role))
      producer = role;
  });
  if (!consumer || !producer)
    return false;
  for (auto each : consumer.getBody().getOps<ForEachOp>())
    items = each;
  if (!items)
    return false;
  // The query tile is waited for once an item; with one stage its consumers would wait for the next in vain.
  for (auto wait : items.getBody().getOps<ConsumerWaitOp>()) {
    int64_t waits = 0;
    items.walk([&](ConsumerWaitOp other) { waits += other.getPipeline() == wait.getPipeline(); });
    auto pipeline = wait.getPipeline().getDefiningOp<PipelineOp>();
    if (waits == 1 && pipeline && !pipeline.getChain() && pipeline.getType().getStages() > 1)
      query = wait;
  }
  return query && findStore();
}

/// The role that copies whole tiles to memory.
void Output::emitRole(Value chained, int64_t rows) {
  OpBuilder builder(consumer);
  Location loc = store.getLoc();
  auto role = RoleOp::create(builder, loc, builder.getStringAttr("store"), builder.getI64IntegerAttr(1),
                             builder.getI64IntegerAttr(1), producer.getRegistersAttr());
  builder.createBlock(&role.getBody());
  YieldOp::create(builder, loc, ValueRange());
  builder.setInsertionPointToStart(&role.getBody().front());
  SmallVector<StringRef> fields;
  for (Attribute field : items.getFields())
    fields.push_back(cast<StringAttr>(field).getValue());
  auto each = ForEachOp::create(builder, loc, items.getItems(), fields);
  builder.setInsertionPoint(each.getBody().front().getTerminator());
  IRMapping mapping;
  mapping.map(items.getBody().getArguments(), each.getBody().getArguments());
  auto wait = ConsumerWaitOp::create(builder, loc, TypeRange(query.getSlot().getType()), chained);
  Value extent = arith::ConstantIndexOp::create(builder, loc, rows);
  Value condition = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                          cloneScalar(view.getRows(), items, mapping, builder), extent);
  for (Operation *op = store; op->getParentOp() != items; op = op->getParentOp()) {
    auto branch = cast<scf::IfOp>(op->getParentOp());
    Value taken = cloneScalar(branch.getCondition(), items, mapping, builder);
    if (branch.elseBlock() == op->getBlock()) {
      Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
      taken = arith::XOrIOp::create(builder, loc, taken, yes);
    }
    condition = arith::AndIOp::create(builder, loc, condition, taken);
  }
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  SmallVector<Value> offsets;
  for (Value offset : view.getOffsets())
    offsets.push_back(cloneScalar(offset, items, mapping, inner));
  SmemType slot = query.getSlot().getType();
  SmallVector<int64_t> shape(view.getResult().getType().getShape());
  shape[0] = slot.getShape()[0];
  Value whole = ViewOp::create(inner, loc, ViewType::get(shape, slot.getElementType()), view.getSource(), offsets,
                               Value(), Value(), Value());
  Value zero = arith::ConstantIndexOp::create(inner, loc, 0);
  StoreAsyncOp::create(inner, loc, wait.getSlot(), whole, zero);
  ConsumerReleaseOp::create(builder, loc, chained);
}

void Output::emit() {
  Value pipeline = query.getPipeline();
  PipelineType type = pipeline.getDefiningOp<PipelineOp>().getType();
  SmemType slot = type.getSlot();
  int64_t rows = slot.getShape()[0], groups = consumer.getGroups();
  OpBuilder builder(consumer->getContext());
  builder.setInsertionPointAfter(pipeline.getDefiningOp());
  Value chained = PipelineOp::create(
      builder, query.getLoc(), PipelineType::get(builder.getContext(), type.getStages(), slot, 0), pipeline, groups, 1);
  emitRole(chained, rows);

  // The store: through shared memory when all rows of the tile exist.
  Location loc = store.getLoc();
  builder.setInsertionPoint(store);
  Value extent = arith::ConstantIndexOp::create(builder, loc, rows);
  Value all = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, view.getRows(), extent);
  auto branch = scf::IfOp::create(builder, loc, all, /*withElseRegion=*/true);
  OpBuilder inner = branch.getThenBodyBuilder();
  Value part = query.getSlot();
  if (groups > 1) {
    SmallVector<int64_t> shape(slot.getShape());
    shape[0] /= groups;
    Value count = arith::ConstantIndexOp::create(inner, loc, shape[0]);
    Value row0 = arith::MulIOp::create(inner, loc, consumer.getBody().getArgument(0), count);
    auto partType = SmemType::get(builder.getContext(), shape, slot.getElementType(), slot.getLayout());
    part = SubviewOp::create(inner, loc, partType, part, ValueRange(row0), ArrayRef<int64_t>{ShapedType::kDynamic, 0});
  }
  LocalStoreOp::create(inner, loc, store.getValue(), part);
  store->moveBefore(branch.elseBlock(), branch.elseBlock()->begin());

  items.walk([&](ConsumerReleaseOp release) {
    if (release.getPipeline() == pipeline)
      release.erase();
  });
  builder.setInsertionPoint(items.getBody().front().getTerminator());
  CommitOp::create(builder, loc, chained);
}

namespace {
struct StoreRolePass : tile::impl::TileStoreRolePassBase<StoreRolePass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkLevel(kernel, Level::Specialized, "run tile-warp-specialize first")))
      return signalPassFailure();
    Output output;
    if (!output.find(kernel))
      return;
    output.emit();
    ++numStores;
  }
};
} // namespace
