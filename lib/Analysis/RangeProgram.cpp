//===- RangeProgram.cpp - range programs as IR, as attributes, run ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/RangeProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

std::optional<int64_t> RangeProgram::getConstant(int64_t reg) const {
  for (const Inst &inst : code)
    if (inst.dst == reg && inst.op == Op::Const)
      return inst.a;
  return std::nullopt;
}

bool RangeProgram::seesAll() const { return getConstant(result[0]) == 0 && result[3] == KVTotal; }

bool RangeProgram::hasNoInterior() const {
  auto lo = getConstant(result[1]), hi = getConstant(result[2]);
  return lo && hi && *lo >= *hi;
}

bool RangeProgram::hasScans() const {
  return llvm::any_of(code, [](const Inst &inst) { return inst.op == Op::Scan; });
}

int64_t RangeProgram::getLength() const {
  int64_t length = 0;
  for (const Inst &inst : code)
    length += inst.op == Op::Scan ? 48 : inst.op == Op::Extent ? 16 : 1;
  return length;
}

RangeProgram attn::makeWholeRange(int64_t numParams, bool full) {
  RangeProgram program;
  program.numParams = numParams;
  int64_t zero = RangeProgram::FirstParam + numParams;
  program.registers = zero + 1;
  program.code.push_back({RangeProgram::Op::Const, zero, 0, 0});
  program.result = {zero, zero, full ? int64_t(RangeProgram::KVTotal) : zero, RangeProgram::KVTotal};
  return program;
}

/// Sums of two lengths stay within 32 bits, which is what an index has on a GPU; anything else may not.
static bool needsWide(const RangeProgram &program) {
  using Op = RangeProgram::Op;
  int64_t firstParam = RangeProgram::FirstParam, afterParams = firstParam + program.numParams;
  auto isParam = [&](int64_t reg) { return reg >= firstParam && reg < afterParams; };
  return llvm::any_of(program.code, [&](const RangeProgram::Inst &inst) {
    if (inst.op == Op::Const)
      return !llvm::isInt<16>(inst.a);
    return inst.op >= Op::Load || inst.op == Op::Mul || isParam(inst.a) || isParam(inst.b);
  });
}

/// Entry `index` of `table`, with a sign, in 64 bits.
static Value loadEntry(OpBuilder &builder, Location loc, Value table, Value index) {
  Value entry = memref::LoadOp::create(builder, loc, table, index);
  Type i64 = builder.getI64Type();
  return entry.getType() == i64 ? entry : arith::ExtSIOp::create(builder, loc, i64, entry).getResult();
}

SmallVector<Value> attn::emitExtentLoop(OpBuilder &builder, Location loc, Value table, Value from, Value to) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, builder.getI64Type(), value);
  };
  Value none = number(0), one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> init = {number(std::numeric_limits<int64_t>::max()), number(std::numeric_limits<int64_t>::min())};
  auto loop =
      scf::ForOp::create(builder, loc, from, to, one, init, [&](OpBuilder &b, Location, Value at, ValueRange state) {
        Value entry = loadEntry(b, loc, table, at);
        Value least = arith::MinSIOp::create(b, loc, state[0], entry);
        Value most = arith::MaxSIOp::create(b, loc, state[1], entry);
        scf::YieldOp::create(b, loc, ValueRange{least, most});
      });
  Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, from, to);
  return {arith::SelectOp::create(builder, loc, some, loop.getResult(0), none),
          arith::SelectOp::create(builder, loc, some, loop.getResult(1), none)};
}

SmallVector<Value> attn::emitScanLoop(OpBuilder &builder, Location loc, Value table, Value base, Value from, Value to,
                                      ValueRange bounds, int64_t flags) {
  using arith::CmpIPredicate;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0), one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value none = arith::MaxSIOp::create(builder, loc, from, to);
  // The interval of `some`; that of `all` and how many meet it.
  auto loop = scf::ForOp::create(
      builder, loc, from, to, one, ValueRange{none, from, none, from, zero},
      [&](OpBuilder &b, Location, Value at, ValueRange state) {
        Value entry = loadEntry(b, loc, table, arith::AddIOp::create(b, loc, base, at));
        Value next = arith::AddIOp::create(b, loc, at, one);
        SmallVector<Value> results;
        for (int64_t condition : {0, 1}) {
          Value above = arith::CmpIOp::create(b, loc, CmpIPredicate::sge, entry, bounds[2 * condition]);
          Value below = arith::CmpIOp::create(b, loc, CmpIPredicate::sle, entry, bounds[2 * condition + 1]);
          Value meets = arith::AndIOp::create(b, loc, above, below);
          if (flags >> condition & 1)
            meets = arith::XOrIOp::create(b, loc, meets, arith::ConstantIntOp::create(b, loc, 1, 1));
          Value least = arith::MinSIOp::create(b, loc, state[2 * condition], at);
          results.push_back(arith::SelectOp::create(b, loc, meets, least, state[2 * condition]));
          results.push_back(arith::SelectOp::create(b, loc, meets, next, state[2 * condition + 1]));
          if (condition) {
            Value count = arith::AddIOp::create(b, loc, state[4], one);
            results.push_back(arith::SelectOp::create(b, loc, meets, count, state[4]));
          }
        }
        scf::YieldOp::create(b, loc, results);
      });
  Value extent = arith::SubIOp::create(builder, loc, loop.getResult(3), loop.getResult(2));
  Value whole = arith::CmpIOp::create(builder, loc, CmpIPredicate::eq, extent, loop.getResult(4));
  return {loop.getResult(0), loop.getResult(1), arith::SelectOp::create(builder, loc, whole, loop.getResult(2), none),
          arith::SelectOp::create(builder, loc, whole, loop.getResult(3), from)};
}

/// Lookups as loops.
static SmallVector<Value> emitLookupLoop(OpBuilder &builder, Location loc, const RangeProgram::Inst &inst,
                                         ValueRange operands) {
  if (inst.op == RangeProgram::Op::Extent)
    return emitExtentLoop(builder, loc, operands[0], operands[1], operands[2]);
  return emitScanLoop(builder, loc, operands[0], operands[1], operands[2], operands[3], operands.drop_front(4),
                      inst.more[6]);
}

SmallVector<Value> attn::emitRange(OpBuilder &builder, Location loc, const RangeProgram &program, ValueRange inputs,
                                   EmitLookup emitLookup) {
  SmallVector<Value> regs(program.registers);
  bool wide = needsWide(program);
  Type index = builder.getIndexType(), i64 = builder.getI64Type();
  auto toIndex = [&](Value v) -> Value {
    return v.getType().isIndex() ? v : arith::IndexCastOp::create(builder, loc, index, v);
  };
  for (auto [i, input] : llvm::enumerate(inputs))
    regs[i] = input;
  // Inputs are widened where they are used first.
  auto reg = [&](int64_t i) -> Value {
    if (wide && regs[i].getType().isIndex())
      regs[i] = arith::IndexCastOp::create(builder, loc, i64, regs[i]);
    return regs[i];
  };
  auto toWide = [&](Value v) -> Value {
    return v.getType() == i64 ? v : arith::IndexCastOp::create(builder, loc, i64, v).getResult();
  };
  using Op = RangeProgram::Op;
  for (const RangeProgram::Inst &inst : program.code) {
    Value &dst = regs[inst.dst];
    switch (inst.op) {
    case Op::Const:
      dst = wide ? Value(arith::ConstantIntOp::create(builder, loc, i64, inst.a))
                 : Value(arith::ConstantIndexOp::create(builder, loc, inst.a));
      break;
    case Op::Add:
      dst = arith::AddIOp::create(builder, loc, reg(inst.a), reg(inst.b));
      break;
    case Op::Sub:
      dst = arith::SubIOp::create(builder, loc, reg(inst.a), reg(inst.b));
      break;
    case Op::Mul:
      dst = arith::MulIOp::create(builder, loc, reg(inst.a), reg(inst.b));
      break;
    case Op::Div:
      dst = arith::FloorDivSIOp::create(builder, loc, reg(inst.a), reg(inst.b));
      break;
    case Op::Min:
      dst = arith::MinSIOp::create(builder, loc, reg(inst.a), reg(inst.b));
      break;
    case Op::Max:
      dst = arith::MaxSIOp::create(builder, loc, reg(inst.a), reg(inst.b));
      break;
    case Op::Load: {
      Value buffer = inputs[RangeProgram::FirstParam + inst.a];
      dst = memref::LoadOp::create(builder, loc, buffer, ValueRange(toIndex(regs[inst.b])));
      if (!wide)
        dst = toIndex(dst);
      else if (dst.getType() != i64)
        dst = arith::ExtSIOp::create(builder, loc, i64, dst);
      break;
    }
    case Op::Extent:
    case Op::Scan: {
      SmallVector<Value> operands = {inputs[RangeProgram::FirstParam + inst.a], toIndex(regs[inst.b])};
      for (int64_t place : llvm::seq<int64_t>(inst.op == Op::Scan ? 6 : 1))
        operands.push_back(place < 2 ? toIndex(regs[inst.more[place]]) : reg(inst.more[place]));
      for (auto [number, value] : llvm::enumerate(emitLookup(builder, loc, inst, operands)))
        regs[inst.dst + number] = toWide(value);
      break;
    }
    }
  }
  // The results are positions: 32 bits hold them.
  SmallVector<int64_t> results(program.result.begin(), program.result.end());
  if (program.lookups)
    llvm::append_range(results, *program.lookups);
  SmallVector<Value> range;
  for (int64_t result : results) {
    Value value = regs[result];
    if (!value.getType().isIndex())
      value = toIndex(arith::TruncIOp::create(builder, loc, builder.getI32Type(), value));
    range.push_back(value);
  }
  return range;
}

func::FuncOp attn::buildRangeFunction(OpBuilder &builder, Location loc, StringRef name, const RangeProgram &program,
                                      TypeRange params) {
  Type index = builder.getIndexType();
  SmallVector<Type> inputs(RangeProgram::FirstParam, index);
  llvm::append_range(inputs, params);
  auto type = builder.getFunctionType(inputs, SmallVector<Type>(4, index));
  auto func = func::FuncOp::create(builder, loc, name, type);
  func->setAttr("attn.range", serializeRange(builder.getContext(), program));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(func.addEntryBlock());
  SmallVector<Value> range = emitRange(builder, loc, program, func.getArguments(), emitLookupLoop);
  func::ReturnOp::create(builder, loc, ValueRange(range).take_front(4));
  return func;
}

static StringRef getOpName(RangeProgram::Op op) {
  static const StringRef names[] = {"const", "add", "sub", "mul", "div", "min", "max", "load", "extent", "scan"};
  return names[static_cast<int>(op)];
}

DictionaryAttr attn::serializeRange(MLIRContext *context, const RangeProgram &program) {
  Builder builder(context);
  SmallVector<Attribute> code;
  for (const RangeProgram::Inst &inst : program.code) {
    SmallVector<Attribute> line = {builder.getStringAttr(getOpName(inst.op))};
    SmallVector<int64_t> numbers = {inst.dst, inst.a, inst.b};
    llvm::append_range(numbers, inst.more);
    for (int64_t n : numbers)
      line.push_back(builder.getI64IntegerAttr(n));
    code.push_back(builder.getArrayAttr(line));
  }
  return builder.getDictionaryAttr({builder.getNamedAttr("registers", builder.getI64IntegerAttr(program.registers)),
                                    builder.getNamedAttr("code", builder.getArrayAttr(code)),
                                    builder.getNamedAttr("result", builder.getI64ArrayAttr(program.result))});
}

namespace {
/// Buffers as the evaluation sees them.
struct Tables {
  function_ref<int64_t(int64_t, int64_t)> load;
  bool constant; // one entry everywhere
};
} // namespace

static void evaluateScan(const RangeProgram::Inst &inst, ArrayRef<int64_t> regs, const Tables &tables, int64_t *dst) {
  int64_t from = regs[inst.more[0]], to = regs[inst.more[1]];
  int64_t first[2] = {std::max(from, to), std::max(from, to)}, last[2] = {from, from}, count = 0;
  auto meets = [&](int64_t entry, int condition) {
    bool inside = entry >= regs[inst.more[2 + 2 * condition]] && entry <= regs[inst.more[3 + 2 * condition]];
    return inside != static_cast<bool>(inst.more[6] >> condition & 1);
  };
  if (tables.constant && from < to) {
    for (int condition : {0, 1})
      if (meets(tables.load(inst.a, 0), condition))
        first[condition] = from, last[condition] = to;
    count = to - from;
  } else {
    for (int64_t i = from; i < to; ++i) {
      int64_t entry = tables.load(inst.a, static_cast<int64_t>(uint64_t(regs[inst.b]) + uint64_t(i)));
      for (int condition : {0, 1})
        if (meets(entry, condition)) {
          first[condition] = std::min(first[condition], i);
          last[condition] = i + 1;
          count += condition;
        }
    }
  }
  bool whole = last[1] - first[1] == count;
  dst[0] = first[0], dst[1] = last[0];
  dst[2] = whole ? first[1] : std::max(from, to), dst[3] = whole ? last[1] : from;
}

static std::array<int64_t, 4> evaluate(const RangeProgram &program, ArrayRef<int64_t> inputs, const Tables &tables) {
  SmallVector<int64_t> regs(program.registers, 0);
  llvm::copy(inputs, regs.begin());
  // Wrapping arithmetic, as in the kernel.
  auto wrap = [](uint64_t x) { return static_cast<int64_t>(x); };
  using Op = RangeProgram::Op;
  for (const RangeProgram::Inst &inst : program.code) {
    int64_t a = inst.op == Op::Const || inst.op >= Op::Load ? inst.a : regs[inst.a];
    int64_t b = inst.op == Op::Const ? 0 : regs[inst.b];
    int64_t &dst = regs[inst.dst];
    switch (inst.op) {
    case Op::Const:
      dst = a;
      break;
    case Op::Add:
      dst = wrap(uint64_t(a) + uint64_t(b));
      break;
    case Op::Sub:
      dst = wrap(uint64_t(a) - uint64_t(b));
      break;
    case Op::Mul:
      dst = wrap(uint64_t(a) * uint64_t(b));
      break;
    case Op::Div:
      dst = b == 0 ? 0 : b == -1 ? wrap(-uint64_t(a)) : llvm::divideFloorSigned(a, b);
      break;
    case Op::Min:
      dst = std::min(a, b);
      break;
    case Op::Max:
      dst = std::max(a, b);
      break;
    case Op::Load:
      dst = tables.load(a, b);
      break;
    case Op::Extent: {
      int64_t to = tables.constant ? std::min(b + 1, regs[inst.more[0]]) : regs[inst.more[0]];
      int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
      for (int64_t i = b; i < to; ++i) {
        least = std::min(least, tables.load(a, i));
        most = std::max(most, tables.load(a, i));
      }
      regs[inst.dst] = b < to ? least : 0;
      regs[inst.dst + 1] = b < to ? most : 0;
      break;
    }
    case Op::Scan:
      evaluateScan(inst, regs, tables, &dst);
      break;
    }
  }
  return {regs[program.result[0]], regs[program.result[1]], regs[program.result[2]], regs[program.result[3]]};
}

std::array<int64_t, 4> attn::evaluateRange(const RangeProgram &program, ArrayRef<int64_t> inputs,
                                           function_ref<int64_t(int64_t, int64_t)> load) {
  return evaluate(program, inputs, {load, false});
}

std::array<int64_t, 4> attn::evaluateRange(const RangeProgram &program, ArrayRef<int64_t> inputs, int64_t entry) {
  return evaluate(program, inputs, {[&](int64_t, int64_t) { return entry; }, true});
}
