//===- Scalar.cpp - evaluation of arith, math, scf and memref.load ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an op computes is ScalarOps'; here floats are rounded to their type.
//
//===----------------------------------------------------------------------===//

#include "Scalar.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::interp;

double tile::roundTo(FloatType type, double value) {
  if (type.isF32())
    return static_cast<float>(value);
  if (type.isF64() || std::isnan(value))
    return value;
  if (type.isBF16()) {
    float single = static_cast<float>(value); // kernels round f32 values
    uint32_t bits;
    memcpy(&bits, &single, 4);
    if (!std::isinf(single))
      bits += 0x7FFF + ((bits >> 16) & 1);
    bits &= 0xFFFF0000u;
    memcpy(&single, &bits, 4);
    return single;
  }
  llvm::APFloat number(value);
  bool lossy;
  number.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  return number.convertToDouble();
}

Buffer::Buffer(Type element, ArrayRef<int64_t> shape) : element(element), shape(shape) {
  int64_t size = 1;
  strides.resize(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = size;
    size *= shape[i];
  }
  data.resize(size, Word{});
  fill(0);
}

int64_t Buffer::getIndex(ArrayRef<int64_t> at) const {
  if (at.size() != shape.size())
    return -1;
  int64_t index = offset;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || at[i] >= shape[i])
      return -1;
    index += at[i] * strides[i];
  }
  return index >= 0 && index < static_cast<int64_t>(data.size()) ? index : -1;
}

void Buffer::fill(double value) {
  Word word = {};
  if (isFloat())
    word.f = value;
  else
    word.i = std::isnan(value) ? 0 : static_cast<int64_t>(value);
  llvm::fill(data, word);
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

namespace {
enum Kind : int {
  kUnknown = -1,
  // Control and memory.
  kIf,
  kFor,
  kCall,
  kLoad,
  kDim,
  kConstant,
  kSelect,
  // ScalarOps.
  kInteger,
  kDivision,
  kFloat,
  kCompareF,
  kIntegerToFloat,
  kFloatToInteger,
  // What only kernels have, from the expansion of math.
  kMulExtended,
  kCtlz,
  kBitcast
};
} // namespace

static Kind getKind(Operation *op) {
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp>(op))
    return kDivision;
  if (::attn::findIntegerFn(op))
    return kInteger;
  if (::attn::findFloatFn(op))
    return kFloat;
  return llvm::TypeSwitch<Operation *, Kind>(op)
      .Case<scf::IfOp>([](auto) { return kIf; })
      .Case<scf::ForOp>([](auto) { return kFor; })
      .Case<func::CallOp>([](auto) { return kCall; })
      .Case<memref::LoadOp>([](auto) { return kLoad; })
      .Case<memref::DimOp>([](auto) { return kDim; })
      .Case<arith::ConstantOp>([](auto) { return kConstant; })
      .Case<arith::SelectOp>([](auto) { return kSelect; })
      .Case<arith::CmpFOp>([](auto) { return kCompareF; })
      .Case<arith::SIToFPOp, arith::UIToFPOp>([](auto) { return kIntegerToFloat; })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([](auto) { return kFloatToInteger; })
      .Case<arith::MulSIExtendedOp, arith::MulUIExtendedOp>([](auto) { return kMulExtended; })
      .Case<math::CountLeadingZerosOp>([](auto) { return kCtlz; })
      .Case<arith::BitcastOp>([](auto) { return kBitcast; })
      .Default([](Operation *) { return kUnknown; });
}

/// Whether the values of this type are words that the functions below take.
static bool isScalar(Type type) { return type.isIntOrIndexOrFloat() && ::attn::scalarWidth(type) <= 64; }

void interp::decode(Operation *op, Instr &instr) {
  instr.op = op;
  instr.kind = getKind(op);
  instr.integer = ::attn::findIntegerFn(op);
  instr.real = ::attn::findFloatFn(op);
  instr.compare = ::attn::findCompareFn(op);
  if (op->getNumOperands())
    instr.from = op->getOperand(0).getType();
  if (op->getNumResults())
    instr.to = op->getResult(0).getType();
  // Vectors and tensors are no scalars.
  if (instr.kind >= kInteger && !(isScalar(instr.from) && isScalar(instr.to)))
    instr.kind = kUnknown;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto f = dyn_cast<FloatAttr>(constant.getValue()))
      instr.constant.f = f.getValueAsDouble();
    else if (auto i = dyn_cast<IntegerAttr>(constant.getValue()); i && i.getValue().getBitWidth() <= 64)
      instr.constant.i = ::attn::wrapInteger(i.getValue().getZExtValue(), ::attn::scalarWidth(i.getType()));
    else
      instr.kind = kUnknown;
  }
}

static uint64_t toBits(Type type, Word word) {
  auto f = dyn_cast<FloatType>(type);
  if (!f)
    return ::attn::unsignedValue(word.i, ::attn::scalarWidth(type));
  llvm::APFloat number(word.f);
  bool lossy;
  number.convert(f.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  return number.bitcastToAPInt().getZExtValue();
}
static Word fromBits(Type type, uint64_t bits) {
  Word word = {};
  auto f = dyn_cast<FloatType>(type);
  if (!f) {
    word.i = ::attn::wrapInteger(bits, ::attn::scalarWidth(type));
    return word;
  }
  llvm::APFloat number(f.getFloatSemantics(), llvm::APInt(f.getWidth(), bits));
  bool lossy;
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  word.f = number.convertToDouble();
  return word;
}

static bool fail(std::optional<Failure> &failure, Operation *op, const Twine &message) {
  if (!failure)
    failure = Failure{op->getLoc(), message.str()};
  return false;
}

bool interp::runInstr(const Instr &instr, MutableArrayRef<Word> frame, std::optional<Failure> &failure,
                      int64_t &steps) {
  if (--steps < 0)
    return fail(failure, instr.op, "runs endlessly (more steps than the interpreter's limit)");
  auto in = [&](unsigned i) { return i < instr.in.size() ? frame[instr.in[i]] : Word{}; };
  auto set = [&](unsigned i, Word word) { frame[instr.out[i]] = word; };
  unsigned width = instr.kind >= kInteger ? ::attn::scalarWidth(instr.from) : 0;
  switch (instr.kind) {
  case kConstant:
    set(0, instr.constant);
    return true;
  case kSelect:
    set(0, in(0).i ? in(1) : in(2));
    return true;
  case kDivision:
    // In a kernel a division by zero is a mistake: hooks have been freed of it.
    if (::attn::unsignedValue(in(1).i, width) == 0)
      return fail(failure, instr.op, "divides by zero");
    [[fallthrough]];
  case kInteger: {
    Word r = {};
    r.i = ::attn::wrapInteger(instr.integer(in(0).i, in(1).i, width), ::attn::scalarWidth(instr.to));
    set(0, r);
    return true;
  }
  case kFloat:
  case kIntegerToFloat: {
    Word r = {};
    if (instr.kind == kFloat)
      r.f = instr.real(in(0).f, in(1).f, in(2).f);
    else if (isa<arith::SIToFPOp>(instr.op))
      r.f = static_cast<double>(::attn::signedValue(in(0).i, width));
    else
      r.f = static_cast<double>(::attn::unsignedValue(in(0).i, width));
    r.f = roundTo(cast<FloatType>(instr.to), r.f);
    set(0, r);
    return true;
  }
  case kCompareF: {
    Word r = {};
    r.i = instr.compare(in(0).f, in(1).f);
    set(0, r);
    return true;
  }
  case kFloatToInteger: {
    Word r = {};
    r.i = ::attn::floatToInteger(in(0).f, ::attn::scalarWidth(instr.to), isa<arith::FPToSIOp>(instr.op));
    set(0, r);
    return true;
  }
  case kMulExtended: {
    bool isSigned = isa<arith::MulSIExtendedOp>(instr.op);
    llvm::APInt a(width, ::attn::unsignedValue(in(0).i, width)), b(width, ::attn::unsignedValue(in(1).i, width));
    llvm::APInt r = isSigned ? a.sext(2 * width) * b.sext(2 * width) : a.zext(2 * width) * b.zext(2 * width);
    Word low = {}, high = {};
    low.i = ::attn::wrapInteger(r.trunc(width).getZExtValue(), width);
    high.i = ::attn::wrapInteger(r.extractBits(width, width).getZExtValue(), width);
    set(0, low);
    set(1, high);
    return true;
  }
  case kCtlz: {
    Word r = {};
    r.i = ::attn::wrapInteger(llvm::APInt(width, ::attn::unsignedValue(in(0).i, width)).countl_zero(), width);
    set(0, r);
    return true;
  }
  case kBitcast:
    set(0, fromBits(instr.to, toBits(instr.from, in(0))));
    return true;
  case kLoad: {
    Buffer *buffer = in(0).p;
    SmallVector<int64_t, 4> at;
    for (unsigned i = 1; i < instr.in.size(); ++i)
      at.push_back(in(i).i);
    int64_t index = buffer ? buffer->getIndex(at) : -1;
    if (index < 0) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "reads outside of its buffer, at (";
      llvm::interleaveComma(at, os);
      os << ")";
      return fail(failure, instr.op, text);
    }
    set(0, buffer->data[index]);
    return true;
  }
  case kDim: {
    Buffer *buffer = in(0).p;
    int64_t dim = in(1).i;
    if (!buffer || dim < 0 || dim >= static_cast<int64_t>(buffer->shape.size()))
      return fail(failure, instr.op, "asks for a dimension that its buffer has not");
    Word r = {};
    r.i = buffer->shape[dim];
    set(0, r);
    return true;
  }
  case kIf: {
    const Code *code = instr.regions[in(0).i ? 0 : 1].get();
    if (!code)
      return true;
    if (!runCode(*code, frame, failure, steps))
      return false;
    for (auto [to, from] : llvm::zip(instr.out, code->results))
      frame[to] = frame[from];
    return true;
  }
  case kFor: {
    const Code &code = *instr.regions[0];
    int64_t hi = in(1).i, step = in(2).i;
    if (step <= 0)
      return fail(failure, instr.op, "has a step that is not positive");
    SmallVector<Word, 4> carried;
    for (unsigned i = 3; i < instr.in.size(); ++i)
      carried.push_back(in(i));
    for (int64_t i = in(0).i; i < hi; i += step) {
      frame[code.args[0]].i = i;
      for (auto [k, word] : llvm::enumerate(carried))
        frame[code.args[k + 1]] = word;
      if (!runCode(code, frame, failure, steps))
        return false;
      for (auto [k, slot] : llvm::enumerate(code.results))
        carried[k] = frame[slot];
    }
    for (auto [k, word] : llvm::enumerate(carried))
      set(k, word);
    return true;
  }
  case kCall: {
    // The callee has a frame of its own.
    SmallVector<Word, 32> inner(instr.frameSize, Word{});
    for (auto [i, slot] : llvm::enumerate(instr.callee->args))
      inner[slot] = in(i);
    if (!runCode(*instr.callee, inner, failure, steps))
      return false;
    for (auto [i, slot] : llvm::enumerate(instr.callee->results))
      set(i, inner[slot]);
    return true;
  }
  default:
    return fail(failure, instr.op,
                Twine("'") + instr.op->getName().getStringRef() + "' is not known to the interpreter");
  }
}

bool interp::runCode(const Code &code, MutableArrayRef<Word> frame, std::optional<Failure> &failure, int64_t &steps) {
  for (const Instr &instr : code.instrs)
    if (!runInstr(instr, frame, failure, steps))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Decoding of bodies
//===----------------------------------------------------------------------===//

bool Compiler::build(Block &block, Code &code, Body &body, DenseMap<Value, int> &slots, Region *top,
                     std::optional<Failure> &failure) {
  auto define = [&](Value value) { return slots[value] = body.frame++; };
  auto use = [&](Value value) {
    auto it = slots.find(value);
    if (it != slots.end())
      return it->second;
    int slot = define(value);
    body.captures.emplace_back(value, slot);
    return slot;
  };
  for (BlockArgument arg : block.getArguments())
    code.args.push_back(define(arg));
  for (Operation &op : block) {
    if (isa<YieldOp, scf::YieldOp, func::ReturnOp>(op)) {
      for (Value operand : op.getOperands())
        code.results.push_back(use(operand));
      continue;
    }
    Instr instr;
    decode(&op, instr);
    if (instr.kind < 0 || (op.getNumResults() && !op.getResult(0).getType().isIntOrIndexOrFloat()))
      return fail(failure, &op, Twine("'") + op.getName().getStringRef() + "' is not known to the interpreter");
    for (Value operand : op.getOperands())
      instr.in.push_back(use(operand));
    for (Region &region : op.getRegions()) {
      instr.regions.push_back(nullptr);
      if (region.empty())
        continue;
      instr.regions.back() = std::make_unique<Code>();
      if (!build(region.front(), *instr.regions.back(), body, slots, top, failure))
        return false;
    }
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(&op, call.getCalleeAttr());
      if (!callee || callee.isExternal() || !llvm::hasSingleElement(callee.getBody()))
        return fail(failure, &op, "calls a function that has no body of one block");
      Body *inner = get(callee.getBody().front(), failure);
      if (!inner)
        return false;
      instr.callee = &inner->code;
      instr.frameSize = inner->frame;
    }
    for (Value result : op.getResults())
      instr.out.push_back(define(result));
    code.instrs.push_back(std::move(instr));
  }
  return true;
}

Body *Compiler::get(Block &block, std::optional<Failure> &failure) {
  auto [it, fresh] = bodies.try_emplace(&block);
  if (!fresh) {
    if (!it->second)
      fail(failure, block.getParentOp(), "calls itself");
    return it->second.get();
  }
  auto body = std::make_unique<Body>();
  DenseMap<Value, int> slots;
  if (!build(block, body->code, *body, slots, block.getParent(), failure))
    return nullptr;
  return (bodies[&block] = std::move(body)).get();
}
