//===- Sm80FragmentsTest.cpp - ldmatrix and mma.sync run on the CPU ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp in integers: ldmatrix and mma.m16n8k16 as the PTX ISA describes them,
// fed with the addresses of Sm80Fragments.h. A wrong lane, chunk, swizzle or
// register order gives a wrong product.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Conversion/TileToGPU/Sm80Fragments.h"
#include "gtest/gtest.h"
#include <array>
#include <vector>

using namespace mlir::tile::sm80;

namespace {

/// 16-bit elements of a tile in swizzled shared memory.
struct Shared {
  int64_t rows, columns, bytes;
  std::vector<int> memory;
  Shared(int64_t rows, int64_t columns, int64_t bytes)
      : rows(rows), columns(columns), bytes(bytes), memory(rows * columns, -1) {}
  int &at(int64_t row, int64_t column) { return memory[chunkOffset(bytes, rows, row, column / 8) / 2 + column % 8]; }
};

/// One 32-bit register of each lane: two elements.
using Register = std::array<std::array<int, 2>, 32>;

/// ldmatrix.x4: lane i of each quarter gives the row address of matrix `quarter`; element (row, column) of a matrix
/// goes to lane 4 * row + column / 2, transposed to lane 4 * column + row / 2.
std::array<Register, 4> ldmatrix(Shared &tile, int64_t row0, int64_t chunk0, bool columnsFirst, bool transposed) {
  std::array<Register, 4> result;
  for (int matrix = 0; matrix < 4; ++matrix)
    for (int r = 0; r < 8; ++r) {
      int lane = 8 * matrix + r;
      LaneAddress at = columnsFirst ? laneColumnsFirst(lane) : laneRowsFirst(lane);
      // What the emitted code computes: a lane offset with the swizzle of the block at (0, 0), the chunk xored in.
      int64_t laneOffset = at.row * tile.bytes + (at.chunk ^ swizzleFactor(tile.bytes, at.row)) * 16;
      int64_t perPanel = tile.bytes / 16, panel = chunk0 / perPanel, within = chunk0 % perPanel;
      int64_t address = (laneOffset ^ within * 16) + panel * tile.rows * tile.bytes + row0 * tile.bytes;
      EXPECT_EQ(address, chunkOffset(tile.bytes, tile.rows, row0 + at.row, chunk0 + at.chunk));
      for (int c = 0; c < 8; ++c) {
        int value = tile.memory[address / 2 + c];
        if (transposed)
          result[matrix][4 * c + r / 2][r % 2] = value;
        else
          result[matrix][4 * r + c / 2][c % 2] = value;
      }
    }
  return result;
}

/// D[16 x 8] += A[16 x 16] B[16 x 8]; fragments of the PTX ISA, mma.m16n8k16.
void mma(std::array<std::array<int, 4>, 32> &d, const std::array<Register, 4> &a, const Register &b0,
         const Register &b1) {
  int A[16][16], B[16][8];
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 8; ++i) {
      int row = lane / 4 + ((i / 2) % 2 ? 8 : 0), column = lane % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0);
      A[row][column] = a[i / 2][lane][i % 2];
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      B[lane % 4 * 2 + i % 2 + (i >= 2 ? 8 : 0)][lane / 4] = (i < 2 ? b0 : b1)[lane][i % 2];
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < 16; ++k)
        d[lane][i] += A[lane / 4 + i / 2 * 8][k] * B[k][lane % 4 * 2 + i % 2];
}

int element(int64_t seed, int64_t row, int64_t column) { return (row * 131 + column * 71 + seed * 17) % 13 - 6; }

} // namespace

/// Q K^T: A from [m, k], B from [n, k].
TEST(Sm80Fragments, Transposed) {
  for (auto [depth, bytes] :
       std::vector<std::pair<int64_t, int64_t>>{{64, 128}, {128, 128}, {96, 64}, {48, 32}, {80, 32}, {16, 32}}) {
    Shared q(32, depth, bytes), k(48, depth, bytes);
    for (int64_t r = 0; r < 48; ++r)
      for (int64_t c = 0; c < depth; ++c) {
        k.at(r, c) = element(2, r, c);
        if (r < 32)
          q.at(r, c) = element(1, r, c);
      }
    for (int64_t m = 0; m < 32; m += 16)
      for (int64_t n = 0; n < 48; n += 16) {
        std::array<std::array<int, 4>, 32> d[2] = {};
        for (int64_t step = 0; step < depth; step += 16) {
          auto a = ldmatrix(q, m, step / 8, false, false);
          auto b = ldmatrix(k, n, step / 8, true, false);
          mma(d[0], a, b[0], b[1]);
          mma(d[1], a, b[2], b[3]);
        }
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int64_t i = 0; i < 8; ++i) {
            int64_t row = m + lane / 4 + i / 2 % 2 * 8, column = n + i / 4 * 8 + lane % 4 * 2 + i % 2;
            int sum = 0;
            for (int64_t c = 0; c < depth; ++c)
              sum += element(1, row, c) * element(2, column, c);
            EXPECT_EQ(d[i / 4][lane][i % 4], sum) << depth << " " << row << " " << column;
          }
      }
  }
}

/// P V: A from the accumulator's registers, B from [k, n] by ldmatrix.trans.
TEST(Sm80Fragments, RegisterA) {
  int64_t keys = 32, depth = 128;
  Shared v(keys, depth, 128);
  for (int64_t r = 0; r < keys; ++r)
    for (int64_t c = 0; c < depth; ++c)
      v.at(r, c) = element(3, r, c);
  for (int64_t n = 0; n < depth; n += 16) {
    std::array<std::array<int, 4>, 32> d[2] = {};
    for (int64_t step = 0; step < keys; step += 16) {
      // Register i of the accumulator tile [16, keys]: 8 columns at a time, 4 registers each; packed in pairs.
      std::array<Register, 4> a;
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < 8; ++i)
          a[i / 2][lane][i % 2] = element(4, lane / 4 + i / 2 % 2 * 8, step + i / 4 * 8 + lane % 4 * 2 + i % 2);
      auto b = ldmatrix(v, step, n / 8, false, true);
      mma(d[0], a, b[0], b[1]);
      mma(d[1], a, b[2], b[3]);
    }
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < 8; ++i) {
        int64_t row = lane / 4 + i / 2 % 2 * 8, column = n + i / 4 * 8 + lane % 4 * 2 + i % 2;
        int sum = 0;
        for (int64_t c = 0; c < keys; ++c)
          sum += element(4, row, c) * element(3, c, column);
        EXPECT_EQ(d[i / 4][lane][i % 4], sum) << row << " " << column;
      }
  }
}

/// Eight rows of one chunk column never meet in a bank: ldmatrix runs without conflicts.
TEST(Sm80Fragments, Banks) {
  for (int64_t bytes : {128, 64, 32})
    for (int64_t chunk = 0; chunk < 8; ++chunk) {
      std::array<int, 8> used = {};
      for (int64_t row = 0; row < 8; ++row)
        ++used[chunkOffset(bytes, 64, row, chunk) / 16 % 8];
      for (int count : used)
        EXPECT_EQ(count, 1) << bytes << " " << chunk;
    }
}
