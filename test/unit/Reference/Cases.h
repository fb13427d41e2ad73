//===- Cases.h - small batches for the unit tests -------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random ragged batches, and the same keys moved into pages whose unused bytes
// are NaN.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_REFERENCE_CASES_H
#define ATTN_TEST_UNIT_REFERENCE_CASES_H

#include "attn/Reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace attn {
namespace ref {

/// A batch of (qo_len, kv_len) requests with data of its own.
struct Case {
  std::vector<float> q, k, v;

  Case(std::vector<std::pair<int64_t, int64_t>> lengths, int64_t headsQo, int64_t headsKv, int64_t dimQk,
       int64_t dimVo) {
    base.headsQo = headsQo;
    base.headsKv = headsKv;
    base.headDimQk = dimQk;
    base.headDimVo = dimVo;
    base.qoIndptr = {0};
    Level level;
    level.kvIndptr = {0};
    for (auto [qo, kv] : lengths) {
      base.qoIndptr.push_back(base.qoIndptr.back() + qo);
      level.kvIndptr.push_back(level.kvIndptr.back() + kv);
    }
    base.levels = {level};
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    auto values = [&](int64_t count) {
      std::vector<float> all(count);
      for (float &x : all)
        x = float(roundTo(Storage::BF16, normal(random)));
      return all;
    };
    q = values(base.qoIndptr.back() * headsQo * dimQk);
    k = values(level.kvIndptr.back() * headsKv * dimQk);
    v = values(level.kvIndptr.back() * headsKv * dimVo);
  }

  static void fill(std::vector<float> &tensor, float value) { std::fill(tensor.begin(), tensor.end(), value); }

  /// Views into this case's data: keep the case alive and do not copy it meanwhile.
  Problem problem() const {
    Problem p = base;
    int64_t rowK = p.headsKv * p.headDimQk, rowV = p.headsKv * p.headDimVo;
    p.q = {q.data(), 0, p.headsQo * p.headDimQk, p.headDimQk};
    p.k = {k.data(), p.pageSize * rowK, rowK, p.headDimQk};
    p.v = {v.data(), p.pageSize * rowV, rowV, p.headDimVo};
    return p;
  }

  /// The same batch in pages, in random places of a larger pool; what nobody owns is NaN.
  Case paged(int64_t pageSize, bool shuffle = true) const {
    Case result = *this;
    const std::vector<int64_t> &tokens = base.levels[0].kvIndptr;
    int64_t rowK = base.headsKv * base.headDimQk, rowV = base.headsKv * base.headDimVo, pages = 0;
    Level level;
    level.kvIndptr = {0};
    for (size_t r = 0; r + 1 != tokens.size(); ++r) {
      int64_t length = tokens[r + 1] - tokens[r], count = (length + pageSize - 1) / pageSize;
      pages += count;
      level.kvIndptr.push_back(pages);
      level.last.push_back(count ? length - (count - 1) * pageSize : 0);
    }
    for (int64_t i = 0; i != pages; ++i)
      level.indices.push_back(i);
    std::mt19937 random(3);
    int64_t pool = pages + 2;
    if (shuffle) {
      level.indices.push_back(pages);
      std::shuffle(level.indices.begin(), level.indices.end(), random);
      level.indices.pop_back();
    }
    result.k.assign(pool * pageSize * rowK, std::nanf(""));
    result.v.assign(pool * pageSize * rowV, std::nanf(""));
    for (size_t r = 0; r + 1 != tokens.size(); ++r)
      for (int64_t j = 0; j != tokens[r + 1] - tokens[r]; ++j) {
        int64_t to = level.indices[level.kvIndptr[r] + j / pageSize] * pageSize + j % pageSize, from = tokens[r] + j;
        std::copy_n(k.begin() + from * rowK, rowK, result.k.begin() + to * rowK);
        std::copy_n(v.begin() + from * rowV, rowV, result.v.begin() + to * rowV);
      }
    result.base.format = Format::Paged;
    result.base.pageSize = pageSize;
    result.base.levels = {level};
    return result;
  }

private:
  Problem base;
};

} // namespace ref
} // namespace attn

#endif
