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
// Entries of a table at k + base (documents, segments, valid keys) are compared
// one by one with what the queries compare them with: a scan between the bounds
// that the rest of the conjunction leaves.
//
// Arithmetic: positions are below 2^31. Parameters, loaded values and their
// products enter a comparison clamped to +-2^40, so that a window of "infinity"
// cannot wrap; indices of loads are computed exactly as the hook does.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/MaskAnalysis.h"
#include "RangeBuilder.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Expressions and intervals
//===----------------------------------------------------------------------===//

namespace {
/// ck * floor(k / kdiv) + cq * q + u, u in [lo, hi] (registers).
struct Linear {
  int64_t ck = 0, kdiv = 1, cq = 0, lo = 0, hi = 0;
  bool isQueryOnly() const { return ck == 0; }
  bool perToken = false; // the interval holds the values of the first and the last query, not those between
};

/// Keys [lo, hi); absent: unbounded.
struct Bounds {
  std::optional<int64_t> lo, hi;
};

struct Sets {
  Bounds some, all;
};

/// The entry k + base of an integer parameter, in `bits` bits.
struct KeyEntry {
  int64_t param, base, bits;
};

class MaskAnalysis {
public:
  MaskAnalysis(VariantOp variant, HookOp mask, bool scans)
      : variant(variant), mask(mask), scans(scans), pb(variant.getParams().size()) {
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
  Sets conjoin(Operation *op, bool negate);
  Sets compare(arith::CmpIPredicate predicate, const Linear &l, const Linear &r);
  Sets geZero(const Linear &d, int64_t offset);

  bool readsByKey(Value value);
  std::optional<int64_t> parseKeyIndex(Value value);
  std::optional<KeyEntry> parseKeyEntry(Value value);
  std::optional<int64_t> getSlope(Value value);
  std::optional<std::pair<int64_t, int64_t>> getQueryValues(Value value, int64_t bits);
  std::optional<Sets> compareEntries(arith::CmpIPredicate predicate, Value lhs, Value rhs);
  std::pair<int64_t, int64_t> close(const Bounds &bounds);

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
  bool scans;
  RangeBuilder pb;
  Bounds found;       // what the scan made last says of `holds`
  Bounds clip;        // keys outside are hidden by another part of the conjunction
  bool isTerm = true; // what is visited is a term of the mask's own conjunction
  int64_t q0, q1;
  bool usedQuery = false;
  std::map<std::tuple<void *, bool, int64_t, int64_t>, Sets> setsOf; // with the clip
  DenseMap<Value, bool> byKey;
  DenseMap<Value, Bounds> holds; // of comparisons that scan: keys for which they do, or other terms do not
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
  r.perToken = a.perToken || b.perToken;
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
        result->perToken = true;
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
      r.perToken = a->perToken;
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
    auto made = [&](int64_t lo, int64_t hi) {
      Linear r = interval(lo, hi);
      r.perToken = a->perToken;
      return r;
    };
    if (isa<arith::FloorDivSIOp>(op) || pb.isNonNegative(low))
      return made(pb.div(low, c), pb.div(high, c));
    if (isa<arith::DivUIOp>(op))
      return std::nullopt; // a negative position would be a huge number
    int64_t zero = pb.constant(0);
    auto truncated = [&](int64_t e) {
      return pb.sub(pb.div(pb.max(e, zero), c), pb.div(pb.max(pb.sub(zero, e), zero), c));
    };
    return made(truncated(low), truncated(high));
  }
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    auto a = operand(0), b = a ? operand(1) : std::nullopt;
    if (!b || !a->isQueryOnly() || !b->isQueryOnly())
      return std::nullopt;
    auto [a0, a1] = interval(*a);
    auto [b0, b1] = interval(*b);
    Linear r =
        isa<arith::MinSIOp>(op) ? interval(pb.min(a0, b0), pb.min(a1, b1)) : interval(pb.max(a0, b0), pb.max(a1, b1));
    r.perToken = a->perToken || b->perToken;
    return r;
  }
  if (isa<arith::SelectOp>(op)) { // whichever it is
    auto a = operand(1), b = a ? operand(2) : std::nullopt;
    if (!b || !a->isQueryOnly() || !b->isQueryOnly())
      return std::nullopt;
    auto [a0, a1] = interval(*a);
    auto [b0, b1] = interval(*b);
    Linear r = interval(pb.min(a0, b0), pb.max(a1, b1));
    r.perToken = a->perToken || b->perToken;
    return r;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Tables by key
//===----------------------------------------------------------------------===//

/// Bits of an integer that every target has.
static unsigned getValueBits(Type type) { return type.isIndex() ? 32 : type.getIntOrFloatBitWidth(); }

/// Whether the elements are integers that tables may have.
static bool isTable(MemRefType type) {
  Type element = type.getElementType();
  return type.getRank() == 1 && type.getLayout().isIdentity() &&
         (element.isSignlessInteger(8) || element.isSignlessInteger(32) || element.isSignlessInteger(64));
}

/// Whether the value depends on a table's entry at the key's position.
bool MaskAnalysis::readsByKey(Value value) {
  auto [it, fresh] = byKey.try_emplace(value, false);
  if (!fresh)
    return it->second;
  Operation *op = value.getDefiningOp();
  bool reads = false;
  if (op && isa<memref::LoadOp>(op))
    reads = parseKeyEntry(value).has_value();
  else if (op)
    reads = llvm::any_of(op->getOperands(), [&](Value operand) { return readsByKey(operand); });
  byKey[value] = reads;
  return reads;
}

/// The base of an index k + base.
std::optional<int64_t> MaskAnalysis::parseKeyIndex(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<KVPosOp>(op))
    return pb.constant(0);
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    bool narrowed = isa_and_nonnull<KVPosOp>(op->getOperand(0).getDefiningOp()) && value.getType().isInteger(32);
    return isWide(value.getType()) || narrowed ? parseKeyIndex(op->getOperand(0)) : std::nullopt;
  }
  if (!isa<arith::AddIOp, arith::SubIOp>(op) || !isWide(value.getType()))
    return std::nullopt;
  bool swapped = isa<arith::AddIOp>(op) && !parseKeyIndex(op->getOperand(0));
  auto base = parseKeyIndex(op->getOperand(swapped));
  if (!base)
    return std::nullopt;
  usedQuery = false;
  auto other = exact(op->getOperand(!swapped), q0);
  if (!other || usedQuery)
    return std::nullopt;
  return isa<arith::AddIOp>(op) ? pb.add(*base, *other) : pb.sub(*base, *other);
}

std::optional<KeyEntry> MaskAnalysis::parseKeyEntry(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isa<arith::IndexCastOp, arith::ExtSIOp>(op)) { // keep the value
    auto entry = parseKeyEntry(op->getOperand(0));
    Type to = value.getType();
    return entry && getValueBits(to) >= entry->bits ? entry : std::nullopt;
  }
  auto load = dyn_cast_or_null<memref::LoadOp>(op);
  auto number = load ? param(load.getMemref()) : std::nullopt;
  if (!number || !scans)
    return std::nullopt;
  if (!isTable(load.getMemRefType()))
    return std::nullopt;
  auto base = parseKeyIndex(load.getIndices()[0]);
  return base ? std::optional<KeyEntry>({*number, *base, load.getMemRefType().getElementTypeBitWidth()}) : std::nullopt;
}

/// How far an index moves, at most, from one query to the next, when it never falls.
std::optional<int64_t> MaskAnalysis::getSlope(Value value) {
  usedQuery = false;
  if (!exact(value, q0))
    return std::nullopt;
  if (!usedQuery)
    return 0;
  Operation *op = value.getDefiningOp();
  if (isa<QPosOp, RowOp>(op))
    return 1;
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return getSlope(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::nullopt;
  auto a = getSlope(op->getOperand(0)), b = getSlope(op->getOperand(1));
  if (!a || !b || (isa<arith::SubIOp>(op) && *b != 0))
    return std::nullopt;
  return isa<arith::AddIOp>(op) ? *a + *b : std::max(*a, *b);
}

/// Least and greatest value that the queries compare an entry of `bits` bits with.
std::optional<std::pair<int64_t, int64_t>> MaskAnalysis::getQueryValues(Value value, int64_t bits) {
  Value source = value;
  while (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(source.getDefiningOp())) {
    Value from = source.getDefiningOp()->getOperand(0);
    if (from.getType().isIndex() || getValueBits(source.getType()) < getValueBits(from.getType()))
      break;
    source = from;
  }
  if (auto load = source.getDefiningOp<memref::LoadOp>()) {
    auto number = param(load.getMemref());
    if (number && isTable(load.getMemRefType())) {
      // Entries between the first and the last query's are those of the queries between.
      auto slope = getSlope(load.getIndices()[0]);
      if (slope && *slope == 1) {
        int64_t from = *exact(load.getIndices()[0], q0), last = *exact(load.getIndices()[0], q1);
        return pb.extent(*number, from, pb.add(last, pb.constant(1)));
      }
    }
  }
  // Clamped values would meet clamped entries of 64 bits.
  auto linear = bits < 64 ? parse(value) : std::nullopt;
  if (!linear || !linear->isQueryOnly())
    return std::nullopt;
  pb.program.perToken |= linear->perToken;
  return interval(*linear);
}

/// As many as travel with the fields of an item (tile-stream-items); of further comparisons nothing is known.
static constexpr int64_t kMaxScans = 4;

static int64_t countScans(const RangeProgram &program) {
  return llvm::count_if(program.code, [](auto &inst) { return inst.op == RangeProgram::Op::Scan; });
}

/// A comparison of a table's entry at the key with what does not depend on the key.
std::optional<Sets> MaskAnalysis::compareEntries(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
  using P = arith::CmpIPredicate;
  auto entry = parseKeyEntry(lhs);
  if (!entry) {
    entry = parseKeyEntry(rhs);
    std::swap(lhs, rhs);
    static const P mirrored[] = {P::eq, P::ne, P::sgt, P::sge, P::slt, P::sle, P::ugt, P::uge, P::ult, P::ule};
    predicate = mirrored[static_cast<int>(predicate)];
  }
  if (!entry || predicate > P::sge || readsByKey(rhs) || countScans(pb.program) >= kMaxScans)
    return std::nullopt;
  auto values = getQueryValues(rhs, entry->bits);
  if (!values)
    return std::nullopt;
  auto [least, most] = *values;
  int64_t lowest = pb.constant(std::numeric_limits<int64_t>::min());
  int64_t highest = pb.constant(std::numeric_limits<int64_t>::max());
  // Intervals of entries for which it is true with some query and with all; < is not >=, > is not <=.
  std::array<int64_t, 4> bounds;
  int64_t flags = 0;
  switch (predicate) {
  case P::eq:
    bounds = {least, most, most, least};
    break;
  case P::ne:
    bounds = {most, least, least, most};
    flags = RangeProgram::SomeOutside | RangeProgram::AllOutside;
    break;
  case P::sle:
    bounds = {lowest, most, lowest, least};
    break;
  case P::sge:
    bounds = {least, highest, most, highest};
    break;
  case P::slt:
    bounds = {most, highest, least, highest};
    flags = RangeProgram::SomeOutside | RangeProgram::AllOutside;
    break;
  default:
    bounds = {lowest, least, lowest, most};
    flags = RangeProgram::SomeOutside | RangeProgram::AllOutside;
    break;
  }
  auto [from, to] = close(clip);
  int64_t first = pb.scan(entry->param, entry->base, {from, to, bounds[0], bounds[1], bounds[2], bounds[3], flags});
  // What the rest of the conjunction hides may have any entry.
  int64_t begins = pb.isGeZero(pb.sub(from, first + 2)), ends = pb.isGeZero(pb.sub(first + 3, to));
  int64_t far = pb.constant(int64_t(1) << 30);
  found = Bounds{pb.select(begins, pb.constant(0), first + 2), pb.select(ends, far, first + 3)};
  return Sets{{first, first + 1}, {first + 2, first + 3}};
}

//===----------------------------------------------------------------------===//
// Booleans
//===----------------------------------------------------------------------===//

/// d + offset >= 0.
Sets MaskAnalysis::geZero(const Linear &d, int64_t offset) {
  pb.program.perToken |= d.perToken;
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
  auto key = std::make_tuple(value.getAsOpaquePointer(), negate, clip.lo.value_or(-1), clip.hi.value_or(-1));
  if (auto it = setsOf.find(key); it != setsOf.end())
    return it->second;
  Sets sets = compute(value, negate);
  setsOf[key] = sets;
  return sets;
}

/// Parts that scan come last, between the bounds of the others.
Sets MaskAnalysis::conjoin(Operation *op, bool negate) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (readsByKey(a) && !readsByKey(b))
    std::swap(a, b);
  Sets first = visit(a, negate);
  Bounds outer = clip;
  if (readsByKey(b))
    clip = intersect(clip, first.some);
  Sets both = conjunction(first, visit(b, negate));
  clip = outer;
  return both;
}

Sets MaskAnalysis::compute(Value value, bool negate) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.getType().isInteger(1))
    return unknown();
  auto outer = llvm::make_scope_exit([this, before = isTerm] { isTerm = before; });
  isTerm &= !negate && isa<arith::AndIOp, arith::CmpIOp>(op);
  APInt literal;
  if (matchPattern(value, m_ConstantInt(&literal)))
    return constant(literal.isOne() != negate);
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    auto predicate = negate ? arith::invertPredicate(cmp.getPredicate()) : cmp.getPredicate();
    if (readsByKey(value)) {
      auto sets = compareEntries(predicate, cmp.getLhs(), cmp.getRhs());
      if (sets && isTerm) // once: a term that comes again is clipped by itself
        holds.try_emplace(value, found);
      return sets ? *sets : unknown();
    }
    auto l = parse(cmp.getLhs()), r = l ? parse(cmp.getRhs()) : std::nullopt;
    if (!r)
      return unknown();
    return compare(predicate, *l, *r);
  }
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    if (isa<arith::AndIOp>(op) != negate)
      return conjoin(op, negate);
    Sets a = visit(op->getOperand(0), negate), b = visit(op->getOperand(1), negate);
    return disjunction(a, b);
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

/// The bounds as 0 <= lo <= hi <= kv_total.
std::pair<int64_t, int64_t> MaskAnalysis::close(const Bounds &bounds) {
  int64_t zero = pb.constant(0), kv = RangeProgram::KVTotal;
  int64_t lo = bounds.lo ? pb.min(pb.max(*bounds.lo, zero), kv) : zero;
  int64_t hi = bounds.hi ? pb.min(pb.max(*bounds.hi, zero), kv) : kv;
  if (hi != kv)
    hi = pb.max(hi, lo);
  return {lo, hi};
}

RangeProgram MaskAnalysis::run() {
  Sets sets = visit(mask.getYield().getValue(), false);
  if (pb.isTooLong())
    return makeWholeRange(variant.getParams().size(), false);
  auto [lo, hi] = close(sets.some);
  auto [fullLo, fullHi] = close(sets.all);
  pb.program.result = {lo, fullLo, fullHi, hi};
  SmallVector<Value> terms = getMaskTerms(mask);
  Bounds all;
  for (Value term : terms) {
    if (!looksUpKey(term))
      continue;
    auto it = holds.find(term);
    if (it == holds.end() || terms.size() == 1)
      return pb.program;
    all = intersect(all, it->second);
  }
  if (all.lo)
    pb.program.lookups = {*all.lo, *all.hi};
  return pb.program;
}

RangeProgram attn::analyzeMask(VariantOp variant, bool scans) {
  HookOp mask = variant ? variant.getHook(HookKind::Mask) : HookOp();
  if (!mask)
    return makeWholeRange(variant ? variant.getParams().size() : 0, true);
  RangeProgram program = MaskAnalysis(variant, mask, scans).run();
  // Scans for each token by itself would cost more than they save.
  if (program.perToken && program.hasScans())
    return analyzeMask(variant, /*scans=*/false);
  return program;
}
