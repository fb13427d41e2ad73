//===- Reference.h - attention, slow and true -------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every line of the semantics in double precision: a batch over any KV format
// and number of levels, hooks as callbacks, partial states and their merge.
// No MLIR and no LLVM: this is what every compiled path is compared with.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REFERENCE_REFERENCE_H
#define ATTN_REFERENCE_REFERENCE_H

#include "attn/Reference/Rounding.h"

#include <functional>
#include <limits>
#include <vector>

namespace attn {
namespace ref {

enum class Format { Ragged, Paged, Bsr };
enum class Normalizer { Softmax, None };
enum class LseBase { Natural, Base2 };

/// Where a hook stands. Query and output hooks and the sink have no key: kvPos is 0 there. Key and value hooks have
/// no query: there qHead is the first head of the group, row 0 and qPos the position of row 0.
struct Coord {
  int64_t request = 0;
  int64_t qHead = 0;
  int64_t kvHead = 0;
  int64_t qPos = 0; ///< row + kvLen - qoLen, may be negative
  int64_t kvPos = 0;
  int64_t qoLen = 0;
  int64_t kvLen = 0;
  int64_t row = 0;
};

using Vec = std::vector<double>;
using VecHook = std::function<Vec(Vec, const Coord &)>;

/// The hooks of a variant; absent ones are empty. They are called from several threads.
struct Hooks {
  VecHook query, key, value, output;
  std::function<double(double, const Coord &)> logits;
  std::function<bool(const Coord &)> mask;
  std::function<double(const Coord &)> sink;
};

/// Values already rounded to their storage type, with strides in elements; head vectors are contiguous. Element
/// (block, row, head, d) is data[block * blockStride + row * rowStride + head * headStride + d]; q and ragged K and V
/// have block 0 and count tokens by row.
struct View {
  const float *data = nullptr;
  int64_t blockStride = 0;
  int64_t rowStride = 0;
  int64_t headStride = 0;
  const float *at(int64_t block, int64_t row, int64_t head) const {
    return data + block * blockStride + row * rowStride + head * headStride;
  }
};

/// One level of a composed format: entries, each shared by a run of requests (bsr: of row blocks).
struct Level {
  /// Runs: entry e serves [rowIndptr[e], rowIndptr[e + 1]). Empty: one entry per request (bsr: per row block).
  std::vector<int64_t> rowIndptr;
  /// Ragged: token offsets of K and V. Paged, bsr: offsets into `indices`.
  std::vector<int64_t> kvIndptr;
  std::vector<int64_t> indices; ///< pages or column blocks
  std::vector<int64_t> last;    ///< valid keys of each entry's last page, 1 .. pageSize
};

/// A batch and what to compute.
struct Problem {
  Format format = Format::Ragged;
  int64_t pageSize = 0; ///< keys of a page or column block
  int64_t rowBlock = 0; ///< bsr: query rows of a row block; the blocks of a request follow each other
  int64_t headsQo = 1, headsKv = 1, headDimQk = 0, headDimVo = 0;
  View q, k, v;
  std::vector<int64_t> qoIndptr; ///< requests + 1 token offsets
  std::vector<Level> levels;
  /// bsr: kvLen of each request, for positions; empty: the longest list of its row blocks.
  std::vector<int64_t> kvTotal;
  /// NaN: 1 / sqrt(headDimQk).
  double scale = std::numeric_limits<double>::quiet_NaN();
  Normalizer normalizer = Normalizer::Softmax;
  LseBase lseBase = LseBase::Natural;

  int64_t requests() const { return qoIndptr.empty() ? 0 : int64_t(qoIndptr.size()) - 1; }
  int64_t tokens() const { return qoIndptr.empty() ? 0 : qoIndptr.back(); }
  int64_t qoLen(int64_t request) const { return qoIndptr[request + 1] - qoIndptr[request]; }
  int64_t group() const { return headsQo / headsKv; }
  double smScale() const;
  /// The first row block of each request and, last, their number (bsr).
  std::vector<int64_t> rowBlockStarts() const;
};

/// Where one key lies, and its position in the request.
struct KeyPlace {
  int64_t block, row, position;
};

/// Empty when the problem is sound; else the argument, the rule and the remedy.
std::string validate(const Problem &problem, const Hooks &hooks = {});

/// The keys that row `row` of a request may see before the mask, level after level. Rows of one request differ for
/// bsr only.
std::vector<KeyPlace> keysOf(const Problem &problem, int64_t request, int64_t row = 0);
/// Keys of a request over all levels (bsr: see kvTotal).
int64_t kvLen(const Problem &problem, int64_t request);

/// o [tokens, headsQo, headDimVo] and lse [tokens, headsQo]; with Normalizer::None lse stays empty.
struct Result {
  int64_t heads = 0, dim = 0;
  std::vector<double> o, lse;
  /// Per row, the largest number that fp32 rounds on the way to a weight: |scale| * |q| * |k|, or |logit| after the
  /// hook. What fp32 loses there is in proportion.
  std::vector<double> logitMagnitude;
  /// Largest |value| among a row's visible keys (after the value hook).
  std::vector<double> valueMagnitude;
  /// Of fp32Baseline, per row: standard deviation of lse (in its base) by the rounding of hooked q and k to 16 bits.
  /// Which way an element goes that lies near the middle of two numbers is up to the last bits of the hook, so the
  /// baseline's own error is one draw only. Empty without hooks on q or k.
  std::vector<double> lseRounding;
  double *row(int64_t token, int64_t head) { return o.data() + (token * heads + head) * dim; }
  const double *row(int64_t token, int64_t head) const { return o.data() + (token * heads + head) * dim; }
};

/// Part of the work: keys number [keyLo, keyHi) of each row's list; without `finalise` the result is a partial state
/// (no sink, no output hook).
struct Part {
  int64_t keyLo = 0;
  int64_t keyHi = std::numeric_limits<int64_t>::max();
  bool finalise = true;
};

/// The truth. The problem must be valid.
Result run(const Problem &problem, const Hooks &hooks = {}, const Part &part = {});

/// (oA, lseA) becomes the union of both states. Empty states (lse = -inf) are neutral. `lse` may be null with
/// Normalizer::None: partial results add.
void merge(double *oA, double *lseA, const double *oB, const double *lseB, int64_t dim,
           LseBase base = LseBase::Natural);
/// The same over whole results.
void merge(Result &a, const Result &b, const Problem &problem);
/// What happens once, after the last merge: sink, then the output hook.
void finalise(Result &result, const Problem &problem, const Hooks &hooks);

/// What a straightforward fp32 softmax gives when it rounds where every kernel must: hooked vectors and the weights to
/// the type of q, the output to `typeO`; dots and sums in fp32. The error of this against `run` is the yardstick for
/// bf16.
Result fp32Baseline(const Problem &problem, const Hooks &hooks, Storage typeQ, Storage typeO);

} // namespace ref
} // namespace attn

#endif
