//===- Sm80.h - the mma.sync generation ------------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of levels L and P in which every warp loads, multiplies and stores:
// cp.async into swizzled shared memory, ldmatrix, mma.sync.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOGPU_SM80_H
#define ATTN_CONVERSION_TILETOGPU_SM80_H

#include "Emitter.h"
#include "Sm80Leaf.h"

namespace mlir::tile {

void populateSm80Copy(Emitter &e);
void populateSm80Pipeline(Emitter &e);
void populateSm80Mma(Emitter &e);
void populateSm80Exchange(Emitter &e);

namespace sm80 {

/// Rows `row` (an index of the kernel) .. of `view` to the stage `dest` by cp.async; rows and columns that do not exist
/// become zero. The caller commits. With one group of keys a warp, each warp copies its own.
LogicalResult copyRows(Emitter &e, Operation *op, const View &view, Value row, const Smem &dest);

/// The stage as ldmatrix sees it: `group` (i32, or null) chooses a part of the leading dimension.
FailureOr<SharedTile> sharedTile(Emitter &e, Operation *op, const Smem &smem, Value group);

/// The lane, as a value that the back end cannot see through: addresses made of it are computed where they are used
/// (a few integer instructions) instead of being kept in registers across the key loop.
Value hiddenLane(Emitter &e);

/// True when every warp reads only the part of such a stage that it loads itself.
bool isWarpPrivate(Emitter &e, SmemType slot);

} // namespace sm80
} // namespace mlir::tile

#endif
