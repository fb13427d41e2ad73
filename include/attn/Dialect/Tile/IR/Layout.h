//===- Layout.h - which thread holds which element -------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of register layouts: a thread's element e of a tile stands at
// (lane part + constant of e) in every dimension. Layouts are built by integer
// repetition: from the 16 x 8 fragment of the tensor cores, or from runs of 8
// columns.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_IR_LAYOUT_H
#define ATTN_DIALECT_TILE_IR_LAYOUT_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::tile {

/// The part of a coordinate that differs between threads:
/// ((lane / laneDiv) mod laneMod) * laneMul + ((warp / warpDiv) mod warpMod) * warpMul.
struct LanePart {
  int64_t laneDiv = 1, laneMod = 1, laneMul = 0;
  int64_t warpDiv = 1, warpMod = 1, warpMul = 0;
  bool isZero() const { return laneMul == 0 && warpMul == 0; }
  bool operator==(const LanePart &o) const {
    return laneDiv == o.laneDiv && laneMod == o.laneMod && laneMul == o.laneMul && warpDiv == o.warpDiv &&
           warpMod == o.warpMod && warpMul == o.warpMul;
  }
};

/// What one thread holds of a register tile.
class Fragment {
public:
  /// Fails (with a message through `emitError`, when given) if the layout does not fit the tile.
  static FailureOr<Fragment> get(RegType type, function_ref<InFlightDiagnostic()> emitError = {});

  /// Elements a thread holds, in register order.
  int64_t getNumElements() const { return offsets.size(); }
  /// Elements that share a 32-bit register (2 for 16-bit tiles of rank 2 and 3, and for 8-bit floats, which registers
  /// hold as f16), and registers a thread holds.
  int64_t getPack() const { return pack; }
  int64_t getNumRegisters() const { return getNumElements() / pack; }
  /// Constant part of element `e`, one number per dimension of the tile.
  ArrayRef<int64_t> getOffsets(int64_t e) const { return offsets[e]; }
  /// Thread part of dimension `d`.
  const LanePart &getLanePart(int64_t d) const { return lanes[d]; }
  /// Warps over which the tile is spread; more warps hold copies. Lanes of a warp likewise.
  int64_t getWarps() const { return warps; }
  int64_t getLanes() const { return lanesUsed; }
  /// Lane bits (1, 2, 4, 8, 16) that differ without moving along any dimension: lanes that share their elements.
  int64_t getSharedLaneMask() const;
  /// Index of the element with these constants, or -1.
  int64_t find(ArrayRef<int64_t> constants) const;

private:
  SmallVector<SmallVector<int64_t, 3>> offsets;
  SmallVector<LanePart, 3> lanes;
  int64_t pack = 1, warps = 1, lanesUsed = 32;
};

/// What divides `columns` and every place where `op` cuts or joins columns of register tiles.
int64_t getColumnsOfCut(Operation *op, int64_t columns);

/// The layout in which `warps` warps (of each group, when there is a leading dimension of groups) share `shape` out by
/// runs of at most `columns` columns.
BlockedAttr getBlockedLayout(MLIRContext *context, ArrayRef<int64_t> shape, int64_t columns, int64_t warps);

/// Layout at the end of a chain of slices, and the dimensions of it that are left.
Attribute getRootLayout(Attribute layout, SmallVectorImpl<int64_t> &kept);

/// Byte offset of (row, column) in a stage of shared memory: `panel` is the distance between panels, the 16-byte
/// chunk of a row is permuted by row (see #tile.swizzle). A stage without layout is row major. Rows that are no whole
/// panels take up whole ones.
struct SmemShape {
  int64_t rows, columns, elementBytes;
  int64_t panelColumns, rowBytes, panelBytes; // one panel when there is no swizzle
  int64_t panels;                             // the last one may be wider than what is left of the columns
  int64_t chunkMask, rowShift;                // chunk ^ ((row >> rowShift) & chunkMask)
  static FailureOr<SmemShape> get(SmemType type, function_ref<InFlightDiagnostic()> emitError = {});
};

} // namespace mlir::tile

#endif
