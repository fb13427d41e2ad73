//===- VariantsTest.cpp - ready hooks against their definitions -----------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masks are written out row by row; rotary embeddings keep norms, depend on
// distances only, and hold their angle far out.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Variants.h"

#include "Cases.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

using namespace attn::ref;

namespace {

/// One line per row: '1' where the key is visible.
std::string picture(const Mask &mask, int64_t qo, int64_t kv, int64_t request = 0, int64_t head = 0) {
  std::string text;
  for (int64_t row = 0; row != qo; ++row) {
    for (int64_t j = 0; j != kv; ++j) {
      Coord at;
      at.request = request;
      at.qHead = head;
      at.row = row;
      at.qoLen = qo;
      at.kvLen = kv;
      at.qPos = row + kv - qo;
      at.kvPos = j;
      text += mask(at) ? '1' : '.';
    }
    text += '\n';
  }
  return text;
}

TEST(Variants, Masks) {
  EXPECT_EQ("11.\n111\n", picture(causal(), 2, 3));
  EXPECT_EQ("...\n...\n1..\n11.\n111\n", picture(causal(), 5, 3).substr(0, 20));
  EXPECT_EQ(".111.\n..111\n...11\n", picture(window(1, 1), 3, 5));
  EXPECT_EQ("111..\n1111.\n11111\n", picture(window(-1, 0), 3, 5));
  EXPECT_EQ("..1..\n...1.\n....1\n", picture(window(0, 0), 3, 5));
  EXPECT_EQ("11111\n11111\n", picture(window(-1, -1), 2, 5));
  EXPECT_EQ("1.11.\n1..11\n", picture(sinkTokens(1, window(1, 0)), 2, 5));
  EXPECT_EQ("11..\n11..\n111.\n1111\n", picture(prefixLM({9, 2}), 4, 4, 1));
  EXPECT_EQ("11..\n..11\n..11\n", picture(document({5, 5, 0, 0, 1, 1}, {9, 2}), 3, 4, 1));
  EXPECT_EQ("1.\n11\n", picture(maskAnd(causal(), prefixLM({0})), 2, 2));
}

TEST(Variants, DocumentsBeforeTheFirstKeySeeNothing) { EXPECT_EQ(".\n1\n", picture(document({3}, {0}), 2, 1)); }

TEST(Variants, TreeMaskIsRowMajorLittleBitsPaddedPerRequest) {
  // 2 x 5 bits: 10110 01101 -> bytes 0b11001101, 0b00000010 (bit 0 first).
  std::vector<uint8_t> bits = {0xff, 0b11001101, 0b00000010, 0x00};
  EXPECT_EQ("1.11.\n.11.1\n", picture(treeMask(bits, {0, 1}), 2, 5, 1));
  EXPECT_EQ("1.11.\n.11.1\n", picture(treeMask(bits, {0, 1}, true), 2, 5, 1, 0));
  std::vector<uint8_t> heads = {0, 0, 0b11001101, 0b00000010};
  EXPECT_EQ("1.11.\n.11.1\n", picture(treeMask(heads, {0}, true), 2, 5, 0, 1));
}

TEST(Variants, AlibiSlopes) {
  std::vector<double> eight = alibiSlopes(8);
  for (int k = 0; k != 8; ++k)
    EXPECT_EQ(std::ldexp(1.0, -(k + 1)), eight[k]);
  std::vector<double> twelve = alibiSlopes(12);
  ASSERT_EQ(12u, twelve.size());
  for (int k = 0; k != 8; ++k)
    EXPECT_EQ(eight[k], twelve[k]);
  for (int k = 0; k != 4; ++k)
    EXPECT_NEAR(std::pow(2.0, -0.5 * (2 * k + 1)), twelve[8 + k], 1e-15);
  // The rank that holds heads 8 to 15 of 32.
  std::vector<double> all = alibiSlopes(32), rank = alibiSlopes(32, 8, 8);
  EXPECT_EQ(std::vector<double>(all.begin() + 8, all.begin() + 16), rank);
  EXPECT_EQ(std::vector<double>{std::ldexp(1.0, -8)}, alibiSlopes(1));
  Coord at;
  at.qHead = 1;
  at.qPos = 10;
  at.kvPos = 7;
  EXPECT_EQ(2.0 - 3 * 0.25, alibi(eight)(2.0, at));
}

TEST(Variants, LogitsAndSinks) {
  Coord at;
  at.qHead = 1;
  EXPECT_NEAR(50 * std::tanh(3.0), softCap(50)(150, at), 1e-12);
  EXPECT_EQ(0.5, sigmoid(-3)(3, at));
  EXPECT_EQ(4.0, headSink({1, 4})(at));
  EXPECT_NEAR(30 * std::tanh(2 * 20 * std::tanh(1.0) / 30),
              chain(chain(softCap(20), [](double x, const Coord &) { return 2 * x; }), softCap(30))(20, at), 1e-12);
}

TEST(Variants, RopeKeepsNormsAndSeesDistancesOnly) {
  for (bool interleaved : {false, true})
    for (int64_t rotary : {0, 8}) {
      Rope rope;
      rope.interleaved = interleaved;
      rope.rotary = rotary;
      Vec q(16), k(16);
      for (int d = 0; d != 16; ++d) {
        q[d] = 0.3 * d - 1;
        k[d] = 1.0 / (d + 1);
      }
      auto dot = [](const Vec &a, const Vec &b) {
        double s = 0;
        for (size_t d = 0; d != a.size(); ++d)
          s += a[d] * b[d];
        return s;
      };
      EXPECT_NEAR(dot(q, q), dot(rotate(q, 1234, rope), rotate(q, 1234, rope)), 1e-12);
      EXPECT_NEAR(dot(rotate(q, 107, rope), rotate(k, 100, rope)), dot(rotate(q, 7, rope), k), 1e-9);
      EXPECT_EQ(q, rotate(q, 0, rope));
      Vec turned = rotate(q, 3, rope);
      for (int64_t d = rotary ? rotary : 16; d < 16; ++d)
        EXPECT_EQ(q[d], turned[d]);
    }
}

TEST(Variants, RopePairings) {
  Rope half, inter;
  inter.interleaved = true;
  Vec x = {1, 2, 3, 4};
  Vec a = rotate(x, 1, half), b = rotate(x, 1, inter);
  double slow = float(std::pow(10000.0, -0.5));
  EXPECT_NEAR(1 * std::cos(1) - 3 * std::sin(1), a[0], 1e-14);
  EXPECT_NEAR(3 * std::cos(1) + 1 * std::sin(1), a[2], 1e-14);
  EXPECT_NEAR(2 * std::cos(slow) - 4 * std::sin(slow), a[1], 1e-14);
  EXPECT_NEAR(1 * std::cos(1) - 2 * std::sin(1), b[0], 1e-14);
  EXPECT_NEAR(4 * std::cos(slow) + 3 * std::sin(slow), b[3], 1e-14);
}

TEST(Variants, RopeHoldsItsAngleFarOut) {
  Rope rope;
  std::vector<float> f = ropeFrequencies(rope, 128);
  for (int64_t t = 0; t != 64; ++t) {
    Vec x(128, 0.0);
    x[t] = 1;
    Vec y = rotate(x, 1000000, rope);
    // The angle in long double, from the rounded frequency.
    long double angle = 1000000.0L * (long double)f[t];
    EXPECT_NEAR(double(std::cos(angle)), y[t], 1e-9);
    EXPECT_NEAR(double(std::sin(angle)), y[t + 64], 1e-9);
  }
}

TEST(Variants, Llama31Scaling) {
  Rope rope;
  rope.theta = 500000;
  rope.factor = 8;
  rope.lowFreq = 1;
  rope.highFreq = 4;
  rope.original = 8192;
  Rope plain;
  plain.theta = 500000;
  std::vector<float> scaled = ropeFrequencies(rope, 128), base = ropeFrequencies(plain, 128);
  int kept = 0, divided = 0, between = 0;
  for (int t = 0; t != 64; ++t) {
    double wavelength = 2 * std::acos(-1.0) / std::pow(500000.0, -2.0 * t / 128);
    if (wavelength < 2048) {
      EXPECT_EQ(base[t], scaled[t]);
      ++kept;
    } else if (wavelength > 8192) {
      EXPECT_NEAR(base[t] / 8.0, scaled[t], base[t] * 1e-7);
      ++divided;
    } else {
      EXPECT_LT(scaled[t], base[t]);
      EXPECT_GT(scaled[t], base[t] / 8);
      ++between;
    }
  }
  EXPECT_EQ(64, kept + divided + between);
  EXPECT_GT(between, 0);
  plain.factor = 4;
  EXPECT_EQ(0.25f, ropeFrequencies(plain, 128)[0]);
}

TEST(Variants, InsideTheReference) {
  Case c({{4, 40}}, 4, 2, 16, 8);
  Hooks hooks;
  hooks.query = ropeQuery(Rope());
  hooks.key = ropeKey(Rope());
  hooks.logits = chain(softCap(30), alibi(alibiSlopes(4)));
  hooks.mask = sinkTokens(2, maskAnd(causal(), window(9, -1)));
  hooks.sink = headSink({0, 1, -1, 2});
  Result ragged = run(c.problem(), hooks);
  Case paged = c.paged(5);
  Result r = run(paged.problem(), hooks);
  EXPECT_EQ(ragged.o, r.o);
  for (double x : r.lse)
    EXPECT_TRUE(std::isfinite(x));
}

} // namespace
