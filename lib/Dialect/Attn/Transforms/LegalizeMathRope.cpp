//===- LegalizeMathRope.cpp - the angle of a rotary position embedding ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At position 1 000 000 one unit in the last place of a frequency moves the
// angle by 0.06 rad, so the frequency must be *the* fp32 number of the rule. It
// is computed by a short exp2 whose result is known when the code is built
// (fused multiply-adds round the same everywhere), and corrected by a few bits
// per pair, packed in constants.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::attn;

RopeSpec RopeSpec::get(RopeOp op) {
  RopeSpec spec;
  spec.theta = op.getTheta().convertToDouble();
  spec.rotary = op.getRotary() ? op.getRotary() : cast<VectorType>(op.getValue().getType()).getShape().back();
  spec.interleaved = op.getInterleaved();
  spec.factor = op.getFactor().convertToDouble();
  spec.lowFreq = op.getLowFreq().convertToDouble();
  spec.highFreq = op.getHighFreq().convertToDouble();
  spec.original = op.getOriginal();
  return spec;
}

namespace {
constexpr double twoPi = 6.283185307179586476925286766559;

/// The three ranges of pairs of Llama-3.1 scaling: [0, keep) as they are, [keep, divide) smooth, the rest divided.
struct Ranges {
  int64_t keep = 0, divide = 0;
};
} // namespace

static bool isSmooth(const RopeSpec &spec) { return spec.lowFreq > 0 && spec.highFreq > 0 && spec.original > 0; }

/// Unscaled frequency.
static double baseFrequency(const RopeSpec &spec, int64_t t) {
  return std::pow(spec.theta, -2.0 * double(t) / double(spec.rotary));
}

/// Weight of the unscaled frequency, in turns per `original` positions between low and high.
static double smoothWeight(const RopeSpec &spec, double frequency) {
  return (double(spec.original) * frequency / twoPi - spec.lowFreq) / (spec.highFreq - spec.lowFreq);
}

float mlir::attn::ropeFrequency(const RopeSpec &spec, int64_t t) {
  double frequency = baseFrequency(spec, t);
  if (!isSmooth(spec))
    return float(frequency / spec.factor);
  double turns = double(spec.original) * frequency / twoPi;
  if (turns > spec.highFreq)
    return float(frequency);
  if (turns < spec.lowFreq)
    return float(frequency / spec.factor);
  double w = smoothWeight(spec, frequency);
  return float((1 - w) * frequency / spec.factor + w * frequency);
}

/// Pairs by range; the frequency falls or rises steadily with t, so each range is one run (theta > 1: falls).
static Ranges rangesOf(const RopeSpec &spec) {
  Ranges ranges;
  for (int64_t t = 0; t < spec.pairs(); ++t) {
    double turns = double(spec.original) * baseFrequency(spec, t) / twoPi;
    if (turns > spec.highFreq)
      ranges.keep = t + 1;
    if (turns >= spec.lowFreq)
      ranges.divide = t + 1;
  }
  return ranges;
}

namespace {
/// The same arithmetic twice: on floats while the code is built, and as ops.
struct HostMath {
  using F = float;
  using I = int32_t;
  float c(float x) { return x; }
  float fma(float a, float b, float c) { return std::fma(a, b, c); }
  float sub(float a, float b) { return a - b; }
  float mul(float a, float b) { return a * b; }
  float neg(float a) { return -a; }
  /// bits(p) + (bits(u) << 23)
  float scale(float p, float u) {
    uint32_t bits = llvm::bit_cast<uint32_t>(p) + (llvm::bit_cast<uint32_t>(u) << 23);
    return llvm::bit_cast<float>(bits);
  }
  float selectLess(int32_t t, int64_t bound, float a, float b) { return t < bound ? a : b; }
};

struct OpMath {
  using F = Value;
  using I = Value;
  OpBuilder &b;
  Location loc;

  Value c(float x) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(x)); }
  Value ci(int64_t x) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(int32_t(x))); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value toInt(Value x) { return arith::BitcastOp::create(b, loc, b.getI32Type(), x); }
  Value toFloat(Value x) { return arith::BitcastOp::create(b, loc, b.getF32Type(), x); }
  Value scale(Value p, Value u) {
    Value shifted = arith::ShLIOp::create(b, loc, toInt(u), ci(23));
    return toFloat(arith::AddIOp::create(b, loc, toInt(p), shifted));
  }
  Value selectLess(Value t, int64_t bound, Value x, Value y) {
    Value less = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, t, ci(bound));
    return arith::SelectOp::create(b, loc, less, x, y);
  }
};
} // namespace

/// 1.5 * 2^23: adding it rounds to an integer, which the low bits then hold.
static constexpr float roundMagic = 12582912.0f;

/// The frequency of pair t to a few units in the last place. `tf` is t as a float. Only fused operations and single
/// products, so that contraction of a later compiler cannot change a bit.
template <typename M>
static typename M::F approximateFrequency(M m, const RopeSpec &spec, typename M::I t, typename M::F tf) {
  double slope = -2.0 * std::log2(spec.theta) / double(spec.rotary);
  float hi = float(slope), lo = float(slope - double(hi));
  auto magic = m.c(roundMagic);
  auto u = m.fma(tf, m.c(hi), magic);
  auto n = m.sub(u, magic);
  auto r = m.fma(tf, m.c(hi), m.neg(n));
  r = m.fma(tf, m.c(lo), r);
  // 2^r on [-1/2, 1/2] as 1 + r * P(r), to 2^-34.
  auto p = m.c(1.51961567e-05f);
  for (float c : {0.000154667563f, 0.00133339351f, 0.00961803831f, 0.0555041023f, 0.240226507f, 0.693147182f})
    p = m.fma(p, r, m.c(c));
  p = m.fma(p, r, m.c(1.0f));
  auto base = m.scale(p, u);
  if (!isSmooth(spec))
    return spec.factor == 1.0 ? base : m.mul(base, m.c(float(1.0 / spec.factor)));
  Ranges ranges = rangesOf(spec);
  double span = spec.highFreq - spec.lowFreq, keep = 1.0 - 1.0 / spec.factor;
  auto weight = m.fma(base, m.c(float(double(spec.original) / twoPi / span)), m.c(float(-spec.lowFreq / span)));
  auto smooth = m.mul(base, m.fma(weight, m.c(float(keep)), m.c(float(1.0 / spec.factor))));
  auto divided = m.mul(base, m.c(float(1.0 / spec.factor)));
  return m.selectLess(t, ranges.keep, base, m.selectLess(t, ranges.divide, smooth, divided));
}

namespace {
/// Corrections in units of the last place, `width` bits each (0: none needed; 32: the frequencies themselves).
struct Corrections {
  unsigned width = 0;
  SmallVector<uint32_t> words;
};
} // namespace

static Corrections correctionsOf(const RopeSpec &spec) {
  SmallVector<int64_t> delta;
  int64_t lo = 0, hi = 0;
  for (int64_t t = 0; t < spec.pairs(); ++t) {
    float approximate = approximateFrequency(HostMath(), spec, int32_t(t), float(t));
    delta.push_back(int64_t(llvm::bit_cast<int32_t>(ropeFrequency(spec, t))) -
                    int64_t(llvm::bit_cast<int32_t>(approximate)));
    lo = std::min(lo, delta.back());
    hi = std::max(hi, delta.back());
  }
  Corrections result;
  if (lo == 0 && hi == 0)
    return result;
  result.width = lo >= -2 && hi <= 1 ? 2 : lo >= -8 && hi <= 7 ? 4 : 32;
  unsigned perWord = 32 / result.width;
  for (int64_t t = 0; t < spec.pairs(); ++t) {
    if (t % perWord == 0)
      result.words.push_back(0);
    if (result.width == 32)
      result.words.back() = llvm::bit_cast<uint32_t>(ropeFrequency(spec, t));
    else
      result.words.back() |= (uint32_t(delta[t]) & ((1u << result.width) - 1)) << (t % perWord * result.width);
  }
  return result;
}

/// words[index] by a tree of selects.
static Value lookUp(OpMath m, ArrayRef<uint32_t> words, Value index) {
  SmallVector<Value> level;
  for (uint32_t word : words)
    level.push_back(m.ci(int32_t(word)));
  for (int64_t bit = 0; level.size() > 1; ++bit) {
    Value masked = arith::AndIOp::create(m.b, m.loc, index, m.ci(int64_t(1) << bit));
    Value odd = arith::CmpIOp::create(m.b, m.loc, arith::CmpIPredicate::ne, masked, m.ci(0));
    SmallVector<Value> next;
    for (size_t i = 0; i < level.size(); i += 2) {
      if (i + 1 == level.size())
        next.push_back(level[i]);
      else
        next.push_back(arith::SelectOp::create(m.b, m.loc, odd, level[i + 1], level[i]));
    }
    level = std::move(next);
  }
  return level.front();
}

static Value buildFrequency(OpMath m, const RopeSpec &spec, Value t) {
  Corrections fix = correctionsOf(spec);
  if (fix.width == 32)
    return m.toFloat(lookUp(m, fix.words, t));
  Value tf = arith::SIToFPOp::create(m.b, m.loc, m.b.getF32Type(), t);
  Value frequency = approximateFrequency(m, spec, t, tf);
  if (fix.width == 0)
    return frequency;
  unsigned perWord = 32 / fix.width;
  Value index = arith::ShRUIOp::create(m.b, m.loc, t, m.ci(llvm::Log2_32(perWord)));
  Value word = lookUp(m, fix.words, index);
  // Sign-extended field t mod perWord.
  Value field = arith::AndIOp::create(m.b, m.loc, t, m.ci(perWord - 1));
  Value above = arith::SubIOp::create(m.b, m.loc, m.ci(perWord - 1), field);
  Value up = arith::MulIOp::create(m.b, m.loc, above, m.ci(fix.width));
  Value left = arith::ShLIOp::create(m.b, m.loc, word, up);
  Value delta = arith::ShRSIOp::create(m.b, m.loc, left, m.ci(32 - fix.width));
  return m.toFloat(arith::AddIOp::create(m.b, m.loc, m.toInt(frequency), delta));
}

std::pair<Value, Value> mlir::attn::buildRopeFrequency(OpBuilder &builder, Location loc, Value t,
                                                       const RopeSpec &spec) {
  OpMath m{builder, loc};
  Value t32 = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), t);
  Value frequency = buildFrequency(m, spec, t32);
  double inverse = 1.0 / twoPi;
  Value hiPart = m.c(float(inverse)), loPart = m.c(float(inverse - double(float(inverse))));
  Value hi = m.mul(frequency, hiPart);
  Value error = m.fma(frequency, hiPart, arith::NegFOp::create(builder, loc, hi));
  return {hi, m.fma(frequency, loPart, error)};
}

std::pair<Value, Value> mlir::attn::buildRopeAngle(OpBuilder &builder, Location loc, Value position,
                                                   std::pair<Value, Value> frequency) {
  OpMath m{builder, loc};
  auto [hi, lo] = frequency;
  // position = p + rest, both exact floats (a float alone holds 24 bits).
  Value pos = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), position);
  Value f32High = arith::SIToFPOp::create(builder, loc, builder.getF32Type(),
                                          arith::AndIOp::create(builder, loc, pos, m.ci(-4096)));
  Value f32Low =
      arith::SIToFPOp::create(builder, loc, builder.getF32Type(), arith::AndIOp::create(builder, loc, pos, m.ci(4095)));
  Value p = arith::AddFOp::create(builder, loc, f32High, f32Low);
  Value rest = m.sub(f32Low, m.sub(p, f32High));
  // Turns, less the nearest whole number: the first fused product keeps what is left of p * hi to 2^-25.
  Value magic = m.c(roundMagic);
  Value whole = m.sub(m.fma(p, hi, magic), magic);
  Value turns = m.fma(p, hi, arith::NegFOp::create(builder, loc, whole));
  turns = m.fma(p, lo, turns);
  turns = m.fma(rest, hi, turns);
  Value angle = m.mul(turns, m.c(float(twoPi)));
  auto afn = arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::afn);
  Value cosine = math::CosOp::create(builder, loc, angle, afn);
  Value sine = math::SinOp::create(builder, loc, angle, afn);
  return {cosine, sine};
}

std::pair<Value, Value> mlir::attn::buildRopeAngle(OpBuilder &builder, Location loc, Value position, Value t,
                                                   const RopeSpec &spec) {
  return buildRopeAngle(builder, loc, position, buildRopeFrequency(builder, loc, t, spec));
}
