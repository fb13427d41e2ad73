//===- Sm80Leaf.h - instructions of the mma.sync generation ----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix, mma.sync and cp.async on values of the llvm and nvvm dialects. No
// tile op is known here; the lowering of dots and copies is built from these.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOGPU_SM80LEAF_H
#define ATTN_CONVERSION_TILETOGPU_SM80LEAF_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::tile::sm80 {

/// A tile in shared memory: `rows` rows (all leading dimensions together) in panels of `bytes` bytes a row.
struct SharedTile {
  Value base;    // ptr<3> of row 0, column 0 of the part that is looked at (row a multiple of 8)
  int64_t rows;  // of the whole tile: the distance of two panels is rows * bytes
  int64_t bytes; // 128, 64, 32
  int64_t elementBytes;
  int64_t chunk0 = 0; // first 16-byte chunk of the part
};

/// Builds at one place, with constants by value.
class Leaf {
public:
  Leaf(OpBuilder &builder, Location loc) : b(builder), loc(loc) {}

  Value i32(int64_t value);
  Value add(Value x, Value y) { return LLVM::AddOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return LLVM::MulOp::create(b, loc, x, y); }
  Value rem(Value x, int64_t y);
  Value div(Value x, int64_t y);
  Value shift(Value ptr, Value bytes); // ptr + bytes
  Value shift(Value ptr, int64_t bytes);
  Value packPair(Value low, Value high); // two 16-bit floats in an i32
  std::pair<Value, Value> unpackPair(Value pair, Type element);

  /// Byte offset, within a tile's rows 0..15, of what `lane` addresses for ldmatrix; `columnsFirst` as in
  /// Sm80Fragments.h. Chunk bits above bit 0 are xored in later (ldmatrix below).
  Value laneOffset(Value lane, int64_t bytes, bool columnsFirst);
  /// ldmatrix of the 16 x 16 block at (row, chunk): 2 or 4 registers. `row` is a multiple of 8, `chunk` even.
  SmallVector<Value> ldmatrix(const SharedTile &tile, Value laneOffset, int64_t row, int64_t chunk, bool transposed,
                              int64_t count = 4);
  /// acc += a b for one m16n8k16; `bf16` else f16.
  void mma(MutableArrayRef<Value> acc, ArrayRef<Value> a, ArrayRef<Value> b, bool bf16);

  /// `size` (16 or 8) bytes from global to shared memory, the last size - bytes of them zero.
  void cpAsync(Value shared, Value global, Value bytes, int64_t size);
  void cpAsyncCommit() { NVVM::CpAsyncCommitGroupOp::create(b, loc); }
  void cpAsyncWait(int64_t inFlight) { NVVM::CpAsyncWaitGroupOp::create(b, loc, static_cast<uint32_t>(inFlight)); }
  void barrier() { NVVM::BarrierOp::create(b, loc); }
  void warpBarrier() { NVVM::SyncWarpOp::create(b, loc, i32(-1)); }
  /// `value` of lane number `lane` among the `width` (a power of two) neighbouring lanes that the caller is one of.
  Value shuffle(Value value, int64_t lane, int64_t width);
  Value shuffle(Value value, Value lane, int64_t width);

  OpBuilder &b;
  Location loc;
};

} // namespace mlir::tile::sm80

#endif
