//===- Sm80Widen.cpp - 8-bit floats to f16 on their way to the products ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix hands out pairs of 16 bits, so a tile of 8-bit floats is widened
// first, from its stage to a scratch tile of f16: 16 bytes a thread become two
// chunks of 16. Each element is converted once, by the warps that share the
// tile. Both formats are subsets of f16, so nothing is rounded.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::sm80;

/// Bytes 2 `half` and 2 `half` + 1 of `word` as a pair of f16.
static Value widenPair(Emitter &e, Value word, int64_t half, bool e5m2) {
  auto shl = [&](Value v, int64_t by) -> Value { return LLVM::ShlOp::create(e.b, e.loc, v, e.c32(by)); };
  if (e5m2) {
    // The upper byte of an f16 is an e5m2.
    Value low = half ? e.shr(word, 8) : shl(word, 8), high = half ? word : shl(word, 16);
    return e.bitOr(e.bitAnd(low, e.c32(0xff00)), e.bitAnd(high, e.c32(0xff000000)));
  }
  if (e.target.fp8Convert) {
    Value pair = LLVM::TruncOp::create(e.b, e.loc, e.i16, half ? e.shr(word, 16) : word);
    Type halves = VectorType::get({2}, e.b.getF16Type());
    return LLVM::BitcastOp::create(e.b, e.loc, e.i32, e.intrinsic("llvm.nvvm.e4m3x2.to.f16x2.rn", pair, halves));
  }
  // e4m3 s.eeee.mmm: as s.0eeee.mmm0000000 it is an f16 with a bias of 15 instead of 7, 256 times too small, denormal
  // numbers included. The magnitude 0x7f is NaN, not 480.
  Value bytes = half ? e.shr(word, 16) : word;
  Value lanes = e.bitOr(e.bitAnd(bytes, e.c32(0xff)), shl(e.bitAnd(bytes, e.c32(0xff00)), 8));
  Value magnitude = e.bitAnd(lanes, e.c32(0x007f007f)), sign = shl(e.bitAnd(lanes, e.c32(0x00800080)), 8);
  Type f16 = e.b.getF16Type(), halves = VectorType::get({2}, f16);
  Value small = LLVM::BitcastOp::create(e.b, e.loc, halves, shl(magnitude, 7));
  Value factor = LLVM::ConstantOp::create(
      e.b, e.loc, halves, DenseElementsAttr::get(cast<ShapedType>(halves), e.b.getFloatAttr(f16, 256.0).getValue()));
  Value right = LLVM::BitcastOp::create(e.b, e.loc, e.i32, LLVM::FMulOp::create(e.b, e.loc, small, factor));
  Value overflow = e.bitAnd(e.add(magnitude, e.c32(0x00010001)), e.c32(0x00800080));
  return e.bitOr(e.bitOr(right, sign), e.mul(overflow, e.c32(0xfc)));
}

/// Byte offset of 16-byte chunk `chunk` of row `row` (of a group) in a tile, as ldmatrix and the copies see it.
static Value chunkAddress(Emitter &e, const SmemShape &shape, Value row, Value chunk) {
  Leaf leaf(e.b, e.loc);
  int64_t perPanel = shape.rowBytes / 16;
  Value within = leaf.rem(chunk, perPanel), panel = leaf.div(chunk, perPanel);
  Value factor = e.bitAnd(e.shr(row, shape.rowShift), e.c32(shape.chunkMask));
  Value bytes = e.add(e.mul(panel, e.c32(shape.panelBytes)), e.mul(row, e.c32(shape.rowBytes)));
  return e.add(bytes, e.mul(e.bitXor(within, factor), e.c32(16)));
}

LogicalResult sm80::widenedLoad(Emitter &e, LocalLoadOp load) {
  auto type = cast<RegType>(load.getResult().getType());
  const Smem &from = e.smems[load.getSource()];
  auto scratch = load->getAttrOfType<IntegerAttr>(kSharedOffset);
  if (!scratch)
    return load.emitOpError() << "has no '" << kSharedOffset << "', run tile-allocate-shared first";
  ArrayRef<int64_t> dims = type.getShape();
  if (from.type != from.whole || !from.whole.getLayout() || dims.size() < 2 || dims.back() % 32)
    return load.emitOpError() << "reads " << from.type
                              << ", expected a whole stage with a layout and rows of a multiple of 32 bytes";
  // The same tile in f16.
  Type f16 = e.b.getF16Type();
  int64_t rowBytes = 2 * dims.back(), width = rowBytes % 128 == 0 ? 128 : 64;
  Smem to;
  to.type = to.whole = SmemType::get(dims, f16, SwizzleAttr::get(e.context, width, width / 2));
  to.base = scratch.getInt();
  SmemShape narrow = *SmemShape::get(from.whole), wide = *SmemShape::get(to.whole);

  Leaf leaf(e.b, e.loc);
  bool alone = isWarpPrivate(e, from.whole); // each warp widens its own group
  auto meet = [&]() { alone ? leaf.warpBarrier() : leaf.barrier(); };
  int64_t threads = alone ? 32 : 32 * e.group.warps, perRow = dims.back() / 16, perGroup = dims[dims.size() - 2];
  int64_t groups = dims.size() == 3 && !alone ? dims[0] : 1, chunks = groups * perGroup * perRow;
  auto groupBytes = [&](const SmemShape &s) { return s.panelBytes * (s.columns / s.panelColumns); };
  Value thread = e.ptx("mov.b32 $0, $1;", "=r,r", alone ? e.group.lane : e.tid, e.i32)[0];
  Value sourceStart = e.smemOffset(from), targetStart;
  if (alone) {
    sourceStart = e.add(sourceStart, e.mul(e.group.warp, e.c32(groupBytes(narrow))));
    targetStart = e.mul(e.group.warp, e.c32(groupBytes(wide)));
  }
  meet(); // the scratch tile may still be read
  Type word4 = VectorType::get({4}, e.i32);
  bool e5m2 = isa<Float8E5M2Type>(type.getElementType());
  for (int64_t first = 0; first < chunks; first += threads) {
    Value number = e.add(thread, e.c32(first));
    if (first + threads > chunks)
      number = LLVM::UMinOp::create(e.b, e.loc, number, e.c32(chunks - 1)); // repeats the last one
    Value row = leaf.div(number, perRow), chunk = leaf.rem(number, perRow), source = sourceStart, target = targetStart;
    if (groups > 1) {
      Value group = leaf.div(row, perGroup);
      row = leaf.rem(row, perGroup);
      source = e.add(source, e.mul(group, e.c32(groupBytes(narrow))));
      target = e.mul(group, e.c32(groupBytes(wide)));
    }
    source = e.add(source, chunkAddress(e, narrow, row, chunk));
    Value bytes = LLVM::LoadOp::create(e.b, e.loc, word4, e.smemPointer(source, from.base), 16);
    Value twice = e.mul(chunk, e.c32(2));
    for (int64_t part = 0; part < 2; ++part) {
      Value out = LLVM::PoisonOp::create(e.b, e.loc, word4);
      for (int64_t i = 0; i < 4; ++i) {
        Value word = LLVM::ExtractElementOp::create(e.b, e.loc, bytes, e.c32(2 * part + i / 2));
        out = LLVM::InsertElementOp::create(e.b, e.loc, out, widenPair(e, word, i % 2, e5m2), e.c32(i));
      }
      Value at = chunkAddress(e, wide, row, e.add(twice, e.c32(part)));
      LLVM::StoreOp::create(e.b, e.loc, out, e.smemPointer(target ? e.add(target, at) : at, to.base), 16);
    }
  }
  meet();
  return loadFragments(e, load, to);
}
