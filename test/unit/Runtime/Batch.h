//===- Batch.h - random batches and what must come out ----------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A batch in host memory with its plan input, its operands, and the same
// attention as a double-precision loop that knows nothing of plans.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_RUNTIME_BATCH_H
#define ATTN_TEST_UNIT_RUNTIME_BATCH_H

#include "TestBundle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace attnrt::test {

inline IndexArray indices(const std::vector<int32_t> &v) { return {v.data(), static_cast<int64_t>(v.size()), 32}; }
inline IndexArray indices(const std::vector<int64_t> &v) { return {v.data(), static_cast<int64_t>(v.size()), 64}; }

struct Level {
  std::vector<int32_t> kvIndptr{0}, kvLast, rowIndptr, pages;
};

struct Batch {
  Shape shape;
  std::vector<int32_t> qo{0};
  std::vector<Level> levels;
  int64_t causal = 0, window = -1;
  float bias = 0, scale = 0.3f;
  std::vector<float> q, k, v, o, lse;
  std::mt19937 rng{7};
  int64_t usedRows = 0; ///< ragged: rows of K given out; paged: pages
  std::vector<ParamArg> params;

  int requests() const { return static_cast<int>(qo.size()) - 1; }
  int64_t tokens() const { return qo.back(); }
  bool ragged() const { return shape.format == "ragged"; }
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); }

  explicit Batch(const Shape &shape, uint32_t seed = 7) : shape(shape), rng(seed) {}

  void addRequests(const std::vector<int> &qoLens) {
    for (int n : qoLens)
      qo.push_back(qo.back() + n);
  }

  /// A level with those key counts, one for each entry; runs: requests of each entry (empty: one each).
  void addLevel(const std::vector<int> &kvLens, const std::vector<int> &runs = {}) {
    Level level;
    if (ragged())
      level.kvIndptr[0] = static_cast<int32_t>(usedRows);
    for (int n : kvLens) {
      if (ragged()) {
        level.kvIndptr.push_back(level.kvIndptr.back() + n);
        usedRows += n;
        continue;
      }
      int pages = (n + shape.pageSize - 1) / shape.pageSize;
      level.kvIndptr.push_back(level.kvIndptr.back() + pages);
      level.kvLast.push_back(n ? n - (pages - 1) * shape.pageSize : pick(-3, 3)); // no pages: whatever it says
      for (int i = 0; i < pages; ++i)
        level.pages.push_back(static_cast<int32_t>(usedRows++));
    }
    if (!runs.empty()) {
      level.rowIndptr.push_back(0);
      for (int n : runs)
        level.rowIndptr.push_back(level.rowIndptr.back() + n);
    }
    levels.push_back(std::move(level));
  }

  /// Random data; pages in random places, unused rows NaN.
  void fill() {
    if (!ragged()) {
      std::vector<int32_t> place(usedRows);
      std::iota(place.begin(), place.end(), 0);
      std::shuffle(place.begin(), place.end(), rng);
      for (Level &level : levels)
        for (int32_t &page : level.pages)
          page = place[page];
    }
    std::normal_distribution<float> normal;
    auto random = [&](std::vector<float> &data, int64_t n) {
      data.resize(n);
      for (float &x : data)
        x = normal(rng);
    };
    int64_t rows = usedRows * (ragged() ? 1 : shape.pageSize);
    random(q, tokens() * shape.headsQo * shape.dimQk);
    random(k, rows * shape.headsKv * shape.dimQk);
    random(v, rows * shape.headsKv * shape.dimVo);
    for (Level &level : levels)
      for (size_t e = 0; !ragged() && e + 1 < level.kvIndptr.size(); ++e)
        if (level.kvIndptr[e + 1] > level.kvIndptr[e]) {
          int64_t page = level.pages[level.kvIndptr[e + 1] - 1];
          for (int64_t row = page * shape.pageSize + level.kvLast[e]; row < (page + 1) * shape.pageSize; ++row) {
            std::fill_n(k.begin() + row * shape.headsKv * shape.dimQk, shape.headsKv * shape.dimQk, NAN);
            std::fill_n(v.begin() + row * shape.headsKv * shape.dimVo, shape.headsKv * shape.dimVo, NAN);
          }
        }
    poison();
  }

  void poison() {
    o.assign(tokens() * shape.headsQo * shape.dimVo, std::numeric_limits<float>::quiet_NaN());
    lse.assign(tokens() * shape.headsQo, std::numeric_limits<float>::quiet_NaN());
  }

  PlanInput input() const {
    PlanInput in;
    in.qoIndptr = indices(qo);
    for (const Level &level : levels) {
      LevelInput l;
      l.kvIndptr = indices(level.kvIndptr);
      l.kvLast = indices(level.kvLast);
      if (!level.rowIndptr.empty())
        l.rowIndptr = indices(level.rowIndptr);
      l.pages = level.pages.data();
      in.levels.push_back(l);
    }
    in.params = {{0, causal, nullptr, 0}, {0, window, nullptr, 0}, {bias, 0, nullptr, 0}};
    return in;
  }

  static TensorArg tensor(std::vector<float> &data, std::vector<int64_t> sizes) {
    TensorArg t;
    t.data = data.data();
    t.rank = static_cast<int>(sizes.size());
    int64_t stride = 1;
    for (int i = t.rank - 1; i >= 0; --i) {
      t.sizes[i] = sizes[i];
      t.strides[i] = stride;
      stride *= sizes[i];
    }
    return t;
  }

  Operands operands() {
    Operands ops;
    ops.q = tensor(q, {tokens(), shape.headsQo, shape.dimQk});
    if (ragged()) {
      ops.k = tensor(k, {usedRows, shape.headsKv, shape.dimQk});
      ops.v = tensor(v, {usedRows, shape.headsKv, shape.dimVo});
    } else {
      ops.k = tensor(k, {usedRows, shape.pageSize, shape.headsKv, shape.dimQk});
      ops.v = tensor(v, {usedRows, shape.pageSize, shape.headsKv, shape.dimVo});
    }
    ops.o = tensor(o, {tokens(), shape.headsQo, shape.dimVo});
    ops.lse = tensor(lse, {tokens(), shape.headsQo});
    params.resize(3);
    params[0].index = causal;
    params[1].index = window;
    params[2].f32 = bias;
    ops.params = params.data();
    ops.numParams = 3;
    ops.hasScale = true;
    ops.scale = scale;
    return ops;
  }

  /// Rows of K for the keys of request r (paged: page * page_size + offset), all levels one after another, and their
  /// positions (bsr: token row `row` of the request selects the row block).
  void keysOf(int r, int row, std::vector<int64_t> &rows, std::vector<int64_t> &positions) const {
    rows.clear();
    positions.clear();
    for (const Level &level : levels) {
      size_t e = r;
      if (shape.format == "bsr") {
        e = row / shape.rowBlock;
        for (int i = 0; i < r; ++i)
          e += (qo[i + 1] - qo[i] + shape.rowBlock - 1) / shape.rowBlock;
      } else if (!level.rowIndptr.empty()) {
        e = std::upper_bound(level.rowIndptr.begin(), level.rowIndptr.end(), r) - level.rowIndptr.begin() - 1;
      }
      for (int32_t i = level.kvIndptr[e]; i < level.kvIndptr[e + 1]; ++i) {
        if (ragged()) {
          rows.push_back(i);
          continue;
        }
        int count = i == level.kvIndptr[e + 1] - 1 ? level.kvLast[e] : shape.pageSize;
        for (int j = 0; j < count; ++j)
          rows.push_back(int64_t(level.pages[i]) * shape.pageSize + j);
      }
    }
    for (size_t i = 0; i < rows.size(); ++i)
      positions.push_back(shape.format == "bsr" ? rows[i] : static_cast<int64_t>(i));
  }

  /// Compares o and lse with the plain loop; returns the first difference, or "".
  std::string check() const {
    const int group = shape.headsQo / shape.headsKv;
    std::vector<int64_t> rows, positions;
    for (int r = 0; r < requests(); ++r) {
      int64_t qoLen = qo[r + 1] - qo[r], total = 0;
      for (int row = 0; row < qoLen; ++row) {
        keysOf(r, row, rows, positions);
        total = std::max<int64_t>(total, rows.size());
      }
      for (int row = 0; row < qoLen; ++row) {
        keysOf(r, row, rows, positions);
        int64_t pos = row + total - qoLen, token = qo[r] + row;
        for (int h = 0; h < shape.headsQo; ++h) {
          std::vector<double> s, out(shape.dimVo, 0.0);
          std::vector<int64_t> seen;
          double m = -INFINITY, l = 0;
          for (size_t j = 0; j < rows.size(); ++j) {
            if ((causal && positions[j] > pos) || (window >= 0 && positions[j] < pos - window))
              continue;
            double dot = 0;
            for (int d = 0; d < shape.dimQk; ++d)
              dot += double(q[(token * shape.headsQo + h) * shape.dimQk + d]) *
                     k[(rows[j] * shape.headsKv + h / group) * shape.dimQk + d];
            s.push_back(dot * scale + bias);
            seen.push_back(rows[j]);
            m = std::max(m, s.back());
          }
          for (size_t j = 0; j < s.size(); ++j) {
            double p = std::exp(s[j] - m);
            l += p;
            for (int d = 0; d < shape.dimVo; ++d)
              out[d] += p * v[(seen[j] * shape.headsKv + h / group) * shape.dimVo + d];
          }
          double wantLse = l > 0 ? m + std::log(l) : -INFINITY, gotLse = lse[token * shape.headsQo + h];
          std::string where =
              "request " + std::to_string(r) + " row " + std::to_string(row) + " head " + std::to_string(h);
          if (!(wantLse == gotLse || std::fabs(wantLse - gotLse) < 1e-4))
            return where + ": lse " + std::to_string(gotLse) + ", want " + std::to_string(wantLse);
          for (int d = 0; d < shape.dimVo; ++d) {
            double want = l > 0 ? out[d] / l : 0, got = o[(token * shape.headsQo + h) * shape.dimVo + d];
            if (!(std::fabs(want - got) < 1e-4))
              return where + " dim " + std::to_string(d) + ": o " + std::to_string(got) + ", want " +
                     std::to_string(want);
          }
        }
      }
    }
    return "";
  }
};

} // namespace attnrt::test

#endif // ATTN_TEST_UNIT_RUNTIME_BATCH_H
