//===- TransformStages.cpp - what is computed from a stage stays in shared memory ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A B operand in registers is one that every warp along the rows computes for
// itself, whole, and holds whole; a stage that is read, computed and written
// back is held whole, too. The ops in between move into a tile.transform, which
// the threads share and which takes a few rows at a time: each op is written
// again for those rows, with the number of the first one added to the row's
// coordinate.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/IR/Layout.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILETRANSFORMSTAGESPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// The ops between one stage and what takes its rows: operand B of a product, or the store back into it.
class Chain {
public:
  explicit Chain(OpOperand &end) : end(end), user(end.getOwner()), operand(end.get()) {}

  /// True when the operand follows, row by row, from one stage that nothing else reads as it was.
  bool find();
  /// Replaces the chain by a transform in front of its user, or of the store.
  void rewrite(int64_t warps, int64_t consumers);

private:
  bool collect(Value value, int64_t rowDim);
  Value again(Value value, int64_t rowDim);
  RegType part(Value value, int64_t rowDim) const {
    auto type = cast<RegType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    if (rowDim >= 0)
      shape[rowDim] = rows;
    return RegType::get(shape, type.getElementType());
  }

  OpOperand &end;
  Operation *user;
  Value operand;
  LocalLoadOp load;
  llvm::MapVector<Operation *, int64_t> ops; // and which of their dimensions is that of the stage's rows, or -1
  // While rewriting.
  int64_t rows = 0;
  OpBuilder *builder = nullptr;
  Value first;
  IRMapping made;
};
} // namespace

/// Which dimension of input `i` is dimension `rowDim` of the results, or -1.
static int64_t rowDimOfInput(MapOp map, unsigned i, int64_t rowDim) {
  for (auto [k, dim] : llvm::enumerate(map.getInputDims(i)))
    if (dim == rowDim)
      return k;
  return -1;
}

bool Chain::collect(Value value, int64_t rowDim) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != user->getBlock())
    return false;
  auto [known, fresh] = ops.insert({op, rowDim});
  if (!fresh)
    return known->second == rowDim;
  if (auto local = dyn_cast<LocalLoadOp>(op)) {
    bool other = load && load != local;
    load = local;
    return !other && rowDim >= 0;
  }
  if (auto map = dyn_cast<MapOp>(op)) {
    for (unsigned i = 0; i < map.getInputs().size(); ++i)
      if (!collect(map.getInputs()[i], rowDimOfInput(map, i, rowDim)))
        return false;
    return true;
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    auto source = cast<RegType>(slice.getSource().getType());
    bool whole = rowDim < 0 || source.getShape()[rowDim] == cast<RegType>(value.getType()).getShape()[rowDim];
    return whole && collect(slice.getSource(), rowDim);
  }
  if (auto concat = dyn_cast<ConcatOp>(op))
    return static_cast<int64_t>(concat.getDim()) != rowDim &&
           llvm::all_of(concat.getInputs(), [&](Value input) { return collect(input, rowDim); });
  if (auto swap = dyn_cast<SwapPairsOp>(op))
    return collect(swap.getSource(), rowDim);
  return isa<SplatOp>(op);
}

bool Chain::find() {
  auto type = dyn_cast<RegType>(operand.getType());
  if (!type || !collect(operand, type.getRank() - 2) || !load)
    return false;
  auto stage = load.getSource().getDefiningOp<LoadOp>();
  if (!stage || stage->getBlock() != user->getBlock() ||
      stage.getResult().getType() != SmemType::get(type.getShape(), cast<RegType>(load.getType()).getElementType()))
    return false;
  if (auto store = dyn_cast<LocalStoreOp>(user); store && store.getDest() != stage.getResult())
    return false;
  for (Operation *reader : stage->getUsers()) {
    Operation *at = user->getBlock()->findAncestorOpInBlock(*reader);
    if (reader != load && reader != user && (!isa<LocalStoreOp>(user) || !at || !user->isBeforeInBlock(at)))
      return false;
  }
  // What depends on the stage has no other readers; coordinates may: they are computed again.
  for (auto &[op, rowDim] : ops) {
    if (op->getNumOperands() == 0 || isa<SplatOp>(op))
      continue;
    for (OpOperand &use : op->getUses())
      if (!ops.contains(use.getOwner()) && &use != &end)
        return false;
  }
  return true;
}

/// `value` for `rows` rows from `first` on.
Value Chain::again(Value value, int64_t rowDim) {
  if (Value known = made.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  auto map = dyn_cast<MapOp>(op);
  for (auto [i, input] : llvm::enumerate(op->getOperands()))
    operands.push_back(!isa<RegType>(input.getType()) ? input
                       : map                          ? again(input, rowDimOfInput(map, i, rowDim))
                                                      : again(input, rowDim));
  Operation *copy = builder->clone(*op, made);
  copy->setOperands(operands);
  for (auto [result, old] : llvm::zip_equal(copy->getResults(), op->getResults())) {
    result.setType(part(old, rowDim));
    made.map(old, result);
  }
  if (map && map.getAt() && rowDim >= 0) {
    Value row = cast<MapOp>(copy).getIndexArgs()[rowDim];
    if (!row.use_empty()) {
      OpBuilder body = OpBuilder::atBlockBegin(&cast<MapOp>(copy).getBody().front());
      auto sum = arith::AddIOp::create(body, op->getLoc(), first, row);
      row.replaceAllUsesExcept(sum, sum);
    }
  }
  return made.lookup(value);
}

void Chain::rewrite(int64_t warps, int64_t consumers) {
  Location loc = operand.getLoc();
  auto type = cast<RegType>(operand.getType());
  if (operand == load.getResult()) { // nothing is computed
    isa<LocalStoreOp>(user) ? user->erase() : end.set(load.getSource());
    load.erase();
    return;
  }
  auto stage = cast<SmemType>(load.getSource().getType());
  int64_t columns = type.getShape().back();
  for (auto &[op, rowDim] : ops)
    columns = getColumnsOfCut(op, columns);
  if (type.getRank() == 3) // each group has its share
    warps = std::max<int64_t>(1, warps / type.getShape()[0]);
  SmallVector<int64_t, 3> share(type.getShape());
  if (consumers > 1 && share[share.size() - 2] % consumers == 0) // of the query's rows each consumer has a part
    share[share.size() - 2] /= consumers;
  BlockedAttr layout = getBlockedLayout(type.getContext(), share, columns, warps);
  rows = layout.getRows() * layout.getWarps()[type.getRank() - 2];

  OpBuilder b(user);
  auto transform = TransformOp::create(b, loc, SmemType::get(type.getShape(), type.getElementType()), load.getSource(),
                                       rows, Value());
  Block &body = transform.getBody().emplaceBlock();
  SmallVector<int64_t> shape(stage.getShape());
  shape[shape.size() - 2] = rows;
  Value loaded = body.addArgument(RegType::get(shape, stage.getElementType()), loc);
  first = body.addArgument(b.getIndexType(), loc);
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  builder = &inside;
  made.map(load.getResult(), loaded);
  Value result = again(operand, type.getRank() - 2);
  YieldOp::create(inside, loc, result);
  if (isa<LocalStoreOp>(user)) {
    Operation *reader = load;
    load.getSource().replaceUsesWithIf(
        transform.getResult(), [&](OpOperand &use) { return use.getOwner() != transform && use.getOwner() != reader; });
    user->erase();
  } else {
    end.set(transform.getResult());
  }
  while (true) {
    auto unused = llvm::find_if(ops, [](auto &entry) { return entry.first->use_empty(); });
    if (unused == ops.end())
      break;
    unused->first->erase();
    ops.erase(unused);
  }
}

namespace {
struct TileTransformStagesPass : public tile::impl::TileTransformStagesPassBase<TileTransformStagesPass> {
  using TileTransformStagesPassBase::TileTransformStagesPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    attn::ConfigAttr config = requireConfig(kernel);
    if (!config || failed(checkLevel(kernel, Level::Logical, "it runs before layouts, pipelines and roles exist")))
      return signalPassFailure();
    SmallVector<OpOperand *> ends;
    kernel.walk([&](Operation *op) {
      if (auto dot = dyn_cast<DotOp>(op))
        ends.push_back(&dot.getBMutable());
      else if (auto store = dyn_cast<LocalStoreOp>(op))
        ends.push_back(&store.getValueMutable());
    });
    for (OpOperand *end : ends) {
      Chain chain(*end);
      if (!chain.find())
        continue;
      chain.rewrite(config.getConsumers() > 0 ? kTransformWarps : std::max<int64_t>(1, config.getWarps()),
                    config.getConsumers());
      ++numStages;
    }
  }
};
} // namespace
