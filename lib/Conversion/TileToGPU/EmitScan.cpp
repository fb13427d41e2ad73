//===- EmitScan.cpp - lookups of many entries of a table, by a warp ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tile.scan, entries of 32 bits: 16 bytes at a time where they are aligned; four
// entries count as one, by their least and greatest. What lies in front of the
// first 16 bytes and behind the last is loaded by six lanes. Several loads are
// in flight: entries come from far, and nobody computes meanwhile.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;
using LLVM::ICmpPredicate;

static constexpr int64_t kInFlight = 8; // loads of a lane

static Value minimum(Emitter &e, Value a, Value c) { return e.select(e.compare(ICmpPredicate::slt, a, c), a, c); }
static Value maximum(Emitter &e, Value a, Value c) { return e.select(e.compare(ICmpPredicate::sgt, a, c), a, c); }

/// Over the lanes of the warp. i64 has no redux.sync (PTX ISA 9.7.13.8).
static Value reduce(Emitter &e, Value v, NVVM::ReduxKind kind) {
  if (v.getType() == e.i32)
    return NVVM::ReduxOp::create(e.b, e.loc, e.i32, v, kind, e.c32(-1));
  for (int64_t mask : {16, 8, 4, 2, 1}) {
    Value low = e.shuffleXor(LLVM::TruncOp::create(e.b, e.loc, e.i32, v), mask);
    Value high = e.shuffleXor(LLVM::TruncOp::create(e.b, e.loc, e.i32, e.shr(v, 32)), mask);
    Value upper = LLVM::ShlOp::create(e.b, e.loc, LLVM::ZExtOp::create(e.b, e.loc, e.i64, high), e.c64(32));
    Value other = e.bitOr(upper, LLVM::ZExtOp::create(e.b, e.loc, e.i64, low));
    v = kind == NVVM::ReduxKind::MIN ? minimum(e, v, other) : maximum(e, v, other);
  }
  return v;
}

namespace {
/// A table as the op sees it: entries are compared as i32, or i64.
struct Table {
  Value pointer; // to the entry 0 of the op
  Type stored, compared;
  int64_t bytes() const { return stored.getIntOrFloatBitWidth() / 8; }
};

/// Where a condition is met.
struct Found {
  Value first, last;
};

/// An interval of entries, in the type that they are compared in.
struct Condition {
  Value lo, hi;
  bool outside;
};

/// What a lane has found.
struct State {
  Found some, all;
  Value count; // numbers that meet `all`
  SmallVector<Value> flatten() const { return {some.first, some.last, all.first, all.last, count}; }
  static State from(ValueRange v) { return {{v[0], v[1]}, {v[2], v[3]}, v[4]}; }
};
} // namespace

static FailureOr<Table> getTable(Emitter &e, Operation *op, Value memref, Index base) {
  auto arg = dyn_cast<BlockArgument>(memref);
  if (!arg || arg.getOwner() != &e.kernel.getBody().front())
    return op->emitError() << "reads a buffer that is not an argument of the kernel";
  Table table;
  table.stored = cast<MemRefType>(memref.getType()).getElementType();
  table.compared = table.stored == e.i64 ? e.i64 : e.i32;
  table.pointer =
      LLVM::GEPOp::create(e.b, e.loc, e.global, table.stored, e.pointer(memref), ArrayRef<LLVM::GEPArg>{e.widen(base)});
  return table;
}

/// The entry `number` (i32, which exists), with a sign.
static Value loadEntry(Emitter &e, const Table &table, Value number) {
  Value at = LLVM::GEPOp::create(e.b, e.loc, e.global, table.stored, table.pointer, ArrayRef<LLVM::GEPArg>{number});
  Value v = LLVM::LoadOp::create(e.b, e.loc, table.stored, at, table.bytes());
  return table.stored == table.compared ? v : LLVM::SExtOp::create(e.b, e.loc, table.compared, v).getResult();
}

/// The interval's part within 32 bits; when there is none, an interval that ends before it begins.
static std::pair<Value, Value> narrowBounds(Emitter &e, Value lo, Value hi) {
  Value least = e.c64(INT32_MIN), most = e.c64(INT32_MAX);
  Value none = e.bitOr(e.compare(ICmpPredicate::sgt, lo, most), e.compare(ICmpPredicate::slt, hi, least));
  auto narrow = [&](Value v, int64_t empty) {
    Value clamped = minimum(e, maximum(e, v, least), most);
    return e.select(none, e.c32(empty), LLVM::TruncOp::create(e.b, e.loc, e.i32, clamped));
  };
  return {narrow(lo, INT32_MAX), narrow(hi, INT32_MIN)};
}

/// Adds the `extent` entries from `number` on, which lie between `least` and `most`, where `counts` (null: always).
static void note(Emitter &e, State &state, ArrayRef<Condition> conditions, Value least, Value most, Value number,
                 int64_t extent, Value counts) {
  Value end = e.add(number, e.c32(extent));
  for (auto [i, c, found] : llvm::enumerate(conditions, ArrayRef<Found *>{&state.some, &state.all})) {
    // That some entry is above a bound depends on the greatest, that all are on the least.
    Value high = i == 0 ? most : least, low = i == 0 ? least : most, meets;
    if (c.outside)
      meets = e.bitOr(e.compare(ICmpPredicate::slt, low, c.lo), e.compare(ICmpPredicate::sgt, high, c.hi));
    else
      meets = e.bitAnd(e.compare(ICmpPredicate::sge, high, c.lo), e.compare(ICmpPredicate::sle, low, c.hi));
    if (counts)
      meets = e.bitAnd(meets, counts);
    found->first = e.select(meets, minimum(e, found->first, number), found->first);
    found->last = e.select(meets, maximum(e, found->last, end), found->last);
    if (i == 1)
      state.count = e.select(meets, e.add(state.count, e.c32(extent)), state.count);
  }
}

static LogicalResult emitScan(Emitter &e, ScanOp op) {
  FailureOr<Table> made = getTable(e, op, op.getTable(), e.index(op.getBase()));
  if (failed(made))
    return failure();
  const Table table = *made;
  Value from = e.narrow(e.index(op.getFrom())), to = e.narrow(e.index(op.getTo()));
  SmallVector<Condition> conditions;
  for (auto [lo, hi, outside] : {std::tuple(op.getSomeLo(), op.getSomeHi(), op.getSomeOutside()),
                                 std::tuple(op.getAllLo(), op.getAllHi(), op.getAllOutside())}) {
    std::pair<Value, Value> bounds{e.scalar(lo), e.scalar(hi)};
    if (table.compared == e.i32)
      bounds = narrowBounds(e, bounds.first, bounds.second);
    conditions.push_back({bounds.first, bounds.second, outside});
  }
  Value lane = e.group.lane, none = e.c32(INT32_MAX), least = e.c32(INT32_MIN);
  State state{{none, least}, {none, least}, e.c32(0)};

  // [from, start) and [end, to) one by one, [start, end) in steps of `extent`.
  const int64_t extent = table.stored == e.i32 ? 4 : 1;
  Value start = from, steps = maximum(e, e.sub(to, from), e.c32(0)), edge, edgeExists;
  if (extent > 1) {
    Value first = LLVM::GEPOp::create(e.b, e.loc, e.global, table.stored, table.pointer, ArrayRef<LLVM::GEPArg>{from});
    Value address = LLVM::TruncOp::create(e.b, e.loc, e.i32, LLVM::PtrToIntOp::create(e.b, e.loc, e.i64, first));
    start = e.add(from, e.bitAnd(e.sub(e.c32(0), e.shr(address, 2)), e.c32(3)));
    steps = e.shr(maximum(e, e.sub(to, start), e.c32(0)), 2);
    Value end = e.add(start, e.mul(steps, e.c32(4)));
    Value inFront = e.compare(ICmpPredicate::slt, lane, e.c32(3));
    Value number = e.select(inFront, e.add(from, lane), e.add(end, e.sub(lane, e.c32(3))));
    Value behind = e.select(inFront, minimum(e, start, to), to);
    edgeExists = e.bitAnd(e.compare(ICmpPredicate::slt, number, behind), e.compare(ICmpPredicate::slt, lane, e.c32(6)));
    Block *look = e.newBlock(), *join = e.newBlock({e.i32});
    LLVM::CondBrOp::create(e.b, e.loc, edgeExists, look, ValueRange(), join, ValueRange{e.c32(0)});
    e.enter(look);
    Value entry = loadEntry(e, table, number);
    LLVM::BrOp::create(e.b, e.loc, ValueRange{entry}, join);
    e.enter(join);
    edge = join->getArgument(0);
    note(e, state, conditions, edge, edge, number, 1, edgeExists);
  }

  SmallVector<Type> types(6, e.i32);
  Block *header = e.newBlock(types), *body = e.newBlock(), *exit = e.newBlock();
  SmallVector<Value> init = state.flatten();
  init.push_back(lane);
  LLVM::BrOp::create(e.b, e.loc, init, header);
  e.enter(header);
  state = State::from(header->getArguments());
  Value step = header->getArgument(5);
  Value more = e.compare(ICmpPredicate::slt, e.sub(step, lane), steps); // the same for all lanes
  LLVM::CondBrOp::create(e.b, e.loc, more, body, exit);
  e.enter(body);
  Value last = e.sub(steps, e.c32(1));
  SmallVector<Value> lows, highs, numbers, exists;
  for (int64_t i = 0; i < kInFlight; ++i) {
    Value at = e.add(step, e.c32(32 * i));
    exists.push_back(e.compare(ICmpPredicate::slt, at, steps));
    numbers.push_back(e.add(start, e.mul(minimum(e, at, last), e.c32(extent))));
    if (extent == 1) {
      Value entry = loadEntry(e, table, numbers.back());
      lows.push_back(entry);
      highs.push_back(entry);
      continue;
    }
    Value address =
        LLVM::GEPOp::create(e.b, e.loc, e.global, e.i32, table.pointer, ArrayRef<LLVM::GEPArg>{numbers.back()});
    Regs four = e.ptx("ld.global.nc.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l", address,
                      SmallVector<Type>(4, e.i32), /*effects=*/false);
    lows.push_back(minimum(e, minimum(e, four[0], four[1]), minimum(e, four[2], four[3])));
    highs.push_back(maximum(e, maximum(e, four[0], four[1]), maximum(e, four[2], four[3])));
  }
  for (int64_t i = 0; i < kInFlight; ++i)
    note(e, state, conditions, lows[i], highs[i], numbers[i], extent, exists[i]);
  SmallVector<Value> next = state.flatten();
  next.push_back(e.add(step, e.c32(32 * kInFlight)));
  branchBack(e, header, next);
  e.enter(exit);

  state = State::from(header->getArguments());

  Value nobody = maximum(e, from, to);
  Value count = reduce(e, state.count, NVVM::ReduxKind::ADD);
  SmallVector<Value> results;
  for (const Found &found : {state.some, state.all}) {
    results.push_back(minimum(e, reduce(e, found.first, NVVM::ReduxKind::MIN), nobody));
    results.push_back(maximum(e, reduce(e, found.last, NVVM::ReduxKind::MAX), from));
  }
  Value whole = e.compare(ICmpPredicate::eq, e.sub(results[3], results[2]), count);
  results[2] = e.select(whole, results[2], nobody);
  results[3] = e.select(whole, results[3], from);
  for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
    e.indices[result] = {value, 0};
  return success();
}

static LogicalResult emitExtent(Emitter &e, ExtentOp op) {
  FailureOr<Table> table = getTable(e, op, op.getTable(), Index());
  if (failed(table))
    return failure();
  Value from = e.narrow(e.index(op.getFrom())), to = e.narrow(e.index(op.getTo())), lane = e.group.lane;
  Type type = table->compared;
  auto constant = [&](int64_t narrow, int64_t wide) { return type == e.i32 ? e.c32(narrow) : e.c64(wide); };
  Block *header = e.newBlock({e.i32, type, type}), *body = e.newBlock(), *exit = e.newBlock();
  LLVM::BrOp::create(e.b, e.loc, ValueRange{from, constant(INT32_MAX, INT64_MAX), constant(INT32_MIN, INT64_MIN)},
                     header);
  e.enter(header);
  Value at = header->getArgument(0), least = header->getArgument(1), most = header->getArgument(2);
  LLVM::CondBrOp::create(e.b, e.loc, e.compare(ICmpPredicate::slt, at, to), body, exit);
  e.enter(body);
  SmallVector<Value> entries;
  Value last = e.sub(to, e.c32(1));
  for (int64_t i = 0; i < kInFlight; ++i)
    entries.push_back(loadEntry(e, *table, minimum(e, e.add(e.add(at, lane), e.c32(32 * i)), last)));
  for (Value entry : entries) {
    least = minimum(e, least, entry);
    most = maximum(e, most, entry);
  }
  branchBack(e, header, {e.add(at, e.c32(32 * kInFlight)), least, most});
  e.enter(exit);
  Value some = e.compare(ICmpPredicate::slt, from, to);
  for (auto [result, value, kind] : {std::tuple(op.getLeast(), header->getArgument(1), NVVM::ReduxKind::MIN),
                                     std::tuple(op.getMost(), header->getArgument(2), NVVM::ReduxKind::MAX)}) {
    Value v = reduce(e, value, kind);
    if (type == e.i32)
      v = LLVM::SExtOp::create(e.b, e.loc, e.i64, v);
    e.scalars[result] = e.select(some, v, e.c64(0));
  }
  return success();
}

void tile::populateScan(Emitter &e) {
  e.on<ExtentOp>(emitExtent);
  e.on<ScanOp>(emitScan);
}
