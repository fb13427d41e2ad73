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

/// A table's host copy with the least and the greatest entry of each block, of each 16 blocks, of each 16 of those and
/// so on. They are made when something asks for them, so a table costs one pass over the part that is used, however
/// many tiles scan it. Their memory is kept from table to table.
class ATTNRT_API TableSummary {
public:
  static constexpr int64_t BlockEntries = 64;
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
  };

  /// Another table, or the same one with other entries.
  void reset(Element element, const void *data, int64_t entries);
  int64_t size() const { return data ? entries : 0; }

  /// The following take 0 <= from < to <= size().
  Bounds extent(int64_t from, int64_t to);
  /// [first, end) within [from, to) outside of which no entry meets the condition. It begins and ends with one that
  /// does, or at a block's edge where the table is not in order. Returns false when there is none.
  bool find(int64_t from, int64_t to, const Condition &condition, int64_t &first, int64_t &end);

private:
  static constexpr int FanoutBits = 4, TopLevel = 6;
  struct Node {
    Bounds bounds;
    int64_t made = 0; ///< for which table; else not known
  };
  /// Blocks of a node.
  static int64_t span(int level) { return int64_t(1) << (FanoutBits * level); }
  const Bounds &node(int level, int64_t block) {
    Node &node = levels[level][block >> (FanoutBits * level)];
    if (node.made != table)
      make(node, level, block);
    return node.bounds;
  }
  void make(Node &node, int level, int64_t block);
  void reserve(int64_t blocks);
  Bounds read(int64_t from, int64_t to) const;
  int64_t search(int64_t from, int64_t to, const Condition &condition, bool backwards) const;
  int64_t next(int64_t block, int64_t stop, const Condition &condition);
  int64_t previous(int64_t end, int64_t start, const Condition &condition);

  Element element = Element::I32;
  const void *data = nullptr;
  int64_t entries = 0;
  int64_t table = 0; ///< counts them
  std::vector<Node> levels[TopLevel + 1];
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
