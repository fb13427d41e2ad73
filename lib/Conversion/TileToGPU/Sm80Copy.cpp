//===- Sm80Copy.cpp - global rows to shared memory by cp.async ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp copies `lanesPerRow` chunks of 16 bytes of several rows with one
// instruction. Rows of a paged view cost one table read each: lane l looks up
// row l of the warp's block, the copies get the address by shuffle.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"
#include "Sm80Fragments.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::sm80;

/// Address of `row`, or of the buffer when the row does not exist: no page is looked up then.
static FailureOr<Value> guardedRowAddress(Emitter &e, const View &view, Index row) {
  Value exists = rowExists(e, view, row);
  if (!exists)
    return rowAddress(e, view, row);
  Value fallback = e.pointer(view.source);
  Block *lookup = e.newBlock(), *join = e.newBlock({e.global});
  LLVM::CondBrOp::create(e.b, e.loc, exists, lookup, ValueRange{}, join, ValueRange{fallback});
  e.enter(lookup);
  FailureOr<Value> found = rowAddress(e, view, row);
  if (failed(found))
    return failure();
  LLVM::BrOp::create(e.b, e.loc, ValueRange{*found}, join);
  e.enter(join);
  return Value(join->getArgument(0));
}

LogicalResult sm80::copyRows(Emitter &e, Operation *op, const View &view, Index row0, const Smem &dest) {
  FailureOr<SmemShape> shape = SmemShape::get(dest.whole, [&] { return op->emitOpError(); });
  if (failed(shape))
    return failure();
  ViewOp viewOp = view.op;
  ViewType type = viewOp.getResult().getType();
  ArrayRef<int64_t> dims = dest.type.getShape();
  int64_t elementBytes = shape->elementBytes;
  if (type.getRank() != 2 || dest.type.getRank() < 2)
    return op->emitOpError() << "copies single elements to shared memory, expected rows";
  int64_t viewBytes = type.getShape()[1] * elementBytes, tileBytes = dims.back() * elementBytes;
  if (viewBytes % 16 || tileBytes % 16)
    return op->emitOpError() << "copies rows of " << viewBytes << " bytes, expected a multiple of 16";
  if (!dest.whole.getLayout())
    return op->emitOpError() << "copies to shared memory without a layout, run tile-assign-layouts first";

  int64_t rows = 1;
  for (int64_t extent : dims.drop_back())
    rows *= extent;
  int64_t perGroup = dims[dims.size() - 2];
  int64_t groupBytes = shape->panelBytes * (shape->columns / shape->panelColumns);
  int64_t chunks = tileBytes / 16, perPanel = shape->rowBytes / 16;
  int64_t lanesPerRow = std::min<int64_t>(32, llvm::PowerOf2Ceil(chunks)), rowsAtOnce = 32 / lanesPerRow;
  int64_t columnSteps = llvm::divideCeil(chunks, lanesPerRow);
  int64_t perWarp = llvm::alignTo(llvm::divideCeil(rows, e.group.warps), rowsAtOnce);
  // The warp's rows are whole swizzle periods of one group: everything but a lane part is constant.
  bool regular = perWarp % 8 == 0 && perGroup % perWarp == 0 && perWarp * e.group.warps == rows;

  Leaf leaf(e.b, e.loc);
  Value warpRow = e.mul(e.group.warp, e.c32(perWarp));
  Value laneRow = e.shr(e.group.lane, llvm::Log2_64(lanesPerRow));
  Value laneChunk = e.bitAnd(e.group.lane, e.c32(lanesPerRow - 1));

  // More warps than rows: the surplus lanes repeat the last row, data and all.
  Value lastRow = perWarp * e.group.warps == rows ? Value() : e.c32(rows - 1);
  auto localRow = [&](Value inWarp, int64_t t) -> Index { // row of the tile
    Value row = e.add(warpRow, inWarp);
    if (!lastRow)
      return Index{row, t};
    return Index{LLVM::SMinOp::create(e.b, e.loc, e.add(row, e.c32(t)), lastRow), 0};
  };

  // Row addresses: by arithmetic, or looked up once by one lane.
  SmallVector<std::pair<Value, Value>> looked; // low and high half of the address of the warp's row 32 s + lane
  if (type.isPaged())
    for (int64_t s = 0; s < perWarp; s += 32) {
      // Lanes past the warp's block would look up rows that nobody asks for.
      Value lane = perWarp - s < 32 ? leaf.rem(e.group.lane, perWarp - s) : e.group.lane;
      FailureOr<Value> address = guardedRowAddress(e, view, e.addIndex(row0, localRow(lane, s)));
      if (failed(address))
        return failure();
      Value bits = LLVM::PtrToIntOp::create(e.b, e.loc, e.i64, *address);
      Value low = LLVM::TruncOp::create(e.b, e.loc, e.i32, bits);
      Value high = LLVM::TruncOp::create(e.b, e.loc, e.i32, LLVM::LShrOp::create(e.b, e.loc, bits, e.c64(32)));
      looked.push_back({low, high});
    }
  auto addressOf = [&](int64_t t) -> FailureOr<Value> {
    if (!type.isPaged())
      return rowAddress(e, view, e.addIndex(row0, localRow(laneRow, t)));
    auto [low, high] = looked[t / 32];
    Value source = e.add(laneRow, e.c32(t % 32));
    Value lowHere = leaf.shuffle(low, source), highHere = leaf.shuffle(high, source);
    Value wide = LLVM::ShlOp::create(e.b, e.loc, LLVM::ZExtOp::create(e.b, e.loc, e.i64, highHere), e.c64(32));
    wide = LLVM::OrOp::create(e.b, e.loc, wide, LLVM::ZExtOp::create(e.b, e.loc, e.i64, lowHere));
    return Value(LLVM::IntToPtrOp::create(e.b, e.loc, e.global, wide));
  };

  // Row t of this lane exists when t < left.
  Value left;
  if (view.rows) {
    left = e.sub(e.narrow(*view.rows), e.narrow(row0));
    if (!lastRow)
      left = e.sub(left, e.add(warpRow, laneRow));
  }

  Value offset = e.smemOffset(dest);
  for (int64_t c = 0; c < columnSteps; ++c) {
    // Lanes beyond the row repeat its last chunk.
    Value chunk = c ? e.add(laneChunk, e.c32(c * lanesPerRow)) : laneChunk;
    if ((c + 1) * lanesPerRow > chunks)
      chunk = LLVM::UMinOp::create(e.b, e.loc, chunk, e.c32(chunks - 1));
    Value within = leaf.rem(chunk, perPanel), panel = leaf.div(chunk, perPanel);
    Value column = e.mul(chunk, e.c32(16));
    Value valid = e.c32(16);
    if (viewBytes < tileBytes)
      valid = e.select(e.compare(LLVM::ICmpPredicate::slt, column, e.c32(viewBytes)), valid, e.c32(0));
    Value panelPart = e.mul(panel, e.c32(shape->panelBytes));
    auto swizzled = [&](Value row) { // chunk within the panel, permuted by the row
      Value factor = e.bitAnd(shape->rowShift ? e.shr(row, shape->rowShift) : row, e.c32(shape->chunkMask));
      return e.mul(e.bitXor(within, factor), e.c32(16));
    };
    Value lanePart, warpPart;
    if (regular) {
      lanePart = e.add(e.add(panelPart, e.mul(laneRow, e.c32(shape->rowBytes))), swizzled(laneRow));
      warpPart = e.add(e.mul(leaf.div(warpRow, perGroup), e.c32(groupBytes)),
                       e.mul(leaf.rem(warpRow, perGroup), e.c32(shape->rowBytes)));
      warpPart = offset ? e.add(offset, warpPart) : warpPart;
    }
    for (int64_t t = 0; t < perWarp; t += rowsAtOnce) {
      FailureOr<Value> address = addressOf(t);
      if (failed(address))
        return failure();
      Value to;
      if (regular) {
        int64_t factor = swizzleFactor(shape->rowBytes, t) * 16;
        Value at = factor ? e.bitXor(lanePart, e.c32(factor)) : lanePart;
        to = e.smemPointer(e.add(warpPart, at), dest.base + t * shape->rowBytes);
      } else {
        Value row = e.narrow(localRow(laneRow, t));
        Value inGroup = leaf.rem(row, perGroup);
        Value at = e.add(e.add(panelPart, e.mul(inGroup, e.c32(shape->rowBytes))), swizzled(inGroup));
        at = e.add(at, e.mul(leaf.div(row, perGroup), e.c32(groupBytes)));
        to = e.smemPointer(offset ? e.add(offset, at) : at, dest.base);
      }
      Value bytes = valid;
      if (left) {
        Value row = lastRow ? e.narrow(localRow(laneRow, t)) : e.c32(t);
        bytes = e.select(e.compare(LLVM::ICmpPredicate::sgt, left, row), valid, e.c32(0));
      }
      leaf.cpAsync(to, leaf.shift(*address, column), bytes);
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Before the copies of a plain load nobody may still read the place, after them everybody may.
static LogicalResult emitLoad(Emitter &e, LoadOp load) {
  const Smem &dest = e.smems[load.getResult()];
  Leaf leaf(e.b, e.loc);
  leaf.barrier();
  if (failed(copyRows(e, load, e.views[load.getView()], e.index(load.getRow()), dest)))
    return failure();
  Leaf after(e.b, e.loc);
  after.cpAsyncCommit();
  after.cpAsyncWait(0);
  after.barrier();
  return success();
}

static LogicalResult emitSharedLoad(Emitter &e, LoadOp load) {
  auto smem = cast<SmemType>(load.getResult().getType());
  auto offset = load->getAttrOfType<IntegerAttr>(kSharedOffset);
  if (!offset)
    return load.emitOpError() << "has no '" << kSharedOffset << "', run tile-allocate-shared first";
  Smem dest;
  dest.type = dest.whole = smem;
  dest.base = offset.getInt();
  e.smems[load.getResult()] = dest;
  return emitLoad(e, load);
}

static LogicalResult emitLoadAsync(Emitter &e, LoadAsyncOp load) {
  return copyRows(e, load, e.views[load.getView()], e.index(load.getRow()), e.smems[load.getSlot()]);
}

void tile::populateSm80Copy(Emitter &e) {
  auto usual = e.handler(LoadOp::getOperationName());
  e.handler(LoadOp::getOperationName()) = [usual](Emitter &e, Operation *op) -> LogicalResult {
    auto load = cast<LoadOp>(op);
    return isa<SmemType>(load.getResult().getType()) ? emitSharedLoad(e, load) : usual(e, op);
  };
  e.on<LoadAsyncOp>(emitLoadAsync);
}
