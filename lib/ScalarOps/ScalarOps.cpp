//===- ScalarOps.cpp - what arith and math compute ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/ScalarOps/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;

namespace attn {

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

int64_t wrapInteger(uint64_t value, unsigned width) {
  if (width == 1)
    return static_cast<int64_t>(value & 1);
  if (width >= 64)
    return static_cast<int64_t>(value);
  return static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}

uint64_t unsignedValue(int64_t value, unsigned width) {
  return width >= 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

int64_t signedValue(int64_t value, unsigned width) { return width == 1 ? -(value & 1) : value; }

unsigned scalarWidth(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

int64_t floatToInteger(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0, end = std::ldexp(1.0, isSigned ? width - 1 : width);
  uint64_t lowest = isSigned ? uint64_t(1) << (width - 1) : 0;
  if (value <= low)
    return wrapInteger(lowest, width);
  if (value >= end)
    return wrapInteger(lowest - 1, width);
  return wrapInteger(isSigned ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value),
                     width);
}

static int64_t addI(int64_t a, int64_t b, unsigned) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
static int64_t subI(int64_t a, int64_t b, unsigned) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
static int64_t mulI(int64_t a, int64_t b, unsigned) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

static int64_t divSI(int64_t a, int64_t b, unsigned w) {
  int64_t x = signedValue(a, w), y = signedValue(b, w);
  return y == 0 ? 0 : y == -1 ? subI(0, x, w) : x / y; // lowest / -1 wraps
}
static int64_t remSI(int64_t a, int64_t b, unsigned w) {
  int64_t x = signedValue(a, w), y = signedValue(b, w);
  return y == 0 || y == -1 ? 0 : x % y;
}
static int64_t divUI(int64_t a, int64_t b, unsigned w) {
  uint64_t x = unsignedValue(a, w), y = unsignedValue(b, w);
  return static_cast<int64_t>(y ? x / y : 0);
}
static int64_t remUI(int64_t a, int64_t b, unsigned w) {
  uint64_t x = unsignedValue(a, w), y = unsignedValue(b, w);
  return static_cast<int64_t>(y ? x % y : 0);
}
static int64_t floorDivSI(int64_t a, int64_t b, unsigned w) {
  int64_t x = signedValue(a, w), y = signedValue(b, w);
  return subI(divSI(a, b, w), remSI(a, b, w) != 0 && (x < 0) != (y < 0), w);
}
static int64_t ceilDivSI(int64_t a, int64_t b, unsigned w) {
  int64_t x = signedValue(a, w), y = signedValue(b, w);
  return addI(divSI(a, b, w), remSI(a, b, w) != 0 && (x < 0) == (y < 0), w);
}
static int64_t ceilDivUI(int64_t a, int64_t b, unsigned w) { return addI(divUI(a, b, w), remUI(a, b, w) != 0, w); }

static int64_t shlI(int64_t a, int64_t b, unsigned w) {
  uint64_t amount = unsignedValue(b, w);
  return amount < w ? static_cast<int64_t>(static_cast<uint64_t>(a) << amount) : 0;
}
static int64_t shrUI(int64_t a, int64_t b, unsigned w) {
  uint64_t amount = unsignedValue(b, w);
  return amount < w ? static_cast<int64_t>(unsignedValue(a, w) >> amount) : 0;
}
static int64_t shrSI(int64_t a, int64_t b, unsigned w) {
  return signedValue(a, w) >> std::min<uint64_t>(unsignedValue(b, w), w - 1);
}

static int64_t signedCast(int64_t a, int64_t, unsigned w) { return signedValue(a, w); }
static int64_t unsignedCast(int64_t a, int64_t, unsigned w) { return static_cast<int64_t>(unsignedValue(a, w)); }

static const llvm::StringMap<IntegerFn> &integerFns() {
  static const llvm::StringMap<IntegerFn> fns = {
      {"arith.addi", addI},
      {"arith.subi", subI},
      {"arith.muli", mulI},
      {"arith.divsi", divSI},
      {"arith.divui", divUI},
      {"arith.remsi", remSI},
      {"arith.remui", remUI},
      {"arith.floordivsi", floorDivSI},
      {"arith.ceildivsi", ceilDivSI},
      {"arith.ceildivui", ceilDivUI},
      {"arith.minsi", [](int64_t a, int64_t b, unsigned w) { return signedValue(a, w) < signedValue(b, w) ? a : b; }},
      {"arith.maxsi", [](int64_t a, int64_t b, unsigned w) { return signedValue(a, w) > signedValue(b, w) ? a : b; }},
      {"arith.minui",
       [](int64_t a, int64_t b, unsigned w) { return unsignedValue(a, w) < unsignedValue(b, w) ? a : b; }},
      {"arith.maxui",
       [](int64_t a, int64_t b, unsigned w) { return unsignedValue(a, w) > unsignedValue(b, w) ? a : b; }},
      {"arith.andi", [](int64_t a, int64_t b, unsigned) { return a & b; }},
      {"arith.ori", [](int64_t a, int64_t b, unsigned) { return a | b; }},
      {"arith.xori", [](int64_t a, int64_t b, unsigned) { return a ^ b; }},
      {"arith.shli", shlI},
      {"arith.shrsi", shrSI},
      {"arith.shrui", shrUI},
      {"arith.index_cast", signedCast},
      {"arith.extsi", signedCast},
      {"arith.trunci", signedCast},
      {"arith.index_castui", unsignedCast},
      {"arith.extui", unsignedCast},
      {"math.absi", [](int64_t a, int64_t, unsigned w) {
         int64_t x = signedValue(a, w);
         return x < 0 ? subI(0, x, w) : x;
       }}};
  return fns;
}

static IntegerFn findComparison(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return [](int64_t a, int64_t b, unsigned) -> int64_t { return a == b; };
  case arith::CmpIPredicate::ne:
    return [](int64_t a, int64_t b, unsigned) -> int64_t { return a != b; };
  case arith::CmpIPredicate::slt:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return signedValue(a, w) < signedValue(b, w); };
  case arith::CmpIPredicate::sle:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return signedValue(a, w) <= signedValue(b, w); };
  case arith::CmpIPredicate::sgt:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return signedValue(a, w) > signedValue(b, w); };
  case arith::CmpIPredicate::sge:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return signedValue(a, w) >= signedValue(b, w); };
  case arith::CmpIPredicate::ult:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return unsignedValue(a, w) < unsignedValue(b, w); };
  case arith::CmpIPredicate::ule:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return unsignedValue(a, w) <= unsignedValue(b, w); };
  case arith::CmpIPredicate::ugt:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return unsignedValue(a, w) > unsignedValue(b, w); };
  case arith::CmpIPredicate::uge:
    return [](int64_t a, int64_t b, unsigned w) -> int64_t { return unsignedValue(a, w) >= unsignedValue(b, w); };
  }
  return nullptr;
}

IntegerFn findIntegerFn(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return findComparison(compare.getPredicate());
  return integerFns().lookup(op->getName().getStringRef());
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// NaN when either is, and -0 below 0.
static double maximum(double a, double b, double) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
static double minimum(double a, double b, double) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}

static const llvm::StringMap<FloatFn> &floatFns() {
  static const llvm::StringMap<FloatFn> fns = {
      {"arith.addf", [](double a, double b, double) { return a + b; }},
      {"arith.subf", [](double a, double b, double) { return a - b; }},
      {"arith.mulf", [](double a, double b, double) { return a * b; }},
      {"arith.divf", [](double a, double b, double) { return a / b; }},
      {"arith.remf", [](double a, double b, double) { return std::fmod(a, b); }},
      {"arith.negf", [](double a, double, double) { return -a; }},
      {"arith.maximumf", maximum},
      {"arith.minimumf", minimum},
      {"arith.maxnumf", [](double a, double b, double) { return std::fmax(a, b); }},
      {"arith.minnumf", [](double a, double b, double) { return std::fmin(a, b); }},
      {"arith.extf", [](double a, double, double) { return a; }},
      {"arith.truncf", [](double a, double, double) { return a; }},
      {"math.fma", [](double a, double b, double c) { return std::fma(a, b, c); }},
      {"math.powf", [](double a, double b, double) { return std::pow(a, b); }},
      {"math.atan2", [](double a, double b, double) { return std::atan2(a, b); }},
      {"math.copysign", [](double a, double b, double) { return std::copysign(a, b); }},
      {"math.exp", [](double x, double, double) { return std::exp(x); }},
      {"math.exp2", [](double x, double, double) { return std::exp2(x); }},
      {"math.expm1", [](double x, double, double) { return std::expm1(x); }},
      {"math.log", [](double x, double, double) { return std::log(x); }},
      {"math.log2", [](double x, double, double) { return std::log2(x); }},
      {"math.log10", [](double x, double, double) { return std::log10(x); }},
      {"math.log1p", [](double x, double, double) { return std::log1p(x); }},
      {"math.tanh", [](double x, double, double) { return std::tanh(x); }},
      {"math.sinh", [](double x, double, double) { return std::sinh(x); }},
      {"math.cosh", [](double x, double, double) { return std::cosh(x); }},
      {"math.sin", [](double x, double, double) { return std::sin(x); }},
      {"math.cos", [](double x, double, double) { return std::cos(x); }},
      {"math.tan", [](double x, double, double) { return std::tan(x); }},
      {"math.atan", [](double x, double, double) { return std::atan(x); }},
      {"math.erf", [](double x, double, double) { return std::erf(x); }},
      {"math.sqrt", [](double x, double, double) { return std::sqrt(x); }},
      {"math.rsqrt", [](double x, double, double) { return 1 / std::sqrt(x); }},
      {"math.cbrt", [](double x, double, double) { return std::cbrt(x); }},
      {"math.absf", [](double x, double, double) { return std::fabs(x); }},
      {"math.floor", [](double x, double, double) { return std::floor(x); }},
      {"math.ceil", [](double x, double, double) { return std::ceil(x); }},
      {"math.trunc", [](double x, double, double) { return std::trunc(x); }},
      {"math.round", [](double x, double, double) { return std::round(x); }},
      {"math.roundeven", [](double x, double, double) { return std::nearbyint(x); }},
  };
  return fns;
}

FloatFn findFloatFn(Operation *op) { return floatFns().lookup(op->getName().getStringRef()); }

CompareFn findCompareFn(Operation *op) {
  auto compare = dyn_cast<arith::CmpFOp>(op);
  if (!compare)
    return nullptr;
  // C++ comparisons are false on NaN, except !=.
  switch (compare.getPredicate()) {
  case arith::CmpFPredicate::AlwaysFalse:
    return [](double, double) { return false; };
  case arith::CmpFPredicate::AlwaysTrue:
    return [](double, double) { return true; };
  case arith::CmpFPredicate::ORD:
    return [](double a, double b) { return !std::isunordered(a, b); };
  case arith::CmpFPredicate::UNO:
    return [](double a, double b) { return std::isunordered(a, b); };
  case arith::CmpFPredicate::OEQ:
    return [](double a, double b) { return a == b; };
  case arith::CmpFPredicate::OGT:
    return [](double a, double b) { return a > b; };
  case arith::CmpFPredicate::OGE:
    return [](double a, double b) { return a >= b; };
  case arith::CmpFPredicate::OLT:
    return [](double a, double b) { return a < b; };
  case arith::CmpFPredicate::OLE:
    return [](double a, double b) { return a <= b; };
  case arith::CmpFPredicate::ONE:
    return [](double a, double b) { return a < b || a > b; };
  case arith::CmpFPredicate::UEQ:
    return [](double a, double b) { return !(a < b || a > b); };
  case arith::CmpFPredicate::UGT:
    return [](double a, double b) { return !(a <= b); };
  case arith::CmpFPredicate::UGE:
    return [](double a, double b) { return !(a < b); };
  case arith::CmpFPredicate::ULT:
    return [](double a, double b) { return !(a >= b); };
  case arith::CmpFPredicate::ULE:
    return [](double a, double b) { return !(a > b); };
  case arith::CmpFPredicate::UNE:
    return [](double a, double b) { return a != b; };
  }
  return nullptr;
}

} // namespace attn
