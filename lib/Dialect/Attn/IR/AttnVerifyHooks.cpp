//===- AttnVerifyHooks.cpp - verifiers of variants, hooks and rope ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A hook means the same on every path, so its body is made of a closed list of
// ops that every path honours. What is not on the list is refused here, by name
// and with what to write instead, and nowhere later.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// variant
//===----------------------------------------------------------------------===//

static bool isBufferElement(Type type) {
  return type.isF32() || type.isF16() || type.isBF16() || type.isSignlessInteger(8) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64);
}

static LogicalResult verifyParam(VariantOp op, BlockArgument param) {
  Type type = param.getType();
  if (type.isF32() || type.isIndex())
    return success();
  if (auto memref = dyn_cast<MemRefType>(type)) {
    SmallVector<int64_t> strides;
    int64_t offset;
    bool strided = succeeded(memref.getStridesAndOffset(strides, offset));
    if (memref.getRank() >= 1 && isBufferElement(memref.getElementType()) && strided && strides.back() == 1)
      return success();
  }
  return op.emitOpError() << "parameter " << param.getArgNumber()
                          << " must be f32, index, or a memref of rank 1 or more with a contiguous last dimension and "
                             "element type f32, f16, bf16, i8, i32 or i64, got "
                          << type << " [variant_c1]";
}

/// c5: the ABI tells parameters apart by name.
static LogicalResult verifyParamNames(VariantOp op) {
  Attribute attr = op->getAttr("param_names");
  if (!attr)
    return success();
  auto names = dyn_cast<ArrayAttr>(attr);
  llvm::SmallDenseSet<StringRef> seen;
  bool good = names && names.size() == op.getParams().size();
  for (Attribute name : good ? names.getValue() : ArrayRef<Attribute>()) {
    auto text = dyn_cast<StringAttr>(name);
    good &= text && !text.getValue().empty() && seen.insert(text.getValue()).second;
  }
  if (good)
    return success();
  return op.emitOpError() << "'param_names' must be one name per parameter, each different, got " << attr
                          << " [variant_c5]";
}

LogicalResult VariantOp::verifyRegions() {
  if (failed(verifyParamNames(*this)))
    return failure();
  for (BlockArgument param : getBody().getArguments())
    if (failed(verifyParam(*this, param)))
      return failure();
  DenseMap<unsigned, HookOp> seen;
  for (Operation &op : getBody().front()) {
    auto hook = dyn_cast<HookOp>(op);
    if (!hook) {
      if (isa<arith::ConstantOp>(op))
        continue;
      return op.emitOpError() << "is not allowed here: the body of attn.variant holds attn.hook and arith.constant; "
                                 "move it into a hook [variant_c2]";
    }
    auto [it, fresh] = seen.try_emplace(unsigned(hook.getKind()), hook);
    if (!fresh) {
      InFlightDiagnostic diag = hook.emitOpError() << "a variant has at most one " << stringifyHookKind(hook.getKind())
                                                   << " hook [variant_c3]";
      diag.attachNote(it->second.getLoc()) << "the first is here";
      return diag;
    }
    if (hook.getKind() == HookKind::Sink && getNormalizer() == Normalizer::None)
      return hook.emitOpError() << "a sink needs normalizer softmax: without it there is no denominator to add to "
                                   "[variant_c4]";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// hook
//===----------------------------------------------------------------------===//

static bool isVectorHook(HookKind kind) {
  return kind == HookKind::Query || kind == HookKind::Key || kind == HookKind::Value || kind == HookKind::Output;
}

static bool isHeadVector(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() && vector.getElementType().isF32();
}

/// c1, c2: arguments and result.
static LogicalResult verifySignature(HookOp hook) {
  HookKind kind = hook.getKind();
  StringRef expected = isVectorHook(kind)         ? "(vector<Dxf32>, !attn.coord) -> vector<Dxf32>"
                       : kind == HookKind::Logits ? "(f32, !attn.coord) -> f32"
                       : kind == HookKind::Mask   ? "(!attn.coord) -> i1"
                                                  : "(!attn.coord) -> f32";
  auto args = hook.getBody().getArguments();
  bool hasValue = isVectorHook(kind) || kind == HookKind::Logits;
  bool good = args.size() == (hasValue ? 2u : 1u) && isa<CoordType>(args.back().getType());
  if (good && hasValue)
    good = kind == HookKind::Logits ? args[0].getType().isF32() : isHeadVector(args[0].getType());
  if (!good)
    return hook.emitOpError() << "a " << stringifyHookKind(kind) << " hook is " << expected << " [hook_c1]";
  Block &block = hook.getBody().front();
  if (block.empty() || !isa<YieldOp>(block.back()))
    return hook.emitOpError() << "must end in attn.yield [hook_c2]";
  Type result = cast<YieldOp>(block.back()).getValue().getType();
  Type wanted = hasValue                 ? args[0].getType()
                : kind == HookKind::Mask ? Type(IntegerType::get(hook.getContext(), 1))
                                         : Type(Float32Type::get(hook.getContext()));
  if (result != wanted)
    return block.back().emitOpError() << "a " << stringifyHookKind(kind) << " hook yields " << wanted << ", got "
                                      << result << " [hook_c2]";
  return success();
}

/// Ops of arith that every path lowers without help.
static bool isAllowedArith(Operation *op) {
  return isa<arith::AddFOp, arith::AddIOp, arith::AndIOp, arith::BitcastOp, arith::CmpFOp, arith::CmpIOp,
             arith::ConstantOp, arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::ExtFOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::FPToSIOp, arith::FPToUIOp, arith::IndexCastOp, arith::IndexCastUIOp,
             arith::MaxNumFOp, arith::MaxSIOp, arith::MaxUIOp, arith::MaximumFOp, arith::MinNumFOp, arith::MinSIOp,
             arith::MinUIOp, arith::MinimumFOp, arith::MulFOp, arith::MulIOp, arith::NegFOp, arith::OrIOp,
             arith::RemSIOp, arith::RemUIOp, arith::SIToFPOp, arith::SelectOp, arith::ShLIOp, arith::ShRSIOp,
             arith::ShRUIOp, arith::SubFOp, arith::SubIOp, arith::TruncFOp, arith::TruncIOp, arith::UIToFPOp,
             arith::XOrIOp>(op);
}

static bool isAllowedMath(Operation *op) {
  return isa<math::AbsFOp, math::CeilOp, math::CosOp, math::Exp2Op, math::ExpOp, math::FloorOp, math::FmaOp,
             math::Log2Op, math::LogOp, math::RsqrtOp, math::SinOp, math::SqrtOp, math::TanhOp>(op);
}

/// What to write instead of an op that is not on the list.
static StringRef remedyFor(Operation *op) {
  if (isa<math::PowFOp>(op))
    return "; write math.exp2(y * math.log2(x))";
  if (isa<arith::RemFOp>(op))
    return "; write x - y * math.floor(x / y)";
  if (isa<math::CtPopOp, math::AbsIOp>(op) || isa<arith::ArithDialect>(op->getDialect()))
    return "; write it with the integer ops of the list";
  if (isa<memref::StoreOp>(op))
    return "; a hook has no side effects";
  if (isa<vector::VectorDialect>(op->getDialect()))
    return "; head vectors are worked on element by element";
  return "";
}

/// c4: the types that a value in a hook may have.
static bool isAllowedType(Type type) {
  if (auto vector = dyn_cast<VectorType>(type)) {
    if (vector.getRank() != 1 || vector.isScalable())
      return false;
    type = vector.getElementType();
  }
  return type.isF32() || type.isF16() || type.isBF16() || type.isIndex() || type.isSignlessInteger(1) ||
         type.isSignlessInteger(8) || type.isSignlessInteger(16) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64) || isa<CoordType>(type);
}

static LogicalResult verifyTypes(Operation *op) {
  SmallVector<Type> types(op->getResultTypes());
  if (!isa<memref::LoadOp>(op))
    types.append(op->operand_type_begin(), op->operand_type_end());
  for (Type type : types)
    if (!isAllowedType(type))
      return op->emitOpError() << "a hook works on f32, f16, bf16, i1, i8, i16, i32, i64, index and vectors of rank 1 "
                                  "of these, got "
                               << type << " [hook_c4]";
  // 16-bit floats are for memory: extend, compute, truncate.
  if (isa<arith::ExtFOp, arith::TruncFOp, memref::LoadOp, arith::BitcastOp, arith::SelectOp, arith::ConstantOp,
          vector::BroadcastOp, scf::IfOp, scf::YieldOp>(op))
    return success();
  for (Type type : types) {
    Type element = getElementTypeOrSelf(type);
    if (element.isF16() || element.isBF16())
      return op->emitOpError() << "a hook computes in f32; extend the " << element << " with arith.extf first "
                               << "[hook_c4]";
  }
  return success();
}

/// c5: coordinates that a hook of this kind has.
static LogicalResult verifyCoord(HookOp hook, Operation *op) {
  HookKind kind = hook.getKind();
  bool keySide = kind == HookKind::Key || kind == HookKind::Value;
  bool bothSides = kind == HookKind::Logits || kind == HookKind::Mask;
  if (keySide && isa<QPosOp, RowOp, QHeadOp>(op))
    return op->emitOpError() << "a " << stringifyHookKind(kind)
                             << " hook has no query: it runs once for all queries of a key; use kv_pos, kv_head, "
                                "request, kv_len or qo_len [hook_c5]";
  if (!keySide && !bothSides && isa<KVPosOp>(op))
    return op->emitOpError() << "a " << stringifyHookKind(kind)
                             << " hook has no key: it runs once for all keys of a query; use q_pos, row, q_head, "
                                "kv_head, request, kv_len or qo_len [hook_c5]";
  return success();
}

/// c3 to c7 for one op of a body.
static LogicalResult verifyBodyOp(HookOp hook, Operation *op) {
  if (isa<QPosOp, KVPosOp, RequestOp, QHeadOp, KVHeadOp, QoLenOp, KVLenOp, RowOp>(op))
    return verifyCoord(hook, op);
  if (isa<YieldOp, scf::YieldOp>(op))
    return success();
  if (isa<RopeOp>(op)) {
    if (!isVectorHook(hook.getKind()))
      return op->emitOpError() << "is for query, key, value and output hooks [hook_c6]";
    if (op->getParentOp() != hook)
      return op->emitOpError() << "may not be inside scf.if: choose the position instead [hook_c6]";
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (isa<VectorType>(constant.getType()) && (!dense || !dense.isSplat()))
      return op->emitOpError() << "a vector constant in a hook must be a splat; pass a table as a buffer parameter "
                                  "[hook_c7]";
  }
  if (isAllowedArith(op) || isAllowedMath(op) || isa<memref::LoadOp, scf::IfOp, vector::BroadcastOp>(op))
    return verifyTypes(op); // no op of the list makes a memref: loads are from parameters
  return op->emitOpError() << "is not on the closed list of ops that a hook may use" << remedyFor(op) << " [hook_c3]";
}

LogicalResult HookOp::verifyRegions() {
  if (failed(verifySignature(*this)))
    return failure();
  WalkResult walk = getBody().walk(
      [&](Operation *op) { return failed(verifyBodyOp(*this, op)) ? WalkResult::interrupt() : WalkResult::advance(); });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  if (!isHeadVector(getValue().getType()))
    return emitOpError() << "'value' must be a vector of rank 1 of f32, got " << getValue().getType() << " [rope_c1]";
  int64_t dim = cast<VectorType>(getValue().getType()).getDimSize(0);
  int64_t rotary = getRotary() ? getRotary() : dim;
  if (rotary < 2 || rotary > dim || rotary % 2 != 0)
    return emitOpError() << "'rotary' must be even, at least 2 and at most the head dim " << dim << ", got " << rotary
                         << " [rope_c2]";
  double theta = getTheta().convertToDouble(), factor = getFactor().convertToDouble();
  if (!std::isfinite(theta) || theta <= 0 || !std::isfinite(factor) || factor <= 0)
    return emitOpError() << "'theta' and 'factor' must be finite and above 0 [rope_c3]";
  double low = getLowFreq().convertToDouble(), high = getHighFreq().convertToDouble();
  bool none = low == 0 && high == 0 && getOriginal() == 0;
  bool all = std::isfinite(low) && std::isfinite(high) && low > 0 && high > low && getOriginal() > 0;
  if (!none && !all)
    return emitOpError() << "'low_freq', 'high_freq' and 'original' come together, above 0 and with low_freq below "
                            "high_freq [rope_c4]";
  return success();
}
