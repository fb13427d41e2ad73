//===- DefineIntegers.h - integer ops without undefined results -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// arith leaves division by zero, shifts by the width or more and conversions
// out of range undefined, and machines differ (x86 traps). Hooks have a result
// for all of them (docs/Spec.md, section 4). Where operands are known to be
// good, which constants mostly are, nothing is added.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_DEFINEINTEGERS_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_DEFINEINTEGERS_H

#include "mlir/IR/Operation.h"

namespace mlir::attn {

/// Gives the integer ops of scalars and vectors inside `root` the results that hooks have.
void defineIntegers(Operation *root);

} // namespace mlir::attn

#endif
