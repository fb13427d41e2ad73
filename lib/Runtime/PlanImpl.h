//===- PlanImpl.h - inside of a plan ----------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner's steps share this state. All vectors keep their capacity from
// plan to plan: after the first ones, planning allocates nothing.
//
//   validate   checks the input, lengths per request           PlanValidate.cpp
//   layout     sizes and offsets from maxima                    PlanLayout.cpp
//   units      (level, row tile) pairs with their cost          PlanUnits.cpp
//   balance    units -> pieces (chunks) -> CTAs                 PlanBalance.cpp
//   emit       slots, merge pieces, items into the buffer       PlanEmit.cpp
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_PLANIMPL_H
#define ATTN_LIB_RUNTIME_PLANIMPL_H

#include "attn/Runtime/Range.h"

namespace attnrt {

/// Costs are counted in keys of one tile. An item costs this much on top (loading its record and Q, storing O).
constexpr int64_t ItemOverhead = 64;
/// What splitting costs a narrow and a wide class: the merge kernel and the partial results.
constexpr int64_t NarrowMergeOverhead = 256;
constexpr int64_t WideMergeOverhead = 1024;
constexpr int64_t DefaultChunk = 4096;

/// Offsets into the workspace; a function of maxima and options alone.
struct Layout {
  struct Kernel {
    int ctas = 0;
    int headTiles = 0;    ///< items per piece
    int64_t capacity = 0; ///< items
    int64_t counter = 0, indptr = 0, items = 0;
  };
  std::vector<Kernel> kernels;
  Kernel merge;
  int64_t tokenCapacity = 0, tokens = 0;
  int64_t pieceCapacity = 0, pieces = 0;
  int64_t planBytes = 0;
  int64_t partRows = 0, partO = 0, partLse = 0;
  int64_t totalBytes = 0;
};

/// A tile of query rows against one level.
struct Unit {
  int64_t table = 0;
  int32_t token0 = 0, tokens = 0;
  int32_t request = 0, row0 = 0;
  int32_t kvLen = 0, kpos0 = 0;
  int32_t loTile = 0, hiTile = 0; ///< tiles of keys that some row sees, as far as the host knows
  int32_t kernel = 0;
  int32_t firstPiece = 0, numPieces = 0;
  int32_t level = 0;
  bool partial = false;
  bool singleTile = true; ///< the request's (or run's) only tile

  int32_t visibleTiles() const { return hiTile - loTile; }
};

/// A chunk of a unit's keys; one item for each head tile.
struct Piece {
  int32_t unit = 0;
  int32_t klo = 0, khi = 0;
  int32_t group = 0;
  int32_t slot = -1;
  int32_t cost = 0;
};

/// A piece's items of heads [firstHead, endHead), in head tiles.
struct ItemRun {
  int32_t piece = 0;
  int32_t firstHead = 0, endHead = 0;
};

struct PlanImpl {
  std::shared_ptr<Executable> executable;
  PlanOptions options;
  int units_ = 1;     ///< compute units
  bool fixed = false; ///< maxima were declared

  Maxima maxima; ///< of the current layout
  Layout layout;
  int64_t layoutGeneration = 0;

  // Workspace and staging.
  char *workspace = nullptr;
  int64_t workspaceBytes = 0;
  bool ownsWorkspace = false;
  struct Staging {
    void *data = nullptr;
    int64_t bytes = 0;
    void *event = nullptr;
    bool busy = false;
  } staging[2];
  int turn = 0;
  char *host = nullptr; ///< where the current plan's host copy is

  // The current batch.
  const PlanInput *input = nullptr;
  int64_t requests = 0, totalTokens = 0;
  int levels = 0;
  const char *pagesBase = nullptr;
  int64_t maxKv = 0;
  int64_t kvEnd = 0; ///< ragged: K and V rows needed
  bool planned = false;
  std::vector<int32_t> kvTotal;
  std::vector<int32_t> position; ///< of the level being built, per request
  std::vector<Unit> units;
  std::vector<Piece> pieces;
  std::vector<uint64_t> order;
  std::vector<ItemRun> sequence; ///< of a wide kernel: its items in the order in which they are handed out
  std::vector<uint64_t> heap;
  std::vector<int32_t> assigned, groupStart, tokenCount, tokenPiece;
  RangeInterpreter ranges;
  struct KernelState {
    int32_t firstPiece = 0, lastPiece = 0;
    int groups = 0; ///< > 0: pieces have a group, group g's head h runs on CTA g * headTiles + h
    int64_t items = 0;
    int64_t cost = 0;
  };
  std::vector<KernelState> kernelState;
  int64_t numMergeItems = 0, numPieces = 0, numPartRows = 0;
  bool usesTokens = false;

  // Packed arguments of the last run.
  struct Launch {
    std::vector<AttnWord> words;
    std::vector<TensorMap> maps;
    std::vector<void *> params;
  };
  std::vector<Launch> launches; ///< kernels, then merge
  Operands cachedOperands;
  std::vector<ParamArg> cachedParams;
  bool cacheValid = false;
  int64_t cacheGeneration = -1;
  const char *cachePages = nullptr;

  const Manifest &manifest() const { return executable->manifest(); }
  Device &device() const { return executable->device(); }
  bool canSplit() const { return manifest().merge.has_value(); }
  int64_t chunkFor(const KernelDesc &kernel) const;

  // PlanLayout.cpp
  Status computeLayout(const Maxima &maxima, Layout &layout) const;
  Status ensureWorkspace();
  // PlanValidate.cpp
  Status validate(const PlanInput &input);
  Maxima tightMaxima() const;
  // PlanUnits.cpp
  void buildUnits();
  void setVisible(Unit &unit, int lastRequest);
  bool visibleRange(const RangeInputs &rows, const KernelDesc &kernel, int64_t &lo, int64_t &hi);
  // PlanBalance.cpp
  void balance();
  void balanceKernel(int kernel);
  int64_t assignGroups(int kernel, int groups);
  void sequenceItems(int kernel, int ctas, int headTiles);
  int64_t assignItems(int kernel, int ctas, int headTiles, bool record);
  // PlanEmit.cpp
  Status emit();
  Status upload(void *stream);
  // Run.cpp
  Status checkOperands(const Operands &operands) const;
  Status pack(const Operands &operands);
};

/// First global position of a token.
inline int32_t queryPosition(int32_t row0, int32_t kvTotal, int32_t qoLen) { return row0 + kvTotal - qoLen; }

} // namespace attnrt

#endif // ATTN_LIB_RUNTIME_PLANIMPL_H
