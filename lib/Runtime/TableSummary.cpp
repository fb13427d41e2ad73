//===- TableSummary.cpp - scanning a table on the host --------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prompt of 128k tokens has a thousand tiles that scan up to 128k entries
// each; with summaries a scan looks at some hundred of them.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Range.h"

#include <algorithm>

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

void TableSummary::reset(Element newElement, const void *newData, int64_t newEntries) {
  element = newElement;
  data = newData;
  entries = newEntries;
  place.clear();
  chunks.clear();
  blocks.clear();
}

int64_t TableSummary::at(int64_t index) const { return read(index, index + 1).least; }

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

int64_t TableSummary::chunk(int64_t index) {
  if (index >= static_cast<int64_t>(place.size()))
    place.resize(index + 1, -1);
  if (place[index] >= 0)
    return place[index];
  const int64_t end = std::min(entries, (index + 1) * ChunkEntries);
  Bounds all;
  bool first = true;
  for (int64_t from = index * ChunkEntries; from < end; from += BlockEntries, first = false) {
    Bounds block = read(from, std::min(end, from + BlockEntries));
    all.least = first ? block.least : std::min(all.least, block.least);
    all.greatest = first ? block.greatest : std::max(all.greatest, block.greatest);
    blocks.push_back(block);
  }
  place[index] = static_cast<int32_t>(chunks.size());
  chunks.push_back(all);
  blocks.resize(chunks.size() * ChunkBlocks); // the table's last chunk may have fewer
  return place[index];
}

TableSummary::Bounds TableSummary::extent(int64_t from, int64_t to) {
  Bounds all;
  for (int64_t i = from, end; i < to; i = end) {
    Bounds part;
    if (i % ChunkEntries == 0 && to - i >= ChunkEntries) {
      end = i + ChunkEntries;
      part = chunks[chunk(i / ChunkEntries)];
    } else if (i % BlockEntries == 0 && to - i >= BlockEntries) {
      end = i + BlockEntries;
      part = blocks[chunk(i / ChunkEntries) * ChunkBlocks + i / BlockEntries % ChunkBlocks];
    } else {
      end = std::min(to, (i / BlockEntries + 1) * BlockEntries);
      part = read(i, end);
    }
    all.least = i == from ? part.least : std::min(all.least, part.least);
    all.greatest = i == from ? part.greatest : std::max(all.greatest, part.greatest);
  }
  return all;
}

bool TableSummary::find(int64_t from, int64_t to, const Condition &condition, int64_t &first, int64_t &end) {
  // A block that may hold an entry is searched for it, in each direction one only: documents in a row need no more, and
  // a table in disorder cannot make every tile read all of it.
  bool found = false, search = true;
  for (int64_t block = from / BlockEntries; !found && block * BlockEntries < to;) {
    const int64_t at = chunk(block / ChunkBlocks);
    const int64_t stop = block / ChunkBlocks * ChunkBlocks + ChunkBlocks;
    if (!condition.mayHold(chunks[at])) {
      block = stop;
      continue;
    }
    for (; !found && block < stop && block * BlockEntries < to; ++block) {
      if (!condition.mayHold(blocks[at * ChunkBlocks + block % ChunkBlocks]))
        continue;
      first = std::max(from, block * BlockEntries);
      int64_t last = std::min(to, (block + 1) * BlockEntries);
      while (search && first < last && !condition.holds(this->at(first)))
        ++first;
      found = first < last;
      search = false;
    }
  }
  if (!found)
    return false;
  search = true;
  for (int64_t block = (to - 1) / BlockEntries; block * BlockEntries + BlockEntries > first;) {
    const int64_t at = chunk(block / ChunkBlocks);
    const int64_t start = block / ChunkBlocks * ChunkBlocks;
    if (!condition.mayHold(chunks[at])) {
      block = start - 1;
      continue;
    }
    for (; block >= start && block * BlockEntries + BlockEntries > first; --block) {
      if (!condition.mayHold(blocks[at * ChunkBlocks + block % ChunkBlocks]))
        continue;
      end = std::min(to, (block + 1) * BlockEntries);
      int64_t least = std::max(first, block * BlockEntries);
      while (search && end > least && !condition.holds(this->at(end - 1)))
        --end;
      if (end > least)
        return true;
      search = false;
    }
  }
  return false;
}
