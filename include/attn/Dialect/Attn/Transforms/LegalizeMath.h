//===- LegalizeMath.h - the closed list of math functions, made legal -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hooks may call a closed list of math functions. These functions rewrite them
// into what a target has, with the accuracy table of docs/Spec.md; they work on
// scalars and vectors of f32 in any region (hooks, tile.map bodies, functions).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_LEGALIZEMATH_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_LEGALIZEMATH_H

#include "mlir/IR/Builders.h"
#include "mlir/Support/LogicalResult.h"

#include <utility>

namespace mlir::attn {
class RopeOp;

/// What the math ends on.
/// Gpu: {exp2, log2, tanh, sin, cos, rsqrt} with `afn`, sqrt, fma, absf and arith remain.
/// Host: sqrt, fma, absf and arith remain (no call of libm on a machine with fused multiply-add).
enum class MathTarget { Gpu, Host };

/// Attribute of a `math.tanh` whose result may be off by 2^-21 absolutely, also where it is small: on a GPU it takes
/// two special functions and three other instructions then.
inline constexpr llvm::StringLiteral kAbsoluteError = "attn.absolute_error";

/// Whether `op` is a math op that remains on that target (ops of other dialects: true).
bool isLegalMath(Operation *op, MathTarget target);

/// Rewrites every math op nested in `root`. Fails, with an error that names the op, on a function outside the closed
/// list or on another type than f32 and vectors of f32.
LogicalResult legalizeMath(Operation *root, MathTarget target);

/// The rule of `attn.rope`, apart from the op.
struct RopeSpec {
  double theta = 10000.0;
  /// Elements that rotate (even, never 0 here).
  int64_t rotary = 0;
  bool interleaved = false;
  double factor = 1.0;
  double lowFreq = 0.0, highFreq = 0.0;
  int64_t original = 0;

  /// From the op; `dim` elements rotate when it names none.
  static RopeSpec get(RopeOp op);
  int64_t pairs() const { return rotary / 2; }
};

/// Frequency of pair `t` in radians per position: evaluated in double precision and rounded to fp32. What every path
/// uses, bit for bit.
float ropeFrequency(const RopeSpec &spec, int64_t t);

/// (cos, sin), as f32, of position * ropeFrequency(spec, t); `position` and `t` are run-time index values,
/// 0 <= t < spec.pairs() (outside: finite, meaningless values). The frequency is the exact fp32 one, found by
/// arithmetic alone (no table in memory), the product is reduced to one turn with a hi/lo product: off by less than
/// 1e-5 rad for |position| <= 2^24, 1e-4 up to 2^31. Ends on math.cos and math.sin with `afn` of an angle of about
/// [-pi, pi]: legal on a GPU, left to legalizeMath on the host.
std::pair<Value, Value> buildRopeAngle(OpBuilder &builder, Location loc, Value position, Value t, const RopeSpec &spec);

/// The part of buildRopeAngle that depends on `t` alone, for callers that keep it out of a loop: the frequency in
/// turns per position as an unevaluated sum hi + lo. And the rest.
std::pair<Value, Value> buildRopeFrequency(OpBuilder &builder, Location loc, Value t, const RopeSpec &spec);
std::pair<Value, Value> buildRopeAngle(OpBuilder &builder, Location loc, Value position,
                                       std::pair<Value, Value> frequency);

} // namespace mlir::attn

#endif
