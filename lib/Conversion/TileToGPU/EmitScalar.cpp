//===- EmitScalar.cpp - arith, math and scalar loads ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Indices are kept as register + constant. A comparison of two of them is
// written `right - left > constant`: the difference is the same for all
// elements of a row, so a mask costs one setp per element and one subtraction
// per row (the back end does not find this form by itself).
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::tile;

static LLVM::FastmathFlags convertFlags(arith::FastMathFlags flags) {
  auto out = LLVM::FastmathFlags::none;
  auto add = [&](arith::FastMathFlags from, LLVM::FastmathFlags to) {
    if (bitEnumContainsAll(flags, from))
      out = out | to;
  };
  add(arith::FastMathFlags::nnan, LLVM::FastmathFlags::nnan);
  add(arith::FastMathFlags::ninf, LLVM::FastmathFlags::ninf);
  add(arith::FastMathFlags::nsz, LLVM::FastmathFlags::nsz);
  add(arith::FastMathFlags::arcp, LLVM::FastmathFlags::arcp);
  add(arith::FastMathFlags::contract, LLVM::FastmathFlags::contract);
  add(arith::FastMathFlags::afn, LLVM::FastmathFlags::afn);
  add(arith::FastMathFlags::reassoc, LLVM::FastmathFlags::reassoc);
  return out;
}
static LLVM::FastmathFlagsAttr flagsOf(Emitter &e, Operation *op) {
  auto flags = arith::FastMathFlags::none;
  if (auto iface = dyn_cast<arith::ArithFastMathInterface>(op))
    if (iface.getFastMathFlagsAttr())
      flags = iface.getFastMathFlagsAttr().getValue();
  return LLVM::FastmathFlagsAttr::get(e.context, convertFlags(flags));
}
static bool isApproximate(Operation *op) {
  auto iface = dyn_cast<arith::ArithFastMathInterface>(op);
  return iface && iface.getFastMathFlagsAttr() &&
         bitEnumContainsAll(iface.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::afn);
}

/// Binds the result, as an index when it has that type.
static LogicalResult bindResult(Emitter &e, Value result, Value v) {
  if (result.getType().isIndex())
    e.indices[result] = {v, 0};
  else
    e.scalars[result] = v;
  return success();
}

static LogicalResult emitConstant(Emitter &e, arith::ConstantOp op) {
  if (op.getType().isIndex()) {
    int64_t value = cast<IntegerAttr>(op.getValue()).getInt();
    e.indices[op] = e.isWide(op) && !llvm::isInt<32>(value) ? Index{e.c64(value), 0} : Index{Value(), value};
    return success();
  }
  if (!op.getType().isIntOrFloat())
    return op.emitError() << "has type " << op.getType() << ", expected a scalar";
  // Written where it is used first; repeated constants cost nothing in PTX.
  e.scalars[op] = LLVM::ConstantOp::create(e.b, e.loc, op.getType(), op.getValue());
  return success();
}

/// Both operands at one width: 64 bits when either is wide.
static std::pair<Value, Value> sameWidth(Emitter &e, Value a, Value c) {
  Index x = e.index(a), y = e.index(c);
  bool wide = (x.base && x.base.getType() == e.i64) || (y.base && y.base.getType() == e.i64);
  if (wide)
    return {e.widen(x), e.widen(y)};
  return {e.materialize(x), e.materialize(y)};
}

template <typename ArithOp, typename LLVMOp> static LogicalResult emitInteger(Emitter &e, ArithOp op) {
  Value a, c;
  if (op.getType().isIndex())
    std::tie(a, c) = sameWidth(e, op.getLhs(), op.getRhs());
  else
    a = e.scalar(op.getLhs()), c = e.scalar(op.getRhs());
  return bindResult(e, op, LLVMOp::create(e.b, e.loc, a.getType(), a, c));
}

/// Two comparisons `difference > constant` (or both <) as one, with the smaller (greater) difference: the differences
/// are the same for all elements of a row, so a mask within a bound costs one setp per element, not two.
static Value mergeComparisons(Emitter &e, Value lhs, Value rhs) {
  auto a = lhs.getDefiningOp<LLVM::ICmpOp>(), c = rhs.getDefiningOp<LLVM::ICmpOp>();
  if (!a || !c || a.getPredicate() != c.getPredicate() || a.getLhs().getType() != e.i32 ||
      c.getLhs().getType() != e.i32)
    return {};
  bool greater = a.getPredicate() == LLVM::ICmpPredicate::sgt;
  if (!greater && a.getPredicate() != LLVM::ICmpPredicate::slt)
    return {};
  llvm::APInt first, second;
  if (!matchPattern(a.getRhs(), m_ConstantInt(&first)) || !matchPattern(c.getRhs(), m_ConstantInt(&second)))
    return {};
  bool overflow = false;
  llvm::APInt shift = first.ssub_ov(second, overflow);
  if (overflow)
    return {};
  Value other = c.getLhs();
  if (!shift.isZero())
    other = e.addSaturated(other, e.c32(shift.getSExtValue()));
  Value both = e.select(e.compare(greater ? LLVM::ICmpPredicate::slt : LLVM::ICmpPredicate::sgt, a.getLhs(), other),
                        a.getLhs(), other);
  return e.compare(a.getPredicate(), both, a.getRhs());
}

/// `term` and `terms`, where a comparison of `terms` takes `term` in.
static Value mergeInto(Emitter &e, Value term, Value terms) {
  if (Value merged = mergeComparisons(e, term, terms))
    return merged;
  auto both = terms.getDefiningOp<LLVM::AndOp>();
  if (!both)
    return {};
  if (Value merged = mergeInto(e, term, both.getLhs()))
    return e.bitAnd(merged, both.getRhs());
  if (Value merged = mergeInto(e, term, both.getRhs()))
    return e.bitAnd(both.getLhs(), merged);
  return {};
}

static LogicalResult emitAndI(Emitter &e, arith::AndIOp op) {
  if (op.getType().isInteger(1)) {
    Value lhs = e.scalar(op.getLhs()), rhs = e.scalar(op.getRhs());
    if (Value merged = mergeInto(e, lhs, rhs))
      return bindResult(e, op, merged);
    if (Value merged = mergeInto(e, rhs, lhs))
      return bindResult(e, op, merged);
  }
  return emitInteger<arith::AndIOp, LLVM::AndOp>(e, op);
}

static LogicalResult emitAddI(Emitter &e, arith::AddIOp op) {
  if (op.getType().isIndex()) {
    e.indices[op] = e.addIndex(e.index(op.getLhs()), e.index(op.getRhs()));
    return success();
  }
  e.scalars[op] = LLVM::AddOp::create(e.b, e.loc, e.scalar(op.getLhs()), e.scalar(op.getRhs()));
  return success();
}
static LogicalResult emitSubI(Emitter &e, arith::SubIOp op) {
  if (!op.getType().isIndex()) {
    e.scalars[op] = LLVM::SubOp::create(e.b, e.loc, e.scalar(op.getLhs()), e.scalar(op.getRhs()));
    return success();
  }
  Index x = e.index(op.getLhs()), y = e.index(op.getRhs());
  if (!y.base) {
    e.indices[op] = {x.base, x.offset - y.offset};
  } else if (x.base == y.base) {
    e.indices[op] = {Value(), x.offset - y.offset};
  } else {
    bool wide = (x.base && x.base.getType() == e.i64) || y.base.getType() == e.i64;
    Value a = wide ? e.widen({x.base, 0}) : e.materialize({x.base, 0});
    Value c = wide ? e.widen({y.base, 0}) : y.base;
    e.indices[op] = {e.sub(a, c), x.offset - y.offset};
  }
  return success();
}
static LogicalResult emitMulI(Emitter &e, arith::MulIOp op) {
  if (!op.getType().isIndex()) {
    e.scalars[op] = LLVM::MulOp::create(e.b, e.loc, e.scalar(op.getLhs()), e.scalar(op.getRhs()));
    return success();
  }
  Index x = e.index(op.getLhs()), y = e.index(op.getRhs());
  if (!x.base)
    std::swap(x, y);
  if (!y.base) {
    Value scaled = x.base ? e.mul(x.base, x.base.getType() == e.i64 ? e.c64(y.offset) : e.c32(y.offset)) : Value();
    e.indices[op] = {y.offset == 0 ? Value() : scaled, x.offset * y.offset};
    return success();
  }
  auto [a, c] = e.isWide(op) ? std::pair<Value, Value>{e.widen(x), e.widen(y)} : sameWidth(e, op.getLhs(), op.getRhs());
  e.indices[op] = {e.mul(a, c), 0};
  return success();
}

/// Division of indices by a constant folds when both are constants; rounding matches the op.
template <typename ArithOp, typename LLVMOp> static LogicalResult emitDivide(Emitter &e, ArithOp op) {
  if (op.getType().isIndex()) {
    Index x = e.index(op.getLhs()), y = e.index(op.getRhs());
    if (x.isConstant() && y.isConstant() && y.offset > 0 && x.offset >= 0) {
      bool rest = isa<arith::RemUIOp, arith::RemSIOp>(op.getOperation());
      e.indices[op] = {Value(), rest ? x.offset % y.offset : x.offset / y.offset};
      return success();
    }
    if (y.isConstant() && y.offset == 1) {
      bool rest = isa<arith::RemUIOp, arith::RemSIOp>(op.getOperation());
      e.indices[op] = rest ? Index() : x;
      return success();
    }
    // A column that no lane takes over the end of its block.
    auto most = x.base ? e.laneMax.find(x.base) : e.laneMax.end();
    if (most != e.laneMax.end() && y.isConstant() && y.offset > 0 && x.offset >= 0 &&
        x.offset % y.offset + most->second < y.offset) {
      bool rest = isa<arith::RemUIOp, arith::RemSIOp>(op.getOperation());
      e.indices[op] = rest ? Index{x.base, x.offset % y.offset} : Index{Value(), x.offset / y.offset};
      return success();
    }
  }
  return emitInteger<ArithOp, LLVMOp>(e, op);
}

/// Floor and ceiling division, the divisor's sign known positive or not: written out.
static LogicalResult emitFloorDiv(Emitter &e, arith::FloorDivSIOp op) {
  auto [a, c] = op.getType().isIndex() ? sameWidth(e, op.getLhs(), op.getRhs())
                                       : std::pair<Value, Value>{e.scalar(op.getLhs()), e.scalar(op.getRhs())};
  Type type = a.getType();
  Value zero = LLVM::ConstantOp::create(e.b, e.loc, type, IntegerAttr::get(type, 0));
  Value one = LLVM::ConstantOp::create(e.b, e.loc, type, IntegerAttr::get(type, 1));
  Value q = LLVM::SDivOp::create(e.b, e.loc, type, a, c);
  Value r = LLVM::SubOp::create(e.b, e.loc, a, LLVM::MulOp::create(e.b, e.loc, q, c));
  Value inexact = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, r, zero);
  Value opposite =
      LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::slt, LLVM::XOrOp::create(e.b, e.loc, a, c), zero);
  Value lower = LLVM::AndOp::create(e.b, e.loc, inexact, opposite);
  return bindResult(e, op, e.select(lower, LLVM::SubOp::create(e.b, e.loc, q, one), q));
}
static LogicalResult emitCeilDiv(Emitter &e, arith::CeilDivSIOp op) {
  auto [a, c] = op.getType().isIndex() ? sameWidth(e, op.getLhs(), op.getRhs())
                                       : std::pair<Value, Value>{e.scalar(op.getLhs()), e.scalar(op.getRhs())};
  Type type = a.getType();
  Value zero = LLVM::ConstantOp::create(e.b, e.loc, type, IntegerAttr::get(type, 0));
  Value one = LLVM::ConstantOp::create(e.b, e.loc, type, IntegerAttr::get(type, 1));
  Value q = LLVM::SDivOp::create(e.b, e.loc, type, a, c);
  Value r = LLVM::SubOp::create(e.b, e.loc, a, LLVM::MulOp::create(e.b, e.loc, q, c));
  Value inexact = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, r, zero);
  Value same = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::sge, LLVM::XOrOp::create(e.b, e.loc, a, c), zero);
  Value higher = LLVM::AndOp::create(e.b, e.loc, inexact, same);
  return bindResult(e, op, e.select(higher, LLVM::AddOp::create(e.b, e.loc, q, one), q));
}

static LogicalResult emitCmpI(Emitter &e, arith::CmpIOp op) {
  auto predicate = static_cast<LLVM::ICmpPredicate>(op.getPredicate());
  if (!op.getLhs().getType().isIndex()) {
    e.scalars[op] = LLVM::ICmpOp::create(e.b, e.loc, predicate, e.scalar(op.getLhs()), e.scalar(op.getRhs()));
    return success();
  }
  Index x = e.index(op.getLhs()), y = e.index(op.getRhs());
  using P = arith::CmpIPredicate;
  P p = op.getPredicate();
  if (x.isConstant() && y.isConstant()) {
    bool holds = arith::applyCmpPredicate(p, llvm::APInt(64, x.offset, true), llvm::APInt(64, y.offset, true));
    e.scalars[op] = LLVM::ConstantOp::create(e.b, e.loc, e.i1, e.b.getBoolAttr(holds));
    return success();
  }
  bool isSigned = p == P::slt || p == P::sle || p == P::sgt || p == P::sge;
  if (isSigned && x.base && y.base && x.base.getType() == y.base.getType() && x.base != y.base) {
    // x + xc < y + yc  <=>  y - x > xc - yc
    Value difference = e.sub(y.base, x.base);
    int64_t c = x.offset - y.offset;
    LLVM::ICmpPredicate turned = p == P::slt || p == P::sle ? LLVM::ICmpPredicate::sgt : LLVM::ICmpPredicate::slt;
    if (p == P::sle)
      c -= 1;
    if (p == P::sge)
      c += 1;
    e.scalars[op] = e.compare(turned, difference, x.base.getType() == e.i64 ? e.c64(c) : e.c32(c));
    return success();
  }
  if (isSigned && x.base && !y.base && x.base.getType() == e.i32) {
    e.scalars[op] = e.compare(predicate, x.base, e.c32(y.offset - x.offset));
    return success();
  }
  if (isSigned && !x.base && y.base && y.base.getType() == e.i32) {
    e.scalars[op] = e.compare(predicate, e.c32(x.offset - y.offset), y.base);
    return success();
  }
  auto [a, c] = sameWidth(e, op.getLhs(), op.getRhs());
  e.scalars[op] = e.compare(predicate, a, c);
  return success();
}

static LogicalResult emitSelect(Emitter &e, arith::SelectOp op) {
  Value a, c;
  llvm::APInt known;
  if (op.getType().isIndex() && matchPattern(e.scalar(op.getCondition()), m_ConstantInt(&known))) {
    Index chosen = e.index(known.isZero() ? op.getFalseValue() : op.getTrueValue());
    e.indices[op] = e.isWide(op) ? Index{e.widen(chosen), 0} : chosen;
    return success();
  }
  if (op.getType().isIndex())
    std::tie(a, c) = sameWidth(e, op.getTrueValue(), op.getFalseValue());
  else if (op.getType().isIntOrFloat())
    a = e.scalar(op.getTrueValue()), c = e.scalar(op.getFalseValue());
  else
    return op.emitError() << "selects values of type " << op.getType() << ", expected scalars; use scf.if";
  return bindResult(e, op, e.select(e.scalar(op.getCondition()), a, c));
}

static LogicalResult emitIndexCast(Emitter &e, Operation *op, bool isSigned) {
  Value in = op->getOperand(0), out = op->getResult(0);
  if (in.getType().isIndex()) {
    Type type = out.getType();
    if (type.isInteger(64))
      e.scalars[out] = e.widen(e.index(in));
    else if (type.isInteger(32))
      e.scalars[out] = e.narrow(e.index(in));
    else
      e.scalars[out] = LLVM::TruncOp::create(e.b, e.loc, type, e.narrow(e.index(in)));
    return success();
  }
  Value v = e.scalar(in);
  unsigned bits = in.getType().getIntOrFloatBitWidth();
  bool wide = e.isWide(out);
  Type type = wide ? e.i64 : e.i32;
  unsigned want = wide ? 64 : 32;
  if (bits > want)
    v = LLVM::TruncOp::create(e.b, e.loc, type, v);
  else if (bits < want)
    v = isSigned ? Value(LLVM::SExtOp::create(e.b, e.loc, type, v)) : Value(LLVM::ZExtOp::create(e.b, e.loc, type, v));
  e.indices[out] = {v, 0};
  return success();
}

template <typename ArithOp, typename LLVMOp> static LogicalResult emitFloat(Emitter &e, ArithOp op) {
  e.scalars[op->getResult(0)] = LLVMOp::create(e.b, e.loc, op->getResult(0).getType(), e.scalar(op->getOperand(0)),
                                               e.scalar(op->getOperand(1)), flagsOf(e, op));
  return success();
}
template <typename MathOp, typename LLVMOp> static LogicalResult emitUnary(Emitter &e, MathOp op) {
  e.scalars[op->getResult(0)] =
      LLVMOp::create(e.b, e.loc, op->getResult(0).getType(), e.scalar(op->getOperand(0)), flagsOf(e, op));
  return success();
}
template <typename ArithOp, typename LLVMOp> static LogicalResult emitCast(Emitter &e, ArithOp op) {
  Value v = e.scalar(op->getOperand(0));
  e.scalars[op->getResult(0)] = LLVMOp::create(e.b, e.loc, op->getResult(0).getType(), v);
  return success();
}

/// A position as a float: that of its register, plus the constant, so that the elements of a row share one conversion
/// (which the units of the exponentials make). Exact below 2^24, like the conversion.
static LogicalResult emitSIToFP(Emitter &e, arith::SIToFPOp op) {
  auto cast = op.getIn().getDefiningOp<arith::IndexCastOp>();
  if (cast && cast.getIn().getType().isIndex() && op.getIn().getType().isInteger(32) && op.getType().isF32()) {
    Index position = e.index(cast.getIn());
    if (position.base && position.base.getType() == e.i32 && position.offset != 0 &&
        std::abs(position.offset) < (1 << 16)) {
      Value whole = LLVM::SIToFPOp::create(e.b, e.loc, e.f32, position.base);
      Value shift = LLVM::ConstantOp::create(e.b, e.loc, e.f32, e.b.getF32FloatAttr(position.offset));
      e.scalars[op] = LLVM::FAddOp::create(e.b, e.loc, whole, shift);
      return success();
    }
  }
  return emitCast<arith::SIToFPOp, LLVM::SIToFPOp>(e, op);
}

static LogicalResult emitExtF(Emitter &e, arith::ExtFOp op) {
  Value v = e.scalar(op.getIn());
  Type type = op.getType();
  if (v.getType() != type && type.isBF16()) { // from 8 bits, held as f16
    v = LLVM::FPExtOp::create(e.b, e.loc, e.f32, v);
    v = LLVM::FPTruncOp::create(e.b, e.loc, type, v);
  } else if (v.getType() != type) {
    v = LLVM::FPExtOp::create(e.b, e.loc, type, v);
  }
  e.scalars[op] = v;
  return success();
}
static LogicalResult emitTruncF(Emitter &e, arith::TruncFOp op) {
  // Tiles round pairs at once (see EmitElementwise.cpp); this one is then dead.
  e.scalars[op] = LLVM::FPTruncOp::create(e.b, e.loc, op.getType(), e.scalar(op.getIn()));
  return success();
}
static LogicalResult emitCmpF(Emitter &e, arith::CmpFOp op) {
  static const LLVM::FCmpPredicate table[] = {
      LLVM::FCmpPredicate::_false, LLVM::FCmpPredicate::oeq, LLVM::FCmpPredicate::ogt, LLVM::FCmpPredicate::oge,
      LLVM::FCmpPredicate::olt,    LLVM::FCmpPredicate::ole, LLVM::FCmpPredicate::one, LLVM::FCmpPredicate::ord,
      LLVM::FCmpPredicate::ueq,    LLVM::FCmpPredicate::ugt, LLVM::FCmpPredicate::uge, LLVM::FCmpPredicate::ult,
      LLVM::FCmpPredicate::ule,    LLVM::FCmpPredicate::une, LLVM::FCmpPredicate::uno, LLVM::FCmpPredicate::_true};
  e.scalars[op] = LLVM::FCmpOp::create(e.b, e.loc, table[static_cast<int64_t>(op.getPredicate())],
                                       e.scalar(op.getLhs()), e.scalar(op.getRhs()));
  return success();
}
static LogicalResult emitFma(Emitter &e, math::FmaOp op) {
  e.scalars[op] = LLVM::FMAOp::create(e.b, e.loc, op.getType(), e.scalar(op.getA()), e.scalar(op.getB()),
                                      e.scalar(op.getC()), flagsOf(e, op));
  return success();
}

/// Functions that the hardware approximates, f32 only.
static LogicalResult emitApproximate(Emitter &e, Operation *op, StringRef name, StringRef exact) {
  if (!op->getResult(0).getType().isF32())
    return op->emitError() << "has type " << op->getResult(0).getType() << ", expected f32 (legalise hooks first)";
  if (!isApproximate(op) && exact.empty())
    return op->emitError() << "'" << op->getName() << "' without fastmath<afn> has no code here: legalise math first";
  e.scalars[op->getResult(0)] = e.ptx((isApproximate(op) ? name : exact).str() + " $0, $1;", "=f,f",
                                      e.scalar(op->getOperand(0)), e.f32, /*effects=*/false)[0];
  return success();
}
/// Within 2 ulp (docs/Spec.md): the correctly rounded form calls a function for rare operands, which cuts the block of
/// logits at each quotient and takes ptxas two thirds of its time. With arcp or afn, and of 1, by the reciprocal.
static LogicalResult emitDivF(Emitter &e, arith::DivFOp op) {
  if (!op.getType().isF32())
    return emitFloat<arith::DivFOp, LLVM::FDivOp>(e, op);
  APFloat numerator(0.0f);
  bool isInverse = matchPattern(op.getLhs(), m_ConstantFloat(&numerator)) && numerator.isExactlyValue(1.0);
  Value divisor = e.scalar(op.getRhs());
  if (isInverse)
    e.scalars[op] = e.reciprocal(divisor, isApproximate(op));
  else if (isApproximate(op) || bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::arcp))
    e.scalars[op] = LLVM::FMulOp::create(e.b, e.loc, e.scalar(op.getLhs()), e.reciprocal(divisor, isApproximate(op)));
  else
    e.scalars[op] = e.intrinsic("llvm.nvvm.div.full", {e.scalar(op.getLhs()), divisor}, e.f32);
  return success();
}
static LogicalResult emitExp2(Emitter &e, math::Exp2Op op) {
  if (!op.getType().isF32())
    return op.emitError() << "has type " << op.getType() << ", expected f32 (legalise hooks first)";
  // LLVM has no name left for the intrinsic that keeps subnormals.
  Value x = e.scalar(op.getOperand());
  e.scalars[op] = isApproximate(op) ? e.intrinsic("llvm.nvvm.ex2.approx.ftz.f", x, e.f32)
                                    : e.ptx("ex2.approx.f32 $0, $1;", "=f,f", x, e.f32, /*effects=*/false)[0];
  return success();
}
static LogicalResult emitLog2(Emitter &e, math::Log2Op op) {
  return emitApproximate(e, op, "lg2.approx.ftz.f32", "lg2.approx.f32");
}
static LogicalResult emitTanh(Emitter &e, math::TanhOp op) { return emitApproximate(e, op, "tanh.approx.f32", ""); }
static LogicalResult emitSin(Emitter &e, math::SinOp op) { return emitApproximate(e, op, "sin.approx.ftz.f32", ""); }
static LogicalResult emitCos(Emitter &e, math::CosOp op) { return emitApproximate(e, op, "cos.approx.ftz.f32", ""); }
static LogicalResult emitRsqrt(Emitter &e, math::RsqrtOp op) {
  return emitApproximate(e, op, "rsqrt.approx.ftz.f32", "rsqrt.approx.f32");
}

template <typename OpT> static LogicalResult emitMinMaxIndex(Emitter &e, OpT op, LLVM::ICmpPredicate predicate) {
  Value a, c;
  if (op.getType().isIndex())
    std::tie(a, c) = sameWidth(e, op.getLhs(), op.getRhs());
  else
    a = e.scalar(op.getLhs()), c = e.scalar(op.getRhs());
  return bindResult(e, op, e.select(e.compare(predicate, a, c), a, c));
}

/// A load that is made only where `guard` holds, and gives 0 elsewhere, without a branch.
static Value loadWhere(Emitter &e, Value guard, Value pointer, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  // PTX has no registers of 8 bits for its loads: those of 16 take them.
  std::string size = std::to_string(bits), move = std::to_string(std::max(16u, bits));
  std::string code =
      "{ .reg .pred p; setp.ne.b32 p, $2, 0; @p ld.global.nc.u" + size + " $0, [$1]; @!p mov.b" + move + " $0, 0; }";
  Type whole = bits == 64 ? Type(e.i64) : bits == 32 ? Type(e.i32) : Type(e.b.getIntegerType(16));
  std::string constraints = std::string(bits == 64 ? "=l" : bits == 32 ? "=r" : "=h") + ",l,r";
  Value flag = LLVM::ZExtOp::create(e.b, e.loc, e.i32, guard);
  Value v = e.ptx(code, constraints, {pointer, flag}, whole, /*effects=*/false)[0];
  if (bits == 8)
    v = LLVM::TruncOp::create(e.b, e.loc, e.i8, v);
  return v.getType() == type ? v : LLVM::BitcastOp::create(e.b, e.loc, type, v).getResult();
}

/// One element of a kernel argument; indices past the end are the author's affair (hooks see clamped positions).
static LogicalResult emitLoad(Emitter &e, memref::LoadOp op) {
  Value memref = op.getMemRef();
  auto arg = dyn_cast<BlockArgument>(memref);
  if (!arg || arg.getOwner() != &e.kernel.getBody().front())
    return op.emitError() << "reads a buffer that is not an argument of the kernel";
  auto type = cast<MemRefType>(memref.getType());
  if (!type.getElementType().isIntOrFloat() && !type.getElementType().isIndex())
    return op.emitError() << "reads elements of type " << type.getElementType();
  Value offset;
  int64_t constant = 0;
  for (auto [dim, position] : llvm::enumerate(op.getIndices())) {
    Index i = e.index(position);
    Value stride = e.stride(memref, dim);
    Value part = e.mul(e.widen({i.base, 0}), stride);
    if (i.base)
      offset = offset ? e.add(offset, part) : part;
    Value shift = e.mul(stride, e.c64(i.offset));
    if (i.offset != 0)
      offset = offset ? e.add(offset, shift) : shift;
  }
  (void)constant;
  Type element = type.getElementType();
  bool bit = element.isInteger(1);
  Type stored = element.isIndex() ? e.i64 : bit ? e.i8 : element;
  Value pointer = e.pointer(memref);
  if (offset)
    pointer = LLVM::GEPOp::create(e.b, e.loc, e.global, stored, pointer, ArrayRef<LLVM::GEPArg>{offset});
  Value v;
  if (e.guard) {
    v = loadWhere(e, e.guard, pointer, stored);
  } else {
    auto load = LLVM::LoadOp::create(e.b, e.loc, stored, pointer, std::max(1u, stored.getIntOrFloatBitWidth() / 8));
    load.setInvariant(true);
    v = load;
  }
  if (bit)
    v = LLVM::TruncOp::create(e.b, e.loc, e.i1, v);
  return bindResult(e, op, v);
}

void tile::populateScalar(Emitter &e) {
  e.on<arith::ConstantOp>(emitConstant);
  e.on<arith::AddIOp>(emitAddI);
  e.on<arith::SubIOp>(emitSubI);
  e.on<arith::MulIOp>(emitMulI);
  e.on<arith::DivUIOp>(emitDivide<arith::DivUIOp, LLVM::UDivOp>);
  e.on<arith::DivSIOp>(emitDivide<arith::DivSIOp, LLVM::SDivOp>);
  e.on<arith::RemUIOp>(emitDivide<arith::RemUIOp, LLVM::URemOp>);
  e.on<arith::RemSIOp>(emitDivide<arith::RemSIOp, LLVM::SRemOp>);
  e.on<arith::FloorDivSIOp>(emitFloorDiv);
  e.on<arith::CeilDivSIOp>(emitCeilDiv);
  e.on<arith::AndIOp>(emitAndI);
  e.on<arith::OrIOp>(emitInteger<arith::OrIOp, LLVM::OrOp>);
  e.on<arith::XOrIOp>(emitInteger<arith::XOrIOp, LLVM::XOrOp>);
  e.on<arith::ShLIOp>(emitInteger<arith::ShLIOp, LLVM::ShlOp>);
  e.on<arith::ShRUIOp>(emitInteger<arith::ShRUIOp, LLVM::LShrOp>);
  e.on<arith::ShRSIOp>(emitInteger<arith::ShRSIOp, LLVM::AShrOp>);
  e.on<arith::MinSIOp>([](Emitter &e, arith::MinSIOp op) { return emitMinMaxIndex(e, op, LLVM::ICmpPredicate::slt); });
  e.on<arith::MaxSIOp>([](Emitter &e, arith::MaxSIOp op) { return emitMinMaxIndex(e, op, LLVM::ICmpPredicate::sgt); });
  e.on<arith::MinUIOp>([](Emitter &e, arith::MinUIOp op) { return emitMinMaxIndex(e, op, LLVM::ICmpPredicate::ult); });
  e.on<arith::MaxUIOp>([](Emitter &e, arith::MaxUIOp op) { return emitMinMaxIndex(e, op, LLVM::ICmpPredicate::ugt); });
  e.on<arith::CmpIOp>(emitCmpI);
  e.on<arith::SelectOp>(emitSelect);
  e.on<arith::IndexCastOp>([](Emitter &e, arith::IndexCastOp op) { return emitIndexCast(e, op, true); });
  e.on<arith::IndexCastUIOp>([](Emitter &e, arith::IndexCastUIOp op) { return emitIndexCast(e, op, false); });
  e.on<arith::ExtSIOp>(emitCast<arith::ExtSIOp, LLVM::SExtOp>);
  e.on<arith::ExtUIOp>(emitCast<arith::ExtUIOp, LLVM::ZExtOp>);
  e.on<arith::TruncIOp>(emitCast<arith::TruncIOp, LLVM::TruncOp>);
  e.on<arith::SIToFPOp>(emitSIToFP);
  e.on<arith::UIToFPOp>(emitCast<arith::UIToFPOp, LLVM::UIToFPOp>);
  e.on<arith::FPToSIOp>(emitCast<arith::FPToSIOp, LLVM::FPToSIOp>);
  e.on<arith::FPToUIOp>(emitCast<arith::FPToUIOp, LLVM::FPToUIOp>);
  e.on<arith::BitcastOp>(emitCast<arith::BitcastOp, LLVM::BitcastOp>);
  e.on<arith::ExtFOp>(emitExtF);
  e.on<arith::TruncFOp>(emitTruncF);
  e.on<arith::AddFOp>(emitFloat<arith::AddFOp, LLVM::FAddOp>);
  e.on<arith::SubFOp>(emitFloat<arith::SubFOp, LLVM::FSubOp>);
  e.on<arith::MulFOp>(emitFloat<arith::MulFOp, LLVM::FMulOp>);
  e.on<arith::DivFOp>(emitDivF);
  e.on<arith::MaximumFOp>(emitFloat<arith::MaximumFOp, LLVM::MaximumOp>);
  e.on<arith::MinimumFOp>(emitFloat<arith::MinimumFOp, LLVM::MinimumOp>);
  e.on<arith::MaxNumFOp>(emitFloat<arith::MaxNumFOp, LLVM::MaxNumOp>);
  e.on<arith::MinNumFOp>(emitFloat<arith::MinNumFOp, LLVM::MinNumOp>);
  e.on<arith::NegFOp>(emitUnary<arith::NegFOp, LLVM::FNegOp>);
  e.on<arith::CmpFOp>(emitCmpF);
  e.on<math::FmaOp>(emitFma);
  e.on<math::AbsFOp>(emitUnary<math::AbsFOp, LLVM::FAbsOp>);
  e.on<math::SqrtOp>(emitUnary<math::SqrtOp, LLVM::SqrtOp>);
  e.on<math::FloorOp>(emitUnary<math::FloorOp, LLVM::FFloorOp>);
  e.on<math::CeilOp>(emitUnary<math::CeilOp, LLVM::FCeilOp>);
  e.on<math::TruncOp>(emitUnary<math::TruncOp, LLVM::FTruncOp>);
  e.on<math::RoundEvenOp>(emitUnary<math::RoundEvenOp, LLVM::RoundEvenOp>);
  e.on<math::Exp2Op>(emitExp2);
  e.on<math::Log2Op>(emitLog2);
  e.on<math::TanhOp>(emitTanh);
  e.on<math::SinOp>(emitSin);
  e.on<math::CosOp>(emitCos);
  e.on<math::RsqrtOp>(emitRsqrt);
  e.on<memref::LoadOp>(emitLoad);
}
