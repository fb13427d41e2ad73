//===- Layout.cpp - which thread holds which element ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Layout.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tile;

Attribute tile::getRootLayout(Attribute layout, SmallVectorImpl<int64_t> &kept) {
  SmallVector<int64_t> dropped; // innermost slice first
  while (auto slice = dyn_cast_or_null<SliceAttr>(layout)) {
    dropped.push_back(slice.getDim());
    layout = slice.getParent();
  }
  Attribute root = layout;
  if (auto operand = dyn_cast_or_null<OperandAttr>(root))
    root = operand.getParent();
  int64_t rank = 2;
  if (auto mma = dyn_cast_or_null<MmaAttr>(root))
    rank = mma.getWarps().size();
  if (auto blocked = dyn_cast_or_null<BlockedAttr>(root))
    rank = blocked.getWarps().size();
  kept.clear();
  for (int64_t d = 0; d < rank; ++d)
    kept.push_back(d);
  for (int64_t dim : llvm::reverse(dropped))
    if (dim >= 0 && dim < static_cast<int64_t>(kept.size()))
      kept.erase(kept.begin() + dim);
  return layout;
}

int64_t tile::getColumnsOfCut(Operation *op, int64_t columns) {
  if (auto slice = dyn_cast<SliceOp>(op)) {
    columns = std::gcd(columns, cast<RegType>(slice.getResult().getType()).getShape().back());
    return std::gcd(columns, slice.getOffsets().back());
  }
  if (auto concat = dyn_cast<ConcatOp>(op))
    for (Value input : concat.getInputs())
      columns = std::gcd(columns, cast<RegType>(input.getType()).getShape().back());
  return columns;
}

BlockedAttr tile::getBlockedLayout(MLIRContext *context, ArrayRef<int64_t> shape, int64_t columns, int64_t warps) {
  // A warp reads at most one row at once.
  int64_t lanes = std::max<int64_t>(1, columns / 8), most = lanes;
  for (int64_t parts = 2; most > 32; ++parts)
    if (lanes % parts == 0)
      most = lanes / parts;
  lanes = most;
  int64_t extent = shape[shape.size() - 2];
  int64_t rows = std::min<int64_t>(llvm::bit_floor(static_cast<uint64_t>(32 / lanes)), extent & -extent);
  while (warps > 1 && extent % (rows * warps))
    --warps;
  SmallVector<int64_t, 3> grid;
  if (shape.size() == 3)
    grid.push_back(shape[0]);
  grid.append({warps, 1});
  return BlockedAttr::get(context, grid, 8 * lanes, rows);
}

FailureOr<Fragment> Fragment::get(RegType type, function_ref<InFlightDiagnostic()> emitError) {
  auto fail = [&](const Twine &why) -> LogicalResult {
    if (emitError)
      emitError() << "tile " << type << " " << why;
    return failure();
  };
  if (!type.getLayout())
    return fail("has no layout, run tile-assign-layouts first");
  SmallVector<int64_t> kept;
  Attribute layout = getRootLayout(type.getLayout(), kept);
  auto operand = dyn_cast<OperandAttr>(layout);
  auto mma = dyn_cast<MmaAttr>(operand ? operand.getParent() : layout);
  auto blocked = dyn_cast<BlockedAttr>(layout);
  ArrayRef<int64_t> grid = mma ? mma.getWarps() : blocked ? blocked.getWarps() : ArrayRef<int64_t>();
  if (grid.size() < 2 || grid.size() > 3)
    return fail("has a layout that is not built from #tile.mma or #tile.blocked of two or three dimensions");
  int64_t runs = blocked ? blocked.getColumns() / 8 : 0, runRows = blocked ? blocked.getRows() : 0;
  if (blocked && (blocked.getColumns() % 8 || runs < 1 || runs > 32 || runRows < 1 || runRows > 32 / runs))
    return fail("has runs of " + Twine(runRows) + " x " + Twine(blocked.getColumns()) +
                " elements in a warp, expected columns in 8s and at most 32 runs of 8");
  int64_t full = grid.size(), rowWarps = grid[full - 2], groupWarps = full == 3 ? grid[0] : 1;
  if (rowWarps < 1 || groupWarps < 1 || grid[full - 1] != 1)
    return fail("has a layout whose last number of warps is not 1");
  // An operand tile may lack the batch dimension of its product: then it is shared by the groups.
  if (operand && type.getRank() == full - 1 && kept.size() == static_cast<size_t>(full))
    kept.erase(kept.begin());
  if (static_cast<int64_t>(kept.size()) != type.getRank())
    return fail("has a layout of rank " + Twine(kept.size()));

  // Extent of every full dimension; dropped ones count once.
  bool isB = operand && operand.getKind() != OperandKind::A,
       transposed = operand && operand.getKind() == OperandKind::BT;
  SmallVector<int64_t> unit(full, groupWarps), extent(full);
  int64_t rowUnit = (blocked ? runRows : 16) * rowWarps, columnUnit = blocked ? blocked.getColumns() : 8;
  unit[full - 2] = isB ? 8 : rowUnit;
  unit[full - 1] = columnUnit; // parts of operands may end within a step of 16 of the contraction; products may not
  for (int64_t d = 0; d < full; ++d)
    extent[d] = unit[d];
  for (auto [i, d] : llvm::enumerate(kept)) {
    extent[d] = type.getShape()[i];
    if (extent[d] % unit[d])
      return fail("has extent " + Twine(extent[d]) + " in dimension " + Twine(i) + ", expected a multiple of " +
                  Twine(unit[d]));
  }

  Fragment result;
  result.warps = rowWarps * groupWarps;
  SmallVector<LanePart, 3> lanes(full);
  LanePart quad{4, 8, 1, 1, 1, 0}, pair{1, 4, 2, 1, 1, 0};
  if (full == 3)
    lanes[0] = {1, 1, 0, rowWarps, groupWarps, groupWarps > 1 ? 1 : 0};
  if (blocked) {
    lanes[full - 2] = {runs, runRows, runRows > 1 ? 1 : 0, 1, rowWarps, rowWarps > 1 ? runRows : 0};
    lanes[full - 1] = {1, runs, runs > 1 ? 8 : 0, 1, 1, 0};
    result.lanesUsed = runs * runRows;
  } else if (isB) {
    lanes[full - 2] = transposed ? quad : pair;
    lanes[full - 1] = transposed ? pair : quad;
  } else {
    lanes[full - 2] = quad;
    lanes[full - 2].warpMod = rowWarps;
    lanes[full - 2].warpMul = rowWarps > 1 ? 16 : 0;
    lanes[full - 1] = pair;
  }
  for (int64_t d : kept)
    result.lanes.push_back(lanes[d]);

  // All constants of the full tile in register order; slices keep the first of equal ones.
  llvm::DenseSet<SmallVector<int64_t, 3>> seen;
  auto add = [&](int64_t g, int64_t row, int64_t column) {
    SmallVector<int64_t, 3> all, some;
    if (full == 3)
      all.push_back(g);
    all.push_back(row);
    all.push_back(column);
    for (int64_t d : kept)
      some.push_back(all[d]);
    if (seen.insert(some).second)
      result.offsets.push_back(some);
  };
  int64_t groups = full == 3 ? extent[0] : 1;
  for (int64_t g = 0; g < groups; g += groupWarps) {
    if (isB) {
      int64_t ks = transposed ? extent[full - 1] : extent[full - 2],
              ns = transposed ? extent[full - 2] : extent[full - 1];
      for (int64_t k = 0; k < ks; k += 16)
        for (int64_t n = 0; n < ns; n += 8)
          for (int64_t i = 0; i < 4; ++i) {
            int64_t kk = k + 8 * (i / 2) + i % 2;
            if (kk >= ks)
              continue;
            transposed ? add(g, n, kk) : add(g, kk, n);
          }
      continue;
    }
    for (int64_t row = 0; row < extent[full - 2]; row += rowUnit)
      for (int64_t column = 0; column < extent[full - 1]; column += columnUnit)
        for (int64_t i = 0, n = blocked ? 8 : 4; i < n; ++i)
          blocked ? add(g, row, column + i) : add(g, row + 8 * (i / 2), column + i % 2);
  }

  // Neighbours along the contraction (or column) pair up in a register.
  bool sliced = isa<SliceAttr>(type.getLayout());
  Type element = type.getElementType();
  unsigned bits = element.isIndex() ? 32 : element.getIntOrFloatBitWidth();
  if (isa<Float8E4M3FNType, Float8E5M2Type>(element))
    bits = 16; // registers hold them as f16, which is exact
  if (bits == 8 && !sliced)
    return fail("has 8-bit integers, which have no register layout; extend them to 32 bits when they are loaded");
  result.pack = bits == 16 && !sliced ? 2 : 1;
  return result;
}

int64_t Fragment::getSharedLaneMask() const {
  int64_t mask = 0;
  for (int64_t bit = 1; bit < 32; bit *= 2) {
    bool moves = llvm::any_of(
        lanes, [&](const LanePart &part) { return part.laneMul && (bit / part.laneDiv) % part.laneMod != 0; });
    if (!moves)
      mask |= bit;
  }
  return mask;
}

int64_t Fragment::find(ArrayRef<int64_t> constants) const {
  for (auto [i, offset] : llvm::enumerate(offsets))
    if (ArrayRef<int64_t>(offset) == constants)
      return i;
  return -1;
}

FailureOr<SmemShape> SmemShape::get(SmemType type, function_ref<InFlightDiagnostic()> emitError) {
  SmemShape s;
  ArrayRef<int64_t> shape = type.getShape();
  s.columns = shape.back();
  s.rows = shape.size() > 1 ? shape[shape.size() - 2] : 1;
  s.elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  s.panelColumns = s.columns;
  s.chunkMask = s.rowShift = 0;
  if (auto swizzle = dyn_cast_or_null<SwizzleAttr>(type.getLayout())) {
    int64_t bytes = swizzle.getBytes();
    if ((bytes != 128 && bytes != 64 && bytes != 32) || swizzle.getPanel() * s.elementBytes != bytes) {
      if (emitError)
        emitError() << "shared memory " << type << " does not divide into panels of " << bytes << " bytes";
      return failure();
    }
    s.panelColumns = swizzle.getPanel();
    s.chunkMask = bytes / 16 - 1;
    s.rowShift = bytes == 128 ? 0 : bytes == 64 ? 1 : 2;
  }
  s.panels = llvm::divideCeil(s.columns, s.panelColumns);
  s.rowBytes = s.panelColumns * s.elementBytes;
  s.panelBytes = s.rows * s.rowBytes;
  return s;
}
