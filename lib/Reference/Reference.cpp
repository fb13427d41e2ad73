//===- Reference.cpp - attention, slow and true ---------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two passes over the keys of a row: the maximum first, then the sum, so that
// there is no rescaling to get wrong. Key-side hooks run once per key and head.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Reference.h"

#include <algorithm>
#include <cmath>

namespace attn {
namespace ref {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kLn2 = std::log(2.0);

/// Keys of one entry of a level.
int64_t entryLength(const Problem &p, const Level &level, int64_t entry) {
  int64_t count = level.kvIndptr[entry + 1] - level.kvIndptr[entry];
  if (p.format == Format::Ragged)
    return count;
  return count == 0 ? 0 : (count - 1) * p.pageSize + level.last[entry];
}

/// The entry of `level` that serves a request (bsr: row block), or -1.
int64_t entryOf(const Level &level, int64_t row) {
  if (level.rowIndptr.empty())
    return row;
  auto end = std::upper_bound(level.rowIndptr.begin(), level.rowIndptr.end(), row);
  int64_t entry = int64_t(end - level.rowIndptr.begin()) - 1;
  return entry >= 0 && entry + 1 < int64_t(level.rowIndptr.size()) ? entry : -1;
}

/// Four chains: the order is fixed and the compiler may use vectors.
double dot(const double *a, const double *b, int64_t n) {
  double s[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j != 4; ++j)
      s[j] += a[i + j] * b[i + j];
  for (; i != n; ++i)
    s[0] += a[i] * b[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

Vec load(const float *data, int64_t dim) { return Vec(data, data + dim); }

/// The keys or values of one head, hooked: rows of `dim`.
Vec hookedRows(const std::vector<KeyPlace> &keys, const View &view, int64_t dim, const VecHook &hook, Coord at) {
  Vec rows(keys.size() * dim);
#pragma omp parallel for schedule(static)
  for (int64_t j = 0; j < int64_t(keys.size()); ++j) {
    Coord here = at;
    here.kvPos = keys[j].position;
    const float *data = view.at(keys[j].block, keys[j].row, at.kvHead);
    if (!hook) {
      std::copy(data, data + dim, rows.begin() + j * dim);
      continue;
    }
    Vec result = hook(load(data, dim), here);
    std::copy(result.begin(), result.begin() + dim, rows.begin() + j * dim);
  }
  return rows;
}

void makeRoom(Result &result, const Problem &p) {
  result.heads = p.headsQo;
  result.dim = p.headDimVo;
  result.o.assign(p.tokens() * p.headsQo * p.headDimVo, 0.0);
  result.logitMagnitude.assign(p.tokens() * p.headsQo, 0.0);
  result.valueMagnitude.assign(p.tokens() * p.headsQo, 0.0);
  if (p.normalizer == Normalizer::Softmax)
    result.lse.assign(p.tokens() * p.headsQo, -kInf);
}

/// One row of one head against hooked keys and values.
struct RowWork {
  const Problem &p;
  const Hooks &hooks;
  Result &result;
  const std::vector<KeyPlace> &keys;
  const Vec &k, &v, &keyNorms;
  int64_t lo, hi;

  void run(Coord at, int64_t token) const {
    Vec q = load(p.q.at(0, token, at.qHead), p.headDimQk);
    if (hooks.query)
      q = hooks.query(std::move(q), at);
    double scale = p.smScale(), reach = std::fabs(scale) * std::sqrt(dot(q.data(), q.data(), p.headDimQk));
    int64_t index = token * p.headsQo + at.qHead;
    double *o = result.row(token, at.qHead);
    double magnitude = 0, values = 0, top = -kInf;
    std::vector<std::pair<int64_t, double>> seen; // visible keys and their logits
    for (int64_t j = lo; j < hi; ++j) {
      at.kvPos = keys[j].position;
      if (hooks.mask && !hooks.mask(at))
        continue;
      double x = scale * dot(q.data(), k.data() + j * p.headDimQk, p.headDimQk);
      if (hooks.logits)
        x = hooks.logits(x, at);
      seen.push_back({j, x});
      // A logit of -inf from a hook is a weight of zero: it has no magnitude that rounds.
      if (x != -kInf)
        magnitude = std::max({magnitude, std::fabs(x), reach * keyNorms[j]});
      top = std::max(top, x);
    }
    bool softmax = p.normalizer == Normalizer::Softmax;
    double sum = 0;
    if (!softmax || top != -kInf) {
      for (auto [j, x] : seen) {
        double weight = softmax ? std::exp(x - top) : x;
        sum += weight;
        const double *row = v.data() + j * p.headDimVo;
        for (int64_t d = 0; d != p.headDimVo; ++d) {
          o[d] += weight * row[d];
          values = std::max(values, std::fabs(row[d]));
        }
      }
    }
    result.logitMagnitude[index] = magnitude;
    result.valueMagnitude[index] = values;
    if (!softmax)
      return;
    if (sum > 0) {
      for (int64_t d = 0; d != p.headDimVo; ++d)
        o[d] /= sum;
      double lse = top + std::log(sum);
      result.lse[index] = p.lseBase == LseBase::Base2 ? lse / kLn2 : lse;
    }
  }
};

bool increasing(const std::vector<int64_t> &indptr) {
  return !indptr.empty() && indptr.front() >= 0 && std::is_sorted(indptr.begin(), indptr.end());
}

} // namespace

double Problem::smScale() const { return std::isnan(scale) ? 1.0 / std::sqrt(double(headDimQk)) : scale; }

std::vector<int64_t> Problem::rowBlockStarts() const {
  std::vector<int64_t> starts = {0};
  for (int64_t r = 0; r != requests(); ++r)
    starts.push_back(starts.back() + (rowBlock > 0 ? (qoLen(r) + rowBlock - 1) / rowBlock : 0));
  return starts;
}

std::string validate(const Problem &p, const Hooks &hooks) {
  auto at = [](const char *what, size_t level, int64_t entry) {
    return std::string(what) + " of level " + std::to_string(level) + ", entry " + std::to_string(entry);
  };
  if (p.headsKv <= 0 || p.headsQo <= 0 || p.headsQo % p.headsKv)
    return "query heads must be a multiple of kv heads, got " + std::to_string(p.headsQo) + " and " +
           std::to_string(p.headsKv);
  if (p.headDimQk <= 0 || p.headDimVo <= 0)
    return "head dims must be positive, got " + std::to_string(p.headDimQk) + " and " + std::to_string(p.headDimVo);
  if (!increasing(p.qoIndptr) || p.qoIndptr.front() != 0)
    return "qo_indptr must start at 0 and not decrease; give one offset per request and the total";
  if (p.levels.empty())
    return "there must be at least one level of keys";
  if (p.format != Format::Ragged && p.pageSize < 1)
    return "page size must be at least 1, got " + std::to_string(p.pageSize);
  if (p.format == Format::Bsr && p.rowBlock < 1)
    return "the row block of bsr must be at least 1, got " + std::to_string(p.rowBlock);
  if (!p.kvTotal.empty() && int64_t(p.kvTotal.size()) != p.requests())
    return "kv_total must have one length per request, got " + std::to_string(p.kvTotal.size());
  if (hooks.sink && p.normalizer == Normalizer::None)
    return "a sink needs the softmax normalizer; remove the hook or the normalizer";
  int64_t rows = p.format == Format::Bsr ? p.rowBlockStarts().back() : p.requests();
  for (size_t l = 0; l != p.levels.size(); ++l) {
    const Level &level = p.levels[l];
    if (!increasing(level.kvIndptr))
      return "kv_indptr of level " + std::to_string(l) + " must not decrease or be negative";
    int64_t entries = int64_t(level.kvIndptr.size()) - 1;
    if (level.rowIndptr.empty() && entries != rows)
      return "kv_indptr of level " + std::to_string(l) + " must have " + std::to_string(rows + 1) + " offsets, got " +
             std::to_string(entries + 1) + "; or state row_indptr";
    if (!level.rowIndptr.empty()) {
      if (!increasing(level.rowIndptr) || level.rowIndptr.back() > rows)
        return "row_indptr of level " + std::to_string(l) + " must not decrease and must stay within the " +
               std::to_string(rows) + " rows";
      if (int64_t(level.rowIndptr.size()) != entries + 1)
        return "row_indptr of level " + std::to_string(l) + " must have as many offsets as kv_indptr";
    }
    if (p.format == Format::Ragged)
      continue;
    if (int64_t(level.last.size()) != entries)
      return "last_page_len of level " + std::to_string(l) + " must have one length per entry";
    if (level.kvIndptr.back() > int64_t(level.indices.size()))
      return "kv_indptr of level " + std::to_string(l) + " runs past the page table";
    for (int64_t e = 0; e != entries; ++e)
      if (level.kvIndptr[e + 1] > level.kvIndptr[e] && (level.last[e] < 1 || level.last[e] > p.pageSize))
        return at("last_page_len", l, e) + ", must be 1 to " + std::to_string(p.pageSize) + ", got " +
               std::to_string(level.last[e]);
    for (int64_t i : level.indices)
      if (i < 0)
        return "page indices of level " + std::to_string(l) + " must not be negative, got " + std::to_string(i);
  }
  return "";
}

std::vector<KeyPlace> keysOf(const Problem &p, int64_t request, int64_t row) {
  std::vector<KeyPlace> keys;
  bool bsr = p.format == Format::Bsr;
  int64_t serves = bsr ? p.rowBlockStarts()[request] + row / p.rowBlock : request;
  int64_t position = 0;
  for (const Level &level : p.levels) {
    int64_t entry = entryOf(level, serves);
    if (entry < 0)
      continue;
    int64_t length = entryLength(p, level, entry), first = level.kvIndptr[entry];
    for (int64_t j = 0; j != length; ++j, ++position) {
      if (p.format == Format::Ragged) {
        keys.push_back({0, first + j, position});
        continue;
      }
      int64_t block = level.indices[first + j / p.pageSize], offset = j % p.pageSize;
      keys.push_back({block, offset, bsr ? block * p.pageSize + offset : position});
    }
  }
  return keys;
}

int64_t kvLen(const Problem &p, int64_t request) {
  auto length = [&](int64_t serves) {
    int64_t sum = 0;
    for (const Level &level : p.levels)
      if (int64_t entry = entryOf(level, serves); entry >= 0)
        sum += entryLength(p, level, entry);
    return sum;
  };
  if (p.format != Format::Bsr)
    return length(request);
  if (!p.kvTotal.empty())
    return p.kvTotal[request];
  std::vector<int64_t> starts = p.rowBlockStarts();
  int64_t longest = 0;
  for (int64_t block = starts[request]; block != starts[request + 1]; ++block)
    longest = std::max(longest, length(block));
  return longest;
}

Result run(const Problem &p, const Hooks &hooks, const Part &part) {
  Result result;
  makeRoom(result, p);
  for (int64_t request = 0; request != p.requests(); ++request) {
    Coord at;
    at.request = request;
    at.qoLen = p.qoLen(request);
    at.kvLen = kvLen(p, request);
    // Rows that share one list of keys: all of the request, or one row block.
    int64_t step = p.format == Format::Bsr ? p.rowBlock : std::max<int64_t>(at.qoLen, 1);
    for (int64_t first = 0; first < at.qoLen; first += step) {
      std::vector<KeyPlace> keys = keysOf(p, request, first);
      int64_t hi = std::min<int64_t>(part.keyHi, keys.size()), lo = std::min(part.keyLo, hi);
      int64_t rows = std::min(step, at.qoLen - first);
      for (int64_t kvHead = 0; kvHead != p.headsKv; ++kvHead) {
        Coord head = at;
        head.kvHead = kvHead;
        head.qHead = kvHead * p.group();
        head.qPos = at.kvLen - at.qoLen;
        Vec k = hookedRows(keys, p.k, p.headDimQk, hooks.key, head);
        Vec v = hookedRows(keys, p.v, p.headDimVo, hooks.value, head);
        Vec keyNorms(keys.size());
        for (size_t j = 0; j != keys.size(); ++j)
          keyNorms[j] = std::sqrt(dot(k.data() + j * p.headDimQk, k.data() + j * p.headDimQk, p.headDimQk));
        RowWork work = {p, hooks, result, keys, k, v, keyNorms, lo, hi};
#pragma omp parallel for schedule(dynamic, 1)
        for (int64_t i = 0; i < rows * p.group(); ++i) {
          Coord here = head;
          here.row = first + i / p.group();
          here.qHead += i % p.group();
          here.qPos = here.row + at.kvLen - at.qoLen;
          work.run(here, p.qoIndptr[request] + here.row);
        }
      }
    }
  }
  if (part.finalise)
    finalise(result, p, hooks);
  return result;
}

void merge(double *oA, double *lseA, const double *oB, const double *lseB, int64_t dim, LseBase base) {
  if (!lseA || !lseB) {
    for (int64_t d = 0; d != dim; ++d)
      oA[d] += oB[d];
    return;
  }
  double unit = base == LseBase::Base2 ? kLn2 : 1.0;
  double a = *lseA * unit, b = *lseB * unit, top = std::max(a, b);
  // Both empty: -inf - -inf would be NaN.
  if (top == -kInf) {
    std::fill(oA, oA + dim, 0.0);
    return;
  }
  double wa = std::exp(a - top), wb = std::exp(b - top), sum = wa + wb;
  for (int64_t d = 0; d != dim; ++d)
    oA[d] = (wa * oA[d] + wb * oB[d]) / sum;
  *lseA = (top + std::log(sum)) / unit;
}

void merge(Result &a, const Result &b, const Problem &p) {
  bool softmax = p.normalizer == Normalizer::Softmax;
  for (int64_t i = 0; i != p.tokens() * p.headsQo; ++i) {
    merge(a.o.data() + i * a.dim, softmax ? &a.lse[i] : nullptr, b.o.data() + i * a.dim, softmax ? &b.lse[i] : nullptr,
          a.dim, p.lseBase);
    a.logitMagnitude[i] = std::max(a.logitMagnitude[i], b.logitMagnitude[i]);
    a.valueMagnitude[i] = std::max(a.valueMagnitude[i], b.valueMagnitude[i]);
  }
}

void finalise(Result &result, const Problem &p, const Hooks &hooks) {
  if (!hooks.sink && !hooks.output)
    return;
  double unit = p.lseBase == LseBase::Base2 ? kLn2 : 1.0;
  for (int64_t request = 0; request != p.requests(); ++request) {
    Coord at;
    at.request = request;
    at.qoLen = p.qoLen(request);
    at.kvLen = kvLen(p, request);
    for (int64_t i = 0; i != at.qoLen * p.headsQo; ++i) {
      at.row = i / p.headsQo;
      at.qHead = i % p.headsQo;
      at.kvHead = at.qHead / p.group();
      at.qPos = at.row + at.kvLen - at.qoLen;
      int64_t token = p.qoIndptr[request] + at.row;
      double *o = result.row(token, at.qHead);
      if (hooks.sink && p.normalizer == Normalizer::Softmax) {
        double sink = hooks.sink(at), &lse = result.lse[token * p.headsQo + at.qHead];
        double natural = lse * unit, top = std::max(natural, sink);
        if (top != -kInf) {
          double mine = std::exp(natural - top), sum = mine + std::exp(sink - top);
          for (int64_t d = 0; d != p.headDimVo; ++d)
            o[d] *= mine / sum;
          lse = (top + std::log(sum)) / unit;
        }
      }
      if (hooks.output) {
        Vec out = hooks.output(Vec(o, o + p.headDimVo), at);
        std::copy(out.begin(), out.begin() + p.headDimVo, o);
      }
    }
  }
}

} // namespace ref
} // namespace attn
