//===- Program.cpp - straight-line IR as callable code ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One closure per op over offsets into a frame; what an op computes is
// ScalarOps'. A load out of bounds gives 0 and an error.
//
//===----------------------------------------------------------------------===//

#include "attn/HookEval/Program.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "attn/ScalarOps/ScalarOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

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

static ref::Storage storageOf(Type type) {
  return type.isF16() ? ref::Storage::F16 : type.isBF16() ? ref::Storage::BF16 : ref::Storage::F32;
}

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
  FailureOr<Step> elementwise(Operation *op);
  FailureOr<Step> convert(Operation *op);
  FailureOr<Step> load(memref::LoadOp op);
  FailureOr<Step> branch(scf::IfOp op);
  FailureOr<Step> rope(RopeOp op);
  FailureOr<Step> constant(arith::ConstantOp op);

  FailureOr<Slot> define(Value value);
  FailureOr<Slot> use(Value value);

  /// result lane = fn(operand lanes).
  template <typename Fn> FailureOr<Step> floats(Operation *op, Fn fn);
  FailureOr<Step> ints(Operation *op, IntegerFn fn);
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

FailureOr<Step> ProgramBuilder::ints(Operation *op, IntegerFn fn) {
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
      i[d + lane] = wrapInteger(fn(i[a + lane], i[b + lane], width), outWidth);
  });
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

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
    int64_t number = wrapInteger(cast<IntegerAttr>(value).getValue().getZExtValue(), slot->width);
    std::fill_n(frame.i.begin() + slot->offset, slot->lanes, number);
  }
  return Step();
}

FailureOr<Step> ProgramBuilder::elementwise(Operation *op) {
  if (auto trunc = dyn_cast<arith::TruncFOp>(op))
    return floats(op, [type = storageOf(getElementTypeOrSelf(trunc.getType()))](double a, double, double) {
      return ref::roundTo(type, a);
    });
  if (isa<math::FmaOp>(op) && strict) // one rounding, to fp32
    return floats(op, [](double a, double b, double c) { return double(std::fma(float(a), float(b), float(c))); });
  if (FloatFn fn = findFloatFn(op))
    return floats(op, fn);
  if (IntegerFn fn = findIntegerFn(op))
    return ints(op, fn);
  return convert(op);
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
  if (isa<CmpFOp>(op))
    return Step([=, fn = findCompareFn(op)](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        frame.i[d + lane] = fn(frame.f[a + lane], frame.f[b + lane]);
    });
  if (isa<SIToFPOp, UIToFPOp>(op))
    return Step([=, isSigned = isa<SIToFPOp>(op)](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        int64_t x = frame.i[a + lane];
        // Straight to float: by way of double an i64 would be rounded twice.
        frame.f[d + lane] = isSigned
                                ? (round ? double(float(signedValue(x, fromWidth))) : double(signedValue(x, fromWidth)))
                            : round ? double(float(unsignedValue(x, fromWidth)))
                                    : double(unsignedValue(x, fromWidth));
      }
    });
  if (isa<FPToSIOp, FPToUIOp>(op))
    return Step([=, isSigned = isa<FPToSIOp>(op)](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane)
        frame.i[d + lane] = floatToInteger(frame.f[a + lane], toWidth, isSigned);
    });
  if (isa<BitcastOp>(op)) {
    bool fromFloat = (*in)[0].isFloat, toFloat = out->isFloat;
    ref::Storage fromType = storageOf(getElementTypeOrSelf(op->getOperand(0).getType()));
    ref::Storage toType = storageOf(getElementTypeOrSelf(op->getResult(0).getType()));
    return Step([=](Frame &frame) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        uint64_t bits =
            fromFloat ? ref::encodeDouble(fromType, frame.f[a + lane]) : unsignedValue(frame.i[a + lane], fromWidth);
        if (toFloat)
          frame.f[d + lane] = ref::decode(toType, uint32_t(bits));
        else
          frame.i[d + lane] = wrapInteger(bits, toWidth);
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
// memref, scf, attn
//===----------------------------------------------------------------------===//

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
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op))
    return constant(constantOp);
  return elementwise(op);
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
