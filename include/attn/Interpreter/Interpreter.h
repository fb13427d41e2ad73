//===- Interpreter.h - runs tile kernels on host memory -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a tile.kernel of any level, one CTA after the other. At levels P and S
// everything asynchronous completes as late as it may, free slots hold NaN, and
// every role group is a task of its own, so that a kernel whose order of
// signals is wrong fails here and not on a device.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_INTERPRETER_H
#define ATTN_INTERPRETER_INTERPRETER_H

#include "attn/ABI/ABI.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include <vector>

namespace mlir::tile {

struct Buffer;

/// A scalar: `f` for float types, `i` (sign-extended; 0 or 1 for i1) for integers and index, `p` for memrefs.
union Word {
  double f;
  int64_t i;
  Buffer *p;
};

/// A strided host buffer. Floats are kept as doubles that are values of the element type.
struct Buffer {
  Buffer(Type element, ArrayRef<int64_t> shape);

  Type element;
  SmallVector<int64_t> shape, strides;
  int64_t offset = 0;
  std::vector<Word> data;

  bool isFloat() const { return isa<FloatType>(element); }
  /// Position in `data`, or -1 when an index is out of range.
  int64_t getIndex(ArrayRef<int64_t> at) const;
  /// Every element becomes `value` (NaN: nothing was written).
  void fill(double value);
};

/// `value` rounded to nearest even in `type`.
double roundTo(FloatType type, double value);

struct KernelArguments {
  /// One for each argument of the kernel, in order; that of the items is not used.
  std::vector<Word> values;
  std::vector<AttnWorkItem> items;
  std::vector<int32_t> ctaIndptr;
};

struct InterpreterOptions {
  /// Chooses between tasks that can run.
  uint64_t seed = 0;
  /// Ops that one CTA may run before it is called endless.
  int64_t maxSteps = int64_t(1) << 28;
};

/// Runs all CTAs. Emits an error at the op that goes wrong.
LogicalResult interpret(KernelOp kernel, const KernelArguments &arguments, const InterpreterOptions &options);

} // namespace mlir::tile

#endif
