//===- Compare.h - tolerances, and what is worst ----------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of tolerances as data, and a comparison of raw output memory with
// the reference that names the worst element and finds NaNs and elements that
// were never written.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REFERENCE_COMPARE_H
#define ATTN_REFERENCE_COMPARE_H

#include "attn/Reference/Reference.h"

namespace attn {
namespace ref {

/// |got - expected| <= abs + rel * |expected|, widened by what nobody can avoid:
/// - fp32 logits: what rounds at magnitude x is known to x * 2^-22 at best, which moves an output by as much times the
///   values' magnitude and the lse by as much. That matters for logits in the thousands only.
/// - storage types: where the baseline of a row is off by more than half of the table, twice its error is allowed there
///   (rotated bf16 keys of large magnitude, for example). An lse behind hooks on q or k may be off by four standard
///   deviations of what their rounding does to the logits (Result::lseRounding), in proportion to |q| |k|.
struct Tolerance {
  double abs = 0, rel = 0;
  /// Above zero: the largest error must also stay within this factor of the baseline's (one unit in the last place of
  /// the output is always allowed).
  double baselineFactor = 0;

  /// Of o. `approximate`: a hook with `afn` feeds the softmax.
  static Tolerance output(Storage typeO, bool approximate = false);
  static Tolerance lse(bool approximate = false);
};

/// Output memory: o [token, head, dim] or, with dim 1, lse; strides in elements.
struct OutputView {
  const void *data = nullptr;
  Storage type = Storage::F32;
  int64_t tokenStride = 0, headStride = 0;
};

struct Mismatch {
  int64_t request = -1, row = -1, token = -1, head = -1, dim = -1;
  double expected = 0, got = 0, allowed = 0;
};

struct Comparison {
  bool ok = true;
  int64_t checked = 0;   ///< elements
  int64_t bad = 0;       ///< beyond tolerance, unwritten and NaN included
  int64_t unwritten = 0; ///< still hold the poison
  int64_t nans = 0;
  double maxError = 0;      ///< over finite elements
  double baselineError = 0; ///< of the baseline, when one is given
  /// The element whose error is largest relative to what is allowed (unwritten first, then NaN).
  Mismatch worst;
  /// One line for a person.
  std::string text() const;
};

/// Compares o with the reference. `baseline` may be null.
Comparison compareOutput(const Problem &problem, const Result &expected, const OutputView &got, const Tolerance &tol,
                         const Result *baseline = nullptr);
/// Compares lse (f32 in memory).
Comparison compareLse(const Problem &problem, const Result &expected, const OutputView &got, const Tolerance &tol,
                      const Result *baseline = nullptr);

} // namespace ref
} // namespace attn

#endif
