//===- CompareTest.cpp - what a comparison reports ------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Wrong, unwritten and NaN elements are found and placed; the baseline limits
// what the table alone would let through.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Compare.h"

#include "Cases.h"

#include <cmath>

#include "gtest/gtest.h"

using namespace attn::ref;

namespace {

/// A batch, its truth, and output memory that holds the truth rounded.
struct Output {
  Case data = Case({{2, 40}, {0, 3}, {3, 0}, {1, 70}}, 4, 2, 16, 8);
  Problem p = data.problem();
  Result truth = run(p);
  Storage type;
  std::vector<uint8_t> o;
  std::vector<float> lse;

  explicit Output(Storage type) : type(type), o(truth.o.size() * storageBytes(type)), lse(truth.lse.size()) {
    for (size_t i = 0; i != truth.o.size(); ++i)
      storeElement(type, o.data(), i, truth.o[i]);
    for (size_t i = 0; i != lse.size(); ++i)
      lse[i] = float(truth.lse[i]);
  }
  OutputView view() const { return {o.data(), type, 4 * 8, 8}; }
  OutputView lseView() const { return {lse.data(), Storage::F32, 4, 1}; }
  Comparison compare() const { return compareOutput(p, truth, view(), Tolerance::output(type)); }
};

TEST(Compare, RoundedTruthPasses) {
  for (Storage type : {Storage::F32, Storage::BF16, Storage::F16, Storage::E4M3, Storage::E5M2}) {
    Output r(type);
    Comparison c = r.compare();
    EXPECT_TRUE(c.ok) << storageName(type) << ": " << c.text();
    EXPECT_EQ(6 * 4 * 8, c.checked);
    EXPECT_TRUE(compareLse(r.p, r.truth, r.lseView(), Tolerance::lse()).ok);
  }
}

TEST(Compare, TheTable) {
  EXPECT_EQ(1e-3, Tolerance::output(Storage::F16).abs);
  EXPECT_EQ(1e-2, Tolerance::output(Storage::BF16).rel);
  EXPECT_EQ(2, Tolerance::output(Storage::BF16).baselineFactor);
  EXPECT_EQ(2e-2, Tolerance::output(Storage::F16, true).abs);
  EXPECT_EQ(1e-3, Tolerance::lse().abs);
}

TEST(Compare, NamesTheWorstElement) {
  Output r(Storage::F16);
  int64_t token = 5, head = 2, dim = 3;
  size_t index = (token * 4 + head) * 8 + dim;
  storeElement(r.type, r.o.data(), index, r.truth.o[index] + 0.5);
  storeElement(r.type, r.o.data(), 0, r.truth.o[0] + 0.1);
  Comparison c = r.compare();
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(2, c.bad);
  EXPECT_EQ(3, c.worst.request);
  EXPECT_EQ(0, c.worst.row);
  EXPECT_EQ(5, c.worst.token);
  EXPECT_EQ(2, c.worst.head);
  EXPECT_EQ(3, c.worst.dim);
  EXPECT_NE(std::string::npos,
            c.text().find("2 of 192 elements wrong (0 unwritten, 0 nan); worst at request 3, row 0, head 2, dim 3 "
                          "(token 5): expected "))
      << c.text();
}

TEST(Compare, FindsUnwrittenAndNaN) {
  Output r(Storage::BF16);
  poison(r.type, r.o.data() + 2 * 8 * 4, 1);
  storeElement(r.type, r.o.data(), 40, NAN);
  Comparison c = r.compare();
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(1, c.unwritten);
  EXPECT_EQ(1, c.nans);
  EXPECT_EQ(2, c.bad);
  EXPECT_EQ(1, c.worst.token); // the unwritten one
}

TEST(Compare, InfinitiesMustMatch) {
  Output r(Storage::F32);
  r.lse[3 * 4] = -1e30f; // row of an empty request
  Comparison c = compareLse(r.p, r.truth, r.lseView(), Tolerance::lse());
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(2, c.worst.request);
  r.lse[3 * 4] = -INFINITY;
  r.lse[0] = -INFINITY;
  c = compareLse(r.p, r.truth, r.lseView(), Tolerance::lse());
  EXPECT_EQ(1, c.bad);
  EXPECT_EQ(0, c.worst.token);
}

TEST(Compare, StridesAreObeyed) {
  Output r(Storage::F16);
  std::vector<uint16_t> wide(6 * 100, 0x7e00);
  for (int64_t t = 0; t != 6; ++t)
    for (int64_t h = 0; h != 4; ++h)
      for (int64_t d = 0; d != 8; ++d)
        storeElement(r.type, wide.data(), t * 8 + h * 100 + d, r.truth.row(t, h)[d]);
  EXPECT_TRUE(compareOutput(r.p, r.truth, {wide.data(), r.type, 8, 100}, Tolerance::output(r.type)).ok);
}

TEST(Compare, BaselineIsACeiling) {
  Output r(Storage::BF16);
  Result base = fp32Baseline(r.p, {}, Storage::BF16, Storage::BF16);
  Tolerance tol = Tolerance::output(Storage::BF16);
  EXPECT_TRUE(compareOutput(r.p, r.truth, r.view(), tol, &base).ok);
  // Within 1e-2, but far from what the baseline reaches.
  Result tiny = r.truth;
  for (double &x : tiny.o)
    x /= 1e3; // a truth so small that one unit in the last place is no excuse
  std::vector<float> got(tiny.o.size());
  for (size_t i = 0; i != got.size(); ++i)
    got[i] = float(tiny.o[i] + 0.005);
  EXPECT_TRUE(compareOutput(r.p, tiny, {got.data(), Storage::F32, 32, 8}, tol).ok);
  Comparison c = compareOutput(r.p, tiny, {got.data(), Storage::F32, 32, 8}, tol, &tiny);
  EXPECT_EQ(0, c.bad);
  EXPECT_FALSE(c.ok);
  EXPECT_EQ(0u, c.text().find("max error 0.005")) << c.text();
}

TEST(Compare, LargeLogitsAreAllowedWhatFp32Loses) {
  Output r(Storage::F32);
  Hooks far;
  far.logits = [](double x, const Coord &) { return x - 5e5; };
  Result truth = run(r.p, far);
  for (size_t i = 0; i != r.lse.size(); ++i)
    r.lse[i] = float(truth.lse[i]) + (i == 1 ? 0.06f : 0.0f); // two units in the last place of 5e5
  EXPECT_TRUE(compareLse(r.p, truth, r.lseView(), Tolerance::lse()).ok);
  r.lse[1] += 1;
  EXPECT_FALSE(compareLse(r.p, truth, r.lseView(), Tolerance::lse()).ok);
}

TEST(Compare, WhatTheBaselineCannotReachIsAllowedInItsRow) {
  Output r(Storage::F16);
  Result base = r.truth;
  base.row(1, 2)[0] += 0.05;
  base.lse[1 * 4 + 2] += 0.05;
  size_t index = (1 * 4 + 2) * 8;
  storeElement(r.type, r.o.data(), index + 5, r.truth.o[index + 5] + 0.08);
  r.lse[6] += 0.08f;
  Tolerance tol = Tolerance::output(r.type);
  EXPECT_FALSE(compareOutput(r.p, r.truth, r.view(), tol).ok);
  EXPECT_TRUE(compareOutput(r.p, r.truth, r.view(), tol, &base).ok);
  EXPECT_FALSE(compareLse(r.p, r.truth, r.lseView(), Tolerance::lse()).ok);
  EXPECT_TRUE(compareLse(r.p, r.truth, r.lseView(), Tolerance::lse(), &base).ok);
  storeElement(r.type, r.o.data(), index + 8 + 5, r.truth.o[index + 8 + 5] + 0.08); // the next row
  EXPECT_FALSE(compareOutput(r.p, r.truth, r.view(), tol, &base).ok);
}

TEST(Compare, RoundingOfHookedKeysIsAllowedByItsSpread) {
  Output r(Storage::F16);
  Hooks far;
  far.key = [](Vec x, const Coord &) {
    for (double &e : x)
      e *= 300;
    return x;
  };
  Result truth = run(r.p, far), base = fp32Baseline(r.p, far, Storage::F16, Storage::F16);
  ASSERT_EQ(truth.lse.size(), base.lseRounding.size());
  // The logits are in the hundreds, one key has nearly all of the weight: f16 knows its logit to 2^-11 / sqrt(3) of
  // each product's size at best.
  for (size_t i = 0; i != truth.lse.size(); ++i) {
    if (std::isinf(truth.lse[i]))
      continue;
    EXPECT_LT(base.lseRounding[i], truth.logitMagnitude[i] * std::ldexp(1.0, -11) / std::sqrt(3.0));
    EXPECT_GT(base.lseRounding[i], truth.logitMagnitude[i] * std::ldexp(1.0, -11) / 100);
    EXPECT_LT(std::fabs(base.lse[i] - truth.lse[i]), 4 * base.lseRounding[i] + 1e-3);
  }
  base.lse = truth.lse; // a lucky draw
  for (size_t i = 0; i != r.lse.size(); ++i)
    r.lse[i] = float(truth.lse[i]);
  r.lse[1] += float(3.9 * base.lseRounding[1]);
  EXPECT_TRUE(compareLse(r.p, truth, r.lseView(), Tolerance::lse(), &base).ok);
  r.lse[1] += float(0.3 * base.lseRounding[1] + 2e-4);
  EXPECT_FALSE(compareLse(r.p, truth, r.lseView(), Tolerance::lse(), &base).ok);
  EXPECT_TRUE(fp32Baseline(r.p, {}, Storage::F16, Storage::F16).lseRounding.empty());
}

TEST(Compare, NothingToCompare) {
  Case c({}, 1, 1, 4, 4);
  Comparison r = compareOutput(c.problem(), run(c.problem()), {}, Tolerance::output(Storage::F32));
  EXPECT_TRUE(r.ok);
  EXPECT_EQ("nothing to compare", r.text());
}

} // namespace
