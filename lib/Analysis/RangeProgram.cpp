//===- RangeProgram.cpp - range programs as IR, as attributes, run ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/RangeProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
    return inst.op == Op::Mul || inst.op == Op::Load || isParam(inst.a) || isParam(inst.b);
  });
}

std::array<Value, 4> attn::emitRange(OpBuilder &builder, Location loc, const RangeProgram &program, ValueRange inputs) {
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
    }
  }
  // The results are positions: 32 bits hold them.
  std::array<Value, 4> range;
  for (auto [value, result] : llvm::zip_equal(range, program.result)) {
    value = regs[result];
    if (!value.getType().isIndex())
      value = toIndex(arith::TruncIOp::create(builder, loc, builder.getI32Type(), value));
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
  std::array<Value, 4> range = emitRange(builder, loc, program, func.getArguments());
  func::ReturnOp::create(builder, loc, ValueRange(range));
  return func;
}

static StringRef getOpName(RangeProgram::Op op) {
  static const StringRef names[] = {"const", "add", "sub", "mul", "div", "min", "max", "load"};
  return names[static_cast<int>(op)];
}

DictionaryAttr attn::serializeRange(MLIRContext *context, const RangeProgram &program) {
  Builder builder(context);
  SmallVector<Attribute> code;
  for (const RangeProgram::Inst &inst : program.code)
    code.push_back(builder.getArrayAttr({builder.getStringAttr(getOpName(inst.op)), builder.getI64IntegerAttr(inst.dst),
                                         builder.getI64IntegerAttr(inst.a), builder.getI64IntegerAttr(inst.b)}));
  return builder.getDictionaryAttr({builder.getNamedAttr("registers", builder.getI64IntegerAttr(program.registers)),
                                    builder.getNamedAttr("code", builder.getArrayAttr(code)),
                                    builder.getNamedAttr("result", builder.getI64ArrayAttr(program.result))});
}

std::array<int64_t, 4> attn::evaluateRange(const RangeProgram &program, ArrayRef<int64_t> inputs,
                                           function_ref<int64_t(int64_t, int64_t)> load) {
  SmallVector<int64_t> regs(program.registers, 0);
  llvm::copy(inputs, regs.begin());
  // Wrapping arithmetic, as in the kernel.
  auto wrap = [](uint64_t x) { return static_cast<int64_t>(x); };
  using Op = RangeProgram::Op;
  for (const RangeProgram::Inst &inst : program.code) {
    int64_t a = inst.op == Op::Const || inst.op == Op::Load ? inst.a : regs[inst.a];
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
      dst = load(a, b);
      break;
    }
  }
  return {regs[program.result[0]], regs[program.result[1]], regs[program.result[2]], regs[program.result[3]]};
}
