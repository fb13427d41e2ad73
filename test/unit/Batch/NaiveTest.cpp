//===- NaiveTest.cpp - the reference against a second formula -------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The definition written down without any structure: exp of every logit in long
// double, no maximum, no key lists, keys found through the tables again. A few
// hundred random batches of every format with random hooks.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Build.h"
#include "attn/Reference/Variants.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

using namespace attn;
using namespace attn::ref;

namespace {

/// Key number `j` of a request: page and row, found level by level from the tables.
bool findKey(const batch::Built &b, int64_t request, int64_t rowBlock, int64_t j, int64_t &block, int64_t &row,
             int64_t &position) {
  bool bsr = b.geometry.format == Format::Bsr, ragged = b.geometry.format == Format::Ragged;
  int64_t before = 0, page = b.geometry.pageSize, serves = bsr ? rowBlock : request;
  for (const Level &level : b.levels)
    for (size_t e = 0; e + 1 < level.kvIndptr.size(); ++e) {
      int64_t first = level.rowIndptr.empty() ? int64_t(e) : level.rowIndptr[e];
      int64_t end = level.rowIndptr.empty() ? int64_t(e) + 1 : level.rowIndptr[e + 1];
      if (serves < first || serves >= end)
        continue;
      int64_t pages = level.kvIndptr[e + 1] - level.kvIndptr[e];
      int64_t length = ragged ? pages : pages == 0 ? 0 : (pages - 1) * page + level.last[e];
      if (j >= before && j < before + length) {
        int64_t inside = j - before;
        block = ragged ? 0 : level.indices[level.kvIndptr[e] + inside / page];
        row = ragged ? level.kvIndptr[e] + inside : inside % page;
        position = bsr ? block * page + row : j;
        return true;
      }
      before += length;
    }
  return false;
}

double element(const batch::Tensor &t, int64_t block, int64_t row, int64_t head, int64_t d) {
  size_t rank = t.shape.size();
  int64_t at = (rank == 4 ? block * t.strides[0] : 0) + row * t.strides[rank - 3] + head * t.strides[rank - 2] + d;
  return loadElement(t.type, t.data(), at);
}

Vec vectorAt(const batch::Tensor &t, int64_t block, int64_t row, int64_t head, int64_t dim) {
  Vec x;
  for (int64_t d = 0; d != dim; ++d)
    x.push_back(element(t, block, row, head, d));
  return x;
}

/// Compares every row of `got` with the definition.
void expectNaive(const batch::Built &b, const Hooks &hooks, double scale, const Result &got) {
  const batch::Geometry &g = b.geometry;
  int64_t blocks = 0;
  for (size_t r = 0; r != b.requests.size(); ++r) {
    int64_t qo = b.requests[r].qo, kv = b.requests[r].kv;
    for (int64_t i = 0; i != qo; ++i)
      for (int64_t h = 0; h != g.headsQo; ++h) {
        Coord at;
        at.request = int64_t(r);
        at.qHead = h;
        at.kvHead = h / (g.headsQo / g.headsKv);
        at.qoLen = qo;
        at.kvLen = kv;
        at.row = i;
        at.qPos = i + kv - qo;
        int64_t token = b.qoIndptr[r] + i;
        Vec q = vectorAt(b.q, 0, token, h, g.headDimQk);
        if (hooks.query)
          q = hooks.query(q, at);
        long double sum = 0;
        std::vector<long double> o(g.headDimVo, 0);
        int64_t block, row;
        for (int64_t j = 0; findKey(b, int64_t(r), blocks + (g.rowBlock ? i / g.rowBlock : 0), j, block, row, at.kvPos);
             ++j) {
          if (hooks.mask && !hooks.mask(at))
            continue;
          Coord key = at;
          key.qHead = at.kvHead * (g.headsQo / g.headsKv);
          key.row = 0;
          key.qPos = kv - qo;
          Vec k = vectorAt(b.k, block, row, at.kvHead, g.headDimQk),
              v = vectorAt(b.v, block, row, at.kvHead, g.headDimVo);
          if (hooks.key)
            k = hooks.key(k, key);
          if (hooks.value)
            v = hooks.value(v, key);
          double x = 0;
          for (int64_t d = 0; d != g.headDimQk; ++d)
            x += q[d] * k[d];
          x *= scale;
          if (hooks.logits)
            x = hooks.logits(x, at);
          long double weight = g.normalizer == Normalizer::Softmax ? std::exp((long double)x) : (long double)x;
          sum += weight;
          for (int64_t d = 0; d != g.headDimVo; ++d)
            o[d] += weight * v[d];
        }
        at.kvPos = 0;
        if (g.normalizer == Normalizer::Softmax) {
          if (hooks.sink)
            sum += std::exp((long double)hooks.sink(at));
          for (long double &x : o)
            x = sum > 0 ? x / sum : 0;
          double lse = double(std::log(sum));
          if (g.lseBase == LseBase::Base2)
            lse /= std::log(2.0);
          double have = got.lse[token * g.headsQo + h];
          if (std::isinf(lse))
            ASSERT_EQ(lse, have);
          else
            ASSERT_NEAR(lse, have, 1e-9);
        }
        Vec out(o.begin(), o.end());
        if (hooks.output)
          out = hooks.output(out, at);
        for (int64_t d = 0; d != g.headDimVo; ++d)
          ASSERT_NEAR(out[d], got.row(token, h)[d], 1e-9) << "request " << r << " row " << i << " head " << h;
      }
    if (g.rowBlock)
      blocks += (qo + g.rowBlock - 1) / g.rowBlock;
  }
}

TEST(Naive, RandomBatches) {
  std::mt19937_64 random(2024);
  auto pick = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  for (int number = 0; number != 300; ++number) {
    batch::Geometry g;
    g.headsKv = 1 + pick(3);
    g.headsQo = g.headsKv * std::vector<int64_t>{1, 2, 3, 5, 7}[pick(5)];
    g.headDimQk = 2 * (1 + pick(6));
    g.headDimVo = 1 + pick(9);
    g.typeQ = pick(2) ? Storage::BF16 : Storage::F16;
    g.typeKv = std::vector<Storage>{g.typeQ, g.typeQ, Storage::E4M3, Storage::E5M2, Storage::F32}[pick(5)];
    g.typeO = g.typeQ;
    g.format = Format(pick(3));
    g.pageSize = g.format == Format::Ragged ? 0 : std::vector<int64_t>{1, 2, 3, 5, 16}[pick(5)];
    g.rowBlock = g.format == Format::Bsr ? 1 + pick(4) : 0;
    g.normalizer = pick(5) ? Normalizer::Softmax : Normalizer::None;
    g.lseBase = pick(2) ? LseBase::Natural : LseBase::Base2;
    batch::Batch b;
    b.seed = uint64_t(number);
    b.strides = batch::Strides(pick(3));
    b.magnitudeQ = b.magnitudeK = 0.5 + double(pick(3));
    int64_t requests = pick(5);
    for (int64_t r = 0; r != requests; ++r)
      b.requests.push_back({pick(4) ? pick(6) : 0, pick(5) ? pick(40) : 0});
    if (g.format != Format::Bsr && requests > 1 && pick(2)) {
      int64_t shared = std::min(b.requests[0].kv, b.requests[1].kv);
      b.prefixes.push_back({0, 1, shared ? pick(shared + 1) : 0});
      g.levels = 2 + pick(2);
    }
    Hooks hooks;
    Rope rope;
    rope.interleaved = pick(2);
    std::vector<int64_t> lengths;
    for (const batch::Request &r : b.requests)
      lengths.push_back(r.kv / 2);
    if (pick(3) == 0) {
      hooks.query = ropeQuery(rope);
      hooks.key = ropeKey(rope);
    }
    if (pick(3) == 0)
      hooks.value = [](Vec v, const Coord &at) {
        v[0] += 0.1 * double(at.kvPos + at.kvHead);
        return v;
      };
    if (pick(3) == 0)
      hooks.logits = g.normalizer == Normalizer::None ? sigmoid(-1) : chain(softCap(9), alibi(alibiSlopes(g.headsQo)));
    switch (pick(5)) {
    case 0:
      hooks.mask = causal();
      break;
    case 1:
      hooks.mask = sinkTokens(2, window(5, 3));
      break;
    case 2:
      hooks.mask = prefixLM(lengths);
      break;
    case 3: // differs per head
      hooks.mask = [](const Coord &at) { return (at.kvPos + at.qHead + at.row) % 3 != 0; };
      break;
    default:
      break;
    }
    if (g.normalizer == Normalizer::Softmax && pick(3) == 0)
      hooks.sink = [](const Coord &at) { return 0.5 * double(at.qHead) - 1; };
    if (pick(3) == 0)
      hooks.output = [](Vec o, const Coord &at) {
        for (double &x : o)
          x = x * x - double(at.row);
        return o;
      };
    batch::Built built;
    std::string error;
    ASSERT_TRUE(batch::build(b, g, built, error)) << error;
    Problem p = built.problem();
    ASSERT_EQ("", validate(p, hooks));
    if (pick(2))
      p.scale = std::vector<double>{0.0, -0.3, 0.5, 1.0}[pick(4)];
    SCOPED_TRACE("batch " + std::to_string(number));
    Result got = run(p, hooks);
    expectNaive(built, hooks, p.smScale(), got);
    // Any split merges to the same.
    int64_t cut = pick(45);
    Result parts = run(p, hooks, {0, cut, false});
    merge(parts, run(p, hooks, {cut, cut + 7, false}), p);
    merge(parts, run(p, hooks, {cut + 7, 1 << 20, false}), p);
    finalise(parts, p, hooks);
    expectNaive(built, hooks, p.smScale(), parts);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
