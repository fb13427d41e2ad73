//===- PlanEmit.cpp - writing the plan ------------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives partial results their rows, lists the pieces of each merged token (in
// level order, then key order: always the same), and writes items, CTA lists
// and tables into the host copy of the plan.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <algorithm>
#include <cstring>

using namespace attnrt;

namespace {
template <typename T> T *at(char *base, int64_t offset) { return reinterpret_cast<T *>(base + offset); }

Status overflow(const char *what, int64_t got, int64_t capacity) {
  // The size formula bounds every plan, so this is a mistake of the planner; better told than written past the end.
  return Status(Code::ExceedsMaxima, std::string("plan: internal error: ") + std::to_string(got) + " " + what +
                                         " exceed the capacity of " + std::to_string(capacity));
}
} // namespace

static AttnWorkItem makeItem(const Unit &unit, const Piece &piece, int32_t pack, int32_t qoLen, int32_t kvTotal) {
  AttnWorkItem item;
  item.token0 = unit.token0;
  item.rows = unit.tokens * pack;
  item.head = 0;
  item.request = unit.request;
  item.table = unit.table;
  item.kv_len = unit.kvLen;
  item.kpos0 = unit.kpos0;
  item.qpos0 = queryPosition(unit.row0, kvTotal, qoLen);
  item.klo = piece.klo;
  item.khi = piece.khi;
  item.slot = piece.slot;
  item.qo_len = qoLen;
  item.row0 = unit.row0;
  item.kv_total = kvTotal;
  item.reserved = 0;
  return item;
}

static Status emitMerge(PlanImpl &p) {
  const Manifest &m = p.manifest();
  const Layout &lay = p.layout;
  const IndexArray &qo = p.input->qoIndptr;
  p.numMergeItems = p.numPieces = p.numPartRows = 0;
  if (!p.canSplit())
    return Status();

  // Which units leave partial results? Those of a token with several pieces.
  const bool several = p.levels > 1;
  bool any = false;
  if (several) {
    p.tokenCount.assign(p.totalTokens, 0);
    for (const Unit &unit : p.units)
      for (int t = 0; t < unit.tokens; ++t)
        p.tokenCount[unit.token0 + t] += unit.numPieces;
    for (Unit &unit : p.units) {
      unit.partial = unit.numPieces > 1;
      for (int t = 0; t < unit.tokens && !unit.partial; ++t)
        unit.partial = p.tokenCount[unit.token0 + t] > 1;
      any |= unit.partial;
    }
  } else {
    for (Unit &unit : p.units)
      any |= unit.partial = unit.numPieces > 1;
  }

  auto *indptr = at<int32_t>(p.host, lay.merge.indptr);
  if (!any) {
    std::memset(indptr, 0, 4 * (lay.merge.ctas + 1));
    return Status();
  }

  int64_t rows = 0, pieces = 0;
  for (Unit &unit : p.units) {
    if (!unit.partial)
      continue;
    for (int i = 0; i < unit.numPieces; ++i) {
      p.pieces[unit.firstPiece + i].slot = static_cast<int32_t>(rows);
      rows += int64_t(unit.tokens) * m.headsQo;
    }
    pieces += int64_t(unit.tokens) * unit.numPieces;
  }
  if (rows > lay.partRows)
    return overflow("partial rows", rows, lay.partRows);
  if (pieces > lay.pieceCapacity)
    return overflow("merge pieces", pieces, lay.pieceCapacity);
  p.numPartRows = rows;
  p.numPieces = pieces;

  auto pieceOf = [&](const Unit &unit, const Piece &piece, int token) {
    int32_t pack = m.kernels[unit.kernel].pack;
    return AttnMergePiece{piece.slot + token * pack, unit.tokens * pack, pack, 0};
  };
  auto *out = at<AttnMergePiece>(p.host, lay.pieces);
  auto *items = at<AttnWorkItem>(p.host, lay.merge.items);
  const int32_t step = m.merge->rows;
  int64_t count = 0;
  int request = 0;
  auto mergeToken = [&](int32_t token, int32_t first, int32_t number) {
    while (qo[request + 1] <= token)
      ++request;
    int32_t start = static_cast<int32_t>(qo[request]), qoLen = static_cast<int32_t>(qo[request + 1]) - start;
    int32_t total = p.kvTotal[request];
    for (int32_t head = 0; head < m.headsQo; head += step, ++count) {
      if (count >= lay.merge.capacity)
        continue;
      AttnWorkItem item = {};
      item.token0 = token;
      item.rows = std::min(step, m.headsQo - head);
      item.head = head;
      item.request = request;
      item.table = first;
      item.kv_len = total;
      item.qpos0 = queryPosition(token - start, total, qoLen);
      item.khi = number;
      item.slot = -1;
      item.qo_len = qoLen;
      item.row0 = token - start;
      item.kv_total = total;
      items[count] = item;
    }
  };

  if (!several) {
    int32_t next = 0;
    for (const Unit &unit : p.units) {
      if (!unit.partial)
        continue;
      for (int t = 0; t < unit.tokens; ++t) {
        mergeToken(unit.token0 + t, next, unit.numPieces);
        for (int i = 0; i < unit.numPieces; ++i)
          out[next++] = pieceOf(unit, p.pieces[unit.firstPiece + i], t);
      }
    }
  } else {
    // A unit that is partial merges all of its tokens, even those with one piece.
    p.tokenPiece.assign(p.totalTokens, -1);
    for (const Unit &unit : p.units)
      if (unit.partial)
        std::fill_n(p.tokenPiece.begin() + unit.token0, unit.tokens, 0);
    int32_t next = 0;
    for (int64_t t = 0; t < p.totalTokens; ++t) {
      if (p.tokenPiece[t] < 0)
        continue;
      p.tokenPiece[t] = next;
      mergeToken(static_cast<int32_t>(t), next, p.tokenCount[t]);
      next += p.tokenCount[t];
    }
    for (const Unit &unit : p.units)
      if (unit.partial)
        for (int t = 0; t < unit.tokens; ++t)
          for (int i = 0; i < unit.numPieces; ++i)
            out[p.tokenPiece[unit.token0 + t]++] = pieceOf(unit, p.pieces[unit.firstPiece + i], t);
  }
  if (count > lay.merge.capacity)
    return overflow("merge items", count, lay.merge.capacity);
  p.numMergeItems = count;
  for (int64_t c = 0; c <= lay.merge.ctas; ++c)
    indptr[c] = static_cast<int32_t>(count * c / lay.merge.ctas);
  return Status();
}

static Status emitKernel(PlanImpl &p, int k) {
  const KernelDesc &desc = p.manifest().kernels[k];
  const Layout::Kernel &place = p.layout.kernels[k];
  PlanImpl::KernelState &state = p.kernelState[k];
  const IndexArray &qo = p.input->qoIndptr;
  const int heads = place.headTiles, pack = desc.pack;
  const int first = state.firstPiece, last = state.lastPiece;
  auto *indptr = at<int32_t>(p.host, place.indptr);
  auto *items = at<AttnWorkItem>(p.host, place.items);
  state.items = int64_t(last - first) * heads;
  if (state.items > place.capacity)
    return overflow("work items", state.items, place.capacity);
  std::memset(indptr, 0, 4 * (place.ctas + 1));
  if (state.items == 0)
    return Status();

  auto base = [&](const Piece &piece) {
    const Unit &unit = p.units[piece.unit];
    int32_t qoLen = static_cast<int32_t>(qo[unit.request + 1] - qo[unit.request]);
    return makeItem(unit, piece, pack, qoLen, p.kvTotal[unit.request]);
  };
  auto forHead = [&](AttnWorkItem item, int head) {
    item.head = head * pack;
    if (item.slot >= 0)
      item.slot += head * item.rows;
    return item;
  };

  if (state.groups > 0) {
    // Group g's head h is CTA g * heads + h; each of them has the group's pieces in order.
    p.groupStart.assign(state.groups + 1, 0);
    for (int i = first; i < last; ++i)
      ++p.groupStart[p.pieces[i].group + 1];
    for (int g = 0; g < state.groups; ++g) {
      int32_t start = p.groupStart[g], size = p.groupStart[g + 1];
      for (int h = 0; h < heads; ++h)
        indptr[g * heads + h] = start * heads + h * size;
      p.groupStart[g + 1] = start + size;
    }
    for (int c = state.groups * heads; c <= place.ctas; ++c)
      indptr[c] = static_cast<int32_t>(state.items);
    // From here on groupStart[g] is the next free place of group g, seen from its first CTA's list.
    for (int g = 0; g < state.groups; ++g)
      p.groupStart[g] = indptr[g * heads];
    for (int i = first; i < last; ++i) {
      const Piece &piece = p.pieces[i];
      AttnWorkItem item = base(piece);
      int32_t at = p.groupStart[piece.group]++;
      int32_t size = indptr[piece.group * heads + 1] - indptr[piece.group * heads];
      for (int h = 0; h < heads; ++h)
        items[at + h * size] = forHead(item, h);
    }
    return Status();
  }

  // Fills p.sequence; a shared list (counter) is just that.
  p.assignItems(k, desc.counter ? 1 : place.ctas, heads, !desc.counter);
  if (desc.counter) {
    int64_t next = 0;
    for (const ItemRun &run : p.sequence) {
      AttnWorkItem item = base(p.pieces[run.piece]);
      for (int h = run.firstHead; h < run.endHead; ++h)
        items[next++] = forHead(item, h);
    }
    indptr[place.ctas] = static_cast<int32_t>(next);
    return Status();
  }
  for (int32_t cta : p.assigned)
    ++indptr[cta + 1];
  for (int c = 0; c < place.ctas; ++c)
    indptr[c + 1] += indptr[c];
  p.groupStart.assign(indptr, indptr + place.ctas);
  const int32_t *cta = p.assigned.data();
  for (const ItemRun &run : p.sequence) {
    AttnWorkItem item = base(p.pieces[run.piece]);
    for (int h = run.firstHead; h < run.endHead; ++h)
      items[p.groupStart[*cta++]++] = forHead(item, h);
  }
  return Status();
}

static void emitTokens(PlanImpl &p) {
  const IndexArray &qo = p.input->qoIndptr;
  auto *tokens = at<AttnTokenInfo>(p.host, p.layout.tokens);
  for (int64_t r = 0; r < p.requests; ++r) {
    int32_t start = static_cast<int32_t>(qo[r]), length = static_cast<int32_t>(qo[r + 1]) - start;
    for (int32_t row = 0; row < length; ++row)
      tokens[start + row] = {
          queryPosition(row, p.kvTotal[r], length), static_cast<int32_t>(r), row, length, p.kvTotal[r], {0, 0, 0}};
  }
}

Status PlanImpl::emit() {
  ATTNRT_TRY(emitMerge(*this));
  for (size_t k = 0; k < kernelState.size(); ++k) {
    std::memset(host + layout.kernels[k].counter, 0, 64);
    ATTNRT_TRY(emitKernel(*this, static_cast<int>(k)));
  }
  if (canSplit())
    std::memset(host + layout.merge.counter, 0, 64);
  if (usesTokens)
    emitTokens(*this);
  return Status();
}

/// Copies what is used to the device, in as few copies as the gaps allow.
Status PlanImpl::upload(void *stream) {
  if (device().kind() == DeviceKind::CPU)
    return Status(); // written in place
  struct Part {
    int64_t offset, bytes;
  };
  Part parts[40];
  int count = 0;
  auto add = [&](int64_t offset, int64_t bytes) {
    if (bytes > 0)
      parts[count++] = {offset, bytes};
  };
  // Ascending offsets; everything up to the first list of items is small and always there.
  add(0, layout.kernels[0].items);
  for (size_t k = 0; k < kernelState.size(); ++k)
    add(layout.kernels[k].items, kernelState[k].items * int64_t(sizeof(AttnWorkItem)));
  if (usesTokens)
    add(layout.tokens, totalTokens * int64_t(sizeof(AttnTokenInfo)));
  add(layout.merge.items, numMergeItems * int64_t(sizeof(AttnWorkItem)));
  add(layout.pieces, numPieces * int64_t(sizeof(AttnMergePiece)));
  constexpr int64_t gap = 256 * 1024; // bytes that cost less than another copy
  for (int i = 0; i < count;) {
    int64_t start = parts[i].offset, end = start + parts[i].bytes;
    for (++i; i < count && parts[i].offset - end <= gap; ++i)
      end = parts[i].offset + parts[i].bytes;
    ATTNRT_TRY(device().copyToDevice(workspace + start, host + start, end - start, stream));
  }
  return Status();
}
