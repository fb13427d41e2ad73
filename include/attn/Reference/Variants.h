//===- Variants.h - ready hooks for tests -----------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The usual variants as reference hooks: masks and their combinations, logit
// changes, sinks, rotary embeddings. Each is the semantics' sentence as code.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REFERENCE_VARIANTS_H
#define ATTN_REFERENCE_VARIANTS_H

#include "attn/Reference/Reference.h"

namespace attn {
namespace ref {

using Mask = std::function<bool(const Coord &)>;
using Logits = std::function<double(double, const Coord &)>;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// kvPos <= qPos.
Mask causal();
/// qPos - left <= kvPos <= qPos + right; -1 is unbounded.
Mask window(int64_t left, int64_t right);
/// The first `count` keys are always visible to whoever passes `inside`.
Mask sinkTokens(int64_t count, Mask inside);
/// Bidirectional over the first prefix[request] keys, causal behind them.
Mask prefixLM(std::vector<int64_t> prefix);
/// Both positions are in the same document: ids[offsets[request] + position]. A query before the first key is in none.
Mask document(std::vector<int64_t> ids, std::vector<int64_t> offsets);
/// Bit (row * kvLen + kvPos) of the bytes from offsets[request] on, little bit order. With `perHead`, the head's bits
/// start ceil(qoLen * kvLen / 8) bytes after the previous head's.
Mask treeMask(std::vector<uint8_t> bits, std::vector<int64_t> offsets, bool perHead = false);
Mask maskAnd(Mask a, Mask b);
Mask maskOr(Mask a, Mask b);

//===----------------------------------------------------------------------===//
// Logits and sinks
//===----------------------------------------------------------------------===//

/// cap * tanh(x / cap).
Logits softCap(double cap);
/// x + slopes[qHead] * (kvPos - qPos); the slopes of this rank's heads.
Logits alibi(std::vector<double> slopes);
/// Slopes of heads first .. first + count of `heads` in all: with n the largest power of two within heads, 2^(-8k/n)
/// for k = 1 .. n, then 2^(-4k/n) for odd k. `count` -1: to the last head.
std::vector<double> alibiSlopes(int64_t heads, int64_t first = 0, int64_t count = -1);
/// 1 / (1 + exp(-(x + bias))), for Normalizer::None.
Logits sigmoid(double bias = 0);
/// First a, then b.
Logits chain(Logits a, Logits b);
/// One logit per query head.
std::function<double(const Coord &)> headSink(std::vector<double> values);

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

/// The attributes of attn.rope, same names and meaning.
struct Rope {
  double theta = 10000.0;
  int64_t rotary = 0; ///< leading dims that rotate; 0: all
  bool interleaved = false;
  double factor = 1.0;
  double lowFreq = 0.0, highFreq = 0.0; ///< Llama-3.1 scaling when all three are above 0
  int64_t original = 0;
};

/// Frequency of each pair, rounded to fp32 once, at the end.
std::vector<float> ropeFrequencies(const Rope &rope, int64_t dim);
/// Rotates the vector at a position.
Vec rotate(Vec x, int64_t position, const Rope &rope);
/// Query and key hooks at the positions of the coordinate.
VecHook ropeQuery(const Rope &rope);
VecHook ropeKey(const Rope &rope);

} // namespace ref
} // namespace attn

#endif
