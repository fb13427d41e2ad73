//===- MaskAnalysis.cpp - from a mask hook to a range program ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For a tile of queries q in [q0, q1], every boolean of the mask has two
// intervals of keys: `some` holds each key that it is true for with some query,
// `all` only keys that it is true for with all queries. A comparison is brought
// to  ck * floor(k / d) + cq * q + u >= 0  with u in an interval of registers;
// and/or/not combine intervals, soundly: `some` may grow, `all` may shrink.
//
// Arithmetic: positions are below 2^31. Parameters, loaded values and their
// products enter a comparison clamped to +-2^40, so that a window of "infinity"
// cannot wrap; indices of loads are computed exactly as the hook does.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/MaskAnalysis.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::attn;

static constexpr int64_t kBig = int64_t(1) << 40;
/// Programs do not grow beyond this; a mask that needs more is not analysed.
static constexpr int64_t kMaxRegisters = 512;

//===----------------------------------------------------------------------===//
// Programs under construction: folding, one register for one expression
//===----------------------------------------------------------------------===//

namespace {
class ProgramBuilder {
public:
  using Op = RangeProgram::Op;
  explicit ProgramBuilder(int64_t numParams) {
    program.numParams = numParams;
    program.registers = RangeProgram::FirstParam + numParams;
    for (int64_t input : {RangeProgram::Tokens, RangeProgram::QoLen, RangeProgram::KVTotal, RangeProgram::Request})
      nonNegative.insert(input);
  }

  RangeProgram program;

  int64_t constant(int64_t value) {
    auto [it, fresh] = constants.try_emplace(value, 0);
    if (fresh) {
      it->second = append(Op::Const, value, 0);
      valueOf[it->second] = value;
      if (value >= 0)
        nonNegative.insert(it->second);
    }
    return it->second;
  }
  std::optional<int64_t> getConstant(int64_t reg) const {
    auto it = valueOf.find(reg);
    return it == valueOf.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
  bool isConstant(int64_t reg, int64_t value) const { return getConstant(reg) == value; }
  bool isNonNegative(int64_t reg) const { return nonNegative.count(reg); }

  int64_t add(int64_t a, int64_t b) {
    if (isConstant(a, 0))
      return b;
    if (isConstant(b, 0))
      return a;
    return binary(Op::Add, a, b, isNonNegative(a) && isNonNegative(b));
  }
  int64_t sub(int64_t a, int64_t b) {
    if (isConstant(b, 0))
      return a;
    if (a == b)
      return constant(0);
    return binary(Op::Sub, a, b, false);
  }
  int64_t mul(int64_t a, int64_t b) {
    if (isConstant(a, 1) || isConstant(b, 0))
      return b;
    if (isConstant(b, 1) || isConstant(a, 0))
      return a;
    return binary(Op::Mul, a, b, false);
  }
  /// floor(a / b), b a positive constant.
  int64_t div(int64_t a, int64_t b) {
    if (b == 1)
      return a;
    return binary(Op::Div, a, constant(b), isNonNegative(a));
  }
  int64_t min(int64_t a, int64_t b) {
    if (a == b || (isConstant(a, 0) && isNonNegative(b)))
      return a;
    if (isConstant(b, 0) && isNonNegative(a))
      return b;
    return binary(Op::Min, a, b, isNonNegative(a) && isNonNegative(b));
  }
  int64_t max(int64_t a, int64_t b) {
    if (a == b || (isConstant(b, 0) && isNonNegative(a)))
      return a;
    if (isConstant(a, 0) && isNonNegative(b))
      return b;
    return binary(Op::Max, a, b, isNonNegative(a) || isNonNegative(b));
  }
  int64_t load(int64_t param, int64_t index) { return lookup(Op::Load, param, index, false); }
  int64_t clamp(int64_t reg, int64_t limit = kBig) {
    if (auto value = getConstant(reg))
      return constant(std::min(std::max(*value, -limit), limit));
    if (reg < RangeProgram::FirstParam)
      return reg;
    return min(max(reg, constant(-limit)), constant(limit));
  }
  /// 1 if reg >= 0, else 0.
  int64_t isGeZero(int64_t reg) {
    if (isNonNegative(reg))
      return constant(1);
    int64_t flag = min(max(add(reg, constant(1)), constant(0)), constant(1));
    return flag;
  }
  int64_t select(int64_t flag, int64_t a, int64_t b) { return add(b, mul(flag, sub(a, b))); }
  bool isTooLong() const { return program.registers > kMaxRegisters; }

private:
  int64_t append(Op op, int64_t a, int64_t b) {
    int64_t dst = program.registers++;
    program.code.push_back({op, dst, a, b});
    return dst;
  }
  int64_t lookup(Op op, int64_t a, int64_t b, bool isNonNegative) {
    auto [it, fresh] = known.try_emplace(std::make_tuple(static_cast<int>(op), a, b), 0);
    if (fresh) {
      it->second = append(op, a, b);
      if (isNonNegative)
        nonNegative.insert(it->second);
    }
    return it->second;
  }
  int64_t binary(Op op, int64_t a, int64_t b, bool isNonNegative) {
    auto x = getConstant(a), y = getConstant(b);
    if (x && y) {
      RangeProgram one;
      one.registers = 3;
      one.code.push_back({op, 2, 0, 1});
      one.result = {2, 2, 2, 2};
      return constant(evaluateRange(one, {*x, *y}, nullptr)[0]);
    }
    return lookup(op, a, b, isNonNegative);
  }

  // Ordered maps: a constant may be any integer, and DenseMap keeps two of them for itself.
  std::map<std::tuple<int, int64_t, int64_t>, int64_t> known;
  std::map<int64_t, int64_t> constants;
  DenseMap<int64_t, int64_t> valueOf;
  DenseSet<int64_t> nonNegative;
};

//===----------------------------------------------------------------------===//
// Expressions and intervals
//===----------------------------------------------------------------------===//

/// ck * floor(k / kdiv) + cq * q + u, u in [lo, hi] (registers).
struct Linear {
  int64_t ck = 0, kdiv = 1, cq = 0, lo = 0, hi = 0;
  bool isQueryOnly() const { return ck == 0; }
};

/// Keys [lo, hi); absent: unbounded.
struct Bounds {
  std::optional<int64_t> lo, hi;
};

struct Sets {
  Bounds some, all;
};

class MaskAnalysis {
public:
  MaskAnalysis(VariantOp variant, HookOp mask) : variant(variant), mask(mask), pb(variant.getParams().size()) {
    q0 = RangeProgram::QPos0;
    q1 = pb.add(q0, pb.sub(RangeProgram::Tokens, pb.constant(1)));
  }
  RangeProgram run();

private:
  Sets unknown() { return {{}, nothing()}; }
  Bounds nothing() { return {std::nullopt, pb.constant(0)}; }
  bool isNothing(const Bounds &b) { return b.hi && pb.isConstant(*b.hi, 0); }
  Sets constant(bool value) { return value ? Sets{} : Sets{nothing(), nothing()}; }

  Bounds intersect(const Bounds &a, const Bounds &b);
  Bounds hull(const Bounds &a, const Bounds &b);
  Bounds innerUnion(const Bounds &a, const Bounds &b);
  Sets conjunction(const Sets &a, const Sets &b) { return {intersect(a.some, b.some), intersect(a.all, b.all)}; }
  Sets disjunction(const Sets &a, const Sets &b) { return {hull(a.some, b.some), innerUnion(a.all, b.all)}; }

  Sets visit(Value value, bool negate);
  Sets compute(Value value, bool negate);
  Sets compare(arith::CmpIPredicate predicate, const Linear &l, const Linear &r);
  Sets geZero(const Linear &d, int64_t offset);

  std::optional<Linear> parse(Value value);
  std::optional<Linear> parseOp(Value value);
  std::optional<Linear> combine(const Linear &a, const Linear &b, int64_t sign);
  std::pair<int64_t, int64_t> interval(const Linear &x);
  Linear uniform(int64_t reg) { return interval(reg, reg); }
  Linear interval(int64_t lo, int64_t hi) {
    Linear x;
    x.lo = lo;
    x.hi = hi;
    return x;
  }
  bool isNonNegative(const Linear &x) { return x.cq == 0 && x.ck >= 0 && pb.isNonNegative(x.lo); }

  /// The exact value with the query at register `q`; sets usedQuery when it depends on the query.
  std::optional<int64_t> exact(Value value, int64_t q);
  std::optional<int64_t> param(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner()->getParentOp() != variant.getOperation())
      return std::nullopt;
    return argument.getArgNumber();
  }

  VariantOp variant;
  HookOp mask;
  ProgramBuilder pb;
  int64_t q0, q1;
  bool usedQuery = false;
  DenseMap<std::pair<Value, unsigned>, Sets> setsOf;
  DenseMap<Value, std::optional<Linear>> linearOf;
  DenseMap<std::pair<Value, int64_t>, std::pair<std::optional<int64_t>, bool>> exactOf;
};
} // namespace

Bounds MaskAnalysis::intersect(const Bounds &a, const Bounds &b) {
  Bounds r;
  r.lo = a.lo && b.lo ? pb.max(*a.lo, *b.lo) : a.lo ? a.lo : b.lo;
  r.hi = a.hi && b.hi ? pb.min(*a.hi, *b.hi) : a.hi ? a.hi : b.hi;
  return r;
}

Bounds MaskAnalysis::hull(const Bounds &a, const Bounds &b) {
  if (isNothing(a))
    return b;
  if (isNothing(b))
    return a;
  Bounds r;
  if (a.lo && b.lo)
    r.lo = pb.min(*a.lo, *b.lo);
  if (a.hi && b.hi)
    r.hi = pb.max(*a.hi, *b.hi);
  return r;
}

/// An interval inside the union: the union where the two touch, else the longer one.
Bounds MaskAnalysis::innerUnion(const Bounds &a, const Bounds &b) {
  if (isNothing(a))
    return b;
  if (isNothing(b))
    return a;
  if (!a.lo && !b.lo)
    return hull(a, b);
  if (!a.hi && !b.hi)
    return hull(a, b);
  int64_t zero = pb.constant(0), kv = RangeProgram::KVTotal;
  auto lo = [&](const Bounds &x) { return x.lo ? pb.max(*x.lo, zero) : zero; };
  auto hi = [&](const Bounds &x) { return x.hi ? pb.min(*x.hi, kv) : kv; };
  int64_t a0 = lo(a), a1 = hi(a), b0 = lo(b), b1 = hi(b);
  int64_t touch = pb.isGeZero(pb.sub(pb.min(a1, b1), pb.max(a0, b0)));
  int64_t longer = pb.isGeZero(pb.sub(pb.sub(a1, a0), pb.sub(b1, b0)));
  int64_t p0 = pb.select(longer, a0, b0), p1 = pb.select(longer, a1, b1);
  return {pb.select(touch, pb.min(a0, b0), p0), pb.select(touch, pb.max(a1, b1), p1)};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Whether index_cast to or from this type keeps values exactly.
static bool isWide(Type type) { return type.isIndex() || type.isInteger(64); }

/// Whether `value`, cast to `type`, is a coordinate that fits.
static bool isNarrowedCoordinate(Type type, Value value) {
  return isa_and_nonnull<QPosOp, KVPosOp, RowOp, QoLenOp, KVLenOp, RequestOp>(value.getDefiningOp()) &&
         (type.isInteger(32) || isWide(type));
}

std::optional<int64_t> MaskAnalysis::exact(Value value, int64_t q) {
  auto key = std::make_pair(value, q);
  if (auto it = exactOf.find(key); it != exactOf.end()) {
    usedQuery |= it->second.second;
    return it->second.first;
  }
  bool outer = usedQuery;
  usedQuery = false;
  auto compute = [&]() -> std::optional<int64_t> {
    if (auto number = param(value))
      return value.getType().isIndex() ? std::optional<int64_t>(RangeProgram::FirstParam + *number) : std::nullopt;
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return constant.getBitWidth() <= 64 ? std::optional<int64_t>(pb.constant(constant.getSExtValue())) : std::nullopt;
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      auto number = param(load.getMemref());
      auto type = load.getMemRefType();
      if (!number || type.getRank() != 1 || !type.getElementType().isSignlessInteger())
        return std::nullopt;
      auto index = exact(load.getIndices()[0], q);
      return index ? std::optional<int64_t>(pb.load(*number, *index)) : std::nullopt;
    }
    if (isa<QPosOp>(op)) {
      usedQuery = true;
      return q;
    }
    if (isa<RowOp>(op)) {
      usedQuery = true;
      return pb.add(pb.sub(q, RangeProgram::KVTotal), RangeProgram::QoLen);
    }
    if (isa<QoLenOp>(op))
      return RangeProgram::QoLen;
    if (isa<KVLenOp>(op))
      return RangeProgram::KVTotal;
    if (isa<RequestOp>(op))
      return RangeProgram::Request;
    // Casts keep the value when they widen by sign, or narrow a coordinate.
    if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
      Value source = op->getOperand(0);
      return isWide(value.getType()) || isNarrowedCoordinate(value.getType(), source) ? exact(source, q) : std::nullopt;
    }
    if (op->getNumOperands() != 2 || !isWide(value.getType()))
      return std::nullopt;
    auto a = exact(op->getOperand(0), q), b = a ? exact(op->getOperand(1), q) : std::nullopt;
    if (!b)
      return std::nullopt;
    if (isa<arith::AddIOp>(op))
      return pb.add(*a, *b);
    if (isa<arith::SubIOp>(op))
      return pb.sub(*a, *b);
    if (isa<arith::MulIOp>(op))
      return pb.mul(*a, *b);
    if (isa<arith::MinSIOp>(op))
      return pb.min(*a, *b);
    if (isa<arith::MaxSIOp>(op))
      return pb.max(*a, *b);
    auto divisor = pb.getConstant(*b);
    if (!divisor || *divisor <= 0 || !pb.isNonNegative(*a))
      return std::nullopt;
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op))
      return pb.div(*a, *divisor);
    if (isa<arith::RemSIOp, arith::RemUIOp>(op))
      return pb.sub(*a, pb.mul(pb.div(*a, *divisor), *b));
    return std::nullopt;
  };
  std::optional<int64_t> result = compute();
  exactOf[key] = {result, usedQuery};
  usedQuery |= outer;
  return result;
}

/// Least and greatest value over the queries of the tile, of an expression without k.
std::pair<int64_t, int64_t> MaskAnalysis::interval(const Linear &x) {
  if (x.cq == 0)
    return {x.lo, x.hi};
  int64_t c = pb.constant(x.cq);
  int64_t low = pb.mul(c, x.cq > 0 ? q0 : q1), high = pb.mul(c, x.cq > 0 ? q1 : q0);
  return {pb.add(low, x.lo), pb.add(high, x.hi)};
}

/// a + sign * b.
std::optional<Linear> MaskAnalysis::combine(const Linear &a, const Linear &b, int64_t sign) {
  Linear r;
  if (a.ck && b.ck && a.kdiv != b.kdiv)
    return std::nullopt;
  r.kdiv = a.ck ? a.kdiv : b.kdiv;
  r.ck = a.ck + sign * b.ck;
  r.cq = a.cq + sign * b.cq;
  if (r.ck == 0)
    r.kdiv = 1;
  if (std::abs(r.ck) > (1 << 20) || std::abs(r.cq) > (1 << 20))
    return std::nullopt;
  r.lo = sign > 0 ? pb.add(a.lo, b.lo) : pb.sub(a.lo, b.hi);
  r.hi = sign > 0 ? pb.add(a.hi, b.hi) : pb.sub(a.hi, b.lo);
  return r;
}

std::optional<Linear> MaskAnalysis::parse(Value value) {
  if (auto it = linearOf.find(value); it != linearOf.end())
    return it->second;
  std::optional<Linear> result = parseOp(value);
  if (!result) {
    // Not linear, but perhaps a value that each query can work out by itself.
    usedQuery = false;
    if (auto first = exact(value, q0)) {
      int64_t a = pb.clamp(*first);
      if (usedQuery) {
        int64_t b = pb.clamp(*exact(value, q1));
        result = interval(pb.min(a, b), pb.max(a, b));
        pb.program.perToken = true;
      } else {
        result = uniform(a);
      }
    }
  }
  linearOf[value] = result;
  return result;
}

std::optional<Linear> MaskAnalysis::parseOp(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  Linear x = uniform(pb.constant(0));
  if (isa<QPosOp>(op)) {
    x.cq = 1;
    return x;
  }
  if (isa<KVPosOp>(op)) {
    x.ck = 1;
    return x;
  }
  if (isa<RowOp>(op)) {
    x = uniform(pb.sub(RangeProgram::QoLen, RangeProgram::KVTotal));
    x.cq = 1;
    return x;
  }
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    Value source = op->getOperand(0);
    bool wide = isWide(value.getType()) && isWide(source.getType());
    return wide || isNarrowedCoordinate(value.getType(), source) ? parse(source) : std::nullopt;
  }
  if (!isWide(value.getType()))
    return std::nullopt;
  auto operand = [&](unsigned i) { return parse(op->getOperand(i)); };
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    auto a = operand(0), b = a ? operand(1) : std::nullopt;
    return b ? combine(*a, *b, isa<arith::AddIOp>(op) ? 1 : -1) : std::nullopt;
  }
  APInt literal;
  if (isa<arith::MulIOp>(op)) {
    for (unsigned side : {0u, 1u}) {
      if (!matchPattern(op->getOperand(side), m_ConstantInt(&literal)) || literal.abs().sgt(1 << 20))
        continue;
      auto a = operand(1 - side);
      int64_t c = literal.getSExtValue();
      // floor(k / d) may only be multiplied by what geZero divides by again; large factors could wrap.
      if (!a || std::abs(a->ck * c) > (1 << 20) || std::abs(a->cq * c) > (1 << 20))
        return std::nullopt;
      int64_t reg = pb.constant(c);
      auto scale = [&](int64_t u) { return std::abs(c) <= 1 ? pb.mul(reg, u) : pb.clamp(pb.mul(reg, u)); };
      Linear r = interval(scale(c >= 0 ? a->lo : a->hi), scale(c >= 0 ? a->hi : a->lo));
      r.ck = a->ck * c;
      r.cq = a->cq * c;
      r.kdiv = r.ck ? a->kdiv : 1;
      return r;
    }
    return std::nullopt;
  }
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op)) {
    if (!matchPattern(op->getOperand(1), m_ConstantInt(&literal)) || !literal.isStrictlyPositive() ||
        literal.sgt(int64_t(1) << 31))
      return std::nullopt;
    int64_t c = literal.getSExtValue();
    auto a = operand(0);
    if (!a)
      return std::nullopt;
    if (a->ck == 1 && a->kdiv == 1 && a->cq == 0 && pb.isConstant(a->lo, 0) && pb.isConstant(a->hi, 0)) {
      a->kdiv = c; // k is never negative: all three divisions agree
      return a;
    }
    if (!a->isQueryOnly())
      return std::nullopt;
    auto [low, high] = interval(*a);
    if (isa<arith::FloorDivSIOp>(op) || pb.isNonNegative(low))
      return interval(pb.div(low, c), pb.div(high, c));
    if (isa<arith::DivUIOp>(op))
      return std::nullopt; // a negative position would be a huge number
    int64_t zero = pb.constant(0);
    auto truncated = [&](int64_t e) {
      return pb.sub(pb.div(pb.max(e, zero), c), pb.div(pb.max(pb.sub(zero, e), zero), c));
    };
    return interval(truncated(low), truncated(high));
  }
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    auto a = operand(0), b = a ? operand(1) : std::nullopt;
    if (!b || !a->isQueryOnly() || !b->isQueryOnly())
      return std::nullopt;
    auto [a0, a1] = interval(*a);
    auto [b0, b1] = interval(*b);
    if (isa<arith::MinSIOp>(op))
      return interval(pb.min(a0, b0), pb.min(a1, b1));
    return interval(pb.max(a0, b0), pb.max(a1, b1));
  }
  if (isa<arith::SelectOp>(op)) { // whichever it is
    auto a = operand(1), b = a ? operand(2) : std::nullopt;
    if (!b || !a->isQueryOnly() || !b->isQueryOnly())
      return std::nullopt;
    auto [a0, a1] = interval(*a);
    auto [b0, b1] = interval(*b);
    return interval(pb.min(a0, b0), pb.max(a1, b1));
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Booleans
//===----------------------------------------------------------------------===//

/// d + offset >= 0.
Sets MaskAnalysis::geZero(const Linear &d, int64_t offset) {
  Linear rest = d;
  rest.ck = 0;
  rest.kdiv = 1;
  if (offset) {
    rest.lo = pb.add(rest.lo, pb.constant(offset));
    rest.hi = pb.add(rest.hi, pb.constant(offset));
  }
  auto [e0, e1] = interval(rest);
  Sets sets;
  if (d.ck == 0) {
    // True for all keys or for none.
    auto whole = [&](int64_t e) -> Bounds {
      int64_t flag = pb.isGeZero(e);
      if (auto value = pb.getConstant(e))
        flag = pb.constant(*value >= 0);
      if (pb.isConstant(flag, 1))
        return {};
      if (pb.isConstant(flag, 0))
        return nothing();
      // Both bounds, so that an empty one leaves the other side of an `or` alone.
      int64_t end = pb.mul(flag, RangeProgram::KVTotal);
      return {pb.sub(RangeProgram::KVTotal, end), end};
    };
    return {whole(e1), whole(e0)};
  }
  int64_t c = std::abs(d.ck), divisor = pb.constant(d.kdiv);
  // A quotient of positions is below 2^31; more would wrap when multiplied.
  auto times = [&](int64_t quotient) {
    return d.kdiv == 1 ? quotient : pb.mul(divisor, pb.clamp(quotient, int64_t(1) << 31));
  };
  if (d.ck > 0) {
    // floor(k / kdiv) >= ceil(-e / c)
    auto bound = [&](int64_t e) {
      int64_t negated = pb.sub(pb.constant(c - 1), e);
      return times(pb.div(negated, c));
    };
    sets.some.lo = bound(e1);
    sets.all.lo = bound(e0);
    return sets;
  }
  // floor(k / kdiv) <= floor(e / c)
  auto bound = [&](int64_t e) { return times(pb.add(pb.div(e, c), pb.constant(1))); };
  sets.some.hi = bound(e1);
  sets.all.hi = bound(e0);
  return sets;
}

Sets MaskAnalysis::compare(arith::CmpIPredicate predicate, const Linear &l, const Linear &r) {
  using P = arith::CmpIPredicate;
  auto less = combine(r, l, -1), greater = combine(l, r, -1); // r - l, l - r
  if (!less || !greater)
    return unknown();
  switch (predicate) {
  case P::sle:
    return geZero(*less, 0);
  case P::slt:
    return geZero(*less, -1);
  case P::sge:
    return geZero(*greater, 0);
  case P::sgt:
    return geZero(*greater, -1);
  case P::eq:
    return conjunction(geZero(*less, 0), geZero(*greater, 0));
  case P::ne:
    return disjunction(geZero(*less, -1), geZero(*greater, -1));
  case P::ult:
  case P::ule:
  case P::uge:
  case P::ugt: {
    bool lessLike = predicate == P::ult || predicate == P::ule;
    bool strict = predicate == P::ult || predicate == P::ugt;
    // a <u b with b >= 0: 0 <= a and a < b.
    bool rightKnown = isNonNegative(r), leftKnown = isNonNegative(l);
    P asSigned = lessLike ? (strict ? P::slt : P::sle) : (strict ? P::sgt : P::sge);
    if (leftKnown && rightKnown)
      return compare(asSigned, l, r);
    if (!leftKnown && !rightKnown)
      return unknown();
    const Linear &free = rightKnown ? l : r;
    Sets negative = [&]() {
      auto minus = combine(uniform(pb.constant(0)), free, -1);
      return minus ? geZero(*minus, -1) : unknown();
    }();
    Sets isHuge = negative, notHuge = geZero(free, 0);
    bool hugeWins = rightKnown ? !lessLike : lessLike; // a negative `free` is above the other side
    Sets plain = compare(asSigned, l, r);
    return hugeWins ? disjunction(isHuge, plain) : conjunction(notHuge, plain);
  }
  }
  return unknown();
}

Sets MaskAnalysis::visit(Value value, bool negate) {
  if (pb.isTooLong())
    return unknown();
  auto key = std::make_pair(value, unsigned(negate));
  if (auto it = setsOf.find(key); it != setsOf.end())
    return it->second;
  Sets sets = compute(value, negate);
  setsOf[key] = sets;
  return sets;
}

Sets MaskAnalysis::compute(Value value, bool negate) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.getType().isInteger(1))
    return unknown();
  APInt literal;
  if (matchPattern(value, m_ConstantInt(&literal)))
    return constant(literal.isOne() != negate);
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    auto l = parse(cmp.getLhs()), r = l ? parse(cmp.getRhs()) : std::nullopt;
    if (!r)
      return unknown();
    return compare(negate ? arith::invertPredicate(cmp.getPredicate()) : cmp.getPredicate(), *l, *r);
  }
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    Sets a = visit(op->getOperand(0), negate), b = visit(op->getOperand(1), negate);
    return isa<arith::AndIOp>(op) != negate ? conjunction(a, b) : disjunction(a, b);
  }
  if (isa<arith::XOrIOp>(op)) {
    Value a = op->getOperand(0), b = op->getOperand(1);
    if (matchPattern(b, m_ConstantInt(&literal)))
      return visit(a, negate != literal.isOne());
    if (matchPattern(a, m_ConstantInt(&literal)))
      return visit(b, negate != literal.isOne());
    return disjunction(conjunction(visit(a, negate), visit(b, true)), conjunction(visit(a, !negate), visit(b, false)));
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (!select.getCondition().getType().isInteger(1))
      return unknown();
    return disjunction(conjunction(visit(select.getCondition(), false), visit(select.getTrueValue(), negate)),
                       conjunction(visit(select.getCondition(), true), visit(select.getFalseValue(), negate)));
  }
  return unknown();
}

RangeProgram MaskAnalysis::run() {
  Sets sets = visit(mask.getYield().getValue(), false);
  if (pb.isTooLong())
    return makeWholeRange(variant.getParams().size(), false);
  int64_t zero = pb.constant(0), kv = RangeProgram::KVTotal;
  auto close = [&](const Bounds &bounds) -> std::pair<int64_t, int64_t> {
    int64_t lo = bounds.lo ? pb.min(pb.max(*bounds.lo, zero), kv) : zero;
    int64_t hi = bounds.hi ? pb.min(pb.max(*bounds.hi, zero), kv) : kv;
    if (hi != kv)
      hi = pb.max(hi, lo);
    return {lo, hi};
  };
  auto [lo, hi] = close(sets.some);
  auto [fullLo, fullHi] = close(sets.all);
  pb.program.result = {lo, fullLo, fullHi, hi};
  return pb.program;
}

RangeProgram attn::analyzeMask(VariantOp variant) {
  HookOp mask = variant ? variant.getHook(HookKind::Mask) : HookOp();
  if (!mask)
    return makeWholeRange(variant ? variant.getParams().size() : 0, true);
  return MaskAnalysis(variant, mask).run();
}
