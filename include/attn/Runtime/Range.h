//===- Range.h - which keys rows can see, on the host -----------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interprets a manifest's range program. The result only balances a plan:
// kernels decide again for themselves.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_RANGE_H
#define ATTN_RUNTIME_RANGE_H

#include "attn/Runtime/Plan.h"

namespace attnrt {

/// A table's host copy with the least and greatest entry of blocks and of chunks of blocks. Chunks are summarised when
/// something first asks for them, so a table costs one pass over the part that is used, however many tiles scan it.
class ATTNRT_API TableSummary {
public:
  static constexpr int64_t BlockEntries = 32, ChunkBlocks = 64, ChunkEntries = BlockEntries * ChunkBlocks;
  struct Bounds {
    int64_t least = 0, greatest = 0;
  };
  /// A condition on an entry: within [lo, hi] (never when lo > hi), or outside of it.
  struct Condition {
    int64_t lo = 0, hi = 0;
    bool outside = false;
    bool mayHold(const Bounds &b) const {
      return outside ? b.least < lo || b.greatest > hi : lo <= hi && b.least <= hi && b.greatest >= lo;
    }
    bool holds(int64_t value) const { return mayHold({value, value}); }
  };

  /// Another table, or the same one with other entries.
  void reset(Element element, const void *data, int64_t entries);
  int64_t size() const { return data ? entries : 0; }

  /// The following take 0 <= from < to <= size().
  Bounds extent(int64_t from, int64_t to);
  /// An index in [from, to) before which no entry meets the condition, and one at or after which none does; the first
  /// and the last one that do, or a block's edge where the table is not in order. Returns false when none can.
  bool find(int64_t from, int64_t to, const Condition &condition, int64_t &first, int64_t &end);

private:
  int64_t at(int64_t index) const;
  Bounds read(int64_t from, int64_t to) const;
  /// Where chunk `index` stands in `chunks`.
  int64_t chunk(int64_t index);

  Element element = Element::I32;
  const void *data = nullptr;
  int64_t entries = 0;
  std::vector<int32_t> place; ///< of a chunk in `chunks`, -1 while it has none
  std::vector<Bounds> chunks, blocks;
};

/// Of the rows whose keys are asked for: registers 0..4 of the program.
struct RangeInputs {
  int64_t qpos0 = 0, rows = 0, qoLen = 0, kvTotal = 0, request = 0;
};

class ATTNRT_API RangeInterpreter {
public:
  /// A new batch. Both arguments have to stay while there are calls of `run`.
  void begin(const Manifest &manifest, const std::vector<ParamValue> &params);

  /// Keys outside of [lo, hi) are invisible to all of these rows, as far as a kernel notices that skips by scans or
  /// not. False when the program ends early. The manifest has a range program.
  bool run(const RangeInputs &inputs, bool scans, int64_t &lo, int64_t &hi);

private:
  bool run(const RangeProgram::Slice &slice, const RangeInputs &inputs, int64_t &lo, int64_t &hi);
  bool load(int64_t param, int64_t index, int64_t &result);

  const Manifest *manifest = nullptr;
  const std::vector<ParamValue> *params = nullptr;
  std::vector<int64_t> registers;
  std::vector<TableSummary> tables; ///< one a parameter
};

} // namespace attnrt

#endif // ATTN_RUNTIME_RANGE_H
