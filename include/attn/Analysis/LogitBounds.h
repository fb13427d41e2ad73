//===- LogitBounds.h - what a logits hook can yield ------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Softmax does not change when all logits are shifted alike; the row maximum is
// subtracted only so that weights neither overflow nor vanish. Where a hook's
// logits are bounded by constants (a soft-cap, a clamp, a sigmoid) they do
// neither with the constant 0 in its place.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_LOGITBOUNDS_H
#define ATTN_ANALYSIS_LOGITBOUNDS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// The least and the most that a value can be when it is not NaN, rounding and the errors of approximate functions
/// included; infinite where nothing is known.
struct FloatRange {
  double lo, hi;
};

/// What the logits hook can yield, whatever its argument, parameters and coordinates are.
FloatRange findLogitRange(HookOp logits);

/// Largest magnitude of bounded logits in base 2. Weights are then within 2^-80 and 2^80, so sums of n weights and
/// of their products with values overflow only where n |v| is above 2^46, and lose precision only where |v| is below
/// 2^-46. Weights of f16 (2^-14 to 2^16) hold less.
inline constexpr double kMostLogit = 80, kMostLogitF16 = 14;

/// Whether the softmax of `op` needs no row maximum: it has a logits hook, whose yield is bounded closely enough for
/// weights of the type of q.
bool hasBoundedLogits(AttentionOp op);

/// Whether `op` reaches the end of its block by products with constants only: of bounded logits, which are exponents,
/// small ones need not be more precise than large ones, so an absolute error of `op` does.
bool isScaledYield(Operation *op);

} // namespace mlir::attn

#endif
