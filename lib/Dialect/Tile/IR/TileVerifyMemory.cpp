//===- TileVerifyMemory.cpp - verifiers of views, shared memory, pipelines ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes and types of the ops that touch global or shared memory.
//
//===----------------------------------------------------------------------===//

#include "TileVerify.h"
#include "attn/Dialect/Tile/IR/Gather.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::rules;

LogicalResult ViewOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  ViewType view = getResult().getType();
  if (source.getElementType() != view.getElementType())
    return fail(*this, "view_c1") << "'source' has element type " << source.getElementType() << ", expected "
                                  << view.getElementType();
  int64_t vector = view.getRank() - 1, offsets = getOffsets().size();
  if (view.isPaged()) {
    if (offsets != 1 || source.getRank() != 3 + vector)
      return fail(*this, "view_c2") << "of pages has " << offsets << " offsets into rank " << source.getRank()
                                    << ", expected the head and (page, row in page, head"
                                    << (vector ? ", vector)" : ")");
    int64_t rows = source.getDimSize(1);
    if (!ShapedType::isDynamic(rows) && rows != view.getPage())
      return fail(*this, "view_c3") << "has pages of " << view.getPage() << " rows, but those of 'source' have "
                                    << rows;
  } else {
    if (offsets < 1 || source.getRank() != offsets + vector)
      return fail(*this, "view_c2") << "has " << offsets << " offsets into rank " << source.getRank()
                                    << ", expected one for each dimension" << (vector ? " but the vector's" : "");
    if (view.isPacked() && offsets != 2)
      return fail(*this, "view_c2") << "packs heads into rows with " << offsets << " offsets, expected row and head";
  }
  if (view.isPaged() != static_cast<bool>(getPages()) || view.isPaged() != static_cast<bool>(getFirst()))
    return fail(*this, "view_c4") << (view.isPaged() ? "is paged without 'pages'" : "has 'pages' but is not paged");
  if (getPages()) {
    auto table = cast<MemRefType>(getPages().getType());
    if (table.getRank() != 1 || !(table.getElementType().isInteger(32) || table.getElementType().isInteger(64)))
      return fail(*this, "view_c5") << "'pages' has type " << getPages().getType()
                                    << ", expected a memref of rank 1 of i32 or i64";
  }
  if (getRows() && !ShapedType::isDynamic(view.getShape()[0]))
    return fail(*this, "view_c6") << "has 'rows' for a fixed number of rows";
  if (vector) {
    int64_t length = source.getShape().back();
    if (!ShapedType::isDynamic(length) && length != view.getShape()[1])
      return fail(*this, "view_c7") << "has rows of " << view.getShape()[1] << ", but the last dimension of 'source' "
                                    << "has " << length;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(source.getStridesAndOffset(strides, offset)) || strides.back() != 1)
      return fail(*this, "view_c8") << "'source' has a last dimension that is not contiguous";
  }
  return success();
}

/// A tile [n, d] or [groups, n, d] of the rows of a view (without d for a view of single elements). It may have more
/// columns: they are zero when loaded and dropped when stored.
static LogicalResult verifyTransfer(Operation *op, StringRef name, ViewType view, Type tile, StringRef what) {
  Shaped t = getShaped(tile);
  if (t.element != view.getElementType())
    return fail(op, (name + "_c1").str())
           << what << " has element type " << t.element << ", expected that of the view, " << view.getElementType();
  int64_t rank = t.shape.size();
  if (rank != view.getRank() && rank != view.getRank() + 1)
    return fail(op, (name + "_c2").str()) << what << " has rank " << rank << " for a view of rank " << view.getRank()
                                          << ", expected the same or one more";
  if (view.getRank() == 2 && t.shape.back() < view.getShape()[1])
    return fail(op, (name + "_c3").str())
           << what << " has rows of " << t.shape.back() << ", expected at least " << view.getShape()[1];
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyTransfer(*this, "load", getView().getType(), getResult().getType(), "the result");
}
LogicalResult StoreOp::verify() {
  return verifyTransfer(*this, "store", getView().getType(), getValue().getType(), "'value'");
}

static LogicalResult verifyLocal(Operation *op, StringRef name, Value reg, Value smem) {
  Shaped r = getShaped(reg.getType()), s = getShaped(smem.getType());
  if (r.shape != s.shape || r.element != s.element)
    return fail(op, (name + "_c1").str())
           << "has " << reg.getType() << " and " << smem.getType() << ", expected the same shape and element type";
  return success();
}

LogicalResult LocalLoadOp::verify() { return verifyLocal(*this, "local_load", getResult(), getSource()); }
LogicalResult LocalStoreOp::verify() { return verifyLocal(*this, "local_store", getValue(), getDest()); }

LogicalResult TransformOp::verify() {
  SmemType source = getSource().getType(), result = getResult().getType();
  if (source.getShape() != result.getShape() || source.getRank() < 2)
    return fail(*this, "transform_c1") << "has a result of type " << result << " for a source of type " << source
                                       << ", expected the same shape of rank 2 or 3";
  int64_t extent = source.getShape()[source.getRank() - 2], rows = getRows();
  if (rows < 1 || extent % rows)
    return fail(*this, "transform_c2") << "takes " << rows << " rows at a time, expected a number that divides "
                                       << extent;
  if (getInto() && (isInPlace() || getInto().getType() != result || !(*this)->getParentOfType<RoleOp>()))
    return fail(*this, "transform_c8") << "writes " << result << " into " << getInto().getType()
                                       << ", expected a slot of the result's type, in a role, and a source of another";
  // In roles the stage goes by its slot, before and after.
  if (!isInPlace() || (*this)->getParentOfType<RoleOp>())
    return success();
  for (Operation *user : getSource().getUsers()) {
    Operation *at = user == *this ? nullptr : (*this)->getBlock()->findAncestorOpInBlock(*user);
    if (at && (*this)->isBeforeInBlock(at)) {
      auto diag = fail(user, "transform_c3") << "uses a stage that has been rewritten, expected the result";
      diag.attachNote(getLoc()) << "it is rewritten here";
      return diag;
    }
  }
  return success();
}

LogicalResult TransformOp::verifyRegions() {
  auto part = [&](SmemType stage, Type type) {
    SmallVector<int64_t> shape(stage.getShape());
    shape[shape.size() - 2] = getRows();
    auto reg = dyn_cast<RegType>(type);
    return reg && reg.getShape() == ArrayRef(shape) && reg.getElementType() == stage.getElementType();
  };
  Block &body = getBody().front();
  if (body.getNumArguments() != 2 || !part(getSource().getType(), body.getArgument(0).getType()) ||
      !body.getArgument(1).getType().isIndex())
    return fail(*this, "transform_c4") << "has other body arguments than the " << getRows()
                                       << " rows and the number of the first one";
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getNumOperands() != 1 || !part(getResult().getType(), yield.getOperand(0).getType()))
    return fail(*this, "transform_c5") << "has a body that does not end by yielding the " << getRows()
                                       << " rows of the result";
  if (cast<RegType>(yield.getOperand(0).getType()).getLayout() !=
      cast<RegType>(body.getArgument(0).getType()).getLayout())
    return fail(*this, "transform_c5") << "yields rows of another layout than that of those it gets";
  for (Operation &op : body) {
    bool scalar = op.getDialect() && op.getDialect()->getNamespace() == "arith";
    if (!scalar && !isa<MapOp, SliceOp, ConcatOp, SwapPairsOp, SplatOp, ConvertLayoutOp, YieldOp>(op))
      return fail(&op, "transform_c6") << "may not stand in the body of a transform, expected arithmetic and ops on "
                                          "registers that keep rows apart";
    for (Value operand : op.getOperands())
      if (isa<RegType>(operand.getType()) && operand.getParentBlock() != &body)
        return fail(&op, "transform_c7") << "uses a tile from outside of the body, expected scalars and memrefs only";
  }
  return success();
}

LogicalResult SubviewOp::verify() {
  SmemType source = getSource().getType(), result = getResult().getType();
  ArrayRef<int64_t> offsets = getStaticOffsets();
  if (source.getElementType() != result.getElementType() || source.getLayout() != result.getLayout())
    return fail(*this, "subview_c1") << "has a result of type " << result << ", expected element type and layout of "
                                     << source;
  if (static_cast<int64_t>(offsets.size()) != source.getRank() ||
      llvm::count(offsets, ShapedType::kDynamic) != static_cast<int64_t>(getOffsets().size()))
    return fail(*this, "subview_c2") << "has " << offsets.size() << " offsets for rank " << source.getRank();
  int64_t dropped = source.getRank() - result.getRank();
  if (dropped < 0)
    return fail(*this, "subview_c3") << "has a result of higher rank than its source";
  for (auto [i, offset] : llvm::enumerate(offsets)) {
    int64_t d = static_cast<int64_t>(i) - dropped, extent = d < 0 ? 1 : result.getShape()[d];
    int64_t least = ShapedType::isDynamic(offset) ? 0 : offset;
    if (least < 0 || least + extent > source.getShape()[i])
      return fail(*this, "subview_c3") << "takes " << least << " to " << least + extent << " of dimension " << i
                                       << ", which has " << source.getShape()[i];
  }
  return success();
}

LogicalResult FillRowsOp::verify() {
  if (getDest().getType().getRank() < 2)
    return fail(*this, "fill_rows_c1") << "'dest' has rank 1, expected rows";
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

LogicalResult PipelineOp::verify() {
  PipelineType type = getResult().getType();
  if (static_cast<int64_t>(getProducers()) < 1 || static_cast<int64_t>(getConsumers()) < 1)
    return fail(*this, "pipeline_c1") << "has no producer or no consumer";
  if (!getChain()) {
    if (getProducers() != 1)
      return fail(*this, "pipeline_c2") << "has " << getProducers()
                                        << " producers, expected 1 where the slots are not chained";
    return success();
  }
  auto from = getChain().getDefiningOp<PipelineOp>();
  if (!from || from.getChain())
    return fail(*this, "pipeline_c3") << "'chain' is not a pipeline with memory of its own";
  PipelineType source = getChain().getType();
  if (source.getStages() != type.getStages() || source.getSlot().getBytes() < type.getSlot().getBytes())
    return fail(*this, "pipeline_c4") << "has " << type.getStages() << " stages of " << type.getSlot().getBytes()
                                      << " bytes in the slots of " << source.getStages() << " stages of "
                                      << source.getSlot().getBytes();
  if (getProducers() != from.getConsumers())
    return fail(*this, "pipeline_c5") << "has " << getProducers() << " producers, expected the " << from.getConsumers()
                                      << " consumers of 'chain', who hand on its slots";
  for (Operation *user : getChain().getUsers())
    if (user != *this && isa<PipelineOp>(user))
      return fail(*this, "pipeline_c6") << "chains a pipeline that another one chains";
  return success();
}

LogicalResult ProducerAcquireOp::verify() {
  if (getSlot().getType() != getPipeline().getType().getSlot())
    return fail(*this, "acquire_c1") << "has a slot of type " << getSlot().getType()
                                     << ", expected that of the pipeline, " << getPipeline().getType().getSlot();
  return success();
}

LogicalResult LoadAsyncOp::verify() {
  auto acquire = getSlot().getDefiningOp<ProducerAcquireOp>();
  if (!acquire || acquire.getPipeline() != getPipeline())
    return fail(*this, "load_async_c4") << "'slot' does not come from producer_acquire of the pipeline that it signals";
  auto kernel = (*this)->getParentOfType<KernelOp>();
  bool roles = kernel && kernel.getLevel() == Level::Specialized;
  if (isGather(*this) && kernel && !roles)
    return fail(*this, "load_async_c5") << "has 'tile.gather' at level " << stringifyLevel(kernel.getLevel())
                                        << ", where every thread copies; expected it in roles only";
  // A stage's full barrier counts bytes of tensor copies or threads, not both.
  for (Operation *user : getPipeline().getUsers())
    if (auto other = dyn_cast<LoadAsyncOp>(user); other && isGather(other) != isGather(*this))
      return fail(*this, "load_async_c6")
             << (isGather(*this) ? "has" : "lacks") << " 'tile.gather', unlike another load of its pipeline";
  return verifyTransfer(*this, "load_async", getView().getType(), getSlot().getType(), "'slot'");
}

/// Entries that can be compared: whole numbers, one after the other.
static LogicalResult verifyTable(Operation *op, Value table, StringRef rule) {
  auto type = cast<MemRefType>(table.getType());
  Type element = type.getElementType();
  bool known = element.isSignlessInteger(8) || element.isSignlessInteger(32) || element.isSignlessInteger(64);
  if (type.getRank() != 1 || !known || !type.getLayout().isIdentity())
    return fail(op, rule) << "has a table of type " << type
                          << ", expected a contiguous one-dimensional memref of i8, i32 or i64";
  return success();
}

LogicalResult ExtentOp::verify() { return verifyTable(*this, getTable(), "extent_c1"); }

LogicalResult ScanOp::verify() { return verifyTable(*this, getTable(), "scan_c1"); }

LogicalResult SendOp::verify() {
  int64_t words = getPipeline().getType().getWords();
  if (static_cast<int64_t>(getWords().size()) > words)
    return fail(*this, "send_c1") << "has " << getWords().size() << " words, expected at most the " << words
                                  << " of the pipeline";
  return success();
}

LogicalResult ConsumerWaitOp::verify() {
  PipelineType type = getPipeline().getType();
  if (getSlot().getType() != type.getSlot())
    return fail(*this, "wait_c1") << "has a slot of type " << getSlot().getType() << ", expected that of the pipeline, "
                                  << type.getSlot();
  if (static_cast<int64_t>(getWords().size()) != type.getWords())
    return fail(*this, "wait_c2") << "has " << getWords().size() << " words, expected the " << type.getWords()
                                  << " of the pipeline";
  if (getObserves() && !getSlot().use_empty())
    return fail(*this, "wait_c3") << "observes the pipeline, whose stages are others', and uses the slot";
  return success();
}

LogicalResult ConsumerReleaseOp::verify() {
  for (Operation *user : getPipeline().getUsers())
    if (auto chained = dyn_cast<PipelineOp>(user))
      return fail(*this, "release_c1")
             << "of a pipeline whose slots are handed on; commit to the pipeline that chains it"
             << " instead";
  return success();
}

LogicalResult StoreAsyncOp::verify() {
  return verifyTransfer(*this, "store_async", getView().getType(), getSlot().getType(), "'slot'");
}
