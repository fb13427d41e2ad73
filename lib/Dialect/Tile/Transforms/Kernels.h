//===- Kernels.h - what several passes ask of a kernel -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_KERNELS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_KERNELS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::tile {

/// Success when `kernel` is of `level`; else an error that ends in `remedy`.
LogicalResult checkLevel(KernelOp kernel, Level level, StringRef remedy);

/// The kernel's config; null with an error when it has none.
attn::ConfigAttr requireConfig(KernelOp kernel);

/// True when `op` or an op within it is an `OpT`.
template <typename OpT> bool containsOp(Operation *op) {
  return op->walk([](OpT) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// All loops of `kernel`, and those whose own steps have a product; inner ones first. In a list, because passes replace
/// the loops that they visit.
SmallVector<scf::ForOp> getLoops(KernelOp kernel);
SmallVector<scf::ForOp> getProductLoops(KernelOp kernel);

/// The first row of the last step of a loop from `lo` with at least one step: lo + (hi - lo - 1) / step * step.
Value createLastStep(OpBuilder &builder, Location loc, Value lo, Value hi, Value step);

} // namespace mlir::tile

#endif
