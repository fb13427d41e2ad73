//===- Program.cpp - straight-line IR as callable code ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One closure per op over offsets into a frame. Integers are kept as the
// sign-extended value of their width (i1: 0 or 1); nothing that IR can say
// traps: division by zero gives 0, an out-of-range shift 0, an out-of-range
// conversion the nearest value, a load out of bounds 0 and an error.
//
//===----------------------------------------------------------------------===//

#include "attn/HookEval/Program.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::attn;

namespace attn {

void EvalErrors::report(std::string text) {
  std::lock_guard<std::mutex> guard(lock);
  if (first.empty())
    first = std::move(text);
}

std::string EvalErrors::take() {
  std::lock_guard<std::mutex> guard(lock);
  std::string text = std::move(first);
  first.clear();
  return text;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Sign-extends the low `width` bits; i1 is 0 or 1.
static int64_t wrap(uint64_t value, unsigned width) {
  if (width == 1)
    return int64_t(value & 1);
  if (width >= 64)
    return int64_t(value);
  return int64_t(value << (64 - width)) >> (64 - width);
}
static uint64_t unsignedOf(int64_t value, unsigned width) {
  return width >= 64 ? uint64_t(value) : uint64_t(value) & ((uint64_t(1) << width) - 1);
}
/// i1 read as a signed number is 0 or -1.
static int64_t signedOf(int64_t value, unsigned width) { return width == 1 ? -(value & 1) : value; }

static ref::Storage storageOf(Type type) {
  return type.isF16() ? ref::Storage::F16 : type.isBF16() ? ref::Storage::BF16 : ref::Storage::F32;
}

static int64_t divide(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
}
static int64_t remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

static int64_t toInteger(double x, unsigned width, bool isSigned) {
  if (std::isnan(x))
    return 0;
  x = std::trunc(x);
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0, high = std::ldexp(1.0, isSigned ? width - 1 : width);
  if (x < low)
    return isSigned ? wrap(uint64_t(1) << (width - 1), width) : 0;
  if (x >= high)
    return isSigned ? wrap((uint64_t(1) << (width - 1)) - 1, width) : wrap(~uint64_t(0), width);
  return isSigned ? int64_t(x) : wrap(uint64_t(x), width);
}

static double maximum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
static double minimum(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }

//===----------------------------------------------------------------------===//
// Translation
//===----------------------------------------------------------------------===//

using Slot = Program::Slot;
using Step = Program::Step;

class ProgramBuilder {
public:
  ProgramBuilder(const DenseMap<Value, HookParam> &params, EvalPrecision precision, std::shared_ptr<EvalErrors> errors)
      : params(params), strict(precision == EvalPrecision::Float), errors(std::move(errors)) {}

  FailureOr<Program> build(Block &block);

private:
  LogicalResult translate(Block &block, std::vector<Step> &steps);
  FailureOr<Step> step(Operation *op);
  FailureOr<Step> arith(Operation *op);
  FailureOr<Step> convert(Operation *op);
  FailureOr<Step> math(Operation *op);
  FailureOr<Step> load(memref::LoadOp op);
  FailureOr<Step> branch(scf::IfOp op);
  FailureOr<Step> rope(RopeOp op);
  FailureOr<Step> constant(arith::ConstantOp op);

  FailureOr<Slot> define(Value value);
  FailureOr<Slot> use(Value value);

  /// result lane = fn(operand lanes) on floats.
  template <typename Fn> FailureOr<Step> floats(Operation *op, Fn fn);
  template <typename Fn> FailureOr<Step> ints(Operation *op, Fn fn);
  FailureOr<SmallVector<Slot>> operands(Operation *op);

  const DenseMap<Value, HookParam> &params;
  bool strict;
  std::shared_ptr<EvalErrors> errors;
  DenseMap<Value, Slot> slots;
  Program program;
};

FailureOr<Slot> ProgramBuilder::define(Value value) {
  Slot slot;
  Type type = value.getType();
  if (auto vector = dyn_cast<VectorType>(type)) {
    slot.lanes = vector.getNumElements();
    type = vector.getElementType();
  }
  if (type.isF32() || type.isF16() || type.isBF16()) {
    slot.width = type.getIntOrFloatBitWidth();
  } else if (type.isIndex() || type.isSignlessInteger()) {
    slot.isFloat = false;
    slot.width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  } else {
    return emitError(value.getLoc()) << "the hook evaluator has no values of type " << value.getType();
  }
  Frame &frame = program.initial;
  slot.offset = slot.isFloat ? frame.f.size() : frame.i.size();
  if (slot.isFloat)
    frame.f.resize(frame.f.size() + slot.lanes);
  else
    frame.i.resize(frame.i.size() + slot.lanes);
  slots[value] = slot;
  return slot;
}

FailureOr<Slot> ProgramBuilder::use(Value value) {
  auto it = slots.find(value);
  if (it != slots.end())
    return it->second;
  auto param = params.find(value);
  if (param != params.end()) {
    FailureOr<Slot> slot = define(value);
    if (failed(slot))
      return failure();
    if (slot->isFloat)
      program.initial.f[slot->offset] = double(float(param->second.f32));
    else
      program.initial.i[slot->offset] = param->second.index;
    return slot;
  }
  // A constant of the variant's body.
  if (auto op = value.getDefiningOp<arith::ConstantOp>()) {
    if (failed(constant(op)))
      return failure();
    return slots[value];
  }
  return emitError(value.getLoc()) << "the hook evaluator knows no value for this";
}

FailureOr<SmallVector<Slot>> ProgramBuilder::operands(Operation *op) {
  SmallVector<Slot> result;
  for (Value operand : op->getOperands()) {
    FailureOr<Slot> slot = use(operand);
    if (failed(slot))
      return failure();
    result.push_back(*slot);
  }
  return result;
}

/// fp32 rounding of a result when asked for.
static double rounded(double x, bool strict) { return strict ? double(float(x)) : x; }

template <typename Fn> FailureOr<Step> ProgramBuilder::floats(Operation *op, Fn fn) {
  auto in = operands(op);
  if (failed(in))
    return failure();
  FailureOr<Slot> out = define(op->getResult(0));
  if (failed(out))
    return failure();
  int64_t a = (*in)[0].offset, b = in->size() > 1 ? (*in)[1].offset : a, c = in->size() > 2 ? (*in)[2].offset : a;
  int64_t d = out->offset, lanes = out->lanes;
  bool round = strict;
  return Step([=](Frame &frame) {
    double *f = frame.f.data();
    for (int64_t lane = 0; lane < lanes; ++lane)
      f[d + lane] = rounded(fn(f[a + lane], f[b + lane], f[c + lane]), round);
  });
}

template <typename Fn> FailureOr<Step> ProgramBuilder::ints(Operation *op, Fn fn) {
  auto in = operands(op);
  if (failed(in))
    return failure();
  FailureOr<Slot> out = define(op->getResult(0));
  if (failed(out))
    return failure();
  int64_t a = (*in)[0].offset, b = in->size() > 1 ? (*in)[1].offset : a, d = out->offset, lanes = out->lanes;
  unsigned width = (*in)[0].width, outWidth = out->width;
  return Step([=](Frame &frame) {
    int64_t *i = frame.i.data();
    for (int64_t lane = 0; lane < lanes; ++lane)
      i[d + lane] = wrap(uint64_t(fn(i[a + lane], i[b + lane], width)), outWidth);
  });
}

//===----------------------------------------------------------------------===//
// arith
//===----------------------------------------------------------------------===//

static bool compareInts(arith::CmpIPredicate predicate, int64_t a, int64_t b, unsigned width) {
  int64_t sa = signedOf(a, width), sb = signedOf(b, width);
  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return sa < sb;
  case arith::CmpIPredicate::sle:
    return sa <= sb;
  case arith::CmpIPredicate::sgt:
    return sa > sb;
  case arith::CmpIPredicate::sge:
    return sa >= sb;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return false;
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::OEQ:
    return !unordered && a == b;
  case arith::CmpFPredicate::OGT:
    return !unordered && a > b;
  case arith::CmpFPredicate::OGE:
    return !unordered && a >= b;
  case arith::CmpFPredicate::OLT:
    return !unordered && a < b;
  case arith::CmpFPredicate::OLE:
    return !unordered && a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  }
  return false;
}

FailureOr<Step> ProgramBuilder::constant(arith::ConstantOp op) {
  FailureOr<Slot> slot = define(op.getResult());
  if (failed(slot))
    return failure();
  Attribute value = op.getValue();
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (!dense.isSplat())
      return op.emitError() << "the hook evaluator has no constants but scalars and splats";
    value = dense.getSplatValue<Attribute>();
  }
  Frame &frame = program.initial;
  if (slot->isFloat) {
    double number = cast<FloatAttr>(value).getValueAsDouble();
    std::fill_n(frame.f.begin() + slot->offset, slot->lanes, number);
  } else {
    int64_t number = wrap(cast<IntegerAttr>(value).getValue().getZExtValue(), slot->width);
    std::fill_n(frame.i.begin() + slot->offset, slot->lanes, number);
  }
  return Step();
}

FailureOr<Step> ProgramBuilder::arith(Operation *op) {
  auto inF = [&](auto fn) { return floats(op, fn); };
  auto inI = [&](auto fn) { return ints(op, fn); };
  using namespace mlir::arith;
  return TypeSwitch<Operation *, FailureOr<Step>>(op)
      .Case<ConstantOp>([&](auto o) { return constant(o); })
      .Case<AddFOp>([&](auto) { return inF([](double a, double b, double) { return a + b; }); })
      .Case<SubFOp>([&](auto) { return inF([](double a, double b, double) { return a - b; }); })
      .Case<MulFOp>([&](auto) { return inF([](double a, double b, double) { return a * b; }); })
      .Case<DivFOp>([&](auto) { return inF([](double a, double b, double) { return a / b; }); })
      .Case<NegFOp>([&](auto) { return inF([](double a, double, double) { return -a; }); })
      .Case<MaximumFOp>([&](auto) { return inF([](double a, double b, double) { return maximum(a, b); }); })
      .Case<MinimumFOp>([&](auto) { return inF([](double a, double b, double) { return minimum(a, b); }); })
      .Case<MaxNumFOp>([&](auto) { return inF([](double a, double b, double) { return std::fmax(a, b); }); })
      .Case<MinNumFOp>([&](auto) { return inF([](double a, double b, double) { return std::fmin(a, b); }); })
      .Case<AddIOp>([&](auto) { return inI([](uint64_t a, uint64_t b, unsigned) { return a + b; }); })
      .Case<SubIOp>([&](auto) { return inI([](uint64_t a, uint64_t b, unsigned) { return a - b; }); })
      .Case<MulIOp>([&](auto) { return inI([](uint64_t a, uint64_t b, unsigned) { return a * b; }); })
      .Case<AndIOp>([&](auto) { return inI([](uint64_t a, uint64_t b, unsigned) { return a & b; }); })
      .Case<OrIOp>([&](auto) { return inI([](uint64_t a, uint64_t b, unsigned) { return a | b; }); })
      .Case<XOrIOp>([&](auto) { return inI([](uint64_t a, uint64_t b, unsigned) { return a ^ b; }); })
      .Case<DivSIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) { return divide(signedOf(a, w), signedOf(b, w)); });
      })
      .Case<RemSIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) { return remainder(signedOf(a, w), signedOf(b, w)); });
      })
      .Case<DivUIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) {
          uint64_t d = unsignedOf(b, w);
          return d ? unsignedOf(a, w) / d : 0;
        });
      })
      .Case<RemUIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) {
          uint64_t d = unsignedOf(b, w);
          return d ? unsignedOf(a, w) % d : 0;
        });
      })
      .Case<MaxSIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) { return std::max(signedOf(a, w), signedOf(b, w)); });
      })
      .Case<MinSIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) { return std::min(signedOf(a, w), signedOf(b, w)); });
      })
      .Case<MaxUIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) { return std::max(unsignedOf(a, w), unsignedOf(b, w)); });
      })
      .Case<MinUIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) { return std::min(unsignedOf(a, w), unsignedOf(b, w)); });
      })
      .Case<ShLIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) {
          uint64_t s = unsignedOf(b, w);
          return s >= w ? 0 : uint64_t(a) << s;
        });
      })
      .Case<ShRUIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) {
          uint64_t s = unsignedOf(b, w);
          return s >= w ? 0 : unsignedOf(a, w) >> s;
        });
      })
      .Case<ShRSIOp>([&](auto) {
        return inI([](int64_t a, int64_t b, unsigned w) {
          uint64_t s = unsignedOf(b, w);
          return s >= w ? 0 : signedOf(a, w) >> s;
        });
      })
      .Case<CmpIOp>([&](CmpIOp o) {
        return inI([p = o.getPredicate()](int64_t a, int64_t b, unsigned w) { return compareInts(p, a, b, w); });
      })
      .Case<TruncIOp, ExtSIOp, IndexCastOp>(
          [&](auto) { return inI([](int64_t a, int64_t, unsigned w) { return signedOf(a, w); }); })
      .Case<ExtUIOp, IndexCastUIOp>(
          [&](auto) { return inI([](int64_t a, int64_t, unsigned w) { return unsignedOf(a, w); }); })
      .Case<TruncFOp>([&](TruncFOp o) {
        ref::Storage type = storageOf(getElementTypeOrSelf(o.getType()));
        return inF([type](double a, double, double) { return ref::roundTo(type, a); });
      })
      .Case<ExtFOp>([&](auto) { return inF([](double a, double, double) { return a; }); })
      .Default([&](Operation *) { return convert(op); });
}

/// Ops between floats and integers, and select.
FailureOr<Step> ProgramBuilder::convert(Operation *op) {
  using namespace mlir::arith;
  auto in = operands(op);
  if (failed(in))
    return failure();
  if (!isa<CmpFOp, SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, BitcastOp, SelectOp>(op))
    return op->emitError() << "the hook evaluator does not know '" << op->getName() << "'";
  FailureOr<Slot> out = define(op->getResult(0));
  if (failed(out))
    return failure();
  int64_t lanes = out->lanes, d = out->offset, a = (*in)[0].offset, b = in->size() > 1 ? (*in)[1].offset : a;
  unsigned fromWidth = (*in)[0].width, toWidth = out->width;
  bool round = strict;
  if (auto compare = dyn_cast<CmpFOp>(op))
    return Step([=, p = compare.getPredicate()](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        frame.i[d + lane] = compareFloats(p, frame.f[a + lane], frame.f[b + lane]);
    });
  if (isa<SIToFPOp, UIToFPOp>(op))
    return Step([=, isSigned = isa<SIToFPOp>(op)](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t x = frame.i[a + lane];
        // Straight to float: by way of double an i64 would be rounded twice.
        frame.f[d + lane] = isSigned ? (round ? double(float(signedOf(x, fromWidth))) : double(signedOf(x, fromWidth)))
                            : round  ? double(float(unsignedOf(x, fromWidth)))
                                     : double(unsignedOf(x, fromWidth));
      }
    });
  if (isa<FPToSIOp, FPToUIOp>(op))
    return Step([=, isSigned = isa<FPToSIOp>(op)](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        frame.i[d + lane] = toInteger(frame.f[a + lane], toWidth, isSigned);
    });
  if (isa<BitcastOp>(op)) {
    bool fromFloat = (*in)[0].isFloat, toFloat = out->isFloat;
    ref::Storage fromType = storageOf(getElementTypeOrSelf(op->getOperand(0).getType()));
    ref::Storage toType = storageOf(getElementTypeOrSelf(op->getResult(0).getType()));
    return Step([=](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        uint64_t bits =
            fromFloat ? ref::encodeDouble(fromType, frame.f[a + lane]) : unsignedOf(frame.i[a + lane], fromWidth);
        if (toFloat)
          frame.f[d + lane] = ref::decode(toType, uint32_t(bits));
        else
          frame.i[d + lane] = wrap(bits, toWidth);
      }
    });
  }
  bool perLane = (*in)[0].lanes == lanes;
  int64_t c = (*in)[2].offset;
  bool isFloat = out->isFloat;
  return Step([=](Frame &frame) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t from = (frame.i[a + (perLane ? lane : 0)] ? b : c) + lane;
      if (isFloat)
        frame.f[d + lane] = frame.f[from];
      else
        frame.i[d + lane] = frame.i[from];
    }
  });
}

//===----------------------------------------------------------------------===//
// math, memref, scf, attn
//===----------------------------------------------------------------------===//

FailureOr<Step> ProgramBuilder::math(Operation *op) {
  using namespace mlir::math;
  using Unary = double (*)(double);
  Unary fn = TypeSwitch<Operation *, Unary>(op)
                 .Case<AbsFOp>([](auto) { return Unary([](double x) { return std::fabs(x); }); })
                 .Case<CeilOp>([](auto) { return Unary([](double x) { return std::ceil(x); }); })
                 .Case<FloorOp>([](auto) { return Unary([](double x) { return std::floor(x); }); })
                 .Case<CosOp>([](auto) { return Unary([](double x) { return std::cos(x); }); })
                 .Case<SinOp>([](auto) { return Unary([](double x) { return std::sin(x); }); })
                 .Case<ExpOp>([](auto) { return Unary([](double x) { return std::exp(x); }); })
                 .Case<Exp2Op>([](auto) { return Unary([](double x) { return std::exp2(x); }); })
                 .Case<LogOp>([](auto) { return Unary([](double x) { return std::log(x); }); })
                 .Case<Log2Op>([](auto) { return Unary([](double x) { return std::log2(x); }); })
                 .Case<SqrtOp>([](auto) { return Unary([](double x) { return std::sqrt(x); }); })
                 .Case<RsqrtOp>([](auto) { return Unary([](double x) { return 1.0 / std::sqrt(x); }); })
                 .Case<TanhOp>([](auto) { return Unary([](double x) { return std::tanh(x); }); })
                 .Default([](Operation *) { return Unary(nullptr); });
  if (fn)
    return floats(op, [fn](double a, double, double) { return fn(a); });
  if (isa<FmaOp>(op) && strict)
    return floats(op, [](double a, double b, double c) { return double(std::fma(float(a), float(b), float(c))); });
  if (isa<FmaOp>(op))
    return floats(op, [](double a, double b, double c) { return std::fma(a, b, c); });
  return op->emitError() << "the hook evaluator does not know '" << op->getName() << "'";
}

FailureOr<Step> ProgramBuilder::load(memref::LoadOp op) {
  auto it = params.find(op.getMemref());
  if (it == params.end())
    return op.emitError() << "the hook evaluator loads from parameters only";
  HostBuffer buffer = it->second.buffer;
  if (buffer.strides.empty()) {
    buffer.strides.assign(buffer.shape.size(), 1);
    for (size_t d = buffer.shape.size(); d-- > 1;)
      buffer.strides[d - 1] = buffer.strides[d] * buffer.shape[d];
  }
  SmallVector<int64_t> offsets;
  for (Value index : op.getIndices()) {
    FailureOr<Slot> slot = use(index);
    if (failed(slot))
      return failure();
    offsets.push_back(slot->offset);
  }
  FailureOr<Slot> out = define(op.getResult());
  if (failed(out))
    return failure();
  Type element = op.getMemRefType().getElementType();
  ref::Storage storage = storageOf(element);
  std::string name;
  llvm::raw_string_ostream(name) << "load from parameter " << cast<BlockArgument>(op.getMemref()).getArgNumber()
                                 << " at " << op.getLoc();
  return Step([buffer, offsets, storage, out = *out, name, errors = errors](Frame &frame) {
    int64_t linear = 0;
    bool inside = buffer.data != nullptr;
    for (size_t d = 0; d < offsets.size(); ++d) {
      int64_t index = frame.i[offsets[d]];
      inside &= index >= 0 && index < buffer.shape[d];
      linear += inside ? index * buffer.strides[d] : 0;
    }
    if (!inside) {
      std::string text = name + " is out of bounds: [";
      for (size_t d = 0; d < offsets.size(); ++d)
        text += (d ? ", " : "") + std::to_string(frame.i[offsets[d]]);
      text += "] of [";
      for (size_t d = 0; d < buffer.shape.size(); ++d)
        text += (d ? ", " : "") + std::to_string(buffer.shape[d]);
      errors->report(text + "]");
      if (out.isFloat)
        frame.f[out.offset] = 0;
      else
        frame.i[out.offset] = 0;
      return;
    }
    if (out.isFloat)
      frame.f[out.offset] = ref::loadElement(storage, buffer.data, size_t(linear));
    else if (out.width == 8)
      frame.i[out.offset] = static_cast<const int8_t *>(buffer.data)[linear];
    else if (out.width == 32)
      frame.i[out.offset] = static_cast<const int32_t *>(buffer.data)[linear];
    else
      frame.i[out.offset] = static_cast<const int64_t *>(buffer.data)[linear];
  });
}

/// Copies one value.
static Step copyStep(Slot from, Slot to) {
  return [from, to](Frame &frame) {
    if (to.isFloat)
      std::copy_n(frame.f.begin() + from.offset, to.lanes, frame.f.begin() + to.offset);
    else
      std::copy_n(frame.i.begin() + from.offset, to.lanes, frame.i.begin() + to.offset);
  };
}

FailureOr<Step> ProgramBuilder::branch(scf::IfOp op) {
  FailureOr<Slot> condition = use(op.getCondition());
  if (failed(condition))
    return failure();
  SmallVector<Slot> results;
  for (Value result : op.getResults()) {
    FailureOr<Slot> slot = define(result);
    if (failed(slot))
      return failure();
    results.push_back(*slot);
  }
  std::vector<Step> arms[2];
  for (int arm = 0; arm < 2; ++arm) {
    Region &region = arm ? op.getThenRegion() : op.getElseRegion();
    if (region.empty())
      continue;
    if (failed(translate(region.front(), arms[arm])))
      return failure();
    auto yielded = operands(region.front().getTerminator());
    if (failed(yielded))
      return failure();
    for (auto [from, to] : llvm::zip(*yielded, results))
      arms[arm].push_back(copyStep(from, to));
  }
  return Step([offset = condition->offset, no = arms[0], yes = arms[1]](Frame &frame) {
    for (const Step &step : frame.i[offset] ? yes : no)
      step(frame);
  });
}

FailureOr<Step> ProgramBuilder::rope(RopeOp op) {
  auto in = operands(op);
  if (failed(in))
    return failure();
  FailureOr<Slot> out = define(op.getResult());
  if (failed(out))
    return failure();
  RopeSpec spec = RopeSpec::get(op);
  std::vector<float> frequencies;
  for (int64_t t = 0; t < spec.pairs(); ++t)
    frequencies.push_back(ropeFrequency(spec, t));
  int64_t step = spec.interleaved ? 2 : 1, partner = spec.interleaved ? 1 : spec.pairs();
  return Step([=, x = (*in)[0], position = (*in)[1].offset, y = *out, round = strict](Frame &frame) {
    double *f = frame.f.data();
    std::copy_n(f + x.offset, x.lanes, f + y.offset);
    double at = double(frame.i[position]);
    for (size_t t = 0; t < frequencies.size(); ++t) {
      // Exact: 31 bits times 24.
      double angle = at * double(frequencies[t]), c = std::cos(angle), s = std::sin(angle);
      int64_t lo = int64_t(t) * step, hi = lo + partner;
      double a = f[x.offset + lo], b = f[x.offset + hi];
      f[y.offset + lo] = rounded(a * c - b * s, round);
      f[y.offset + hi] = rounded(b * c + a * s, round);
    }
  });
}

FailureOr<Step> ProgramBuilder::step(Operation *op) {
  int64_t ref::Coord::*field = TypeSwitch<Operation *, int64_t ref::Coord::*>(op)
                                   .Case<QPosOp>([](auto) { return &ref::Coord::qPos; })
                                   .Case<KVPosOp>([](auto) { return &ref::Coord::kvPos; })
                                   .Case<RequestOp>([](auto) { return &ref::Coord::request; })
                                   .Case<QHeadOp>([](auto) { return &ref::Coord::qHead; })
                                   .Case<KVHeadOp>([](auto) { return &ref::Coord::kvHead; })
                                   .Case<QoLenOp>([](auto) { return &ref::Coord::qoLen; })
                                   .Case<KVLenOp>([](auto) { return &ref::Coord::kvLen; })
                                   .Case<RowOp>([](auto) { return &ref::Coord::row; })
                                   .Default([](Operation *) { return nullptr; });
  if (field) {
    FailureOr<Slot> out = define(op->getResult(0));
    if (failed(out))
      return failure();
    return Step([field, d = out->offset](Frame &frame) { frame.i[d] = frame.at ? frame.at->*field : 0; });
  }
  if (auto loadOp = dyn_cast<memref::LoadOp>(op))
    return load(loadOp);
  if (auto ifOp = dyn_cast<scf::IfOp>(op))
    return branch(ifOp);
  if (auto ropeOp = dyn_cast<RopeOp>(op))
    return rope(ropeOp);
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
    FailureOr<Slot> in = use(broadcast.getSource()), out = define(broadcast.getResult());
    if (failed(in) || failed(out))
      return failure();
    if (in->lanes == out->lanes)
      return copyStep(*in, *out);
    return Step([in = *in, out = *out](Frame &frame) {
      if (out.isFloat)
        std::fill_n(frame.f.begin() + out.offset, out.lanes, frame.f[in.offset]);
      else
        std::fill_n(frame.i.begin() + out.offset, out.lanes, frame.i[in.offset]);
    });
  }
  if (isa<math::MathDialect>(op->getDialect()))
    return math(op);
  if (isa<arith::ArithDialect>(op->getDialect()))
    return arith(op);
  return op->emitError() << "the hook evaluator does not know '" << op->getName() << "'";
}

LogicalResult ProgramBuilder::translate(Block &block, std::vector<Step> &steps) {
  for (Operation &op : block.without_terminator()) {
    FailureOr<Step> next = step(&op);
    if (failed(next))
      return failure();
    if (*next)
      steps.push_back(std::move(*next));
  }
  return success();
}

FailureOr<Program> ProgramBuilder::build(Block &block) {
  for (BlockArgument argument : block.getArguments()) {
    if (isa<CoordType>(argument.getType()))
      continue;
    FailureOr<Slot> slot = define(argument);
    if (failed(slot))
      return failure();
    program.arguments.push_back(*slot);
  }
  std::vector<Step> steps;
  if (failed(translate(block, steps)))
    return failure();
  FailureOr<Slot> result = use(block.getTerminator()->getOperand(0));
  if (failed(result))
    return failure();
  program.steps = std::move(steps);
  program.result = *result;
  return std::move(program);
}

FailureOr<Program> Program::compile(Block &block, const DenseMap<Value, HookParam> &params, EvalPrecision precision,
                                    std::shared_ptr<EvalErrors> errors) {
  return ProgramBuilder(params, precision, std::move(errors)).build(block);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Frame &Program::enter(const ref::Coord *at, ArrayRef<const double *> args) const {
  // One frame a thread: hooks do not call each other.
  static thread_local Frame frame;
  frame.f.assign(initial.f.begin(), initial.f.end());
  frame.i.assign(initial.i.begin(), initial.i.end());
  frame.at = at;
  for (size_t i = 0; i < args.size(); ++i)
    std::copy_n(args[i], arguments[i].lanes, frame.f.begin() + arguments[i].offset);
  for (const Step &step : steps)
    step(frame);
  return frame;
}

const double *Program::runFloat(const ref::Coord *at, ArrayRef<const double *> args) const {
  return enter(at, args).f.data() + result.offset;
}

bool Program::runBool(const ref::Coord *at) const { return enter(at, {}).i[result.offset] != 0; }

} // namespace attn
