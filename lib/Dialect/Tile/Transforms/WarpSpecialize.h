//===- WarpSpecialize.h - shared by the parts of tile-warp-specialize -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_WARPSPECIALIZE_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_WARPSPECIALIZE_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tile::specialize {

/// The loads of one view go through one pipeline, in program order.
struct Ring {
  SmemType type;
  bool rows = false;    // of the query side: split between the consumers
  bool looped = false;  // loaded in a loop, so worth `stages`
  int64_t producer = 0; // number of the producer that loads it
  bool gather = false;  // by its threads, row by row; else by tensor copies
  bool hooked = false;  // its stages are transformed before they are read
  SmemType made;        // what they are then: `type`, or wider elements in stages of their own
  Value pipeline;
  Value ready; // what the consumers wait for: `pipeline`; when a role transforms keys, the one that is chained to it or
               // has what it makes
};

struct Plan {
  KernelOp kernel;
  ForEachOp items;
  int64_t groups = 1, warps = 4; // consumer groups, warps of each
  bool queryInRegisters = false;
  llvm::MapVector<Value, Ring> rings; // by view

  Ring &getRing(LoadOp load) { return rings.find(load.getView())->second; }
};

/// On a loop whose steps load and see whole blocks: no masked keys, no rows behind the end of a view (tile-peel-masks).
inline constexpr llvm::StringLiteral kWholeBlocks = "tile.whole_blocks";
/// On a loop that begins at the lower end of its masks' interval or behind it (tile-reverse-keys).
inline constexpr llvm::StringLiteral kFromInterval = "tile.from_interval";
/// On an op that looks up entries of tables for an item, one after the other or by a warp: its number in the item. Not
/// for consumers, whose products would wait (tile-stream-items).
inline constexpr llvm::StringLiteral kLookup = "tile.lookup";
/// On a loop whose bounds hold at least one step (tile-reverse-keys).
inline constexpr llvm::StringLiteral kAtLeastOnce = "tile.at_least_once";

/// True for a load that the producer takes over.
inline bool isShared(LoadOp load) { return isa<SmemType>(load.getResult().getType()); }
/// True for a register tile whose first dimension is that of the query rows.
bool isRowTile(RegType type);

/// The program of a producer: acquires, loads and what they are computed from.
LogicalResult emitProducer(Plan &plan, OpBuilder builder, int64_t producer);
/// The program of the role that transforms the stages of keys in place.
LogicalResult emitTransformer(Plan &plan, OpBuilder builder);
/// The program of one consumer group whose first row is `row0`.
LogicalResult emitConsumer(Plan &plan, OpBuilder builder, Value row0);

} // namespace mlir::tile::specialize

#endif
