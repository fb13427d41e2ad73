//===- ScalarOps.h - what arith and math compute --------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one evaluation of scalar ops, for the hook evaluator and the interpreter
// of kernels. An integer is kept as the sign-extended value of its width (i1:
// 0 or 1), an index as 64 bits, a float as a double. Nothing traps: what arith
// leaves undefined has the result that docs/Spec.md gives it in hooks.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCALAROPS_SCALAROPS_H
#define ATTN_SCALAROPS_SCALAROPS_H

#include "mlir/IR/Operation.h"
#include <cstdint>

namespace attn {

/// The low `width` bits as such an integer.
int64_t wrapInteger(uint64_t value, unsigned width);
/// The value read without a sign.
uint64_t unsignedValue(int64_t value, unsigned width);
/// The value read with a sign: a true i1 is -1.
int64_t signedValue(int64_t value, unsigned width);
/// Bits of an integer, of index, or of a float.
unsigned scalarWidth(mlir::Type type);

/// Towards zero, the nearest value when out of range, 0 for NaN.
int64_t floatToInteger(double value, unsigned width, bool isSigned);

/// Integers of `width` bits to an integer that is still to be wrapped at the width of the result; `b` is unused where
/// the op has one operand.
using IntegerFn = int64_t (*)(int64_t a, int64_t b, unsigned width);
/// Comparisons and casts between integers are among them. Null for other ops.
IntegerFn findIntegerFn(mlir::Operation *op);

/// Up to three floats to a float that is still to be rounded to its type.
using FloatFn = double (*)(double a, double b, double c);
FloatFn findFloatFn(mlir::Operation *op);

/// The comparison of an arith.cmpf.
using CompareFn = bool (*)(double a, double b);
CompareFn findCompareFn(mlir::Operation *op);

} // namespace attn

#endif
