//===- Sm80Fragments.h - who holds what in ldmatrix and mma.sync -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Index maps as plain integer functions, so that a unit test can run them
// against the PTX ISA's description of ldmatrix and mma.m16n8k16.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOGPU_SM80FRAGMENTS_H
#define ATTN_CONVERSION_TILETOGPU_SM80FRAGMENTS_H

#include <cstdint>

namespace mlir::tile::sm80 {

/// Factor of the swizzle: 16-byte chunk c of row r stands at c xor swizzleFactor(bytes, r).
inline int64_t swizzleFactor(int64_t bytes, int64_t row) {
  return bytes == 128 ? row % 8 : bytes == 64 ? row / 2 % 4 : row / 4 % 2;
}

/// Byte offset of 16-byte chunk `chunk` of row `row` in a tile of `rows` rows stored in panels of `bytes` bytes a row.
inline int64_t chunkOffset(int64_t bytes, int64_t rows, int64_t row, int64_t chunk) {
  int64_t perPanel = bytes / 16;
  return chunk / perPanel * rows * bytes + row * bytes + (chunk % perPanel ^ swizzleFactor(bytes, row)) * 16;
}

/// Row and 16-byte chunk, within the 16 x 16 block that one ldmatrix.x4 fetches, whose address lane `lane` gives.
struct LaneAddress {
  int64_t row, chunk;
};

/// A operand from [m, k] (not transposed): registers (m, k), (m + 8, k), (m, k + 8), (m + 8, k + 8).
/// B operand from [k, n] (transposed): registers b0, b1 of columns n .. n + 7, then of n + 8 .. n + 15.
inline LaneAddress laneRowsFirst(int64_t lane) { return {lane % 16, lane / 16}; }

/// B operand from [n, k] (not transposed): registers b0, b1 of columns n .. n + 7, then of n + 8 .. n + 15.
inline LaneAddress laneColumnsFirst(int64_t lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }

} // namespace mlir::tile::sm80

#endif
