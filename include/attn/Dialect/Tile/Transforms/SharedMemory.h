//===- SharedMemory.h - where tiles stand in shared memory -----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_SHAREDMEMORY_H
#define ATTN_DIALECT_TILE_TRANSFORMS_SHAREDMEMORY_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::tile {
/// Attributes of tile-allocate-shared (i64, bytes): on ops, on pipelines, and the total on the kernel.
inline constexpr llvm::StringLiteral kSharedOffset = "tile.shared_offset";
inline constexpr llvm::StringLiteral kBarrierOffset = "tile.barrier_offset";
inline constexpr llvm::StringLiteral kWordsOffset = "tile.words_offset";
inline constexpr llvm::StringLiteral kSharedBytes = "tile.shared_bytes";
/// On load_async: a number that divides its row in every step (0: the row is 0).
inline constexpr llvm::StringLiteral kRowDivisor = "tile.row_divisor";

/// On dot_async in a role of several groups: it begins, or ends, the group's turn to issue products (tile-take-turns).
inline constexpr llvm::StringLiteral kTakesTurn = "tile.takes_turn", kPassesTurn = "tile.passes_turn";

/// On a map (unit): a product with a factor for each row that is one nearly always; warps whose factors are all one
/// leave it out (tile-rescale-rarely).
inline constexpr llvm::StringLiteral kSkipsOnes = "tile.skips_ones";

/// On a mask in a loop (unit): blocks inside its interval are left as they are by a branch (tile-peel-masks).
inline constexpr llvm::StringLiteral kSkipsWhole = "tile.skips_whole";

/// On a pipeline (unit): its stages lie by groups of 8 rows, in a group panel after panel, so that one tensor copy of 8
/// rows fills all panels. Else a stage lies panel by panel.
inline constexpr llvm::StringLiteral kRowGroups = "tile.row_groups";

/// On a kernel: instructions of its range program, which producers run for every item.
inline constexpr llvm::StringLiteral kRangeLength = "tile.range_length";

/// On a kernel and on what it is lowered to: keys that scans of tables rule out are skipped, which plans go by.
inline constexpr llvm::StringLiteral kScans = "attn.scans";

/// Warps that share a transform in a kernel with roles.
inline constexpr int64_t kTransformWarps = 4;

/// Bytes of shared memory that `op` needs only while it runs.
int64_t getScratchBytes(Operation *op);
} // namespace mlir::tile

#endif
