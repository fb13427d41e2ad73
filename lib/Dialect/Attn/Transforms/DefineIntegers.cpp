//===- DefineIntegers.cpp - integer ops without undefined results ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands are replaced by ones that the op is defined for and that give the
// wanted result: a / 0 is 0 / 1, a % 0 is a % 1, min / -1 is min / 1, and a
// shift by too much is one of 0, or for shrsi by the width less one.
//
// Index values may be narrower than 64 bits on a GPU, where they are known to
// fit. That shows in unsigned ops on negative numbers and in shifts: they are
// done in i64.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/DefineIntegers.h"
#include "attn/Dialect/Attn/IR/Attn.h"

#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Short spellings; every value has the shape of `type`.
struct Maker {
  OpBuilder b;
  Location loc;

  explicit Maker(Operation *op) : b(op), loc(op->getLoc()) {}

  Value constant(Type type, TypedAttr element) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(shaped, ArrayRef<Attribute>(element)));
    return arith::ConstantOp::create(b, loc, element);
  }
  Value integer(Type type, const APInt &value) {
    return constant(type, b.getIntegerAttr(getElementTypeOrSelf(type), value));
  }
  Value integer(Type type, int64_t value, bool isSigned = true) {
    return integer(type, APInt(widthOf(type), value, isSigned, /*implicitTrunc=*/true));
  }
  Value number(Type type, double value) { return constant(type, b.getFloatAttr(getElementTypeOrSelf(type), value)); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }

  static unsigned widthOf(Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  }
};
} // namespace

static std::optional<APInt> constantOf(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number;
  return std::nullopt;
}

/// Whether an unsigned amount is below `width` by its form: a constant, or cut off by one.
static bool isBelow(Value amount, unsigned width) {
  while (auto *cast = amount.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp>(cast))
      break;
    amount = cast->getOperand(0);
  }
  if (auto known = constantOf(amount))
    return known->ult(width);
  Operation *op = amount.getDefiningOp();
  if (!isa_and_nonnull<arith::AndIOp, arith::RemUIOp, arith::MinUIOp>(op))
    return false;
  auto limit = constantOf(op->getOperand(1));
  if (!limit || limit->isZero())
    return false;
  return limit->ult(isa<arith::RemUIOp>(op) ? width + 1 : width);
}

/// Whether an index is at least 0 wherever it may come from; sums and products of positions are, as far as 64 bits go.
static bool isNonNegative(Value value, int depth = 0) {
  if (auto number = constantOf(value))
    return !number->isNegative();
  Operation *op = value.getDefiningOp();
  if (!op || depth > 4)
    return false;
  auto operand = [&](unsigned i) { return isNonNegative(op->getOperand(i), depth + 1); };
  if (isa<KVPosOp, RequestOp, QHeadOp, KVHeadOp, QoLenOp, KVLenOp, RowOp, arith::ExtUIOp>(op))
    return true;
  if (isa<arith::AndIOp, arith::MaxSIOp>(op))
    return operand(0) || operand(1);
  if (isa<arith::MinSIOp, arith::DivUIOp, arith::RemUIOp, arith::AddIOp, arith::MulIOp>(op))
    return operand(0) && operand(1);
  if (isa<arith::ShRUIOp>(op))
    return operand(0);
  return false;
}

/// i1 holds 0 and -1 (or 0 and 1, unsigned): there is no 1 to divide by.
static Value defineBit(Operation *op) {
  Maker make(op);
  Value x = op->getOperand(0), y = op->getOperand(1);
  if (isa<arith::DivSIOp, arith::DivUIOp>(op))
    return arith::AndIOp::create(make.b, make.loc, x, y);
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    return make.integer(x.getType(), 0);
  if (isa<arith::ShRSIOp>(op))
    return x;
  return make.select(y, make.integer(x.getType(), 0), x);
}

static void defineDivision(Operation *op) {
  Value x = op->getOperand(0), y = op->getOperand(1);
  bool isSigned = isa<arith::DivSIOp, arith::RemSIOp>(op);
  std::optional<APInt> divisor = constantOf(y);
  if (divisor && !divisor->isZero() && !(isSigned && divisor->isAllOnes()))
    return;
  Maker make(op);
  Type type = x.getType();
  unsigned width = Maker::widthOf(type);
  Value zero = make.integer(type, 0), one = make.integer(type, 1);
  Value none = make.compare(arith::CmpIPredicate::eq, y, zero);
  if (isa<arith::DivSIOp, arith::DivUIOp>(op))
    op->setOperand(0, make.select(none, zero, x));
  Value bad = none;
  if (isSigned) {
    Value lowest = make.integer(type, APInt::getSignedMinValue(width));
    Value minusOne = make.integer(type, APInt::getAllOnes(width));
    Value overflow = arith::AndIOp::create(make.b, make.loc, make.compare(arith::CmpIPredicate::eq, x, lowest),
                                           make.compare(arith::CmpIPredicate::eq, y, minusOne));
    bad = arith::OrIOp::create(make.b, make.loc, bad, overflow);
  }
  op->setOperand(1, make.select(bad, one, y));
}

static void defineShift(Operation *op) {
  Value x = op->getOperand(0), amount = op->getOperand(1);
  Type type = x.getType();
  unsigned width = Maker::widthOf(type);
  if (isBelow(amount, width))
    return;
  Maker make(op);
  Value last = make.integer(type, width - 1, /*isSigned=*/false);
  if (!isa<arith::ShRSIOp>(op)) {
    Value fits = make.compare(arith::CmpIPredicate::ule, amount, last);
    op->setOperand(0, make.select(fits, x, make.integer(type, 0)));
  }
  op->setOperand(1, arith::MinUIOp::create(make.b, make.loc, amount, last));
}

/// Towards zero, the nearest value when out of range, 0 for NaN.
static Value defineConversion(Operation *op) {
  Maker make(op);
  Value x = op->getOperand(0);
  Type from = x.getType(), to = op->getResult(0).getType();
  bool isSigned = isa<arith::FPToSIOp>(op);
  unsigned width = Maker::widthOf(to);
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0, end = std::ldexp(1.0, isSigned ? width - 1 : width);
  // The largest number below `end`: an integer less one where f32 has it, else the last f32.
  double high = width < 24 ? end - 1 : std::nextafter(static_cast<float>(end), 0.0f);
  Value ordered = make.compare(arith::CmpFPredicate::ORD, x, x);
  Value inside = make.select(ordered, x, make.number(from, 0));
  inside = arith::MaxNumFOp::create(make.b, make.loc, inside, make.number(from, low));
  inside = arith::MinNumFOp::create(make.b, make.loc, inside, make.number(from, high));
  Type wide = width < 32 ? Type(make.b.getI32Type()) : getElementTypeOrSelf(to);
  if (auto shaped = dyn_cast<ShapedType>(to))
    wide = shaped.clone(wide);
  Value result = isSigned || width < 32 ? arith::FPToSIOp::create(make.b, make.loc, wide, inside).getResult()
                                        : arith::FPToUIOp::create(make.b, make.loc, wide, inside).getResult();
  if (width < 32)
    return arith::TruncIOp::create(make.b, make.loc, to, result);
  Value above = make.compare(arith::CmpFPredicate::OGE, x, make.number(from, end));
  APInt largest = isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
  return make.select(above, make.integer(to, largest), result);
}

static void replace(Operation *op, Value by) {
  op->getResult(0).replaceAllUsesWith(by);
  op->erase();
}

/// The op in i64, when it works on indices and 32 bits would not do.
static Operation *widenIndex(Operation *op) {
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isIndex())
    return op;
  auto isSafe = [&]() {
    Value x = op->getOperand(0), y = op->getOperand(1);
    if (isa<arith::DivSIOp, arith::RemSIOp>(op))
      return true;
    if (isa<arith::DivUIOp, arith::RemUIOp>(op))
      return isNonNegative(x) && isNonNegative(y);
    return !isa<arith::ShLIOp>(op) && isBelow(y, 32) && (isa<arith::ShRSIOp>(op) || isNonNegative(x));
  };
  if (isSafe())
    return op;
  OpBuilder b(op);
  Type wide = b.getI64Type();
  if (auto shaped = dyn_cast<ShapedType>(type))
    wide = shaped.clone(wide);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(arith::IndexCastOp::create(b, op->getLoc(), wide, operand));
  OperationState state(op->getLoc(), op->getName(), operands, {wide});
  Operation *copy = b.create(state);
  replace(op, arith::IndexCastOp::create(b, op->getLoc(), type, copy->getResult(0)));
  return copy;
}

void attn::defineIntegers(Operation *root) {
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isa<arith::ArithDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    // Promises that need not hold at positions that do not exist.
    if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
      op->setAttr(flags.getIntegerOverflowAttrName(),
                  arith::IntegerOverflowFlagsAttr::get(op->getContext(), arith::IntegerOverflowFlags::none));
    op->removeAttr("isExact");

    bool isDivision = isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op);
    bool isShift = isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>(op);
    if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) {
      replace(op, defineConversion(op));
    } else if (isDivision || isShift) {
      if (Maker::widthOf(op->getResult(0).getType()) == 1) {
        replace(op, defineBit(op));
        continue;
      }
      op = widenIndex(op);
      if (isDivision)
        defineDivision(op);
      else
        defineShift(op);
    }
  }
}
