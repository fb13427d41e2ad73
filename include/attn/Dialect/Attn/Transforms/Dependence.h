//===- Dependence.h - what a value of a hook follows from ---*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_DEPENDENCE_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_DEPENDENCE_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

struct Dependence {
  bool key = false; // the position of a key
  bool row = false; // the row, or its position
  Dependence &operator|=(Dependence other) {
    key |= other.key, row |= other.row;
    return *this;
  }
};

/// What the value of a hook may follow from. An op with regions hands on what it and the ops inside use.
Dependence findDependence(Value value);

} // namespace mlir::attn

#endif
