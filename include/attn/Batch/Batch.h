//===- Batch.h - what a batch file says -------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// BATCH.json as a struct: lengths, sharing, placement and parameter values of
// one serving step. Heads, head dims, element types and the format come from
// the IR, never from here. docs/Batch.md lists the keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BATCH_BATCH_H
#define ATTN_BATCH_BATCH_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace attn {
namespace batch {

/// One sequence: new query tokens and keys in all (shared prefixes included).
struct Request {
  int64_t qo = 0, kv = 0;
};

/// Keys that requests first .. last (inclusive) share. Nodes nest: a node inside another one comes behind its keys.
struct SharedPrefix {
  int64_t first = 0, last = 0, length = 0;
};

enum class PageOrder { Random, Sequential };
/// How K and V lie in memory: head inside token, token inside head, or K and V interleaved in one buffer (and q a view
/// of wider rows).
enum class Strides { Nhd, Hnd, Packed };
/// What bytes hold that belong to no request.
enum class Unowned { NaN, Zero, Random };
enum class SplitKind { Auto, None, Chunk };

/// The value of one parameter of the variant: a number, listed values, or a generator.
struct ParamSpec {
  enum class Kind { Number, Values, Random, Generator };
  Kind kind = Kind::Number;
  double number = 0;
  std::vector<double> values;
  double lo = 0, hi = 0;
  std::vector<int64_t> shape;            ///< empty: from the IR, or the number of values
  std::string generator;                 ///< alibi, tree_mask, documents, prefix_lengths, per_request, iota, fill
  std::map<std::string, double> numbers; ///< the generator's numeric keys
  std::map<std::string, std::string> words;
};

struct Batch {
  std::vector<Request> requests;
  std::vector<SharedPrefix> prefixes;
  PageOrder pageOrder = PageOrder::Random;
  Strides strides = Strides::Nhd;
  Unowned unowned = Unowned::NaN;
  SplitKind split = SplitKind::Auto;
  int64_t chunk = 0; ///< keys of a chunk when split is Chunk
  uint64_t seed = 0;
  double magnitudeQ = 1, magnitudeK = 1, magnitudeV = 1; ///< standard deviation of the inputs
  double density = 0.5;                                  ///< bsr: share of column blocks in a row block's list
  bool hasScale = false;
  double scale = 0;    ///< sm_scale, for ops that take it as an operand
  std::string lseBase; ///< "", "natural" or "base2": what the caller expects of the IR
  std::map<std::string, ParamSpec> params;
};

/// Parses the text of a batch file. On failure returns false and says in `error` which key is wrong, the rule and the
/// remedy. A trace's path counts from `folder`.
bool parse(const std::string &text, const std::string &folder, Batch &batch, std::string &error);
/// Reads and parses a file; errors begin with its path.
bool load(const std::string &path, Batch &batch, std::string &error);
/// The rules that hold for hand-made batches too; empty when sound.
std::string check(const Batch &batch);

/// Depth of each prefix node (0: outermost) and, per request, the keys that are its own.
struct PrefixTree {
  std::vector<int64_t> depth;
  int64_t levels = 0; ///< of prefixes, without the level of own keys
  std::vector<int64_t> own;
};
/// The tree of a checked batch.
PrefixTree prefixTree(const Batch &batch);

/// Which step of a saturated server replaying a trace to take; the same rules as `python3 -m attn_mlir.traces`.
struct TraceStep {
  std::string file;
  int64_t step = 0; ///< steps since the start
  int64_t maxBatch = 16;
  int64_t chunk = 512;   ///< tokens of a prefill chunk
  int64_t prefills = 2;  ///< chunks a step
  int64_t divide = 1;    ///< all lengths, block size too, are divided by this
  int64_t maxLevels = 3; ///< of shared prefixes
};
/// Requests and prefixes of that step. False and `error` when the file cannot be used.
bool traceStep(const TraceStep &step, Batch &batch, std::string &error);

} // namespace batch
} // namespace attn

#endif
