//===- Check.h - tile kernels on random batches -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds a small random batch for a kernel, interprets it, and compares the
// outputs with a plain softmax in double, or with another kernel's.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERPRETER_CHECK_H
#define ATTN_INTERPRETER_CHECK_H

#include "attn/Interpreter/Interpreter.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace mlir::tile {

struct CheckOptions {
  /// Query tokens and keys of each request; empty: random ones, by seed.
  std::vector<std::pair<int64_t, int64_t>> batch;
  uint64_t seed = 0;
  int64_t ctas = 2;
  /// Chunks into which the keys of an item are cut (at multiples of the kernel's `keys`).
  int64_t split = 1;
  /// Lengths of random requests are below `longest` tiles.
  int64_t longest = 3;
  /// Query tiles are full and keys fill whole tiles (for kernels that know nothing else).
  bool whole = false;
  bool causal = true;
  /// Keys to the left that a row sees besides its own position; -1: all.
  int64_t window = -1;
  double softcap = 0;
  /// Scalar parameters, by name.
  llvm::StringMap<double> params;
  int64_t maxSteps = int64_t(1) << 28;
};

struct CheckResult {
  double outputError = 0, lseError = 0;
  int64_t rows = 0;
};

/// Runs `kernel` on a random batch. With `other` null the outputs are compared with the reference, else with those of
/// `other` on the same batch. Emits an error where something goes wrong.
LogicalResult checkKernel(KernelOp kernel, KernelOp other, const CheckOptions &options, CheckResult &result);

} // namespace mlir::tile

#endif
