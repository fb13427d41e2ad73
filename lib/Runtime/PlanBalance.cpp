//===- PlanBalance.cpp - units to pieces to CTAs --------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Narrow classes (decode) are bound by memory. CTAs form groups of one CTA a
// head tile; a unit goes to a group, its heads to the group's CTAs, which then
// read the same page list. Where whole units balance badly, the units are laid
// end to end and the line is cut into equal shares at tile boundaries.
//
// Wide classes (prefill) are bound by arithmetic, as long as K and V come from
// the cache that the CTAs share. So items are handed out in sections whose K and V
// fit there: some requests, or some heads of a long one. In a section each
// (piece, head) goes, the longest first, to the CTA with the least work so far.
// Units longer than a CTA's share are cut.
//
// Ties break by index, so the same batch gives the same plan.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <algorithm>

using namespace attnrt;

/// Keys order by the high word, then by the low one.
static uint64_t pairKey(uint64_t high, uint64_t low) { return high << 24 | low; }

/// A min-heap over (load, number) in one word each.
namespace {
class LoadHeap {
public:
  LoadHeap(std::vector<uint64_t> &storage, int size) : data(storage), size(size) {
    data.resize(size);
    for (int i = 0; i < size; ++i)
      data[i] = pairKey(0, i);
  }
  int top() const { return static_cast<int>(data[0] & 0xffffff); }
  void addToTop(uint64_t load) {
    uint64_t value = data[0] + (load << 24);
    int at = 0;
    for (;;) {
      int child = 2 * at + 1;
      if (child >= size)
        break;
      child += child + 1 < size && data[child + 1] < data[child];
      if (value <= data[child])
        break;
      data[at] = data[child];
      at = child;
    }
    data[at] = value;
  }
  int64_t largest() const {
    uint64_t most = 0;
    for (int i = 0; i < size; ++i)
      most = std::max(most, data[i] >> 24);
    return static_cast<int64_t>(most);
  }

private:
  std::vector<uint64_t> &data;
  int size;
};
} // namespace

/// Fills `order` with the kernel's pieces, the dearest first; loads are shifted to fit the heap's 40 bits.
static int sortPieces(const std::vector<Piece> &pieces, int first, int last, std::vector<uint64_t> &order) {
  order.clear();
  int64_t total = 0;
  for (int i = first; i < last; ++i)
    total += pieces[i].cost;
  int shift = 0;
  while ((total >> shift) >= (int64_t(1) << 38))
    ++shift;
  bool sorted = true;
  uint64_t previous = 0;
  for (int i = first; i < last; ++i) {
    // Descending cost, then ascending index.
    uint64_t key = (uint64_t(0xffffffffu - static_cast<uint32_t>(pieces[i].cost)) << 32) | static_cast<uint32_t>(i);
    sorted &= key >= previous;
    previous = key;
    order.push_back(key);
  }
  if (!sorted)
    std::sort(order.begin(), order.end());
  return shift;
}

/// Longest first over `groups`; writes each piece's group, returns the largest load.
int64_t PlanImpl::assignGroups(int kernel, int groups) {
  KernelState &state = kernelState[kernel];
  int shift = sortPieces(pieces, state.firstPiece, state.lastPiece, order);
  LoadHeap loads(heap, groups);
  for (uint64_t key : order) {
    Piece &piece = pieces[static_cast<uint32_t>(key)];
    piece.group = loads.top();
    loads.addToTop((piece.cost >> shift) + (shift != 0));
  }
  return loads.largest() << shift;
}

/// What of the shared cache a section's K and V take, where that is enough for its balance, and at most: 16 and 32 of
/// an H200's 60 MiB. Of 0.5 to 34 MiB measured there 8 to 34 differ by 1 % (docs/Performance.md).
static int64_t sectionBytes(int64_t cache) { return cache / 4; }
static int64_t mostSectionBytes(int64_t cache) { return cache / 16 * 9; }

/// Fills `sequence`: sections in the order of the batch, the dearest pieces of each first. A section has work for all
/// CTAs beside its longest item, else the last one ends late. Where all pieces cost the same there is nothing to sort,
/// and those of a KV head follow each other: fewer keys are in use at a time, which saves traffic and power.
void PlanImpl::sequenceItems(int kernel, int ctas, int headTiles) {
  const Manifest &m = manifest();
  const KernelState &state = kernelState[kernel];
  const int64_t cache = options.cache >= 0 ? options.cache : device().sharedCache();
  const int64_t keyBytes = int64_t(m.headDimQk + m.headDimVo) * elementBytes(m.typeKv);
  const int tilesOfHead = headTiles / m.headsKv; // query tiles that read the same K and V
  sequence.clear();
  auto sameKeys = [&](int a, int b) {
    const Unit &x = units[pieces[a].unit], &y = units[pieces[b].unit];
    return x.level == y.level && x.table == y.table;
  };
  auto section = [&](int first, int last, int firstHead, int endHead) {
    bool equal = true;
    for (int i = first + 1; i < last; ++i)
      equal &= pieces[i].cost == pieces[first].cost;
    if (equal) {
      for (int i = first, end; i < last; i = end) {
        for (end = i + 1; end < last && sameKeys(i, end); ++end)
          ;
        for (int head = firstHead; head < endHead; head += tilesOfHead)
          for (int piece = i; piece < end; ++piece)
            sequence.push_back({piece, head, head + tilesOfHead});
      }
      return;
    }
    sortPieces(pieces, first, last, order);
    for (uint64_t key : order)
      sequence.push_back({static_cast<int32_t>(key), firstHead, endHead});
  };
  if (cache <= 0)
    return section(state.firstPiece, state.lastPiece, 0, headTiles);
  const int64_t least = sectionBytes(cache), most = mostSectionBytes(cache);
  int from = state.firstPiece;
  int64_t held = 0, work = 0, longest = 0; // of the section so far
  for (int i = state.firstPiece, end; i < state.lastPiece; i = end) {
    int64_t keys = 0, cost = 0, dearest = 0; // of a head; a request without keys may stand where the next one begins
    for (end = i; end < state.lastPiece && sameKeys(i, end); ++end) {
      keys = std::max<int64_t>(keys, units[pieces[end].unit].kvLen);
      cost += int64_t(pieces[end].cost) * tilesOfHead;
      dearest = std::max<int64_t>(dearest, pieces[end].cost);
    }
    const int64_t head = keys * keyBytes, all = head * m.headsKv;
    const bool balanced = work >= longest * ctas;
    if (i > from && held + all > (balanced ? least : most)) {
      section(from, i, 0, headTiles);
      from = i;
      held = work = longest = 0;
    }
    held += all;
    work += cost * m.headsKv;
    longest = std::max(longest, dearest);
    const int64_t wanted =
        std::max((dearest * ctas + cost - 1) / std::max<int64_t>(cost, 1), least / std::max<int64_t>(head, 1));
    const int64_t heads = std::max<int64_t>(std::min(wanted, most / std::max<int64_t>(head, 1)), 1);
    if (i > from || heads >= m.headsKv)
      continue;
    const int parts = static_cast<int>((m.headsKv + heads - 1) / heads);
    for (int p = 0; p < parts; ++p)
      section(i, end, m.headsKv * p / parts * tilesOfHead, m.headsKv * (p + 1) / parts * tilesOfHead);
    from = end;
    held = work = longest = 0;
  }
  section(from, state.lastPiece, 0, headTiles);
}

/// Longest first, each head of a piece on its own; with `record`, `assigned` gets the CTA of each item in sequence.
int64_t PlanImpl::assignItems(int kernel, int ctas, int headTiles, bool record) {
  KernelState &state = kernelState[kernel];
  sequenceItems(kernel, ctas, headTiles);
  int shift = 0;
  while ((state.cost * headTiles >> shift) >= (int64_t(1) << 38))
    ++shift;
  LoadHeap loads(heap, ctas);
  if (record)
    assigned.resize(int64_t(state.lastPiece - state.firstPiece) * headTiles);
  int32_t *out = assigned.data();
  for (const ItemRun &run : sequence) {
    uint64_t cost = (pieces[run.piece].cost >> shift) + (shift != 0);
    for (int h = run.firstHead; h < run.endHead; ++h) {
      if (record)
        *out++ = loads.top();
      loads.addToTop(cost);
    }
  }
  return loads.largest() << shift;
}

namespace {
/// Appends pieces of units; knows how tiles become key ranges.
struct Cutter {
  std::vector<Unit> &units;
  std::vector<Piece> &pieces;
  int keys;

  static int32_t clampCost(int64_t cost) { return static_cast<int32_t>(std::min<int64_t>(cost, INT32_MAX)); }

  void begin(int unit) {
    units[unit].firstPiece = static_cast<int32_t>(pieces.size());
    units[unit].numPieces = 0;
  }
  /// Visible tiles [from, to) of the unit. The outermost pieces take what is invisible as well: kernels decide, not the
  /// host.
  void add(int index, int32_t from, int32_t to, int group) {
    Unit &unit = units[index];
    Piece piece;
    piece.unit = index;
    piece.klo = from == unit.loTile ? 0 : from * keys;
    piece.khi = to == unit.hiTile ? unit.kvLen : std::min<int64_t>(int64_t(to) * keys, unit.kvLen);
    piece.group = group;
    piece.cost = clampCost(int64_t(to - from) * keys + ItemOverhead);
    pieces.push_back(piece);
    ++unit.numPieces;
  }
  void whole(int index) {
    begin(index);
    add(index, units[index].loTile, units[index].hiTile, 0);
  }
  /// Chunks of `chunk` keys counted from the level's first key.
  void chunks(int index, int64_t chunk) {
    begin(index);
    Unit &unit = units[index];
    for (int64_t low = 0; low < unit.kvLen; low += chunk) {
      Piece piece;
      piece.unit = index;
      piece.klo = static_cast<int32_t>(low);
      piece.khi = static_cast<int32_t>(std::min<int64_t>(low + chunk, unit.kvLen));
      int64_t from = std::max<int64_t>(low / keys, unit.loTile),
              to = std::min<int64_t>((low + chunk) / keys, unit.hiTile);
      piece.cost = clampCost(std::max<int64_t>(to - from, 0) * keys + ItemOverhead);
      pieces.push_back(piece);
      ++unit.numPieces;
    }
  }
  /// Equal chunks of at most `tiles` visible tiles.
  void atMost(int index, int64_t tiles) {
    begin(index);
    Unit &unit = units[index];
    int64_t n = unit.visibleTiles(), parts = std::max<int64_t>(1, (n + tiles - 1) / tiles);
    for (int64_t i = 0; i < parts; ++i)
      add(index, static_cast<int32_t>(unit.loTile + n * i / parts),
          static_cast<int32_t>(unit.loTile + n * (i + 1) / parts), 0);
  }
};
} // namespace

void PlanImpl::balanceKernel(int k) {
  const Manifest &m = manifest();
  const KernelDesc &desc = m.kernels[k];
  const Layout::Kernel &place = layout.kernels[k];
  KernelState &state = kernelState[k];
  state = KernelState();
  state.firstPiece = static_cast<int32_t>(pieces.size());
  Cutter cut{units, pieces, desc.keys};

  const bool chunked =
      canSplit() && (options.policy == SplitPolicy::Chunk || options.policy == SplitPolicy::BatchInvariant);
  const bool mayCut = canSplit() && options.policy == SplitPolicy::Auto;
  const int64_t chunk = chunkFor(desc);
  int64_t largest = 0;
  for (size_t u = 0; u < units.size(); ++u) {
    const Unit &unit = units[u];
    if (unit.kernel != k)
      continue;
    bool split =
        chunked && unit.kvLen > chunk && (options.policy == SplitPolicy::Chunk || unit.singleTile || levels > 1);
    if (split)
      cut.chunks(static_cast<int>(u), chunk);
    else
      cut.whole(static_cast<int>(u));
    for (size_t p = unit.firstPiece; p < pieces.size(); ++p) {
      state.cost += pieces[p].cost;
      largest = std::max<int64_t>(largest, pieces[p].cost);
    }
  }
  state.lastPiece = static_cast<int32_t>(pieces.size());
  if (state.firstPiece == state.lastPiece || desc.counter)
    return;

  const int groups = place.ctas / place.headTiles;
  const bool narrow = desc.rows <= 64 && groups > 0 && 8 * groups * place.headTiles >= 7 * place.ctas;
  if (narrow) {
    state.groups = groups;
    int64_t share = state.cost / groups;
    int64_t withCuts = share + desc.keys + 2 * ItemOverhead + NarrowMergeOverhead;
    // Whole units cannot beat the longest of them: often that alone settles it.
    if (!(mayCut && groups > 1) || largest <= withCuts)
      if (assignGroups(k, groups) <= withCuts || !mayCut || groups == 1)
        return;
    const int64_t total = state.cost;
    const int32_t least = static_cast<int32_t>(1 + share / desc.keys / 16); // no slivers
    pieces.resize(state.firstPiece);
    int group = 0;
    int64_t done = 0, bound = total / groups;
    for (size_t u = 0; u < units.size(); ++u) {
      if (units[u].kernel != k)
        continue;
      cut.begin(static_cast<int>(u));
      int32_t from = units[u].loTile, to = units[u].hiTile;
      for (;;) {
        int64_t rest = to - from;
        int64_t room = group == groups - 1 ? rest : (bound - done - ItemOverhead) / desc.keys;
        if (rest <= room + least) {
          cut.add(static_cast<int>(u), from, to, group);
          done += rest * desc.keys + ItemOverhead;
          break;
        }
        if (room >= least) {
          cut.add(static_cast<int>(u), from, from + static_cast<int32_t>(room), group);
          done += room * desc.keys;
          from += static_cast<int32_t>(room);
        }
        bound = total * (++group + 1) / groups;
      }
      while (group < groups - 1 && done >= bound)
        bound = total * (++group + 1) / groups;
    }
    state.lastPiece = static_cast<int32_t>(pieces.size());
    return;
  }

  if (!mayCut || place.ctas <= place.headTiles)
    return;
  const int64_t share = (state.cost * place.headTiles + place.ctas - 1) / place.ctas;
  if (largest <= share ||
      assignItems(k, place.ctas, place.headTiles, false) <= share + 2 * ItemOverhead + WideMergeOverhead)
    return;
  const int64_t tiles = std::max<int64_t>(1, (share + desc.keys - 1) / desc.keys);
  pieces.resize(state.firstPiece);
  for (size_t u = 0; u < units.size(); ++u)
    if (units[u].kernel == k)
      cut.atMost(static_cast<int>(u), tiles);
  state.lastPiece = static_cast<int32_t>(pieces.size());
}

void PlanImpl::balance() {
  pieces.clear();
  kernelState.resize(manifest().kernels.size());
  for (size_t k = 0; k < kernelState.size(); ++k)
    balanceKernel(static_cast<int>(k));
}
