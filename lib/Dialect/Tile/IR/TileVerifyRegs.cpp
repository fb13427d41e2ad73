//===- TileVerifyRegs.cpp - verifiers of the register ops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shapes, element types and layouts of splat, map, mask, reduce, dot, await,
// slice, concat and convert_layout.
//
//===----------------------------------------------------------------------===//

#include "TileVerify.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::rules;

LogicalResult SplatOp::verify() {
  Type element = getResult().getType().getElementType();
  if (getValue().getType() != element)
    return fail(*this, "splat_c1") << "'value' has type " << getValue().getType()
                                   << ", expected the element type of the result, " << element;
  return success();
}

//===----------------------------------------------------------------------===//
// map and mask
//===----------------------------------------------------------------------===//

/// Each input's extents equal those of the dimensions that it spans.
static LogicalResult verifySpans(Operation *op, StringRef name, OperandRange inputs, ArrayAttr dims,
                                 ArrayRef<int64_t> shape) {
  if (dims.size() != inputs.size())
    return fail(op, (name + "_c2").str())
           << "has " << dims.size() << " entries in 'dims' for " << inputs.size() << " inputs";
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = cast<RegType>(input.getType());
    auto attr = dyn_cast<DenseI64ArrayAttr>(dims[i]);
    if (!attr)
      return fail(op, (name + "_c2").str()) << "'dims' has " << dims[i] << ", expected an array of i64";
    SmallVector<int64_t> span(attr.asArrayRef());
    if (span.empty())
      span = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    if (static_cast<int64_t>(span.size()) != type.getRank())
      return fail(op, (name + "_c3").str())
             << "input " << i << " has rank " << type.getRank() << " but spans " << span.size() << " dimensions";
    for (auto [k, dim] : llvm::enumerate(span)) {
      if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || (k && dim <= span[k - 1]))
        return fail(op, (name + "_c4").str()) << "input " << i << " spans dimension " << dim
                                              << ", expected increasing dimensions below " << shape.size();
      if (type.getShape()[k] != shape[dim])
        return fail(op, (name + "_c5").str()) << "input " << i << " has extent " << type.getShape()[k]
                                              << " where dimension " << dim << " of the result has " << shape[dim];
    }
  }
  return success();
}

/// The body has one scalar per input, then `indices` indices; it uses uniform scalars and memrefs only, and ops that
/// every path can run.
static LogicalResult verifyElementBody(Operation *op, StringRef name, OperandRange inputs, int64_t indices,
                                       Region &body) {
  Block &block = body.front();
  if (block.getNumArguments() != inputs.size() + indices)
    return fail(op, (name + "_c6").str()) << "has " << block.getNumArguments() << " body arguments, expected "
                                          << inputs.size() << " scalars and " << indices << " indices";
  for (auto [i, arg] : llvm::enumerate(block.getArguments())) {
    Type expected =
        i < inputs.size() ? cast<RegType>(inputs[i].getType()).getElementType() : IndexType::get(op->getContext());
    if (arg.getType() != expected)
      return fail(op, (name + "_c6").str())
             << "body argument " << i << " has type " << arg.getType() << ", expected " << expected;
  }
  if (block.empty() || !isa<YieldOp>(block.back()))
    return fail(op, (name + "_c7").str()) << "has a body that does not end with tile.yield";
  WalkResult result = body.walk([&](Operation *inner) {
    Dialect *dialect = inner->getDialect();
    StringRef space = dialect ? dialect->getNamespace() : "";
    bool known = space == "arith" || space == "math" || space == "scf" ||
                 isa<YieldOp, memref::LoadOp, memref::DimOp, func::CallOp>(inner);
    if (!known) {
      fail(op, (name + "_c8").str()) << "has '" << inner->getName()
                                     << "' in its body, expected arith, math, scf, memref.load or a call";
      return WalkResult::interrupt();
    }
    for (Value operand : inner->getOperands()) {
      if (body.isAncestor(operand.getParentRegion()) || operand.getType().isIntOrIndexOrFloat() ||
          isa<MemRefType>(operand.getType()))
        continue;
      fail(op, (name + "_c9").str()) << "captures a value of type " << operand.getType()
                                     << " in its body, expected scalars and memrefs";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult MapOp::verify() {
  if (getResults().empty())
    return fail(*this, "map_c1") << "has no result";
  if (!getUniforms().empty())
    return fail(*this, "map_c1") << "has explicit uniform operands; capture scalars in the body instead";
  ArrayRef<int64_t> shape = getShape();
  for (Value result : getResults())
    if (cast<RegType>(result.getType()).getShape() != shape)
      return fail(*this, "map_c1") << "has results of different shapes";
  if (failed(verifySpans(*this, "map", getInputs(), getDims(), shape)) ||
      failed(verifyElementBody(*this, "map", getInputs(), getAt() ? shape.size() : 0, getBody())))
    return failure();
  YieldOp yield = getYield();
  if (yield.getNumOperands() != getNumResults())
    return fail(*this, "map_c10") << "yields " << yield.getNumOperands() << " values for " << getNumResults()
                                  << " results";
  for (auto [value, result] : llvm::zip_equal(yield.getOperands(), getResults())) {
    Type element = cast<RegType>(result.getType()).getElementType();
    if (value.getType() != element)
      return fail(*this, "map_c10") << "yields " << value.getType() << " for a result of element type " << element;
  }
  return success();
}

LogicalResult MaskOp::verify() {
  auto type = cast<RegType>(getValue().getType());
  if (getResult().getType() != type)
    return fail(*this, "mask_c1") << "has a result of type " << getResult().getType() << ", expected that of 'value', "
                                  << type;
  if (!isa<FloatType>(type.getElementType()))
    return fail(*this, "mask_c1") << "'value' has element type " << type.getElementType() << ", expected a float";
  if (failed(verifySpans(*this, "mask", getInputs(), getDims(), type.getShape())) ||
      failed(verifyElementBody(*this, "mask", getInputs(), type.getRank(), getBody())))
    return failure();
  YieldOp yield = getYield();
  if (yield.getNumOperands() != 1 || !yield.getOperand(0).getType().isInteger(1))
    return fail(*this, "mask_c10") << "yields something else than one i1";
  if (!getKey() != !getLo() || !getKey() != !getHi())
    return fail(*this, "mask_c11") << "has part of an interval, expected 'key', 'lo' and 'hi' or none of them";
  if (getKey() ? static_cast<int64_t>(getKeys()) <= 0 : getKeys() != 0)
    return fail(*this, "mask_c12") << "has keys " << static_cast<int64_t>(getKeys())
                                   << ", expected a positive number with an interval and 0 without";
  return success();
}

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  auto value = cast<RegType>(getValue().getType());
  auto result = cast<RegType>(getResult().getType());
  if (!isa<FloatType>(value.getElementType()))
    return fail(*this, "reduce_c1") << "'value' has element type " << value.getElementType() << ", expected a float";
  if (result.getElementType() != value.getElementType())
    return fail(*this, "reduce_c1") << "has a result of element type " << result.getElementType() << ", expected "
                                    << value.getElementType();
  if (getInit() && getInit().getType() != result)
    return fail(*this, "reduce_c2") << "'init' has type " << getInit().getType() << ", expected that of the result, "
                                    << result;
  auto slice = dyn_cast_or_null<SliceAttr>(result.getLayout());
  if (getScope() == ReduceScope::Lanes) {
    auto from = dyn_cast_or_null<SliceAttr>(value.getLayout());
    if (getDim())
      return fail(*this, "reduce_c3") << "has a dimension with scope lanes, expected none";
    if (!from || !from.getPartial() || !slice || slice.getPartial() || slice.getParent() != from.getParent() ||
        slice.getDim() != from.getDim() || result.getShape() != value.getShape())
      return fail(*this, "reduce_c3") << "with scope lanes expects a partial slice and the same slice without partial";
    return success();
  }
  if (!getDim())
    return fail(*this, "reduce_c4") << "has no dimension";
  int64_t dim = *getDim();
  if (dim < 0 || dim >= value.getRank() || value.getRank() == 1)
    return fail(*this, "reduce_c4") << "has dimension " << dim << " of a value of rank " << value.getRank()
                                    << ", expected one below the rank of a value of rank 2 or 3";
  SmallVector<int64_t> shape(value.getShape());
  shape.erase(shape.begin() + dim);
  if (result.getShape() != ArrayRef(shape))
    return fail(*this, "reduce_c5") << "has a result of type " << result << ", expected the shape of 'value' without "
                                    << "dimension " << dim;
  if (getScope() == ReduceScope::Thread &&
      (!slice || !slice.getPartial() || slice.getParent() != value.getLayout() || slice.getDim() != dim))
    return fail(*this, "reduce_c6") << "with scope thread expects a result whose layout is the partial slice of the "
                                    << "layout of 'value'";
  return success();
}

//===----------------------------------------------------------------------===//
// dot, await
//===----------------------------------------------------------------------===//

static LogicalResult verifyDot(Operation *op, Value a, Value b, Value acc, bool transposeB, RegType result) {
  Shaped l = getShaped(a.getType()), r = getShaped(b.getType());
  ArrayRef<int64_t> out = result.getShape();
  if (out.size() < 2)
    return fail(op, "dot_c1") << "has a result of rank " << out.size() << ", expected 2 or 3";
  for (auto [name, shape] : {std::pair("'a'", l.shape), std::pair("'b'", r.shape)})
    if (shape.size() < 2 || shape.size() > out.size())
      return fail(op, "dot_c1") << name << " has rank " << shape.size() << ", expected 2 to the rank of the result, "
                                << out.size();
  if (out.size() == 3) {
    if (l.shape.size() == 2 && r.shape.size() == 2)
      return fail(op, "dot_c2") << "has a batch dimension in the result that no operand has";
    for (auto [name, shape] : {std::pair("'a'", l.shape), std::pair("'b'", r.shape)})
      if (shape.size() == 3 && shape[0] != out[0])
        return fail(op, "dot_c2") << name << " has batch extent " << shape[0] << ", expected " << out[0];
  }
  int64_t m = l.shape[l.shape.size() - 2], k = l.shape.back();
  int64_t rk = r.shape[r.shape.size() - 2], n = r.shape.back();
  if (transposeB)
    std::swap(rk, n);
  if (k != rk)
    return fail(op, "dot_c3") << "'a' has " << k << " columns but 'b' has " << rk << " on its contracted dimension";
  if (out[out.size() - 2] != m || out.back() != n)
    return fail(op, "dot_c4") << "has a result of " << out[out.size() - 2] << "x" << out.back() << ", expected " << m
                              << "x" << n;
  if (l.element != r.element || !isa<FloatType>(l.element))
    return fail(op, "dot_c5") << "has operands of element types " << l.element << " and " << r.element
                              << ", expected one float type";
  if (!result.getElementType().isF32())
    return fail(op, "dot_c5") << "has a result of element type " << result.getElementType() << ", expected f32";
  if (acc && getShaped(acc.getType()).element != result.getElementType())
    return fail(op, "dot_c6") << "'acc' has type " << acc.getType() << ", expected " << result;
  if (acc) {
    auto pending = dyn_cast<PendingType>(acc.getType());
    if ((pending ? Type(pending.getReg()) : acc.getType()) != result)
      return fail(op, "dot_c6") << "'acc' has type " << acc.getType() << ", expected " << result;
  }
  if (result.getLayout() && !isa<MmaAttr>(result.getLayout()))
    return fail(op, "dot_c7") << "has a result of layout " << result.getLayout() << ", expected #tile.mma";
  auto operand = [](Value value, OperandKind kind) {
    auto reg = dyn_cast<RegType>(value.getType());
    if (!reg || !reg.getLayout())
      return true;
    auto layout = dyn_cast<OperandAttr>(reg.getLayout());
    return layout && layout.getKind() == kind;
  };
  if (!operand(a, OperandKind::A) || !operand(b, transposeB ? OperandKind::BT : OperandKind::B))
    return fail(op, "dot_c7") << "has a register operand whose layout is not #tile.operand of its place";
  return success();
}

LogicalResult DotOp::verify() {
  return verifyDot(*this, getA(), getB(), getAcc(), getTransposeB(), cast<RegType>(getResult().getType()));
}

LogicalResult DotAsyncOp::verify() {
  if (!isa<SmemType>(getB().getType()))
    return fail(*this, "dot_c8") << "'b' has type " << getB().getType()
                                 << ", expected shared memory (only 'a' may come from registers)";
  return verifyDot(*this, getA(), getB(), getAcc(), getTransposeB(), getResult().getType().getReg());
}

LogicalResult AwaitOp::verify() {
  if (getResult().getType() != getPending().getType().getReg())
    return fail(*this, "await_c1") << "has a result of type " << getResult().getType() << ", expected "
                                   << getPending().getType().getReg();
  if (!getAfter())
    return success();
  auto sum = getAfter().getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReduceKind::AddF || sum.getScope() != ReduceScope::Thread)
    return fail(*this, "await_c2") << "stands after a value that is no sum of a thread's terms, expected a tile.reduce "
                                      "addf with scope thread";
  if (getTerms() < 1)
    return fail(*this, "await_c3") << "stands after " << getTerms() << " terms, expected 1 or more";
  return success();
}

//===----------------------------------------------------------------------===//
// slice, concat, swap_pairs, convert_layout
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  auto source = cast<RegType>(getSource().getType()), result = cast<RegType>(getResult().getType());
  if (source.getElementType() != result.getElementType() || source.getRank() != result.getRank())
    return fail(*this, "slice_c1") << "has a result of type " << result << ", expected element type and rank of "
                                   << source;
  if (static_cast<int64_t>(getOffsets().size()) != source.getRank())
    return fail(*this, "slice_c2") << "has " << getOffsets().size() << " offsets for rank " << source.getRank();
  for (auto [i, offset] : llvm::enumerate(getOffsets())) {
    int64_t extent = result.getShape()[i];
    if (offset < 0 || offset + extent > source.getShape()[i])
      return fail(*this, "slice_c3") << "takes " << offset << " to " << offset + extent << " of dimension " << i
                                     << ", which has " << source.getShape()[i];
    if (source.getLayout() && extent != source.getShape()[i] && (offset % 8 || extent % 8))
      return fail(*this, "slice_c4") << "cuts dimension " << i
                                     << " elsewhere than at a multiple of 8, which a layout cannot do";
  }
  if (source.getLayout() != result.getLayout())
    return fail(*this, "slice_c5") << "has a result of another layout than its source";
  return success();
}

LogicalResult ConcatOp::verify() {
  auto result = cast<RegType>(getResult().getType());
  int64_t dim = getDim();
  if (getInputs().empty() || dim < 0 || dim >= result.getRank())
    return fail(*this, "concat_c1") << "has " << getInputs().size() << " inputs and dimension " << dim
                                    << ", expected inputs and a dimension below " << result.getRank();
  int64_t total = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    auto type = cast<RegType>(input.getType());
    if (type.getElementType() != result.getElementType() || type.getRank() != result.getRank() ||
        type.getLayout() != result.getLayout())
      return fail(*this, "concat_c2") << "input " << i << " has type " << type
                                      << ", expected element type, rank and layout of " << result;
    for (int64_t k = 0; k < result.getRank(); ++k)
      if (k != dim && type.getShape()[k] != result.getShape()[k])
        return fail(*this, "concat_c3") << "input " << i << " has extent " << type.getShape()[k] << " in dimension "
                                        << k << ", expected " << result.getShape()[k];
    if (type.getLayout() && type.getShape()[dim] % 8)
      return fail(*this, "concat_c4") << "input " << i << " does not end at a multiple of 8, which a layout cannot do";
    total += type.getShape()[dim];
  }
  if (total != result.getShape()[dim])
    return fail(*this, "concat_c5") << "has " << total << " elements along dimension " << dim << ", expected "
                                    << result.getShape()[dim];
  return success();
}

LogicalResult SwapPairsOp::verify() {
  auto type = cast<RegType>(getSource().getType());
  if (type.getShape().back() % 2 != 0)
    return fail(*this, "swap_pairs_c1") << "has " << type.getShape().back()
                                        << " elements in its last dimension, expected an even number";
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto source = cast<RegType>(getSource().getType()), result = cast<RegType>(getResult().getType());
  if (source.withLayout({}) != result.withLayout({}))
    return fail(*this, "convert_layout_c1")
           << "changes " << source << " into " << result << ", expected shape and element type to stay";
  if (!source.getLayout() || !result.getLayout())
    return fail(*this, "convert_layout_c2") << "has a type without layout";
  return success();
}
