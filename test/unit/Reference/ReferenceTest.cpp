//===- ReferenceTest.cpp - the reference against closed forms -------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What can be known without computing attention: equal logits give a mean, one
// key gives its value, empty rows are zero, any split merges to the whole.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "attn/Reference/Compare.h"

#include <cmath>

#include "gtest/gtest.h"

using namespace attn::ref;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Reference, EqualLogitsGiveTheMean) {
  Case c({{3, 5}}, 2, 1, 4, 6);
  c.fill(c.k, 0.0f);
  Result r = run(c.problem());
  for (int64_t d = 0; d != 6; ++d) {
    double mean = 0;
    for (int64_t j = 0; j != 5; ++j)
      mean += c.problem().v.at(0, j, 0)[d] / 5.0;
    EXPECT_NEAR(mean, r.row(2, 1)[d], 1e-14);
  }
  EXPECT_NEAR(std::log(5.0), r.lse[0], 1e-14);
}

TEST(Reference, OneKeyGivesItsValue) {
  Case c({{1, 1}, {4, 1}}, 4, 2, 8, 8);
  Result r = run(c.problem());
  for (int64_t token = 0; token != 5; ++token)
    for (int64_t h = 0; h != 4; ++h)
      for (int64_t d = 0; d != 8; ++d)
        EXPECT_EQ(c.problem().v.at(0, token == 0 ? 0 : 1, h / 2)[d], r.row(token, h)[d]);
  double x = 0;
  for (int64_t d = 0; d != 8; ++d)
    x += double(c.q[d]) * c.k[d];
  EXPECT_NEAR(x / std::sqrt(8.0), r.lse[0], 1e-12);
}

TEST(Reference, EmptyRowsAreZeroAndMinusInfinity) {
  Case c({{2, 3}, {0, 7}, {2, 0}, {1, 2}}, 2, 2, 4, 4);
  Result r = run(c.problem());
  for (int64_t token : {2, 3})
    for (int64_t h = 0; h != 2; ++h) {
      EXPECT_EQ(-kInf, r.lse[token * 2 + h]);
      for (int64_t d = 0; d != 4; ++d)
        EXPECT_EQ(0.0, r.row(token, h)[d]);
    }
  // Neighbours are what they are alone.
  Case alone({{2, 3}}, 2, 2, 4, 4);
  Result s = run(alone.problem());
  EXPECT_TRUE(std::isfinite(r.lse[8]));
  EXPECT_EQ(r.o.size(), 5u * 2 * 4);
  EXPECT_TRUE(std::isfinite(s.lse[0]));
  EXPECT_TRUE(run(Case({}, 2, 1, 4, 4).problem()).o.empty());
}

TEST(Reference, EmptyRowWithSink) {
  Case c({{1, 0}, {1, 4}}, 2, 1, 4, 4);
  Hooks hooks;
  hooks.sink = [](const Coord &at) { return at.qHead == 0 ? 1.5 : -2.0; };
  Result r = run(c.problem(), hooks), plain = run(c.problem());
  EXPECT_EQ(1.5, r.lse[0]);
  EXPECT_EQ(-2.0, r.lse[1]);
  EXPECT_EQ(0.0, r.row(0, 0)[0]);
  double lse = plain.lse[2], whole = std::log(std::exp(lse) + std::exp(1.5));
  EXPECT_NEAR(whole, r.lse[2], 1e-12);
  EXPECT_NEAR(plain.row(1, 0)[3] * std::exp(lse - whole), r.row(1, 0)[3], 1e-12);
}

TEST(Reference, SplitEqualsUnsplit) {
  for (LseBase base : {LseBase::Natural, LseBase::Base2})
    for (bool sink : {false, true}) {
      Case c({{3, 37}, {1, 2}, {2, 0}}, 4, 2, 8, 4);
      Problem p = c.problem();
      p.lseBase = base;
      Hooks hooks;
      if (sink)
        hooks.sink = [](const Coord &at) { return 0.25 * at.qHead; };
      hooks.output = [](Vec o, const Coord &) {
        for (double &x : o)
          x = x * x + 1; // not linear: wrong when applied to parts
        return o;
      };
      Result whole = run(p, hooks);
      // The last chunks are empty for the short requests.
      Result merged = run(p, hooks, {0, 5, false});
      for (int64_t lo : {5, 16, 36})
        merge(merged, run(p, hooks, {lo, lo == 5 ? 16 : lo == 16 ? 36 : 100, false}), p);
      finalise(merged, p, hooks);
      for (size_t i = 0; i != whole.o.size(); ++i)
        EXPECT_NEAR(whole.o[i], merged.o[i], 1e-12);
      for (size_t i = 0; i != whole.lse.size(); ++i)
        if (whole.lse[i] == -kInf)
          EXPECT_EQ(-kInf, merged.lse[i]);
        else
          EXPECT_NEAR(whole.lse[i], merged.lse[i], 1e-12);
    }
}

TEST(Reference, MergeIsAssociativeAndEmptyIsNeutral) {
  double o[3][2] = {{1, 2}, {-3, 0.5}, {4, 4}}, lse[3] = {0.5, -700, 3};
  auto merged = [&](std::vector<int> order) {
    double acc[2] = {0, 0}, l = -kInf;
    for (int i : order)
      merge(acc, &l, o[i], &lse[i], 2);
    return std::vector<double>{acc[0], acc[1], l};
  };
  std::vector<double> a = merged({0, 1, 2}), b = merged({2, 0, 1});
  double right[2] = {o[1][0], o[1][1]}, l = lse[1];
  merge(right, &l, o[2], &lse[2], 2);
  double left[2] = {o[0][0], o[0][1]}, ll = lse[0];
  merge(left, &ll, right, &l, 2);
  for (int i = 0; i != 3; ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-13);
    EXPECT_NEAR(a[i], i == 2 ? ll : left[i], 1e-13);
  }
  for (int count : {2, 5}) { // of any number of empty states
    double acc[2] = {7, 7}, e = -kInf, empty[2] = {0, 0}, le = -kInf;
    for (int i = 1; i != count; ++i)
      merge(acc, &e, empty, &le, 2);
    EXPECT_EQ(0.0, acc[0]);
    EXPECT_EQ(-kInf, e);
  }
}

TEST(Reference, ExtremeLogitsAreOrdinary) {
  for (double offset : {-1e5, -5e5, -524288.0, 5e5}) {
    Case c({{2, 64}}, 16, 1, 128, 16);
    Hooks shifted;
    shifted.logits = [&](double x, const Coord &) { return x + offset; };
    Result plain = run(c.problem()), far = run(c.problem(), shifted);
    for (size_t i = 0; i != plain.o.size(); ++i)
      EXPECT_NEAR(plain.o[i], far.o[i], 1e-8);
    EXPECT_NEAR(plain.lse[3] + offset, far.lse[3], 1e-8);
  }
}

TEST(Reference, MinusInfinityFromAHookIsNoNaN) {
  Case c({{1, 4}}, 1, 1, 4, 4);
  Hooks hooks;
  hooks.logits = [](double, const Coord &) { return -kInf; };
  Result r = run(c.problem(), hooks);
  EXPECT_EQ(-kInf, r.lse[0]);
  EXPECT_EQ(0.0, r.o[0]);
}

TEST(Reference, CausalIsBottomRight) {
  Case c({{3, 5}, {5, 3}}, 1, 1, 4, 4);
  Hooks hooks;
  hooks.mask = [](const Coord &at) { return at.kvPos <= at.row + at.kvLen - at.qoLen; };
  c.fill(c.k, 0.0f);
  Result r = run(c.problem(), hooks);
  for (int64_t row = 0; row != 3; ++row)
    EXPECT_NEAR(std::log(row + 3.0), r.lse[row], 1e-14);
  EXPECT_EQ(-kInf, r.lse[3]); // qo_len > kv_len: the first rows see nothing
  EXPECT_EQ(-kInf, r.lse[4]);
  EXPECT_EQ(0.0, r.row(4, 0)[0]);
  EXPECT_NEAR(0.0, r.lse[5], 1e-14);
}

TEST(Reference, CoordinatesAreGlobal) {
  Case c({{2, 3}, {3, 7}}, 6, 2, 2, 2);
  bool right = true;
  Hooks hooks;
  hooks.mask = [&](const Coord &at) {
    right &= at.qoLen == at.request + 2 && at.kvLen == (at.request ? 7 : 3) && at.kvHead == at.qHead / 3 &&
             at.qPos == at.row + at.kvLen - at.qoLen && at.kvPos >= 0 && at.kvPos < at.kvLen;
    return true;
  };
  run(c.problem(), hooks);
  EXPECT_TRUE(right);
}

TEST(Reference, EveryHookOnceInOrder) {
  Case c({{1, 3}}, 2, 1, 2, 2);
  Hooks hooks;
  hooks.query = [](Vec q, const Coord &at) { return Vec{q[0] + at.qPos, q[1]}; };
  hooks.key = [](Vec k, const Coord &at) { return Vec{k[0], k[1] * at.kvPos}; };
  hooks.value = [](Vec v, const Coord &at) { return Vec{v[0] + at.kvPos, v[1]}; };
  hooks.logits = [](double x, const Coord &) { return 2 * x; };
  hooks.mask = [](const Coord &at) { return at.kvPos != 1; };
  hooks.output = [](Vec o, const Coord &at) { return Vec{o[0] + 10 * at.qHead, -o[1]}; };
  Problem p = c.problem();
  p.scale = -0.5; // any scale is allowed
  Result r = run(p, hooks);
  for (int64_t h = 0; h != 2; ++h) {
    double e[3], sum = 0, o[2] = {0, 0};
    for (int64_t j : {0, 2}) {
      const float *q = p.q.at(0, 0, h), *k = p.k.at(0, j, 0);
      e[j] = std::exp(2 * -0.5 * ((q[0] + 2.0) * k[0] + double(q[1]) * (double(k[1]) * j)));
      sum += e[j];
    }
    for (int64_t j : {0, 2}) {
      o[0] += e[j] / sum * (p.v.at(0, j, 0)[0] + double(j));
      o[1] += e[j] / sum * p.v.at(0, j, 0)[1];
    }
    EXPECT_NEAR(o[0] + 10 * h, r.row(0, h)[0], 1e-12);
    EXPECT_NEAR(-o[1], r.row(0, h)[1], 1e-12);
    EXPECT_NEAR(std::log(sum), r.lse[h], 1e-12);
  }
}

TEST(Reference, ZeroScaleIsAMean) {
  Case c({{1, 4}}, 1, 1, 4, 4);
  Problem p = c.problem();
  p.scale = 0;
  EXPECT_NEAR(std::log(4.0), run(p).lse[0], 1e-14);
}

TEST(Reference, Base2IsTheSameNumberInBits) {
  Case c({{2, 9}}, 2, 1, 8, 8);
  Problem p = c.problem();
  Result natural = run(p);
  p.lseBase = LseBase::Base2;
  Result bits = run(p);
  EXPECT_NEAR(natural.lse[1] / std::log(2.0), bits.lse[1], 1e-13);
  EXPECT_EQ(natural.o, bits.o);
}

TEST(Reference, NoNormalizerAddsAndMaskedKeysAreZero) {
  Case c({{2, 7}}, 2, 1, 4, 4);
  Problem p = c.problem();
  p.normalizer = Normalizer::None;
  Hooks hooks;
  hooks.logits = [](double x, const Coord &) { return 1 / (1 + std::exp(-x)); };
  hooks.mask = [](const Coord &at) { return at.kvPos != 3; };
  Result r = run(p, hooks);
  EXPECT_TRUE(r.lse.empty());
  Result parts = run(p, hooks, {0, 2, false});
  merge(parts, run(p, hooks, {2, 4, false}), p);
  merge(parts, run(p, hooks, {4, 99, false}), p);
  for (size_t i = 0; i != r.o.size(); ++i)
    EXPECT_NEAR(r.o[i], parts.o[i], 1e-14);
  hooks.mask = [](const Coord &) { return false; };
  for (double x : run(p, hooks).o)
    EXPECT_EQ(0.0, x);
}

TEST(Reference, PagedEqualsRagged) {
  for (int64_t page : {1, 2, 5, 16, 512}) {
    Case c({{2, 13}, {1, 0}, {3, 17}, {1, 16}}, 4, 2, 8, 4);
    Result ragged = run(c.problem());
    Case paged = c.paged(page);
    Problem p = paged.problem();
    ASSERT_EQ("", validate(p));
    Result r = run(p);
    EXPECT_EQ(ragged.o, r.o) << "page " << page; // NaN in the tails would show
    EXPECT_EQ(ragged.lse, r.lse);
  }
}

TEST(Reference, LevelsEqualFlat) {
  // Two requests share 6 tokens, another two share nothing; a request with no own keys.
  Case c({{1, 9}, {2, 6}, {1, 4}}, 2, 1, 4, 4);
  Problem flat = c.problem();
  // The same keys as two levels: entry 0 of level 0 is the first request's first 6 keys.
  std::copy(c.k.begin(), c.k.begin() + 6 * 4, c.k.begin() + 9 * 4);
  std::copy(c.v.begin(), c.v.begin() + 6 * 4, c.v.begin() + 9 * 4);
  Result want = run(flat);
  Problem p = flat;
  p.levels = {Level{{0, 2}, {0, 6}, {}, {}}, Level{{0, 1, 2, 3}, {6, 9, 9, 9}, {}, {}}};
  p.levels.push_back(Level{{2, 3}, {15, 19}, {}, {}});
  ASSERT_EQ("", validate(p));
  EXPECT_EQ(9, kvLen(p, 0));
  EXPECT_EQ(6, kvLen(p, 1));
  EXPECT_EQ(4, kvLen(p, 2));
  EXPECT_EQ(7, keysOf(p, 0)[7].position);
  Result r = run(p);
  EXPECT_EQ(want.o, r.o);
  EXPECT_EQ(want.lse, r.lse);
}

TEST(Reference, BsrRowBlocksHaveListsOfTheirOwn) {
  // 5 rows in blocks of 2, 10 columns in blocks of 3, the last one partial.
  Case c({{5, 10}}, 2, 1, 4, 4);
  Case blocks = c.paged(3, /*shuffle=*/false);
  Problem p = blocks.problem();
  p.format = Format::Bsr;
  p.rowBlock = 2;
  p.kvTotal = {10};
  p.levels = {Level{{}, {0, 2, 2, 4}, {1, 3, 0, 2}, {1, 1, 3}}};
  ASSERT_EQ("", validate(p));
  Hooks dense;
  dense.mask = [](const Coord &at) {
    int64_t block = at.kvPos / 3;
    return at.row < 2 ? block == 1 || block == 3 : at.row < 4 ? false : block == 0 || block == 2;
  };
  Result want = run(c.problem(), dense), got = run(p);
  EXPECT_EQ(want.o, got.o);
  EXPECT_EQ(want.lse, got.lse);
  std::vector<KeyPlace> keys = keysOf(p, 0, 0);
  ASSERT_EQ(4u, keys.size());
  EXPECT_EQ(3, keys[0].position);
  EXPECT_EQ(9, keys[3].position);
  EXPECT_EQ(10, kvLen(p, 0));
  p.kvTotal.clear();
  EXPECT_EQ(6, kvLen(p, 0)); // the third row block has the longest list
}

TEST(Reference, BaselineIsNearAndRounds) {
  Case c({{4, 130}}, 4, 2, 64, 32);
  Result truth = run(c.problem()), base = fp32Baseline(c.problem(), {}, Storage::BF16, Storage::BF16);
  double worst = 0;
  for (size_t i = 0; i != truth.o.size(); ++i) {
    worst = std::max(worst, std::fabs(truth.o[i] - base.o[i]));
    EXPECT_EQ(base.o[i], roundTo(Storage::BF16, base.o[i]));
  }
  EXPECT_GT(worst, 1e-5);
  EXPECT_LT(worst, 5e-3);
  EXPECT_NEAR(truth.lse[5], base.lse[5], 1e-5);
  Case empty({{1, 0}}, 1, 1, 4, 4);
  EXPECT_EQ(-kInf, fp32Baseline(empty.problem(), {}, Storage::BF16, Storage::BF16).lse[0]);
}

TEST(Reference, ValidateNamesTheRule) {
  auto broken = [](auto change) {
    Case c = Case({{2, 13}, {1, 5}}, 4, 2, 8, 4).paged(4);
    Problem p = c.problem();
    change(p);
    return validate(p);
  };
  EXPECT_EQ("", broken([](Problem &) {}));
  EXPECT_EQ("query heads must be a multiple of kv heads, got 3 and 2", broken([](Problem &p) { p.headsQo = 3; }));
  EXPECT_EQ("head dims must be positive, got 0 and 4", broken([](Problem &p) { p.headDimQk = 0; }));
  EXPECT_EQ("qo_indptr must start at 0 and not decrease; give one offset per request and the total",
            broken([](Problem &p) { p.qoIndptr = {0, 3, 2}; }));
  EXPECT_EQ("there must be at least one level of keys", broken([](Problem &p) { p.levels.clear(); }));
  EXPECT_EQ("page size must be at least 1, got 0", broken([](Problem &p) { p.pageSize = 0; }));
  EXPECT_EQ("the row block of bsr must be at least 1, got 0", broken([](Problem &p) { p.format = Format::Bsr; }));
  EXPECT_EQ("kv_total must have one length per request, got 1", broken([](Problem &p) { p.kvTotal = {4}; }));
  EXPECT_EQ("kv_indptr of level 0 must not decrease or be negative",
            broken([](Problem &p) { p.levels[0].kvIndptr = {0, 4, 3}; }));
  EXPECT_EQ("kv_indptr of level 0 must have 3 offsets, got 2; or state row_indptr",
            broken([](Problem &p) { p.levels[0].kvIndptr.pop_back(); }));
  EXPECT_EQ("row_indptr of level 0 must not decrease and must stay within the 2 rows",
            broken([](Problem &p) { p.levels[0].rowIndptr = {0, 1, 3}; }));
  EXPECT_EQ("row_indptr of level 0 must have as many offsets as kv_indptr",
            broken([](Problem &p) { p.levels[0].rowIndptr = {0, 2}; }));
  EXPECT_EQ("last_page_len of level 0 must have one length per entry",
            broken([](Problem &p) { p.levels[0].last.pop_back(); }));
  EXPECT_EQ("kv_indptr of level 0 runs past the page table", broken([](Problem &p) { p.levels[0].indices.clear(); }));
  EXPECT_EQ("last_page_len of level 0, entry 1, must be 1 to 4, got 5",
            broken([](Problem &p) { p.levels[0].last[1] = 5; }));
  EXPECT_EQ("page indices of level 0 must not be negative, got -1",
            broken([](Problem &p) { p.levels[0].indices[0] = -1; }));
  Hooks sink;
  sink.sink = [](const Coord &) { return 0.0; };
  Problem p = Case({{1, 1}}, 1, 1, 4, 4).problem();
  p.normalizer = Normalizer::None;
  EXPECT_EQ("a sink needs the softmax normalizer; remove the hook or the normalizer", validate(p, sink));
}

} // namespace
