//===- AttnVerify.cpp - verifiers of attention, merge and append ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each message ends in the label of the constraint in docs/Spec.md. Variants
// and hooks are in AttnVerifyHooks.cpp.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

LogicalResult FormatAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatKind kind, int64_t rowBlock) {
  if (kind == FormatKind::Bsr && rowBlock <= 0)
    return emitError() << "bsr needs 'row_block', the query rows of a row block, above 0 [format_c1]";
  if (kind != FormatKind::Bsr && rowBlock != 0)
    return emitError() << "'row_block' is for bsr only, got " << rowBlock << " with " << stringifyFormatKind(kind)
                       << " [format_c1]";
  return success();
}

LogicalResult ConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t keys,
                                 int64_t stages, int64_t warps, int64_t groups, int64_t pack, bool, int64_t consumers,
                                 bool, LoadPath, ItemOrder, bool, bool) {
  struct {
    StringRef name;
    int64_t value, least, most;
  } fields[] = {{"rows", rows, 1, 1024},       {"keys", keys, 1, 1024},   {"stages", stages, 1, 64},
                {"warps", warps, 1, 32},       {"groups", groups, 1, 32}, {"pack", pack, 1, 1024},
                {"consumers", consumers, 0, 8}};
  for (auto &field : fields)
    if (field.value < field.least || field.value > field.most)
      return emitError() << "'" << field.name << "' must be " << field.least << " to " << field.most << ", got "
                         << field.value << " [config_c1]";
  return success();
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static bool isDynamic(int64_t size) { return ShapedType::isDynamic(size); }
/// Whether two extents may be equal at run time.
static bool compatible(int64_t a, int64_t b) { return a == b || isDynamic(a) || isDynamic(b); }

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }

/// An index table: rank 1, i32 or i64, contiguous.
static LogicalResult verifyTable(Operation *op, Value table, StringRef name, StringRef label) {
  ShapedType type = shaped(table);
  Type element = type.getElementType();
  if (type.getRank() != 1 || !(element.isSignlessInteger(32) || element.isSignlessInteger(64)))
    return op->emitOpError() << "'" << name << "' must have rank 1 and element type i32 or i64, got " << type << " ["
                             << label << "]";
  if (auto memref = dyn_cast<MemRefType>(type)) {
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(memref.getStridesAndOffset(strides, offset)) || strides.back() != 1)
      return op->emitOpError() << "'" << name << "' must be contiguous, got " << type << " [" << label << "]";
  }
  return success();
}

/// Strides are free, but the last dimension is contiguous.
static LogicalResult verifyContiguous(Operation *op, Value buffer, StringRef name, StringRef label) {
  auto memref = dyn_cast<MemRefType>(buffer.getType());
  if (!memref)
    return success();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return op->emitOpError() << "'" << name << "' must have a strided layout, got " << memref << " [" << label << "]";
  if (strides.back() != 1)
    return op->emitOpError() << "'" << name << "' must have a contiguous last dimension (stride 1), got " << memref
                             << " [" << label << "]";
  return success();
}

static LogicalResult verifyRank(Operation *op, Value buffer, StringRef name, int64_t rank, StringRef dims,
                                StringRef label) {
  if (shaped(buffer).getRank() == rank)
    return success();
  return op->emitOpError() << "'" << name << "' must be " << dims << ", got " << buffer.getType() << " [" << label
                           << "]";
}

static bool isFp8(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); }
static bool isQueryType(Type type) { return type.isBF16() || type.isF16() || type.isF32(); }

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

/// c4: buffers are all memrefs or all tensors, results are the inits' types.
static LogicalResult verifyForm(AttentionOp op) {
  bool tensors = isa<RankedTensorType>(op.getQ().getType());
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if (isa<ShapedType>(type) && isa<RankedTensorType>(type) != tensors)
      return op.emitOpError() << "operands must be all memrefs or all tensors, got " << op.getQ().getType() << " and "
                              << type << " [attention_c4]";
  }
  SmallVector<Type> expected;
  if (tensors)
    for (OpOperand &init : op.getDpsInitsMutable())
      expected.push_back(init.get().getType());
  if (TypeRange(expected) != op->getResultTypes())
    return op.emitOpError() << "expected " << expected.size() << " results of the types of the inits, got "
                            << op->getResultTypes() << " [attention_c4]";
  return success();
}

/// c1, c2: the format's operands.
static LogicalResult verifyFormat(AttentionOp op) {
  FormatKind kind = op.getFormat().getKind();
  size_t levels = op.getKvIndptr().size();
  if (levels == 0)
    return op.emitOpError() << "needs one 'indptr' operand per level, got none [attention_c1]";
  size_t pages = kind == FormatKind::Ragged ? 0 : levels;
  StringRef name = stringifyFormatKind(kind);
  if (op.getKvIndices().size() != pages)
    return op.emitOpError() << "format " << name << " with " << levels << " levels needs " << pages
                            << " 'indices' operands, got " << op.getKvIndices().size() << " [attention_c1]";
  if (op.getKvLast().size() != pages)
    return op.emitOpError() << "format " << name << " with " << levels << " levels needs " << pages
                            << " 'last' operands, got " << op.getKvLast().size() << " [attention_c1]";
  size_t rows = op.getRowIndptr().size();
  if (rows != levels && !(rows == 0 && levels == 1))
    return op.emitOpError() << "needs one 'row_indptr' operand per level (none for a single level of one entry per "
                               "request), got "
                            << rows << " for " << levels << " levels [attention_c2]";

  if (failed(verifyTable(op, op.getQoIndptr(), "qo_indptr", "attention_c3")))
    return failure();
  struct {
    StringRef name;
    OperandRange range;
  } tables[] = {{"indptr", op.getKvIndptr()},
                {"indices", op.getKvIndices()},
                {"last", op.getKvLast()},
                {"row_indptr", op.getRowIndptr()}};
  for (auto &table : tables)
    for (Value value : table.range)
      if (failed(verifyTable(op, value, table.name, "attention_c3")))
        return failure();
  for (Value indices : op.getKvIndices())
    if (shaped(indices).getElementType() != shaped(op.getKvIndices()[0]).getElementType())
      return op.emitOpError() << "'indices' of all levels must have one element type [attention_c3]";
  return success();
}

static LogicalResult verifyHeadDims(AttentionOp op) {
  int64_t qk = op.getHeadDimQk(), vo = op.getHeadDimVo();
  StringRef rule = "must be a multiple of 8 up to 256 and the same for q, k, v and o, or (192, 128), or 512";
  auto fail = [&]() {
    return op.emitOpError() << "head dimensions (q and k " << qk << ", v and o " << vo << ") " << rule
                            << " [attention_c8]";
  };
  if (qk == 192 && vo == 128)
    return success();
  if (qk != vo || qk <= 0 || qk % 8 != 0 || (qk > 256 && qk != 512))
    return fail();
  return success();
}

/// c5 to c8: ranks, static extents, matching extents, head dims.
static LogicalResult verifyShapes(AttentionOp op) {
  bool paged = op.getFormat().getKind() != FormatKind::Ragged;
  int64_t kvRank = paged ? 4 : 3;
  StringRef kvDims = paged ? "[pages, page size, heads, head dim]" : "[tokens, heads, head dim]";
  if (failed(verifyRank(op, op.getQ(), "q", 3, "[tokens, heads, head dim]", "attention_c5")) ||
      failed(verifyRank(op, op.getO(), "o", 3, "[tokens, heads, head dim]", "attention_c5")) ||
      failed(verifyRank(op, op.getK(), "k", kvRank, kvDims, "attention_c5")) ||
      failed(verifyRank(op, op.getV(), "v", kvRank, kvDims, "attention_c5")))
    return failure();

  ArrayRef<int64_t> q = shaped(op.getQ()).getShape(), k = shaped(op.getK()).getShape(),
                    v = shaped(op.getV()).getShape(), o = shaped(op.getO()).getShape();
  struct {
    StringRef name;
    ArrayRef<int64_t> shape;
  } shapes[] = {{"q", q}, {"k", k}, {"v", v}, {"o", o}};
  for (auto &[name, shape] : shapes)
    for (int64_t size : shape.drop_front())
      if (isDynamic(size) || size <= 0)
        return op.emitOpError() << "'" << name
                                << "' must have static heads, head dim and page size above 0 (only tokens or pages are "
                                   "dynamic) [attention_c6]";

  auto mismatch = [&](StringRef what, int64_t a, StringRef an, int64_t b, StringRef bn) {
    return op.emitOpError() << "'" << an << "' and '" << bn << "' differ in " << what << ": " << a << " and " << b
                            << " [attention_c7]";
  };
  if (q[1] != o[1])
    return mismatch("heads", q[1], "q", o[1], "o");
  if (!compatible(q[0], o[0]))
    return mismatch("tokens", q[0], "q", o[0], "o");
  int64_t kHeads = k[k.size() - 2], vHeads = v[v.size() - 2];
  if (kHeads != vHeads)
    return mismatch("heads", kHeads, "k", vHeads, "v");
  if (q[1] % kHeads != 0)
    return op.emitOpError() << "query heads must be a multiple of KV heads, got " << q[1] << " and " << kHeads
                            << " [attention_c7]";
  if (q.back() != k.back())
    return mismatch("head dim", q.back(), "q", k.back(), "k");
  if (v.back() != o.back())
    return mismatch("head dim", v.back(), "v", o.back(), "o");
  if (!compatible(k[0], v[0]))
    return mismatch(paged ? "pages" : "tokens", k[0], "k", v[0], "v");
  if (paged && k[1] != v[1])
    return mismatch("page size", k[1], "k", v[1], "v");
  return verifyHeadDims(op);
}

/// c9: element types.
static LogicalResult verifyElements(AttentionOp op) {
  Type q = shaped(op.getQ()).getElementType(), k = shaped(op.getK()).getElementType(),
       v = shaped(op.getV()).getElementType(), o = shaped(op.getO()).getElementType();
  if (!isQueryType(q) || !isQueryType(o))
    return op.emitOpError() << "'q' and 'o' must have element type bf16, f16 or f32, got " << q << " and " << o
                            << " [attention_c9]";
  if (k != v)
    return op.emitOpError() << "'k' and 'v' must have one element type, got " << k << " and " << v << " [attention_c9]";
  if (k != q && !(isFp8(k) && !q.isF32()))
    return op.emitOpError() << "'k' and 'v' must have the element type of q (" << q
                            << "), or f8E4M3FN or f8E5M2 with a 16-bit q, got " << k << " [attention_c9]";
  return success();
}

/// c11: lse.
static LogicalResult verifyLse(AttentionOp op) {
  if (!op.getLse()) {
    if (op.getLseBase() != LseBase::Natural)
      return op.emitOpError() << "'lse_base' is " << stringifyLseBase(op.getLseBase())
                              << " but there is no lse operand [attention_c11]";
    return success();
  }
  ShapedType lse = shaped(op.getLse());
  ArrayRef<int64_t> q = shaped(op.getQ()).getShape();
  if (lse.getRank() != 2 || !lse.getElementType().isF32() || lse.getDimSize(1) != q[1] ||
      !compatible(lse.getDimSize(0), q[0]))
    return op.emitOpError() << "'lse' must be f32 [tokens, query heads], got " << lse << " [attention_c11]";
  return verifyContiguous(op, op.getLse(), "lse", "attention_c10");
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyForm(*this)) || failed(verifyFormat(*this)) || failed(verifyShapes(*this)) ||
      failed(verifyElements(*this)))
    return failure();
  struct {
    StringRef name;
    Value value;
  } buffers[] = {{"q", getQ()}, {"k", getK()}, {"v", getV()}, {"o", getO()}};
  for (auto &[name, value] : buffers)
    if (failed(verifyContiguous(*this, value, name, "attention_c10")))
      return failure();
  if (failed(verifyLse(*this)))
    return failure();
  if (!getVariantAttr() && !getParams().empty())
    return emitOpError() << "has parameters but no variant [attention_c12]";
  return success();
}

/// c13: one parameter against what the variant declares; a tensor stands for the memref it becomes.
static LogicalResult verifyParam(AttentionOp op, VariantOp variant, unsigned i) {
  Type given = op.getParams()[i].getType(), declared = variant.getParams()[i].getType();
  bool same = given == declared;
  if (auto memref = dyn_cast<MemRefType>(declared))
    if (auto tensor = dyn_cast<RankedTensorType>(given))
      same = tensor.getElementType() == memref.getElementType() && tensor.getShape() == memref.getShape();
  if (same)
    return success();
  InFlightDiagnostic diag = op.emitOpError() << "parameter " << i << " of @" << variant.getSymName() << " is "
                                             << declared << ", got " << given << " [attention_c13]";
  diag.attachNote(variant.getLoc()) << "variant declared here";
  return diag;
}

/// c14, c15: the variant's head vectors against the op's head dims; coordinates of shared keys.
static LogicalResult verifyHooks(AttentionOp op, VariantOp variant) {
  bool shared = op.getNumLevels() > 1 || !op.getRowIndptr().empty();
  for (auto hook : variant.getBody().getOps<HookOp>()) {
    HookKind kind = hook.getKind();
    bool keySide = kind == HookKind::Key || kind == HookKind::Value;
    if (auto vector = dyn_cast<VectorType>(hook.getBody().getArgument(0).getType())) {
      bool qk = kind == HookKind::Query || kind == HookKind::Key;
      int64_t dim = qk ? op.getHeadDimQk() : op.getHeadDimVo();
      if (vector.getDimSize(0) != dim) {
        InFlightDiagnostic diag = op.emitOpError()
                                  << "the " << stringifyHookKind(kind) << " hook of @" << variant.getSymName()
                                  << " takes " << vector << ", but the head dim of " << (qk ? "q and k" : "v and o")
                                  << " is " << dim << " [attention_c14]";
        diag.attachNote(hook.getLoc()) << "hook declared here";
        return diag;
      }
    }
    if (!keySide || !shared)
      continue;
    WalkResult walk = hook.walk([&](Operation *inner) {
      return isa<RequestOp, KVLenOp, QoLenOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted()) {
      InFlightDiagnostic diag = op.emitOpError()
                                << "the " << stringifyHookKind(kind) << " hook of @" << variant.getSymName()
                                << " reads request, kv_len or qo_len, but levels with 'row_indptr' share keys among "
                                   "requests; use kv_pos, or a single level without 'row_indptr' [attention_c15]";
      diag.attachNote(hook.getLoc()) << "hook declared here";
      return diag;
    }
  }
  return success();
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr name = getVariantAttr();
  if (!name)
    return success();
  auto variant = symbols.lookupNearestSymbolFrom<VariantOp>(*this, name);
  if (!variant)
    return emitOpError() << "'" << name << "' does not name an attn.variant [attention_c12]";
  if (variant.getParams().size() != getParams().size())
    return emitOpError() << "@" << variant.getSymName() << " has " << variant.getParams().size() << " parameters, got "
                         << getParams().size() << " [attention_c13]";
  for (unsigned i = 0; i < getParams().size(); ++i)
    if (failed(verifyParam(*this, variant, i)))
      return failure();
  if (variant.getNormalizer() == Normalizer::None && getLse())
    return emitOpError() << "@" << variant.getSymName()
                         << " has normalizer none, which gives no lse; drop the operand [attention_c11]";
  return verifyHooks(*this, variant);
}

//===----------------------------------------------------------------------===//
// merge
//===----------------------------------------------------------------------===//

LogicalResult MergeOp::verify() {
  if (getStates().empty() || getStates().size() != getStateLse().size())
    return emitOpError() << "needs at least one state and one lse for each, got " << getStates().size() << " and "
                         << getStateLse().size() << " [merge_c1]";
  ArrayRef<int64_t> o = shaped(getO()).getShape();
  if (failed(verifyRank(*this, getO(), "o", 3, "[tokens, heads, head dim]", "merge_c2")))
    return failure();
  if (!isQueryType(shaped(getO()).getElementType()))
    return emitOpError() << "'o' must have element type bf16, f16 or f32, got " << getO().getType() << " [merge_c2]";
  auto sameRows = [&](ShapedType type) {
    return compatible(type.getDimSize(0), o[0]) && compatible(type.getDimSize(1), o[1]);
  };
  for (Value state : getStates()) {
    ShapedType type = shaped(state);
    if (type.getRank() != 3 || !type.getElementType().isF32() || !sameRows(type) ||
        !compatible(type.getDimSize(2), o[2]))
      return emitOpError() << "each state must be f32 of the shape of 'o', got " << type << " [merge_c2]";
    if (failed(verifyContiguous(*this, state, "state", "merge_c3")))
      return failure();
  }
  SmallVector<Value> lses(getStateLse());
  if (getLse())
    lses.push_back(getLse());
  for (Value lse : lses) {
    ShapedType type = shaped(lse);
    if (type.getRank() != 2 || !type.getElementType().isF32() || !sameRows(type))
      return emitOpError() << "each lse must be f32 [tokens, heads] of the rows of 'o', got " << type << " [merge_c2]";
    if (failed(verifyContiguous(*this, lse, "lse", "merge_c3")))
      return failure();
  }
  if (failed(verifyContiguous(*this, getO(), "o", "merge_c3")))
    return failure();
  if (ArrayAttr bases = getLseBasesAttr()) {
    if (bases.size() != getStates().size())
      return emitOpError() << "'lse_bases' needs one base per state, got " << bases.size() << " for "
                           << getStates().size() << " states [merge_c4]";
    for (Attribute base : bases)
      if (cast<LseBaseAttr>(base).getValue() != getLseBase())
        return emitOpError() << "states must have the lse base of the result, " << stringifyLseBase(getLseBase())
                             << "; convert the lse of the state of base "
                             << stringifyLseBase(cast<LseBaseAttr>(base).getValue()) << " first [merge_c4]";
  } else if (getLseBase() != LseBase::Natural) {
    return emitOpError() << "states without 'lse_bases' are natural, but 'lse_base' is "
                         << stringifyLseBase(getLseBase()) << " [merge_c4]";
  }
  return success();
}

void MergeOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  size_t outputs = getLse() ? 2 : 1, first = getNumOperands() - outputs;
  for (OpOperand &operand : (*this)->getOpOperands())
    effects.emplace_back(operand.getOperandNumber() < first
                             ? static_cast<MemoryEffects::Effect *>(MemoryEffects::Read::get())
                             : MemoryEffects::Write::get(),
                         &operand, SideEffects::DefaultResource::get());
}

//===----------------------------------------------------------------------===//
// append
//===----------------------------------------------------------------------===//

LogicalResult AppendOp::verify() {
  if (failed(verifyTable(*this, getIndptr(), "indptr", "append_c1")) ||
      failed(verifyTable(*this, getKvIndptr(), "kv_indptr", "append_c1")) ||
      failed(verifyTable(*this, getKvIndices(), "kv_indices", "append_c1")) ||
      failed(verifyTable(*this, getKvLast(), "kv_last", "append_c1")))
    return failure();
  struct {
    StringRef name;
    Value fresh, pages;
  } pairs[] = {{"k", getKNew(), getK()}, {"v", getVNew(), getV()}};
  for (auto &[name, fresh, pages] : pairs) {
    ShapedType from = shaped(fresh), to = shaped(pages);
    if (from.getRank() != 3 || to.getRank() != 4 || from.getElementType() != to.getElementType() ||
        from.getShape().drop_front() != to.getShape().drop_front(2) ||
        llvm::any_of(to.getShape().drop_front(), isDynamic))
      return emitOpError() << "'" << name << "_new' must be [tokens, heads, head dim] and '" << name
                           << "' [pages, page size, heads, head dim] of one element type, static but for tokens and "
                              "pages, got "
                           << from << " and " << to << " [append_c2]";
    if (failed(verifyContiguous(*this, fresh, (name + "_new").str(), "append_c3")) ||
        failed(verifyContiguous(*this, pages, name, "append_c3")))
      return failure();
  }
  ShapedType k = shaped(getK()), v = shaped(getV());
  if (k.getDimSize(1) != v.getDimSize(1) || k.getDimSize(2) != v.getDimSize(2))
    return emitOpError() << "'k' and 'v' must have one page size and number of heads, got " << k << " and " << v
                         << " [append_c2]";
  return success();
}

void AppendOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    bool out = operand.get() == getK() || operand.get() == getV();
    effects.emplace_back(out ? static_cast<MemoryEffects::Effect *>(MemoryEffects::Write::get())
                             : MemoryEffects::Read::get(),
                         &operand, SideEffects::DefaultResource::get());
  }
}
