//===- Sm80Mma.cpp - dots by ldmatrix and mma.sync ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each 16 of the contraction: the A fragments of all row blocks of the warp
// are held, then B fragments come 16 columns at a time and meet all of them:
// a B fragment is read from shared memory once.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::sm80;

FailureOr<SharedTile> sm80::sharedTile(Emitter &e, Operation *op, const Smem &smem, Value group) {
  FailureOr<SmemShape> shape = SmemShape::get(smem.whole, [&] { return op->emitOpError(); });
  if (failed(shape))
    return failure();
  if (!smem.whole.getLayout()) {
    op->emitOpError() << "reads shared memory without a layout, run tile-assign-layouts first";
    return failure();
  }
  Value offset = e.smemOffset(smem);
  if (group)
    offset = e.add(offset, e.mul(group, e.c32(shape->panelBytes * shape->panels)));
  SharedTile tile;
  tile.base = e.smemPointer(offset, smem.base);
  tile.rows = shape->rows;
  tile.bytes = shape->rowBytes;
  tile.elementBytes = shape->elementBytes;
  return tile;
}

Value sm80::hiddenLane(Emitter &e) { return e.ptx("mov.b32 $0, $1;", "=r,r", e.group.lane, e.i32)[0]; }

namespace {
/// Sizes of a dot for one warp.
struct DotShape {
  int64_t groups = 1; // groups of the leading dimension that the warp works on
  int64_t rowBlocks;  // of 16 rows
  int64_t columns;    // blocks of 8
  int64_t steps;      // of 16 along the contraction
  int64_t groupWarps = 1, rowWarps = 1;
};
} // namespace

static FailureOr<DotShape> shapeOf(DotOp dot) {
  auto result = cast<RegType>(dot.getResult().getType());
  auto mma = dyn_cast_or_null<MmaAttr>(result.getLayout());
  if (!mma) {
    dot.emitOpError() << "has a result without an accumulator layout, run tile-assign-layouts first";
    return failure();
  }
  ArrayRef<int64_t> warps = mma.getWarps(), shape = result.getShape();
  DotShape s;
  if (result.getRank() == 3) {
    s.groupWarps = warps[0];
    s.groups = shape[0] / warps[0];
  }
  s.rowWarps = warps[warps.size() - 2];
  s.rowBlocks = shape[shape.size() - 2] / (16 * s.rowWarps);
  s.columns = shape.back() / 8;
  Type a = dot.getA().getType();
  s.steps = (isa<RegType>(a) ? cast<RegType>(a).getShape().back() : cast<SmemType>(a).getShape().back()) / 16;
  return s;
}

static Type elementOf(Value value) {
  if (auto reg = dyn_cast<RegType>(value.getType()))
    return reg.getElementType();
  return cast<SmemType>(value.getType()).getElementType();
}
static int64_t rankOf(Value value) {
  if (auto reg = dyn_cast<RegType>(value.getType()))
    return reg.getRank();
  return cast<SmemType>(value.getType()).getRank();
}

/// The warp's number along the groups (times its share, plus `inner`), or null when everything is one group.
static Value groupIndex(Emitter &e, const DotShape &s, int64_t rank, int64_t inner) {
  if (rank < 3 || s.groupWarps * s.groups == 1)
    return {};
  // Group g of the tile: warp g mod groupWarps, as in #tile.mma.
  Value warp = s.rowWarps > 1 ? Leaf(e.b, e.loc).div(e.group.warp, s.rowWarps) : e.group.warp;
  return e.add(warp, e.c32(inner * s.groupWarps));
}

static LogicalResult emitDot(Emitter &e, DotOp dot) {
  FailureOr<DotShape> shape = shapeOf(dot);
  if (failed(shape))
    return failure();
  Type element = elementOf(dot.getA());
  if ((!element.isBF16() && !element.isF16()) || elementOf(dot.getB()) != element)
    return dot.emitOpError()
           << "multiplies " << element << " by " << elementOf(dot.getB())
           << ", expected bf16 or f16 on both sides: load 8-bit operands into registers and extend them";
  if (!cast<RegType>(dot.getResult().getType()).getElementType().isF32())
    return dot.emitOpError() << "accumulates in " << elementOf(dot.getResult()) << ", expected f32";
  bool bf16 = element.isBF16(), transposed = dot.getTransposeB();
  Leaf leaf(e.b, e.loc);
  Value lane = hiddenLane(e);

  Regs acc;
  int64_t perGroup = shape->rowBlocks * shape->columns * 4;
  if (dot.getAcc())
    acc = e.reg(dot.getAcc());
  else
    acc.assign(shape->groups * perGroup, e.cf32(0.0f));

  for (int64_t g = 0; g < shape->groups; ++g) {
    MutableArrayRef<Value> mine = MutableArrayRef<Value>(acc).slice(g * perGroup, perGroup);
    // A: packed registers, or ldmatrix at the warp's rows.
    ArrayRef<Value> aRegs;
    SharedTile aTile{};
    Value aLane, bLane;
    if (isa<RegType>(dot.getA().getType())) {
      aRegs = e.reg(dot.getA());
      int64_t count = shape->rowBlocks * shape->steps * 4;
      if (rankOf(dot.getA()) == 3)
        aRegs = aRegs.drop_front(g * count);
      if (static_cast<int64_t>(aRegs.size()) < count)
        return dot.emitOpError() << "has an A operand of " << aRegs.size() << " registers, expected " << count;
    } else {
      FailureOr<SharedTile> tile =
          sharedTile(e, dot, e.smems[dot.getA()], groupIndex(e, *shape, rankOf(dot.getA()), g));
      if (failed(tile))
        return failure();
      aTile = *tile;
      if (shape->rowWarps > 1) {
        Value warp = leaf.rem(e.group.warp, shape->rowWarps);
        aTile.base = leaf.shift(aTile.base, e.mul(warp, e.c32(16 * aTile.bytes)));
      }
      aLane = leaf.laneOffset(lane, aTile.bytes, /*columnsFirst=*/false);
    }
    // B: packed registers, or ldmatrix.
    ArrayRef<Value> bRegs;
    SharedTile bTile{};
    if (isa<RegType>(dot.getB().getType())) {
      bRegs = e.reg(dot.getB());
      int64_t count = shape->steps * shape->columns * 2;
      if (rankOf(dot.getB()) == 3)
        bRegs = bRegs.drop_front(g * count);
      if (static_cast<int64_t>(bRegs.size()) < count)
        return dot.emitOpError() << "has a B operand of " << bRegs.size() << " registers, expected " << count;
    } else {
      FailureOr<SharedTile> tile =
          sharedTile(e, dot, e.smems[dot.getB()], groupIndex(e, *shape, rankOf(dot.getB()), g));
      if (failed(tile))
        return failure();
      bTile = *tile;
      bLane = leaf.laneOffset(lane, bTile.bytes, /*columnsFirst=*/transposed);
    }

    for (int64_t step = 0; step < shape->steps; ++step) {
      SmallVector<Regs> a(shape->rowBlocks);
      for (int64_t m = 0; m < shape->rowBlocks; ++m) {
        if (aLane) {
          a[m] = leaf.ldmatrix(aTile, aLane, 16 * shape->rowWarps * m, 2 * step, /*transposed=*/false);
        } else {
          ArrayRef<Value> part = aRegs.slice((m * shape->steps + step) * 4, 4);
          a[m].assign(part.begin(), part.end());
        }
      }
      for (int64_t n = 0; n < shape->columns; n += 2) {
        int64_t width = std::min<int64_t>(2, shape->columns - n);
        Regs b;
        if (!bLane) {
          ArrayRef<Value> part = bRegs.slice((step * shape->columns + n) * 2, 2 * width);
          b.assign(part.begin(), part.end());
        } else if (transposed) {
          b = leaf.ldmatrix(bTile, bLane, 8 * n, 2 * step, /*transposed=*/false, 2 * width);
        } else {
          b = leaf.ldmatrix(bTile, bLane, 16 * step, n, /*transposed=*/true, 2 * width);
        }
        for (int64_t m = 0; m < shape->rowBlocks; ++m)
          for (int64_t w = 0; w < width; ++w)
            leaf.mma(mine.slice((m * shape->columns + n + w) * 4, 4), a[m], ArrayRef<Value>(b).slice(2 * w, 2), bf16);
      }
    }
  }
  e.regs[dot.getResult()] = acc;
  return success();
}

//===----------------------------------------------------------------------===//
// Shared memory to registers
//===----------------------------------------------------------------------===//

/// ldmatrix takes 16-bit tiles in a fragment layout.
static bool isFragmentLoad(Emitter &e, LocalLoadOp load) {
  auto type = cast<RegType>(load.getResult().getType());
  const Smem &smem = e.smems[load.getSource()];
  return e.fragment(type).getPack() == 2 && !isEightBitFloat(type.getElementType()) && smem.whole.getLayout() &&
         smem.type.getElementType() == type.getElementType();
}

static LogicalResult loadFragments(Emitter &e, LocalLoadOp load, const Smem &smem) {
  auto type = cast<RegType>(load.getResult().getType());
  auto operand = dyn_cast<OperandAttr>(type.getLayout());
  auto mma = cast<MmaAttr>(operand ? operand.getParent() : type.getLayout());
  bool isB = operand && operand.getKind() != OperandKind::A,
       transposed = operand && operand.getKind() == OperandKind::BT;
  ArrayRef<int64_t> warps = mma.getWarps(), extents = type.getShape();
  DotShape s;
  s.rowWarps = warps[warps.size() - 2];
  if (type.getRank() == 3) {
    s.groupWarps = warps[0];
    s.groups = extents[0] / warps[0];
  }
  int64_t rows = extents[extents.size() - 2], columns = extents.back();
  Leaf leaf(e.b, e.loc);
  Regs result;
  for (int64_t g = 0; g < s.groups; ++g) {
    FailureOr<SharedTile> tile = sharedTile(e, load, smem, groupIndex(e, s, type.getRank(), g));
    if (failed(tile))
      return failure();
    Value lane = leaf.laneOffset(e.group.lane, tile->bytes, /*columnsFirst=*/transposed);
    if (!isB && s.rowWarps > 1)
      tile->base = leaf.shift(tile->base, e.mul(leaf.rem(e.group.warp, s.rowWarps), e.c32(16 * tile->bytes)));
    auto append = [&](int64_t row, int64_t chunk, bool trans, int64_t count) {
      llvm::append_range(result, leaf.ldmatrix(*tile, lane, row, chunk, trans, count));
    };
    // Register order as in Layout.cpp.
    if (!isB) {
      for (int64_t row = 0; row < rows; row += 16 * s.rowWarps)
        for (int64_t column = 0; column < columns; column += 16)
          append(row, column / 8, false, columns - column >= 16 ? 4 : 2);
    } else if (transposed) {
      for (int64_t k = 0; k < columns; k += 16)
        for (int64_t n = 0; n < rows; n += 16)
          append(n, k / 8, false, rows - n >= 16 ? 4 : 2);
    } else {
      for (int64_t k = 0; k < rows; k += 16)
        for (int64_t n = 0; n < columns; n += 16)
          append(k, n / 8, true, columns - n >= 16 ? 4 : 2);
    }
  }
  e.regs[load.getResult()] = result;
  return success();
}

//===----------------------------------------------------------------------===//
// Registers to shared memory
//===----------------------------------------------------------------------===//

/// A 16-bit tile in an accumulator layout goes back as pairs of columns; the CTA meets before and after.
static LogicalResult emitFragmentStore(Emitter &e, LocalStoreOp store) {
  RegType type = store.getValue().getType();
  const Smem &smem = e.smems[store.getDest()];
  auto mma = dyn_cast_or_null<MmaAttr>(type.getLayout());
  if (!mma || type.getRank() != 2 || mma.getWarps().size() != 2 || e.fragment(type).getPack() != 2 ||
      !smem.whole.getLayout() || smem.type.getElementType() != type.getElementType() ||
      smem.type.getShape() != type.getShape())
    return store.emitOpError() << "moves " << type << " to " << smem.type
                               << ", expected the same 16-bit tile of rank 2 in an accumulator layout and in swizzled "
                                  "shared memory";
  FailureOr<SharedTile> tile = sharedTile(e, store, smem, {});
  if (failed(tile))
    return failure();
  int64_t rowWarps = mma.getWarps()[0], rows = type.getShape()[0], columns = type.getShape()[1];
  int64_t perPanel = tile->bytes / 16;
  Leaf leaf(e.b, e.loc);
  Value lane = hiddenLane(e);
  if (rowWarps > 1)
    tile->base = leaf.shift(tile->base, e.mul(leaf.rem(e.group.warp, rowWarps), e.c32(16 * tile->bytes)));
  // Lane l holds columns 2 (l mod 4) and the next of row l / 4 of each 8 x 8 block (PTX ISA, mma.m16n8k16, C and D).
  Value row = leaf.div(lane, 4);
  Value factor = tile->bytes == 128 ? row : leaf.div(row, tile->bytes == 64 ? 2 : 4);
  Value laneOffset = e.add(e.add(leaf.mul(row, e.c32(tile->bytes)), leaf.mul(factor, e.c32(16))),
                           leaf.mul(leaf.rem(lane, 4), e.c32(4)));
  const Regs values = e.reg(store.getValue());
  leaf.barrier();
  int64_t at = 0;
  for (int64_t r = 0; r < rows; r += 16 * rowWarps)
    for (int64_t chunk = 0; chunk < columns / 8; ++chunk)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t within = chunk % perPanel, panel = chunk / perPanel;
        Value offset = within ? e.bitXor(laneOffset, e.c32(within * 16)) : laneOffset;
        Value pointer =
            leaf.shift(leaf.shift(tile->base, offset), panel * tile->rows * tile->bytes + (r + 8 * half) * tile->bytes);
        LLVM::StoreOp::create(e.b, e.loc, values[at++], pointer, 4);
      }
  Leaf after(e.b, e.loc);
  after.barrier();
  return success();
}

void tile::populateSm80Mma(Emitter &e) {
  e.on<DotOp>(emitDot);
  e.on<LocalStoreOp>(emitFragmentStore);
  e.on<LocalLoadOp>([](Emitter &e, LocalLoadOp load) -> LogicalResult {
    if (!isFragmentLoad(e, load))
      return load.emitOpError()
             << "reads " << load.getSource().getType() << " as " << load.getResult().getType()
             << ", expected a 16-bit tile with a layout, read as an accumulator or an operand; 8-bit tiles "
                "go through tile.transform";
    return loadFragments(e, load, e.smems[load.getSource()]);
  });
}
