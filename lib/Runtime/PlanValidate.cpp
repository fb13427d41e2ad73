//===- PlanValidate.cpp - checking a batch --------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that the planner relies on, with the request named. Lengths and
// totals per request come out as a by-product.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <algorithm>
#include <climits>

using namespace attnrt;

static std::string num(int64_t value) { return std::to_string(value); }

static Status checkArray(const IndexArray &array, const std::string &name) {
  if (array.bits != 32 && array.bits != 64)
    return invalid("plan: " + name + ": expected bits 32 or 64, got " + num(array.bits));
  if (array.size < 0 || (array.size > 0 && !array.data))
    return invalid("plan: " + name + ": the host array is null or has a negative size");
  return Status();
}

/// Starts at zero (unless `anyStart`), never falls, ends within 2^31 - 1. `who` names what an entry belongs to.
static Status checkIndptr(const IndexArray &indptr, const std::string &name, const char *who, bool anyStart = false) {
  ATTNRT_TRY(checkArray(indptr, name));
  if (indptr.size < 1)
    return invalid("plan: " + name + ": expected one entry more than there are " + std::string(who) + "s, got none");
  if (anyStart ? indptr[0] < 0 : indptr[0] != 0)
    return invalid("plan: " + name + ": expected " + (anyStart ? "a start of at least 0" : "0 as its first entry") +
                   ", got " + num(indptr[0]));
  int64_t previous = indptr[0];
  for (int64_t i = 1; i < indptr.size; ++i) {
    int64_t next = indptr[i];
    if (next < previous)
      return invalid("plan: " + name + ": " + who + " " + num(i - 1) + ": expected entries that never fall, got " +
                     num(previous) + " then " + num(next));
    if (next - previous > INT_MAX)
      return invalid("plan: " + name + ": " + who + " " + num(i - 1) + ": " + num(next - previous) +
                     " is more than 2147483647; split the request");
    previous = next;
  }
  return Status();
}

static Status exceeds(const char *what, int64_t got, int64_t declared) {
  return Status(Code::ExceedsMaxima, std::string("plan: the batch has ") + num(got) + " " + what +
                                         ", more than the declared maximum of " + num(declared) +
                                         "; create the plan with larger maxima");
}

Status PlanImpl::validate(const PlanInput &in) {
  const Manifest &m = manifest();
  const bool ragged = m.format == Format::Ragged, bsr = m.format == Format::Bsr;
  ATTNRT_TRY(checkIndptr(in.qoIndptr, "qo_indptr", "request"));
  requests = in.qoIndptr.size - 1;
  totalTokens = in.qoIndptr[requests];
  if (totalTokens > INT_MAX || requests > INT_MAX)
    return invalid("plan: qo_indptr: " + num(totalTokens) + " query tokens are more than 2147483647; split the batch");
  levels = static_cast<int>(in.levels.size());
  if (levels < 1 || levels > m.levels)
    return invalid("plan: levels: expected 1.." + num(m.levels) + " (the bundle's), got " + num(levels));
  if (levels > 1 && !canSplit())
    return invalid(
        "plan: levels: several levels need the merge kernel that this bundle lacks; compile it with merging");
  if (!in.params.empty() && in.params.size() != m.params.size())
    return invalid("plan: params: expected none or " + num(m.params.size()) + ", got " + num(in.params.size()));
  if (fixed) {
    int64_t maxLevels = options.maxima.levels ? options.maxima.levels : m.levels;
    if (requests > options.maxima.requests)
      return exceeds("requests", requests, options.maxima.requests);
    if (totalTokens > options.maxima.tokens)
      return exceeds("query tokens", totalTokens, options.maxima.tokens);
    if (levels > maxLevels)
      return exceeds("levels", levels, maxLevels);
  }

  // The page arrays of all levels are addressed from the first one that exists.
  const int indexBytes = m.indexBits / 8;
  pagesBase = nullptr;
  kvTotal.assign(requests, 0);
  maxKv = kvEnd = 0;
  for (int l = 0; l < levels; ++l) {
    const LevelInput &level = in.levels[l];
    const std::string where = " of level " + num(l);
    const bool shared = level.rowIndptr.size > 0;
    ATTNRT_TRY(checkArray(level.rowIndptr, "row_indptr" + where));
    int64_t entries = requests;
    if (bsr) {
      if (shared)
        return invalid("plan: row_indptr" + where + ": a bsr batch has none; its row blocks are the runs");
      entries = 0;
      for (int64_t r = 0; r < requests; ++r)
        entries += (in.qoIndptr[r + 1] - in.qoIndptr[r] + m.rowBlock - 1) / m.rowBlock;
    }
    if (shared) {
      ATTNRT_TRY(checkIndptr(level.rowIndptr, "row_indptr" + where, "entry"));
      entries = level.rowIndptr.size - 1;
      if (level.rowIndptr[entries] != requests)
        return invalid("plan: row_indptr" + where + ": expected to end at the number of requests (" + num(requests) +
                       "), got " + num(level.rowIndptr[entries]));
    }
    const char *who = shared ? "entry" : bsr ? "row block" : "request";
    // Levels of a ragged batch are parts of one K, so theirs may start anywhere.
    ATTNRT_TRY(checkIndptr(level.kvIndptr, "kv_indptr" + where, who, ragged && l > 0));
    if (level.kvIndptr.size != entries + 1)
      return invalid("plan: kv_indptr" + where + ": expected " + num(entries + 1) + " entries (" + who +
                     "s + 1), got " + num(level.kvIndptr.size));
    if (!ragged) {
      ATTNRT_TRY(checkArray(level.kvLast, "kv_last" + where));
      if (level.kvLast.size != entries)
        return invalid("plan: kv_last" + where + ": expected " + num(entries) + " entries (one for each " + who +
                       "), got " + num(level.kvLast.size));
      if (level.kvIndptr[entries] > 0) {
        if (!level.pages)
          return invalid("plan: pages" + where + ": the device array of page indices is null");
        if (!pagesBase)
          pagesBase = static_cast<const char *>(level.pages);
        if (reinterpret_cast<uintptr_t>(level.pages) % indexBytes)
          return invalid("plan: pages" + where + ": expected an address that is a multiple of " + num(indexBytes));
      }
    }
    int64_t r = 0, block = 0;
    for (int64_t e = 0; e < entries; ++e) {
      int64_t count = level.kvIndptr[e + 1] - level.kvIndptr[e], length = count;
      if (!ragged && count > 0) {
        int64_t last = level.kvLast[e];
        if (last < 1 || last > m.pageSize)
          return invalid("plan: kv_last" + where + ": " + who + " " + num(e) + ": expected 1.." + num(m.pageSize) +
                         " keys on the last page, got " + num(last));
        length = (count - 1) * m.pageSize + last;
      }
      if (length > INT_MAX)
        return invalid("plan: kv_indptr" + where + ": " + who + " " + num(e) + ": " + num(length) +
                       " keys are more than 2147483647");
      if (bsr) {
        while (in.qoIndptr[r + 1] - in.qoIndptr[r] <= block * m.rowBlock)
          ++r, block = 0;
        kvTotal[r] = std::max<int32_t>(kvTotal[r], static_cast<int32_t>(length));
        ++block;
        continue;
      }
      int64_t end = shared ? level.rowIndptr[e + 1] : e + 1;
      for (r = shared ? level.rowIndptr[e] : e; r < end; ++r) {
        // A run shares its keys, so it has to share where they start.
        if (shared && l > 0 && length > 0 && kvTotal[r] != kvTotal[level.rowIndptr[e]])
          return invalid("plan: row_indptr" + where + ": request " + num(r) + ": its keys of earlier levels (" +
                         num(kvTotal[r]) + ") differ from those of request " + num(level.rowIndptr[e]) +
                         " in the same run (" + num(kvTotal[level.rowIndptr[e]]) + "); order requests depth first");
      }
      for (r = shared ? level.rowIndptr[e] : e; r < end; ++r) {
        int64_t total = kvTotal[r] + length;
        if (total > INT_MAX)
          return invalid("plan: request " + num(r) + ": " + num(total) + " keys are more than 2147483647");
        kvTotal[r] = static_cast<int32_t>(total);
      }
    }
    if (ragged)
      kvEnd = std::max(kvEnd, level.kvIndptr[entries]);
  }
  for (int l = 0; l < levels && pagesBase; ++l) {
    const char *pages = static_cast<const char *>(in.levels[l].pages);
    if (in.levels[l].kvIndptr[in.levels[l].kvIndptr.size - 1] > 0 && (pages - pagesBase) % indexBytes)
      return invalid("plan: pages of level " + num(l) + ": expected an address that is a multiple of " +
                     num(indexBytes) + " away from the first level's");
  }
  for (int32_t total : kvTotal)
    maxKv = std::max<int64_t>(maxKv, total);
  if (bsr && in.kvTotal.size > 0) {
    ATTNRT_TRY(checkArray(in.kvTotal, "kv_total"));
    if (in.kvTotal.size != requests)
      return invalid("plan: kv_total: expected " + num(requests) + " entries (one for each request), got " +
                     num(in.kvTotal.size));
    for (int64_t r = 0; r < requests; ++r) {
      if (in.kvTotal[r] < kvTotal[r] || in.kvTotal[r] > INT_MAX)
        return invalid("plan: kv_total: request " + num(r) + ": expected " + num(kvTotal[r]) +
                       " (its longest list of column blocks) to 2147483647, got " + num(in.kvTotal[r]));
      kvTotal[r] = static_cast<int32_t>(in.kvTotal[r]);
    }
  }
  if (fixed && options.maxima.kvLen > 0 && maxKv > options.maxima.kvLen)
    return exceeds("keys in one request", maxKv, options.maxima.kvLen);
  input = &in;
  return Status();
}

Maxima PlanImpl::tightMaxima() const {
  Maxima tight;
  tight.requests = requests;
  tight.tokens = totalTokens;
  tight.kvLen = maxKv;
  tight.levels = levels;
  return tight;
}

Status Plan::validatePages(const PlanInput &in, const std::vector<IndexArray> &pages, int64_t pageCount) {
  PlanImpl &p = *impl;
  if (p.manifest().format == Format::Ragged)
    return invalid("validate pages: a ragged bundle has no pages");
  if (pages.size() != in.levels.size())
    return invalid("validate pages: expected " + num(in.levels.size()) + " arrays (one for each level), got " +
                   num(pages.size()));
  p.planned = false; // validate() overwrites what a plan keeps
  ATTNRT_TRY(p.validate(in));
  for (size_t l = 0; l < pages.size(); ++l) {
    const LevelInput &level = in.levels[l];
    int64_t entries = level.kvIndptr.size - 1;
    ATTNRT_TRY(checkArray(pages[l], "pages of level " + num(l)));
    if (pages[l].size < level.kvIndptr[entries])
      return invalid("validate pages: level " + num(l) + ": expected at least " + num(level.kvIndptr[entries]) +
                     " indices, got " + num(pages[l].size));
    for (int64_t e = 0; e < entries; ++e)
      for (int64_t i = level.kvIndptr[e]; i < level.kvIndptr[e + 1]; ++i)
        if (pages[l][i] < 0 || pages[l][i] >= pageCount) {
          // Name the request whose entry it is; of a run, the first one.
          int64_t request = level.rowIndptr.size > 0 ? level.rowIndptr[e] : e;
          const char *who = p.manifest().format == Format::Bsr ? "row block " : "request ";
          return invalid("validate pages: level " + num(l) + ": " + who + num(request) + ": page index " +
                         num(pages[l][i]) + " at " + num(i) + " is outside 0.." + num(pageCount - 1));
        }
  }
  return Status();
}
