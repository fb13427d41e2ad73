//===- PlanUnits.cpp - row tiles against levels ---------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts each level's requests (or runs of requests that share keys, or row
// blocks) into tiles of query rows, and picks the tile class: the smallest
// kernel that holds all rows, else the largest.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <algorithm>

using namespace attnrt;

/// The kernel for `tokens` rows: the smallest that holds them, else the largest (always the largest with `largest`).
/// Rows of several requests need a kernel with a row table; rows of one take either, the one without where both are of
/// one size. -1 when there is none.
static int pickClass(const Manifest &m, int64_t tokens, bool several, bool largest) {
  int last = -1;
  for (size_t k = 0; k < m.kernels.size(); ++k) {
    const KernelDesc &desc = m.kernels[k];
    if (several && !desc.rowTable)
      continue;
    bool same = last >= 0 && m.kernels[last].rows == desc.rows;
    if (last >= 0 && !same && !largest && tokens * m.kernels[last].pack <= m.kernels[last].rows)
      break;
    if (!same || (m.kernels[last].rowTable && !desc.rowTable && !several))
      last = static_cast<int>(k);
  }
  return last;
}

/// The global visible range of rows of one request; false when nothing is known of it.
bool PlanImpl::visibleRange(const RangeInputs &rows, const KernelDesc &kernel, int64_t &lo, int64_t &hi) {
  const Manifest &m = manifest();
  if (m.range && ranges.run(rows, kernel.scans, lo, hi))
    return true;
  if (options.causal == Hint::FromBundle ? !m.causalRows : options.causal != Hint::On)
    return false;
  lo = 0;
  hi = rows.qpos0 + rows.rows;
  return true;
}

/// Visible tiles of keys: the union over the rows' requests, cut with the level.
void PlanImpl::setVisible(Unit &unit, int lastRequest) {
  const KernelDesc &desc = manifest().kernels[unit.kernel];
  const int64_t keys = desc.keys, length = unit.kvLen;
  int64_t low = 0, high = length;
  // Positions of a bsr come from its column indices, which the host does not read.
  if (manifest().format != Format::Bsr && length > 0) {
    low = length;
    high = 0;
    int32_t token = unit.token0, end = unit.token0 + unit.tokens;
    for (int r = unit.request; r <= lastRequest && token < end; ++r) {
      int32_t start = static_cast<int32_t>(input->qoIndptr[r]), stop = static_cast<int32_t>(input->qoIndptr[r + 1]);
      int32_t rows = std::min(stop, end) - token;
      if (rows <= 0)
        continue;
      int64_t lo, hi;
      int32_t qoLen = stop - start;
      if (!visibleRange({queryPosition(token - start, kvTotal[r], qoLen), rows, qoLen, kvTotal[r], r}, desc, lo, hi)) {
        low = 0;
        high = length;
        break;
      }
      token += rows;
      lo = std::clamp<int64_t>(lo - std::min<int64_t>(lo, unit.kpos0), 0, length);
      hi = hi <= unit.kpos0 ? 0 : std::min<int64_t>(hi - unit.kpos0, length);
      if (lo < hi) {
        low = std::min(low, lo);
        high = std::max(high, hi);
      }
    }
  }
  if (low >= high) {
    unit.loTile = unit.hiTile = 0;
    return;
  }
  unit.loTile = static_cast<int32_t>(low / keys);
  unit.hiTile = static_cast<int32_t>((high + keys - 1) / keys);
}

void PlanImpl::buildUnits() {
  const Manifest &m = manifest();
  const IndexArray &qo = input->qoIndptr;
  const int indexBytes = m.indexBits / 8;
  const bool invariant = options.policy == SplitPolicy::BatchInvariant;
  units.clear();
  ranges.begin(m, input->params);
  if (levels > 1)
    position.assign(requests, 0);

  // Appends the tiles of `tokens` query tokens from `token0`, whose first request is `first` and last `last`.
  auto append = [&](Unit unit, int64_t tokens, int last, bool several) {
    unit.kernel = pickClass(m, tokens, several, several && invariant);
    const KernelDesc &desc = m.kernels[unit.kernel];
    usesTokens |= desc.rowTable;
    int32_t tile = desc.tokensPerTile(), end = unit.token0 + static_cast<int32_t>(tokens);
    unit.singleTile = tokens <= tile;
    int32_t request = unit.request;
    for (int32_t token = unit.token0; token < end; token += tile) {
      unit.token0 = token;
      unit.tokens = std::min(tile, end - token);
      while (request < last && qo[request + 1] <= token)
        ++request;
      unit.request = request;
      unit.row0 = token - static_cast<int32_t>(qo[request]);
      setVisible(unit, last);
      units.push_back(unit);
    }
  };

  for (int l = 0; l < levels; ++l) {
    const LevelInput &level = input->levels[l];
    const int64_t entries = level.kvIndptr.size - 1;
    const bool lastLevel = l == levels - 1, runs = level.rowIndptr.size > 0;
    const int64_t base =
        pagesBase && level.pages ? (static_cast<const char *>(level.pages) - pagesBase) / indexBytes : 0;
    int64_t request = 0, block = 0;
    for (int64_t e = 0; e < entries; ++e) {
      Unit unit;
      unit.level = l;
      int64_t start = level.kvIndptr[e], count = level.kvIndptr[e + 1] - start;
      unit.table = base + start;
      unit.kvLen = static_cast<int32_t>(
          m.format == Format::Ragged || count == 0 ? count : (count - 1) * m.pageSize + level.kvLast[e]);
      if (m.format == Format::Bsr) {
        while (qo[request + 1] - qo[request] <= block * m.rowBlock)
          ++request, block = 0;
        unit.request = static_cast<int32_t>(request);
        unit.token0 = static_cast<int32_t>(qo[request] + block * m.rowBlock);
        int64_t tokens = std::min<int64_t>(m.rowBlock, qo[request + 1] - unit.token0);
        ++block;
        append(unit, tokens, unit.request, false);
        continue;
      }
      int64_t first = runs ? level.rowIndptr[e] : e, end = runs ? level.rowIndptr[e + 1] : e + 1;
      if (first == end)
        continue;
      if (levels > 1)
        unit.kpos0 = position[first];
      // Levels without keys add nothing, but a request without any key still has rows to write.
      auto wanted = [&](int64_t r) { return unit.kvLen > 0 || (lastLevel && kvTotal[r] == 0); };
      int64_t tokens = qo[end] - qo[first];
      bool several = false;
      if (end - first > 1 && unit.kvLen > 0) {
        int64_t filled = 0;
        for (int64_t r = first; r < end; ++r)
          filled += qo[r + 1] > qo[r];
        several = filled > 1 && pickClass(m, tokens, true, invariant) >= 0;
      }
      if (several) {
        unit.request = static_cast<int32_t>(first);
        while (qo[unit.request + 1] == qo[unit.request])
          ++unit.request;
        unit.token0 = static_cast<int32_t>(qo[first]);
        append(unit, tokens, static_cast<int>(end - 1), true);
      } else {
        for (int64_t r = first; r < end; ++r) {
          if (qo[r + 1] == qo[r] || !wanted(r))
            continue;
          unit.request = static_cast<int32_t>(r);
          unit.token0 = static_cast<int32_t>(qo[r]);
          append(unit, qo[r + 1] - qo[r], static_cast<int>(r), false);
        }
      }
      if (levels > 1)
        for (int64_t r = first; r < end; ++r)
          position[r] += unit.kvLen;
    }
  }
}
