//===- CheckRangePass.cpp - attn-check-range ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Brute force against mask analysis. The evaluator knows the integer ops of a
// mask hook; buffers are functions of the index, some growing, some wild.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNCHECKRANGEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
/// One small request, one set of parameters.
struct Case {
  int64_t qoLen, kvLen, request;
  SmallVector<int64_t> params; // of buffers: what decides their contents
  int64_t load(int64_t param, int64_t index) const {
    uint64_t seed = params[param];
    if (seed % 3 == 0) // grows with the index, as offsets of documents do
      return std::min<int64_t>(std::max<int64_t>(index, 0) / int64_t(1 + seed % 4) * int64_t(1 + seed % 4), 1000);
    uint64_t x = (seed + 1) * 6364136223846793005ull + uint64_t(index) * 1442695040888963407ull;
    return static_cast<int64_t>((x >> 33) % uint64_t(kvLen + 4)) - 2;
  }
};

class MaskEvaluator {
public:
  MaskEvaluator(VariantOp variant, const Case &c) : variant(variant), c(c) {}
  /// Visible or not; none when the hook has an op that is not known here.
  std::optional<bool> run(int64_t row, int64_t key) {
    values.clear();
    for (auto constant : variant.getBody().getOps<arith::ConstantOp>())
      evaluate(constant, row, key);
    HookOp mask = variant.getHook(HookKind::Mask);
    for (Operation &op : mask.getBody().front().without_terminator())
      if (!evaluate(&op, row, key))
        return std::nullopt;
    auto it = values.find(mask.getYield().getValue());
    return it == values.end() ? std::nullopt : std::optional<bool>(it->second & 1);
  }

private:
  static int64_t fit(Type type, int64_t value) {
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    return width >= 64 ? value : llvm::SignExtend64(value, width);
  }
  static uint64_t asUnsigned(Type type, int64_t value) {
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    return width >= 64 ? value : uint64_t(value) & llvm::maskTrailingOnes<uint64_t>(width);
  }
  bool evaluate(Operation *op, int64_t row, int64_t key);

  VariantOp variant;
  const Case &c;
  DenseMap<Value, int64_t> values;
};
} // namespace

bool MaskEvaluator::evaluate(Operation *op, int64_t row, int64_t key) {
  if (op->getNumResults() != 1)
    return false;
  Value result = op->getResult(0);
  Type type = result.getType();
  auto get = [&](unsigned i) -> int64_t {
    Value operand = op->getOperand(i);
    if (auto argument = dyn_cast<BlockArgument>(operand))
      return c.params[argument.getArgNumber()];
    return values.lookup(operand);
  };
  auto set = [&](int64_t value) {
    values[result] = fit(type, value);
    return true;
  };
  APInt constant;
  if (matchPattern(result, m_ConstantInt(&constant)))
    return set(constant.getSExtValue());
  if (isa<arith::ConstantOp>(op))
    return true; // of another type: nobody here reads it
  if (isa<QPosOp>(op))
    return set(row + c.kvLen - c.qoLen);
  if (isa<KVPosOp>(op))
    return set(key);
  if (isa<RowOp>(op))
    return set(row);
  if (isa<QoLenOp>(op))
    return set(c.qoLen);
  if (isa<KVLenOp>(op))
    return set(c.kvLen);
  if (isa<RequestOp>(op))
    return set(c.request);
  if (isa<QHeadOp, KVHeadOp>(op))
    return set(row % 2); // any head will do
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    if (load.getIndices().size() != 1)
      return false;
    return set(c.load(cast<BlockArgument>(load.getMemref()).getArgNumber(), get(1)));
  }
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    Type operand = cmp.getLhs().getType();
    int64_t a = get(0), b = get(1);
    uint64_t x = asUnsigned(operand, a), y = asUnsigned(operand, b);
    switch (cmp.getPredicate()) {
    case arith::CmpIPredicate::eq:
      return set(a == b);
    case arith::CmpIPredicate::ne:
      return set(a != b);
    case arith::CmpIPredicate::slt:
      return set(a < b);
    case arith::CmpIPredicate::sle:
      return set(a <= b);
    case arith::CmpIPredicate::sgt:
      return set(a > b);
    case arith::CmpIPredicate::sge:
      return set(a >= b);
    case arith::CmpIPredicate::ult:
      return set(x < y);
    case arith::CmpIPredicate::ule:
      return set(x <= y);
    case arith::CmpIPredicate::ugt:
      return set(x > y);
    case arith::CmpIPredicate::uge:
      return set(x >= y);
    }
  }
  if (isa<arith::SelectOp>(op))
    return set(get(0) & 1 ? get(1) : get(2));
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return set(get(0));
  if (isa<arith::IndexCastUIOp, arith::ExtUIOp>(op))
    return set(asUnsigned(op->getOperand(0).getType(), get(0)));
  if (op->getNumOperands() != 2)
    return false;
  int64_t a = get(0), b = get(1);
  uint64_t x = asUnsigned(type, a), y = asUnsigned(type, b);
  if (isa<arith::AddIOp>(op))
    return set(x + y);
  if (isa<arith::SubIOp>(op))
    return set(x - y);
  if (isa<arith::MulIOp>(op))
    return set(x * y);
  if (isa<arith::AndIOp>(op))
    return set(a & b);
  if (isa<arith::OrIOp>(op))
    return set(a | b);
  if (isa<arith::XOrIOp>(op))
    return set(a ^ b);
  if (isa<arith::MinSIOp>(op))
    return set(std::min(a, b));
  if (isa<arith::MaxSIOp>(op))
    return set(std::max(a, b));
  if (b == 0 || b == -1)
    return false;
  if (isa<arith::DivSIOp>(op))
    return set(a / b);
  if (isa<arith::RemSIOp>(op))
    return set(a % b);
  if (isa<arith::FloorDivSIOp>(op))
    return set(llvm::divideFloorSigned(a, b));
  if (isa<arith::DivUIOp>(op))
    return set(x / y);
  if (isa<arith::RemUIOp>(op))
    return set(x % y);
  return false;
}

namespace {
class AttnCheckRangePass : public attn::impl::AttnCheckRangePassBase<AttnCheckRangePass> {
public:
  using Base::Base;

private:
  bool hullExact, interiorExact;

  LogicalResult check(VariantOp variant, const RangeProgram &program, const Case &c) {
    // The whole request first: visible[row][key].
    SmallVector<SmallVector<bool>> visible(c.qoLen);
    MaskEvaluator evaluator(variant, c);
    for (int64_t row = 0; row < c.qoLen; ++row)
      for (int64_t key = 0; key < c.kvLen; ++key) {
        std::optional<bool> v = evaluator.run(row, key);
        if (!v)
          return variant.emitOpError() << "has a mask hook with an op that attn-check-range does not know";
        visible[row].push_back(*v);
      }
    int64_t most = program.perToken ? 1 : c.qoLen;
    for (int64_t row0 = 0; row0 < c.qoLen; ++row0)
      for (int64_t tokens = 1; tokens <= most && row0 + tokens <= c.qoLen; ++tokens) {
        SmallVector<int64_t> inputs = {row0 + c.kvLen - c.qoLen, tokens, c.qoLen, c.kvLen, c.request};
        llvm::append_range(inputs, c.params);
        std::array<int64_t, 4> range =
            evaluateRange(program, inputs, [&](int64_t param, int64_t index) { return c.load(param, index); });
        int64_t lo = range[0], fullLo = range[1], fullHi = range[2], hi = range[3];
        auto fail = [&](StringRef what) {
          return variant.emitOpError() << "unsound range: " << what << " at qpos0 " << inputs[0] << ", tokens "
                                       << tokens << ", qo_len " << c.qoLen << ", kv_len " << c.kvLen << ": [" << lo
                                       << ", " << hi << "), interior [" << fullLo << ", " << fullHi << ")";
        };
        if (lo < 0 || hi < lo || hi > c.kvLen || fullLo < 0 || fullHi < fullLo || fullHi > c.kvLen)
          return fail("bounds out of order");
        int64_t first = c.kvLen, end = 0, run = 0, longest = 0;
        for (int64_t key = 0; key < c.kvLen; ++key) {
          bool any = false, all = true;
          for (int64_t t = 0; t < tokens; ++t) {
            any |= visible[row0 + t][key];
            all &= visible[row0 + t][key];
          }
          if (any) {
            first = std::min(first, key);
            end = key + 1;
          }
          run = all ? run + 1 : 0;
          longest = std::max(longest, run);
          if (any && (key < lo || key >= hi))
            return fail("a visible key is outside");
          if (!all && key >= fullLo && key < fullHi)
            return fail("a hidden key is in the interior");
        }
        hullExact &= first < end ? lo == first && hi == end : lo == hi;
        interiorExact &= fullHi - fullLo == longest;
      }
    return success();
  }

  LogicalResult check(VariantOp variant) {
    RangeProgram program = analyzeMask(variant);
    hullExact = interiorExact = true;
    uint64_t state = 12345;
    auto random = [&](uint64_t n) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      return (state >> 33) % n;
    };
    static const int64_t choices[] = {0, 1, 2, 3, 5, 8, 100, -1, -4, std::numeric_limits<int64_t>::max()};
    for (int64_t draw = 0; draw < draws; ++draw) {
      Case c;
      for (BlockArgument param : variant.getParams())
        c.params.push_back(isa<MemRefType>(param.getType()) ? random(1 << 20) % (1 << 20) : choices[random(97) % 10]);
      c.request = draw % 3;
      for (c.kvLen = 0; c.kvLen <= maxKeys; ++c.kvLen)
        for (c.qoLen = 1; c.qoLen <= maxRows; ++c.qoLen)
          if (failed(check(variant, program, c)))
            return failure();
      if (variant.getParams().empty() && draw >= 2)
        break;
    }
    variant.emitRemark() << "range is sound, hull " << (hullExact ? "exact" : "loose") << ", interior "
                         << (interiorExact ? "exact" : "loose") << (program.perToken ? ", one token at a time" : "");
    return success();
  }

  void runOnOperation() override {
    for (auto variant : getOperation().getOps<VariantOp>())
      if (variant.getHook(HookKind::Mask) && failed(check(variant)))
        return signalPassFailure();
  }
};
} // namespace
