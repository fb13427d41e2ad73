//===- LegalizeMath.cpp - the closed list of math functions, made legal ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accurate forms and host forms are short polynomials (minimax fits made for
// this file) around exact range reductions, written so that a later compiler
// may contract a product and a sum without harm. Every form keeps the special
// values of its function: NaN, infinities, signed zero.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace mlir::attn;

static bool hasAfn(Operation *op) {
  auto flags = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!flags || !flags.getFastMathFlagsAttr())
    return false;
  return arith::bitEnumContainsAny(flags.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::afn);
}

static bool isFastOnGpu(Operation *op) {
  return isa<math::Exp2Op, math::Log2Op, math::TanhOp, math::SinOp, math::CosOp, math::RsqrtOp>(op);
}

bool mlir::attn::isLegalMath(Operation *op, MathTarget target) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) || isa<math::SqrtOp, math::FmaOp, math::AbsFOp>(op))
    return true;
  return target == MathTarget::Gpu && isFastOnGpu(op) && hasAfn(op);
}

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
/// Adding 1.5 * 2^23 to |x| <= 2^22 rounds x to an integer and leaves it in the low bits.
constexpr float roundMagic = 12582912.0f;
constexpr float log2e = 1.44269502f, log2eLow = 1.92596299e-8f;
constexpr float ln2 = 0.693147182f, ln2Low = -1.90465421e-9f;
constexpr uint32_t signBit = 0x80000000u;

/// Writes expansions for one type, f32 or a vector of it.
class Expander {
public:
  Expander(OpBuilder &b, Location loc, Type type, MathTarget target)
      : b(b), loc(loc), type(type), target(target), intType(withElement(b.getI32Type())) {}

  Value exp2(Value x, bool fast);
  Value exp(Value x, bool fast);
  Value log2(Value x, bool fast);
  Value log(Value x, bool fast);
  Value tanh(Value x, bool fast, bool absolute);
  /// sin, or cos: the same a quarter turn on.
  Value sine(Value x, bool fast, bool cosine);
  Value rsqrt(Value x);
  Value floor(Value x);
  Value ceil(Value x) { return neg(floor(neg(x))); }

private:
  struct Logarithm {
    Value exponent;  // a whole number, as a float
    Value high, low; // log(1 + u), unevaluated sum
    Value u;
  };
  Logarithm logarithm(Value x, bool fast);
  /// Puts the special values of a logarithm in.
  Value specialLog(Value x, Value result);

  Type withElement(Type element) const {
    if (auto vector = dyn_cast<VectorType>(type))
      return VectorType::get(vector.getShape(), element, vector.getScalableDims());
    return element;
  }
  Value constant(Type t, TypedAttr attr) {
    if (auto vector = dyn_cast<VectorType>(t))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, Attribute(attr)));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value c(float x) { return constant(type, b.getF32FloatAttr(x)); }
  Value ci(uint32_t x) { return constant(intType, b.getI32IntegerAttr(int32_t(x))); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
  Value abs(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value bits(Value x) { return arith::BitcastOp::create(b, loc, intType, x); }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, loc, type, x); }
  Value addi(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value subi(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value andi(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value ori(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value shl(Value x, uint32_t n) { return arith::ShLIOp::create(b, loc, x, ci(n)); }
  Value compare(arith::CmpFPredicate p, Value x, Value y) { return arith::CmpFOp::create(b, loc, p, x, y); }
  Value select(Value s, Value x, Value y) { return arith::SelectOp::create(b, loc, s, x, y); }
  /// NaN stays; one min or max instruction on most machines.
  Value atMost(Value x, float limit) { return select(compare(arith::CmpFPredicate::OGT, x, c(limit)), c(limit), x); }
  Value atLeast(Value x, float limit) { return select(compare(arith::CmpFPredicate::OLT, x, c(limit)), c(limit), x); }
  Value withSignOf(Value magnitude, Value x) { return fromBits(ori(bits(magnitude), andi(bits(x), ci(signBit)))); }
  /// c[0] + c[1] x + ...
  Value polynomial(Value x, ArrayRef<float> coefficients) {
    Value result = c(coefficients.back());
    for (float coefficient : llvm::reverse(coefficients.drop_back()))
      result = fma(result, x, c(coefficient));
    return result;
  }
  arith::FastMathFlagsAttr afn() { return arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::afn); }
  Value divide(Value x, Value y, bool fast) {
    if (fast)
      return arith::DivFOp::create(b, loc, x, y, afn());
    return arith::DivFOp::create(b, loc, x, y);
  }

  OpBuilder &b;
  Location loc;
  Type type;
  MathTarget target;
  Type intType;
};

} // namespace

Value Expander::exp2(Value x, bool fast) {
  // The hardware's is good to 2 units in the last place.
  if (target == MathTarget::Gpu)
    return math::Exp2Op::create(b, loc, x, afn());
  // x = n + f; at the ends n makes the exponent of 0 and of infinity.
  Value clamped = atLeast(atMost(x, 128.0f), -127.0f);
  Value u = add(clamped, c(roundMagic));
  Value f = sub(clamped, sub(u, c(roundMagic)));
  Value p = fast ? polynomial(f, {0.693147004f, 0.240222424f, 0.0555073358f, 0.00967151299f, 0.00132647273f})
                 : polynomial(f, {0.693147182f, 0.240226507f, 0.0555041023f, 0.00961803831f, 0.00133339351f,
                                  0.000154667563f, 1.51961567e-05f});
  p = fma(p, f, c(1.0f));
  Value result = fromBits(addi(bits(p), shl(bits(u), 23)));
  // The payload of a NaN would have been taken for an exponent.
  return select(compare(arith::CmpFPredicate::UNO, x, x), x, result);
}

Value Expander::exp(Value x, bool fast) {
  if (fast)
    return exp2(mul(x, c(log2e)), true);
  // 2^(hi + lo), lo being what the product lost.
  Value finite = atLeast(x, -104.0f);
  Value hi = mul(finite, c(log2e));
  Value lo = fma(finite, c(log2eLow), fma(finite, c(log2e), neg(hi)));
  Value e = exp2(hi, false);
  Value exact = fma(e, mul(lo, c(ln2)), e);
  return select(compare(arith::CmpFPredicate::OGE, hi, c(128.0f)), e, exact);
}

Expander::Logarithm Expander::logarithm(Value x, bool fast) {
  Value tiny = compare(arith::CmpFPredicate::OLT, x, c(1.17549435e-38f));
  Value normal = select(tiny, mul(x, c(8388608.0f)), x);
  Value pattern = bits(normal);
  // m in [sqrt(1/2), sqrt(2))
  Value e = arith::ShRSIOp::create(b, loc, subi(pattern, ci(0x3f3504f3)), ci(23));
  Value m = fromBits(subi(pattern, shl(e, 23)));
  Value exponent = arith::SIToFPOp::create(b, loc, type, e);
  Logarithm result;
  result.exponent = add(exponent, select(tiny, c(-23.0f), c(0.0f)));
  Value u = result.u = sub(m, c(1.0f));
  Value p = fast ? polynomial(u, {0.333339095f, -0.250013381f, 0.199630633f, -0.16577585f, 0.149147689f, -0.142674863f,
                                  0.0870043486f})
                 : polynomial(u, {0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195523f, -0.124055892f,
                                  0.11888162f, -0.116756521f, 0.0674664006f});
  // log(1 + u) = u - u^2/2 + u^3 p
  Value square = mul(u, u);
  Value tail = mul(square, fma(u, p, c(-0.5f)));
  result.high = add(u, tail);
  result.low = sub(tail, sub(result.high, u));
  return result;
}

Value Expander::specialLog(Value x, Value result) {
  Value ordinary =
      andi(compare(arith::CmpFPredicate::OGT, x, c(0.0f)), compare(arith::CmpFPredicate::OLT, x, c(infinity)));
  Value special =
      select(compare(arith::CmpFPredicate::OEQ, x, c(0.0f)), c(-infinity), c(std::numeric_limits<float>::quiet_NaN()));
  special = select(compare(arith::CmpFPredicate::OEQ, x, c(infinity)), c(infinity), special);
  return select(ordinary, result, special);
}

Value Expander::log2(Value x, bool fast) {
  if (fast && target == MathTarget::Gpu)
    return math::Log2Op::create(b, loc, x, afn());
  Logarithm l = logarithm(x, fast);
  Value low = fma(l.low, c(log2e), mul(l.high, c(log2eLow)));
  return specialLog(x, add(l.exponent, fma(l.high, c(log2e), low)));
}

Value Expander::log(Value x, bool fast) {
  if (fast && target == MathTarget::Gpu)
    return mul(log2(x, true), c(ln2));
  Logarithm l = logarithm(x, fast);
  Value low = fma(l.exponent, c(ln2Low), l.low);
  return specialLog(x, fma(l.exponent, c(ln2), add(l.high, low)));
}

Value Expander::tanh(Value x, bool fast, bool absolute) {
  if (fast && target == MathTarget::Gpu)
    return math::TanhOp::create(b, loc, x, afn());
  if (absolute && target == MathTarget::Gpu) {
    // 1 - 2 / (e^2x + 1). What is `reassoc` may join factors around it (tile-merge-factors).
    auto own = arith::FastMathFlags::reassoc;
    Value e = exp2(arith::MulFOp::create(b, loc, x, c(2 * log2e), own), true);
    Value inverse = divide(c(1.0f), add(e, c(1.0f)), true);
    return math::FmaOp::create(b, loc, inverse, c(-2.0f), c(1.0f), own);
  }
  if (target == MathTarget::Gpu) {
    // x P(x^2) / Q(x^2): of the machine's units for special functions, which bound the loops of attention, one
    // reciprocal instead of two functions. Past 8.5 the result is 1 to the precision promised.
    Value bounded = arith::MaximumFOp::create(b, loc, arith::MinimumFOp::create(b, loc, x, c(8.5f)), c(-8.5f));
    Value square = mul(bounded, bounded);
    Value p = polynomial(square, {1.0f, 0.1341324f, 0.0035340183f, 2.1250897e-05f, 1.42690135e-08f});
    Value q = polynomial(square, {1.0f, 0.46746564f, 0.02602272f, 0.00033488506f, 8.145038e-07f});
    return mul(mul(bounded, p), divide(c(1.0f), q, true));
  }
  // 1 - 2 / (e^2|x| + 1), and near 0, where that cancels, an odd polynomial.
  Value magnitude = abs(x);
  Value e = exp2(mul(magnitude, c(2 * log2e)), fast);
  Value large = sub(c(1.0f), divide(c(2.0f), add(e, c(1.0f)), true));
  large = withSignOf(large, x);
  if (fast)
    return large;
  Value square = mul(x, x);
  Value p =
      polynomial(square, {-0.333333313f, 0.133332103f, -0.0539472029f, 0.0217029694f, -0.00818267744f, 0.00214753998f});
  Value small = fma(mul(x, square), p, x);
  return select(compare(arith::CmpFPredicate::OLT, magnitude, c(0.625f)), small, large);
}

Value Expander::sine(Value x, bool fast, bool cosine) {
  if (fast && target == MathTarget::Gpu) {
    if (cosine)
      return math::CosOp::create(b, loc, x, afn());
    return math::SinOp::create(b, loc, x, afn());
  }
  // x in quarter turns = n + r; r by a fused product, so that nothing of it is lost.
  constexpr float quarters = 0.636619747f, quartersLow = 2.5682552e-8f;
  Value u = fma(x, c(quarters), c(roundMagic));
  Value n = sub(u, c(roundMagic));
  Value r = fma(x, c(quartersLow), fma(x, c(quarters), neg(n)));
  Value turns = mul(r, c(0.25f)), square = mul(turns, turns);
  Value sinPart = mul(turns, polynomial(square, {6.28318548f, -41.3416634f, 81.5925522f, -75.4020691f}));
  Value cosPart = fma(square, polynomial(square, {-19.7392082f, 64.9393234f, -85.4437408f, 59.2459641f}), c(1.0f));
  Value quadrant = bits(u);
  if (cosine)
    quadrant = addi(quadrant, ci(1));
  Value odd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, andi(quadrant, ci(1)), ci(0));
  Value magnitude = select(odd, cosPart, sinPart);
  Value sign = shl(andi(quadrant, ci(2)), 30);
  Value result = fromBits(arith::XOrIOp::create(b, loc, bits(magnitude), sign));
  // Past this the quadrant is not known: an honest NaN.
  Value known = compare(arith::CmpFPredicate::OLE, abs(x), c(6588397.0f));
  return select(known, result, c(std::numeric_limits<float>::quiet_NaN()));
}

Value Expander::rsqrt(Value x) { return divide(c(1.0f), math::SqrtOp::create(b, loc, x), false); }

Value Expander::floor(Value x) {
  // Above 2^23 every float is whole.
  Value magnitude = abs(x);
  Value nearest = withSignOf(sub(add(magnitude, c(8388608.0f)), c(8388608.0f)), x);
  Value above = compare(arith::CmpFPredicate::OGT, nearest, x);
  Value below = select(above, sub(nearest, c(1.0f)), nearest);
  return select(compare(arith::CmpFPredicate::OLT, magnitude, c(8388608.0f)), below, x);
}

/// The replacement, or null when the function is not on the list.
static Value expand(Operation *op, OpBuilder &b, MathTarget target) {
  Expander e(b, op->getLoc(), op->getResult(0).getType(), target);
  Value x = op->getOperand(0);
  bool fast = hasAfn(op);
  return TypeSwitch<Operation *, Value>(op)
      .Case<math::Exp2Op>([&](auto) { return e.exp2(x, fast); })
      .Case<math::ExpOp>([&](auto) { return e.exp(x, fast); })
      .Case<math::Log2Op>([&](auto) { return e.log2(x, fast); })
      .Case<math::LogOp>([&](auto) { return e.log(x, fast); })
      .Case<math::TanhOp>([&](auto) { return e.tanh(x, fast, op->hasAttr(kAbsoluteError)); })
      .Case<math::SinOp>([&](auto) { return e.sine(x, fast, /*cosine=*/false); })
      .Case<math::CosOp>([&](auto) { return e.sine(x, fast, /*cosine=*/true); })
      .Case<math::RsqrtOp>([&](auto) { return e.rsqrt(x); })
      .Case<math::FloorOp>([&](auto) { return e.floor(x); })
      .Case<math::CeilOp>([&](auto) { return e.ceil(x); })
      .Default([](Operation *) { return Value(); });
}

LogicalResult mlir::attn::legalizeMath(Operation *root, MathTarget target) {
  SmallVector<Operation *> work;
  root->walk([&](Operation *op) {
    if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
      work.push_back(op);
  });
  IRRewriter rewriter(root->getContext());
  for (Operation *op : work) {
    if (isLegalMath(op, target))
      continue;
    if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0).getType()).isF32() ||
        !isa<FloatType, VectorType>(op->getResult(0).getType()))
      return op->emitOpError() << "math is legalised for f32 and vectors of f32 only, got " << op->getResultTypes()
                               << "; extend to f32 first";
    rewriter.setInsertionPoint(op);
    Value result = expand(op, rewriter, target);
    if (!result)
      return op->emitOpError() << "is not on the closed list of math functions (exp, exp2, log, log2, tanh, sin, cos, "
                                  "sqrt, rsqrt, absf, fma, floor, ceil)";
    rewriter.replaceOp(op, result);
  }
  return success();
}
