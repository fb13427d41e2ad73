//===- TableSummary.cpp - scanning a table on the host --------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prompt of 128k tokens has a thousand tiles that scan up to 128k entries
// each; from node to node a scan looks at some dozens.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Range.h"

#include <algorithm>
#include <cstdint>

using namespace attnrt;

template <typename T> static TableSummary::Bounds boundsOf(const void *data, int64_t from, int64_t to) {
  const T *entries = static_cast<const T *>(data);
  T least = entries[from], greatest = least;
  for (int64_t i = from + 1; i < to; ++i) {
    least = std::min(least, entries[i]);
    greatest = std::max(greatest, entries[i]);
  }
  return {least, greatest};
}

template <typename T>
static int64_t searchIn(const void *data, int64_t from, int64_t to, const TableSummary::Condition &condition,
                        bool backwards) {
  const T *entries = static_cast<const T *>(data);
  auto holds = [&](int64_t i) { return condition.mayHold({entries[i], entries[i]}); };
  if (backwards) {
    while (from < to && !holds(to - 1))
      --to;
    return to;
  }
  while (from < to && !holds(from))
    ++from;
  return from;
}

static void join(TableSummary::Bounds &all, const TableSummary::Bounds &part) {
  all.least = std::min(all.least, part.least);
  all.greatest = std::max(all.greatest, part.greatest);
}

static constexpr TableSummary::Bounds Nothing{INT64_MAX, INT64_MIN};

void TableSummary::reset(Element newElement, const void *newData, int64_t newEntries) {
  element = newElement;
  data = newData;
  entries = newEntries;
  ++table;
}

TableSummary::Bounds TableSummary::read(int64_t from, int64_t to) const {
  switch (element) {
  case Element::I8:
    return boundsOf<int8_t>(data, from, to);
  case Element::I64:
    return boundsOf<int64_t>(data, from, to);
  default:
    return boundsOf<int32_t>(data, from, to);
  }
}

/// The first entry in [from, to) that meets the condition, else `to`; backwards one past the last, else `from`.
int64_t TableSummary::search(int64_t from, int64_t to, const Condition &condition, bool backwards) const {
  switch (element) {
  case Element::I8:
    return searchIn<int8_t>(data, from, to, condition, backwards);
  case Element::I64:
    return searchIn<int64_t>(data, from, to, condition, backwards);
  default:
    return searchIn<int32_t>(data, from, to, condition, backwards);
  }
}

/// Makes room for the nodes of that many blocks, which the table has.
void TableSummary::reserve(int64_t blocks) {
  if (blocks > static_cast<int64_t>(levels[0].size()))
    for (int level = 0; level <= TopLevel; ++level)
      levels[level].resize((blocks - 1) / span(level) + 1);
}

void TableSummary::make(Node &node, int level, int64_t block) {
  Bounds all = Nothing;
  if (level == 0)
    all = read(block * BlockEntries, std::min(entries, (block + 1) * BlockEntries));
  else
    for (int64_t child = block, step = span(level - 1); child < block + span(level); child += step)
      join(all, this->node(level - 1, child));
  node = {all, table};
}

/// The first block in [block, stop) that may hold an entry, else `stop`.
int64_t TableSummary::next(int64_t block, int64_t stop, const Condition &condition) {
  int level = 0;
  while (block < stop) {
    // The largest node that begins here and ends in time, then into it where it may hold one.
    while (level < TopLevel && block % span(level + 1) == 0 && block + span(level + 1) <= stop)
      ++level;
    while (block + span(level) > stop)
      --level;
    while (condition.mayHold(node(level, block)))
      if (level-- == 0)
        return block;
    block += span(level);
  }
  return stop;
}

/// The end of the last block in [start, end) that may hold an entry, else `start`.
int64_t TableSummary::previous(int64_t end, int64_t start, const Condition &condition) {
  int level = 0;
  while (end > start) {
    while (level < TopLevel && end % span(level + 1) == 0 && end - span(level + 1) >= start)
      ++level;
    while (end - span(level) < start)
      --level;
    while (condition.mayHold(node(level, end - span(level))))
      if (level-- == 0)
        return end;
    end -= span(level);
  }
  return start;
}

TableSummary::Bounds TableSummary::extent(int64_t from, int64_t to) {
  Bounds all = Nothing;
  reserve(to / BlockEntries);
  for (int64_t i = from, end; i < to; i = end) {
    int64_t block = i / BlockEntries;
    if (i % BlockEntries != 0 || to - i < BlockEntries) {
      end = std::min(to, (block + 1) * BlockEntries);
      join(all, read(i, end));
      continue;
    }
    int level = 0;
    while (level < TopLevel && block % span(level + 1) == 0 && block + span(level + 1) <= to / BlockEntries)
      ++level;
    join(all, node(level, block));
    end = (block + span(level)) * BlockEntries;
  }
  return all;
}

bool TableSummary::find(int64_t from, int64_t to, const Condition &condition, int64_t &first, int64_t &end) {
  // A block that may hold an entry is searched for it, in each direction one only: documents in a row need no more, and
  // a table in disorder cannot make every tile read all of it.
  const int64_t stop = (to + BlockEntries - 1) / BlockEntries;
  reserve(stop);
  int64_t block = next(from / BlockEntries, stop, condition);
  if (block == stop)
    return false;
  first = std::max(from, block * BlockEntries);
  int64_t edge = std::min(to, (block + 1) * BlockEntries);
  first = search(first, edge, condition, false);
  if (first == edge) {
    block = next(block + 1, stop, condition);
    if (block == stop)
      return false;
    first = block * BlockEntries;
  }
  int64_t last = previous(stop, block, condition); // at least block + 1
  edge = std::max(first, (last - 1) * BlockEntries);
  end = search(edge, std::min(to, last * BlockEntries), condition, true);
  if (end == edge) {
    last = previous(last - 1, block, condition);
    end = last * BlockEntries;
  }
  return last > block;
}
