//===- Gather.h - loads that threads do row by row -------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// At level S a tile.load_async is a tensor copy, which one warp issues, and rows
// past the end of its view may hold anything. With `tile.gather` the threads of
// the role copy row by row, wherever the rows lie, and rows past the end are
// zero. All loads of a pipeline are of one kind.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_IR_GATHER_H
#define ATTN_DIALECT_TILE_IR_GATHER_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::tile {

/// On a tile.load_async of a role.
inline constexpr llvm::StringLiteral kGather = "tile.gather";

inline bool isGather(LoadAsyncOp load) { return load->hasAttr(kGather); }

} // namespace mlir::tile

#endif
