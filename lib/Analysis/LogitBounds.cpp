//===- LogitBounds.cpp - what a logits hook can yield ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interval arithmetic, forwards through the hook. Each step is widened by more
// than what any path's form of the op is off by (docs/Spec.md has the errors).
// NaN is outside of all this: it comes out as NaN with a maximum and without.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/LogitBounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::attn;

static constexpr double kInf = std::numeric_limits<double>::infinity();
static constexpr FloatRange kUnknown = {-kInf, kInf};

/// Relative error of one op of arithmetic, and of one function (tanh.approx: 2^-11).
static constexpr double kArithError = 0x1p-20, kMathError = 0x1p-10;
/// Below it a result may be flushed to zero, above its inverse a reciprocal may.
static constexpr double kTiny = 0x1p-120;

/// The largest finite number of a type.
static double getLargest(Type type) {
  return APFloat::getLargest(cast<FloatType>(type).getFloatSemantics()).convertToDouble();
}

/// `range` with room for the errors of an op whose result has type `type`.
static FloatRange widen(FloatRange range, double error, Type type) {
  if (std::isnan(range.lo) || std::isnan(range.hi) || range.lo > range.hi)
    return kUnknown;
  double lo = range.lo - std::abs(range.lo) * error, hi = range.hi + std::abs(range.hi) * error;
  double largest = getLargest(type);
  if (std::isinf(range.lo) || lo < -largest)
    lo = range.lo > 0 ? largest : -kInf;
  if (std::isinf(range.hi) || hi > largest)
    hi = range.hi < 0 ? -largest : kInf;
  if (lo > 0 && lo < kTiny)
    lo = 0;
  if (hi < 0 && hi > -kTiny)
    hi = 0;
  // What is above the largest number is infinite, which is at least the largest number.
  return {std::min(lo, largest), std::max(hi, -largest)};
}

/// 0 times infinity is NaN at run time, but 0 times what is below infinity is 0.
static double multiply(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static FloatRange hull(std::initializer_list<double> values) { return {std::min(values), std::max(values)}; }

static FloatRange negate(FloatRange a) { return {-a.hi, -a.lo}; }

static FloatRange join(FloatRange a, FloatRange b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

static FloatRange multiply(FloatRange a, FloatRange b) {
  return hull({multiply(a.lo, b.lo), multiply(a.lo, b.hi), multiply(a.hi, b.lo), multiply(a.hi, b.hi)});
}

static FloatRange divide(FloatRange a, FloatRange b) {
  if (b.lo <= 0 && b.hi >= 0)
    return kUnknown;
  FloatRange inverse = {1 / b.hi, 1 / b.lo};
  // The reciprocal of large divisors may be flushed.
  if (std::min(std::abs(inverse.lo), std::abs(inverse.hi)) < kTiny)
    inverse = join(inverse, {0, 0});
  return multiply(a, inverse);
}

namespace {
class Ranges {
public:
  explicit Ranges(HookOp hook) {
    hook.getBody().walk([&](Operation *op) {
      for (OpResult result : op->getResults())
        if (isa<FloatType>(result.getType()))
          ranges.try_emplace(result, compute(result));
    });
  }

  FloatRange get(Value value) const {
    if (auto it = ranges.find(value); it != ranges.end())
      return it->second;
    // Constants of the variant; arguments and parameters may be anything.
    APFloat c(0.0f);
    if (!matchPattern(value, m_ConstantFloat(&c)) || c.isNaN())
      return kUnknown;
    return {c.convertToDouble(), c.convertToDouble()};
  }

private:
  FloatRange compute(OpResult result) const;
  FloatRange computeMaximum(Value a, Value b, bool minimum) const;
  FloatRange computeSelect(arith::SelectOp op) const;

  llvm::DenseMap<Value, FloatRange> ranges;
};
} // namespace

/// Of a NaN and a number the op may make the number.
FloatRange Ranges::computeMaximum(Value a, Value b, bool minimum) const {
  auto maybeNaN = [](Value value) {
    APFloat c(0.0f);
    return !matchPattern(value, m_ConstantFloat(&c)) || c.isNaN();
  };
  FloatRange x = get(a), y = get(b);
  if (minimum)
    x = negate(x), y = negate(y);
  FloatRange range = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  if (maybeNaN(a))
    range.lo = std::min(range.lo, y.lo);
  if (maybeNaN(b))
    range.lo = std::min(range.lo, x.lo);
  return minimum ? negate(range) : range;
}

/// A comparison bounds what is selected by it: `x > c ? c : x` is at most c.
FloatRange Ranges::computeSelect(arith::SelectOp op) const {
  FloatRange yes = get(op.getTrueValue()), no = get(op.getFalseValue());
  auto compare = op.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return join(yes, no);
  using Predicate = arith::CmpFPredicate;
  auto below = [](Predicate p) {
    return p == Predicate::OLT || p == Predicate::OLE || p == Predicate::ULT || p == Predicate::ULE;
  };
  auto above = [](Predicate p) {
    return p == Predicate::OGT || p == Predicate::OGE || p == Predicate::UGT || p == Predicate::UGE;
  };
  Predicate predicate = compare.getPredicate();
  if (!below(predicate) && !above(predicate))
    return join(yes, no);
  // Where the comparison is false or unordered the opposite holds, unless a side is NaN; the one selected may then be
  // any number, or NaN itself.
  auto limit = [](FloatRange &range, double bound, bool most) {
    double &end = most ? range.hi : range.lo;
    end = most ? std::min(end, bound) : std::max(end, bound);
    if (range.lo > range.hi) // never selected
      range.lo = range.hi = bound;
  };
  for (bool swap : {false, true}) {
    Value x = swap ? compare.getRhs() : compare.getLhs(), bound = swap ? compare.getLhs() : compare.getRhs();
    APFloat c(0.0f);
    if (!matchPattern(bound, m_ConstantFloat(&c)) || c.isNaN())
      continue;
    bool isBelow = below(predicate) != swap;
    if (op.getTrueValue() == x)
      limit(yes, c.convertToDouble(), isBelow);
    if (op.getFalseValue() == x)
      limit(no, c.convertToDouble(), !isBelow);
  }
  return join(yes, no);
}

FloatRange Ranges::compute(OpResult result) const {
  Operation *op = result.getOwner();
  Type type = result.getType();
  auto in = [&](unsigned i) { return get(op->getOperand(i)); };
  auto arith = [&](FloatRange range) { return widen(range, kArithError, type); };
  auto exact = [&](FloatRange range) { return widen(range, 0, type); };
  auto function = [&](FloatRange range) { return widen(range, kMathError, type); };
  auto sum = [](FloatRange a, FloatRange b) { return FloatRange{a.lo + b.lo, a.hi + b.hi}; };
  auto rising = [&](double (*f)(double), double least = -kInf) {
    FloatRange a = in(0);
    // Below its domain a function is NaN.
    return function({a.lo < least ? f(least) : f(a.lo), f(a.hi)});
  };
  auto integer = [&](bool isSigned) {
    Type from = op->getOperand(0).getType();
    double size = std::ldexp(1.0, from.isIndex() ? 64 : from.getIntOrFloatBitWidth());
    return arith(isSigned ? FloatRange{-size / 2, size / 2 - 1} : FloatRange{0, size - 1});
  };
  return llvm::TypeSwitch<Operation *, FloatRange>(op)
      .Case([&](arith::ConstantOp) {
        APFloat c(0.0f);
        matchPattern(op, m_ConstantFloat(&c));
        return c.isNaN() ? kUnknown : FloatRange{c.convertToDouble(), c.convertToDouble()};
      })
      .Case([&](arith::AddFOp) { return arith(sum(in(0), in(1))); })
      .Case([&](arith::SubFOp) { return arith(sum(in(0), negate(in(1)))); })
      .Case([&](arith::MulFOp) { return arith(multiply(in(0), in(1))); })
      .Case([&](arith::DivFOp) { return arith(divide(in(0), in(1))); })
      .Case([&](math::FmaOp) { return arith(sum(multiply(in(0), in(1)), in(2))); })
      .Case([&](arith::NegFOp) { return negate(in(0)); })
      .Case([&](math::AbsFOp) {
        FloatRange a = in(0);
        double least = a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0;
        return FloatRange{least, std::max(std::abs(a.lo), std::abs(a.hi))};
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return computeMaximum(op->getOperand(0), op->getOperand(1), false); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](auto) { return computeMaximum(op->getOperand(0), op->getOperand(1), true); })
      .Case([&](arith::SelectOp select) { return computeSelect(select); })
      .Case([&](scf::IfOp branch) {
        unsigned i = result.getResultNumber();
        return join(get(branch.thenYield().getOperand(i)), get(branch.elseYield().getOperand(i)));
      })
      .Case<arith::ExtFOp, math::FloorOp, math::CeilOp>([&](auto) {
        FloatRange a = in(0);
        if (isa<math::FloorOp>(op))
          a = {std::floor(a.lo), std::floor(a.hi)};
        else if (isa<math::CeilOp>(op))
          a = {std::ceil(a.lo), std::ceil(a.hi)};
        return exact(a);
      })
      .Case([&](arith::TruncFOp) { return widen(in(0), 0x1p-8, type); })
      .Case([&](arith::SIToFPOp) { return integer(true); })
      .Case([&](arith::UIToFPOp) { return integer(false); })
      .Case([&](math::ExpOp) { return rising(std::exp); })
      .Case([&](math::Exp2Op) { return rising(std::exp2); })
      // Near 1 their error is absolute.
      .Case([&](math::LogOp) { return sum(rising(std::log, 0), {-kArithError, kArithError}); })
      .Case([&](math::Log2Op) { return sum(rising(std::log2, 0), {-kArithError, kArithError}); })
      .Case([&](math::SqrtOp) { return rising(std::sqrt, 0); })
      .Case([&](math::TanhOp) { return rising(std::tanh); })
      .Case<math::SinOp, math::CosOp>([&](auto) {
        // The hardware's form promises nothing for large angles.
        auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
        FloatRange a = in(0);
        bool approximate = flags && bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::afn);
        return approximate && std::max(-a.lo, a.hi) > 300 ? kUnknown : function({-1, 1});
      })
      .Case([&](math::RsqrtOp) {
        FloatRange a = in(0);
        return a.lo > 0 ? function(divide({1, 1}, {std::sqrt(a.lo), std::sqrt(a.hi)})) : kUnknown;
      })
      .Default(kUnknown);
}

FloatRange mlir::attn::findLogitRange(HookOp logits) { return Ranges(logits).get(logits.getYield().getValue()); }

bool mlir::attn::hasBoundedLogits(AttentionOp op) {
  VariantOp variant = op.lookupVariant();
  HookOp logits = variant ? variant.getHook(HookKind::Logits) : HookOp();
  if (!logits || variant.getNormalizer() != Normalizer::Softmax)
    return false;
  bool half = cast<ShapedType>(op.getQ().getType()).getElementType().isF16();
  double most = (half ? kMostLogitF16 : kMostLogit) * std::log(2.0);
  FloatRange range = findLogitRange(logits);
  return range.lo >= -most && range.hi <= most;
}

bool mlir::attn::isScaledYield(Operation *op) {
  auto isConstant = [](Value value) { return matchPattern(value, m_Constant()); };
  while (op->hasOneUse()) {
    op = *op->user_begin();
    if (op->hasTrait<OpTrait::IsTerminator>())
      return true;
    if (!isa<arith::MulFOp>(op) || !llvm::any_of(op->getOperands(), isConstant))
      return false;
  }
  return false;
}
