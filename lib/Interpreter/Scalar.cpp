//===- Scalar.cpp - evaluation of arith, math, scf and memref.load ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values are exact where the op is: floats are computed in double and rounded
// to their type, integers wrap at their width.
//
//===----------------------------------------------------------------------===//

#include "Scalar.h"
#include "llvm/ADT/StringMap.h"
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
  // Control and memory.
  kIf,
  kFor,
  kCall,
  kLoad,
  kDim,
  kConstant,
  // Integers.
  kAddI,
  kSubI,
  kMulI,
  kDivSI,
  kDivUI,
  kRemSI,
  kRemUI,
  kFloorDivSI,
  kCeilDivSI,
  kCeilDivUI,
  kMinSI,
  kMaxSI,
  kMinUI,
  kMaxUI,
  kAndI,
  kOrI,
  kXOrI,
  kShlI,
  kShrSI,
  kShrUI,
  kCmpI,
  kSelect,
  kIndexCast,
  kIndexCastUI,
  kExtSI,
  kExtUI,
  kTruncI,
  kMulSIExt,
  kMulUIExt,
  kAbsI,
  kCtlz,
  // Floats.
  kAddF,
  kSubF,
  kMulF,
  kDivF,
  kRemF,
  kNegF,
  kMaximumF,
  kMinimumF,
  kMaxNumF,
  kMinNumF,
  kCmpF,
  kExtF,
  kTruncF,
  kSIToFP,
  kUIToFP,
  kFPToSI,
  kFPToUI,
  kBitcast,
  kFma,
  kPowF,
  kAtan2,
  kCopySign,
  kUnary // math functions of one operand follow: kUnary + number
};
} // namespace

using Unary = double (*)(double);
static const std::pair<const char *, Unary> unaries[] = {
    {"math.exp", [](double x) { return std::exp(x); }},
    {"math.exp2", [](double x) { return std::exp2(x); }},
    {"math.expm1", [](double x) { return std::expm1(x); }},
    {"math.log", [](double x) { return std::log(x); }},
    {"math.log2", [](double x) { return std::log2(x); }},
    {"math.log10", [](double x) { return std::log10(x); }},
    {"math.log1p", [](double x) { return std::log1p(x); }},
    {"math.tanh", [](double x) { return std::tanh(x); }},
    {"math.sinh", [](double x) { return std::sinh(x); }},
    {"math.cosh", [](double x) { return std::cosh(x); }},
    {"math.sin", [](double x) { return std::sin(x); }},
    {"math.cos", [](double x) { return std::cos(x); }},
    {"math.tan", [](double x) { return std::tan(x); }},
    {"math.atan", [](double x) { return std::atan(x); }},
    {"math.erf", [](double x) { return std::erf(x); }},
    {"math.sqrt", [](double x) { return std::sqrt(x); }},
    {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"math.cbrt", [](double x) { return std::cbrt(x); }},
    {"math.absf", [](double x) { return std::fabs(x); }},
    {"math.floor", [](double x) { return std::floor(x); }},
    {"math.ceil", [](double x) { return std::ceil(x); }},
    {"math.trunc", [](double x) { return std::trunc(x); }},
    {"math.round", [](double x) { return std::round(x); }},
    {"math.roundeven", [](double x) { return std::nearbyint(x); }},
};

static const llvm::StringMap<int> &getKinds() {
  static const llvm::StringMap<int> *kinds = [] {
    auto *map = new llvm::StringMap<int>{{"scf.if", kIf},
                                         {"scf.for", kFor},
                                         {"func.call", kCall},
                                         {"memref.load", kLoad},
                                         {"memref.dim", kDim},
                                         {"arith.constant", kConstant},
                                         {"arith.addi", kAddI},
                                         {"arith.subi", kSubI},
                                         {"arith.muli", kMulI},
                                         {"arith.divsi", kDivSI},
                                         {"arith.divui", kDivUI},
                                         {"arith.remsi", kRemSI},
                                         {"arith.remui", kRemUI},
                                         {"arith.floordivsi", kFloorDivSI},
                                         {"arith.ceildivsi", kCeilDivSI},
                                         {"arith.ceildivui", kCeilDivUI},
                                         {"arith.minsi", kMinSI},
                                         {"arith.maxsi", kMaxSI},
                                         {"arith.minui", kMinUI},
                                         {"arith.maxui", kMaxUI},
                                         {"arith.andi", kAndI},
                                         {"arith.ori", kOrI},
                                         {"arith.xori", kXOrI},
                                         {"arith.shli", kShlI},
                                         {"arith.shrsi", kShrSI},
                                         {"arith.shrui", kShrUI},
                                         {"arith.cmpi", kCmpI},
                                         {"arith.select", kSelect},
                                         {"arith.index_cast", kIndexCast},
                                         {"arith.index_castui", kIndexCastUI},
                                         {"arith.extsi", kExtSI},
                                         {"arith.extui", kExtUI},
                                         {"arith.trunci", kTruncI},
                                         {"arith.mulsi_extended", kMulSIExt},
                                         {"arith.mului_extended", kMulUIExt},
                                         {"math.absi", kAbsI},
                                         {"math.ctlz", kCtlz},
                                         {"arith.addf", kAddF},
                                         {"arith.subf", kSubF},
                                         {"arith.mulf", kMulF},
                                         {"arith.divf", kDivF},
                                         {"arith.remf", kRemF},
                                         {"arith.negf", kNegF},
                                         {"arith.maximumf", kMaximumF},
                                         {"arith.minimumf", kMinimumF},
                                         {"arith.maxnumf", kMaxNumF},
                                         {"arith.minnumf", kMinNumF},
                                         {"arith.cmpf", kCmpF},
                                         {"arith.extf", kExtF},
                                         {"arith.truncf", kTruncF},
                                         {"arith.sitofp", kSIToFP},
                                         {"arith.uitofp", kUIToFP},
                                         {"arith.fptosi", kFPToSI},
                                         {"arith.fptoui", kFPToUI},
                                         {"arith.bitcast", kBitcast},
                                         {"math.fma", kFma},
                                         {"math.powf", kPowF},
                                         {"math.atan2", kAtan2},
                                         {"math.copysign", kCopySign}};
    for (auto [i, unary] : llvm::enumerate(unaries))
      map->try_emplace(unary.first, kUnary + static_cast<int>(i));
    return map;
  }();
  return *kinds;
}

int interp::getKind(Operation *op) {
  auto it = getKinds().find(op->getName().getStringRef());
  return it == getKinds().end() ? -1 : it->second;
}

void interp::decode(Operation *op, Instr &instr) {
  instr.op = op;
  instr.kind = getKind(op);
  if (op->getNumOperands())
    instr.from = op->getOperand(0).getType();
  if (op->getNumResults())
    instr.to = op->getResult(0).getType();
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    instr.pred = static_cast<int64_t>(cmp.getPredicate());
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    instr.pred = static_cast<int64_t>(cmp.getPredicate());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (auto f = dyn_cast<FloatAttr>(constant.getValue()))
      instr.constant.f = f.getValueAsDouble();
    else if (auto i = dyn_cast<IntegerAttr>(constant.getValue()))
      instr.constant.i = i.getType().isInteger(1) ? i.getValue().getZExtValue() : i.getValue().getSExtValue();
    else
      instr.kind = -1;
  }
}

static unsigned getWidth(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

/// The integer `value` as its type stores it: sign-extended, but i1 as 0 or 1.
static int64_t wrap(Type type, int64_t value) {
  unsigned width = getWidth(type);
  if (width == 64)
    return value;
  if (width == 1)
    return value & 1;
  return llvm::SignExtend64(value, width);
}
static uint64_t getUnsigned(Type type, int64_t value) {
  unsigned width = getWidth(type);
  return width == 64 ? value : value & ((uint64_t(1) << width) - 1);
}

static bool compareI(arith::CmpIPredicate pred, int64_t a, int64_t b, uint64_t ua, uint64_t ub) {
  switch (pred) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  llvm_unreachable("unknown predicate");
}

static bool compareF(arith::CmpFPredicate pred, double a, double b) {
  bool un = std::isnan(a) || std::isnan(b);
  switch (pred) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return !un && a == b;
  case arith::CmpFPredicate::OGT:
    return !un && a > b;
  case arith::CmpFPredicate::OGE:
    return !un && a >= b;
  case arith::CmpFPredicate::OLT:
    return !un && a < b;
  case arith::CmpFPredicate::OLE:
    return !un && a <= b;
  case arith::CmpFPredicate::ONE:
    return !un && a != b;
  case arith::CmpFPredicate::ORD:
    return !un;
  case arith::CmpFPredicate::UEQ:
    return un || a == b;
  case arith::CmpFPredicate::UGT:
    return un || a > b;
  case arith::CmpFPredicate::UGE:
    return un || a >= b;
  case arith::CmpFPredicate::ULT:
    return un || a < b;
  case arith::CmpFPredicate::ULE:
    return un || a <= b;
  case arith::CmpFPredicate::UNE:
    return un || a != b;
  case arith::CmpFPredicate::UNO:
    return un;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

static uint64_t toBits(Type type, Word word) {
  auto f = dyn_cast<FloatType>(type);
  if (!f)
    return getUnsigned(type, word.i);
  llvm::APFloat number(word.f);
  bool lossy;
  number.convert(f.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  return number.bitcastToAPInt().getZExtValue();
}
static Word fromBits(Type type, uint64_t bits) {
  Word word = {};
  auto f = dyn_cast<FloatType>(type);
  if (!f) {
    word.i = wrap(type, bits);
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

static double maximum(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::fmax(a, b); }
static double minimum(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::fmin(a, b); }

/// Integer ops of two operands; false on a division by zero.
static bool runInteger(const Instr &instr, Word x, Word y, int64_t &r) {
  int64_t a = x.i, b = y.i;
  uint64_t ua = getUnsigned(instr.from, a), ub = getUnsigned(instr.from, b);
  unsigned width = getWidth(instr.from);
  bool overflow = b == -1; // min / -1
  switch (instr.kind) {
  case kAddI:
    r = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    return true;
  case kSubI:
    r = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return true;
  case kMulI:
    r = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return true;
  case kDivSI:
    r = overflow ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : b ? a / b : 0;
    return b;
  case kDivUI:
    r = ub ? ua / ub : 0;
    return ub;
  case kRemSI:
    r = overflow || !b ? 0 : a % b;
    return b;
  case kRemUI:
    r = ub ? ua % ub : 0;
    return ub;
  case kFloorDivSI:
    r = overflow ? static_cast<int64_t>(-static_cast<uint64_t>(a))
        : b      ? a / b - ((a % b != 0) && ((a < 0) != (b < 0)))
                 : 0;
    return b;
  case kCeilDivSI:
    r = overflow ? static_cast<int64_t>(-static_cast<uint64_t>(a))
        : b      ? a / b + ((a % b != 0) && ((a < 0) == (b < 0)))
                 : 0;
    return b;
  case kCeilDivUI:
    r = ub ? ua / ub + (ua % ub != 0) : 0;
    return ub;
  case kMinSI:
    r = std::min(a, b);
    return true;
  case kMaxSI:
    r = std::max(a, b);
    return true;
  case kMinUI:
    r = ua < ub ? a : b;
    return true;
  case kMaxUI:
    r = ua > ub ? a : b;
    return true;
  case kAndI:
    r = a & b;
    return true;
  case kOrI:
    r = a | b;
    return true;
  case kXOrI:
    r = a ^ b;
    return true;
  case kShlI:
    r = ub < width ? static_cast<int64_t>(ua << ub) : 0;
    return true;
  case kShrSI:
    r = a >> std::min<uint64_t>(ub, 63);
    return true;
  case kShrUI:
    r = ub < width ? ua >> ub : 0;
    return true;
  default:
    llvm_unreachable("not an integer op");
  }
}

static bool runFloat(const Instr &instr, Word a, Word b, Word c, double &r) {
  switch (instr.kind) {
  case kAddF:
    r = a.f + b.f;
    return true;
  case kSubF:
    r = a.f - b.f;
    return true;
  case kMulF:
    r = a.f * b.f;
    return true;
  case kDivF:
    r = a.f / b.f;
    return true;
  case kRemF:
    r = std::fmod(a.f, b.f);
    return true;
  case kNegF:
    r = -a.f;
    return true;
  case kMaximumF:
    r = maximum(a.f, b.f);
    return true;
  case kMinimumF:
    r = minimum(a.f, b.f);
    return true;
  case kMaxNumF:
    r = std::fmax(a.f, b.f);
    return true;
  case kMinNumF:
    r = std::fmin(a.f, b.f);
    return true;
  case kExtF:
  case kTruncF:
    r = a.f;
    return true;
  case kSIToFP:
    r = static_cast<double>(instr.from.isInteger(1) ? -a.i : a.i);
    return true;
  case kUIToFP:
    r = static_cast<double>(getUnsigned(instr.from, a.i));
    return true;
  case kFma:
    r = std::fma(a.f, b.f, c.f);
    return true;
  case kPowF:
    r = std::pow(a.f, b.f);
    return true;
  case kAtan2:
    r = std::atan2(a.f, b.f);
    return true;
  case kCopySign:
    r = std::copysign(a.f, b.f);
    return true;
  default:
    if (instr.kind < kUnary)
      return false;
    r = unaries[instr.kind - kUnary].second(a.f);
    return true;
  }
}

bool interp::runInstr(const Instr &instr, MutableArrayRef<Word> frame, std::optional<Failure> &failure,
                      int64_t &steps) {
  if (--steps < 0)
    return fail(failure, instr.op, "runs endlessly (more steps than the interpreter's limit)");
  auto in = [&](unsigned i) { return i < instr.in.size() ? frame[instr.in[i]] : Word{}; };
  auto set = [&](unsigned i, Word word) { frame[instr.out[i]] = word; };
  switch (instr.kind) {
  case kConstant:
    set(0, instr.constant);
    return true;
  case kSelect:
    set(0, in(0).i ? in(1) : in(2));
    return true;
  case kCmpI: {
    Word a = in(0), b = in(1), r = {};
    r.i = compareI(static_cast<arith::CmpIPredicate>(instr.pred), a.i, b.i, getUnsigned(instr.from, a.i),
                   getUnsigned(instr.from, b.i));
    set(0, r);
    return true;
  }
  case kCmpF: {
    Word r = {};
    r.i = compareF(static_cast<arith::CmpFPredicate>(instr.pred), in(0).f, in(1).f);
    set(0, r);
    return true;
  }
  case kIndexCast:
  case kTruncI:
  case kExtSI: {
    Word r = {};
    int64_t a = in(0).i;
    r.i = wrap(instr.to, instr.from.isInteger(1) ? -a : a);
    set(0, r);
    return true;
  }
  case kIndexCastUI:
  case kExtUI: {
    Word r = {};
    r.i = wrap(instr.to, getUnsigned(instr.from, in(0).i));
    set(0, r);
    return true;
  }
  case kMulSIExt:
  case kMulUIExt: {
    unsigned width = getWidth(instr.from);
    bool isSigned = instr.kind == kMulSIExt;
    llvm::APInt a(width, getUnsigned(instr.from, in(0).i)), b(width, getUnsigned(instr.from, in(1).i));
    llvm::APInt r = isSigned ? a.sext(2 * width) * b.sext(2 * width) : a.zext(2 * width) * b.zext(2 * width);
    Word low = {}, high = {};
    low.i = wrap(instr.from, r.trunc(width).getZExtValue());
    high.i = wrap(instr.from, r.extractBits(width, width).getZExtValue());
    set(0, low);
    set(1, high);
    return true;
  }
  case kAbsI:
  case kCtlz: {
    Word r = {};
    int64_t a = in(0).i;
    r.i = instr.kind == kAbsI ? wrap(instr.from, a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a)
                              : llvm::APInt(getWidth(instr.from), getUnsigned(instr.from, a)).countl_zero();
    set(0, r);
    return true;
  }
  case kFPToSI:
  case kFPToUI: {
    Word r = {};
    double a = in(0).f;
    if (std::isnan(a) || std::fabs(a) >= 9.3e18)
      r.i = 0;
    else
      r.i = wrap(instr.to, static_cast<int64_t>(a));
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
    // The callee has a frame of its own; its size is kept in `pred`.
    SmallVector<Word, 32> inner(instr.pred, Word{});
    for (auto [i, slot] : llvm::enumerate(instr.callee->args))
      inner[slot] = in(i);
    if (!runCode(*instr.callee, inner, failure, steps))
      return false;
    for (auto [i, slot] : llvm::enumerate(instr.callee->results))
      set(i, inner[slot]);
    return true;
  }
  default:
    break;
  }
  if (instr.kind >= kAddI && instr.kind <= kShrUI) {
    Word r = {};
    if (!runInteger(instr, in(0), in(1), r.i))
      return fail(failure, instr.op, "divides by zero");
    r.i = wrap(instr.to, r.i);
    set(0, r);
    return true;
  }
  Word r = {};
  auto type = dyn_cast_or_null<FloatType>(instr.to);
  if (!type || !runFloat(instr, in(0), in(1), in(2), r.f))
    return fail(failure, instr.op,
                Twine("'") + instr.op->getName().getStringRef() + "' is not known to the interpreter");
  r.f = roundTo(type, r.f);
  set(0, r);
  return true;
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
      instr.pred = inner->frame;
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
