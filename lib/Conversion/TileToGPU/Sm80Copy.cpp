//===- Sm80Copy.cpp - global rows to shared memory by cp.async ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp copies `lanesPerRow` chunks of 16 bytes of several rows with one
// instruction (8 bytes where rows are not multiples of 16). Rows are a stride
// apart: one address is computed, the others are sums. Pages that hold whole
// blocks of a warp cost one table read each; other pages one for each row (a
// lane looks up one row of the warp's block, others get the address by shuffle).
//
// Roles that gather from pages look up before they wait for a stage. They issue
// one instruction in several cycles beside the consumers, so whole blocks take
// few: the lanes of a row have 128 bytes of it, a panel, and other panels of the
// row are constants away.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"
#include "Sm80Fragments.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::sm80;

/// The address of `row`, or the buffer's when the row does not exist: no page is looked up then.
static FailureOr<Value> guardedRowAddress(Emitter &e, const View &view, Index row) {
  Value exists = rowExists(e, view, row);
  if (!exists)
    return rowAddress(e, view, row);
  Value fallback = e.pointer(view.source);
  Block *lookup = e.newBlock(), *join = e.newBlock({fallback.getType()});
  LLVM::CondBrOp::create(e.b, e.loc, exists, lookup, ValueRange{}, join, ValueRange{fallback});
  e.enter(lookup);
  FailureOr<Value> found = rowAddress(e, view, row);
  if (failed(found))
    return failure();
  LLVM::BrOp::create(e.b, e.loc, ValueRange{*found}, join);
  e.enter(join);
  return Value(join->getArgument(0));
}

namespace {
/// One tile's copies. A lane copies one chunk of rows `first` + step t, t = 0, 1, ...; a warp has a block of its own
/// or, where blocks would cut the swizzle's period, every n-th rows.
class Copier {
  /// A lane's granule in one of the column steps, in every row.
  struct Column {
    Value chunkPart;                // bytes of its panel and of the granule within its 16-byte chunk
    Value within;                   // chunk within the panel
    Value bytes;                    // from the start of the row in global memory
    Value valid;                    // bytes that exist; null: all of them
    int64_t shared = 0, global = 0; // bytes behind the first column step's, whose values these are
  };

public:
  Copier(Emitter &e, Operation *op, const View &view, Index row0, const Smem &dest, SmemShape shape, int64_t divisor)
      : e(e), op(op), view(view), row0(row0), dest(dest), shape(shape), divisor(divisor), leaf(e.b, e.loc) {
    auto load = dyn_cast<LoadAsyncOp>(op);
    gather = load && isGather(load) && load.getView().getType().isPaged();
  }
  LogicalResult run() { return gather ? runGather() : runPlain(); }
  /// Only the lookups of `run`, where there is one for each row; does not touch the stage.
  LogicalResult lookUpAhead();

private:
  LogicalResult runPlain();
  LogicalResult runGather();
  LogicalResult prepare();
  void choose();
  void nameLanes(Value lane);
  LogicalResult findAddresses();
  bool readsWholePages();
  FailureOr<Regs> lookUp();
  Regs lookUpUnits();
  Value unitsOf(Value row);
  Value strideUnits(int64_t dim);
  Value stridesFit();
  ArrayRef<Value> gatherLane();
  Value lookedUpRow(int64_t s);
  LogicalResult findPages();
  LogicalResult lookUpRows();
  Index localRow(int64_t t);
  Value stepBytes();
  Value rowOfLane(int64_t s);
  Value place(int64_t t, const Column &column);
  Value warpPlace();
  Value placeAnywhere(Value row, const Column &column);
  Value shared(Value bytes, int64_t constant);
  Value swizzled(Value row, Value within);
  Column column(int64_t c, bool once = false);
  void copyWhole(ArrayRef<Value> units);
  LogicalResult copyAny();

  Emitter &e;
  Operation *op;
  const View &view;
  Index row0;
  const Smem &dest;
  SmemShape shape;
  int64_t divisor; // of row0; 0 when row0 is 0
  Leaf leaf;

  int64_t elementBytes, viewBytes, tileBytes, granule; // granule: bytes of one copy
  int64_t rows = 1, perGroup, groupBytes;
  int64_t lanesPerRow, rowsAtOnce, columnSteps, steps, step;
  bool regular; // the place of row first + step t is that of row `first`, xor and plus constants
  bool blocks;  // a warp has `perWarp` consecutive rows
  bool gather;  // from pages, by a role
  bool apart;   // of a gather: the lanes of a row have a panel, the panels are constants apart at both ends
  int64_t perWarp;
  Value laneRow, laneChunk, warpRow, first, lastRow, offset;
  SmallVector<Value> addresses; // of column 0 of row t
};
} // namespace

/// Who copies what.
void Copier::choose() {
  int64_t chunks = tileBytes / granule, warps = e.group.warps;
  // The lanes of a row of a gather have a panel, so that the panels of a row are constants apart at both ends.
  int64_t most = gather ? shape.rowBytes / granule : 32;
  lanesPerRow = std::min<int64_t>(most, llvm::PowerOf2Ceil(chunks));
  rowsAtOnce = 32 / lanesPerRow;
  columnSteps = llvm::divideCeil(chunks, lanesPerRow);
  perWarp = llvm::alignTo(llvm::divideCeil(rows, warps), rowsAtOnce);
  bool even = perWarp * warps == rows;
  int64_t stride = warps * rowsAtOnce;
  blocks = true;
  step = rowsAtOnce;
  steps = perWarp / rowsAtOnce;
  regular = even && perWarp % 8 == 0 && perGroup % perWarp == 0;
  bool alone = isWarpPrivate(e, dest.whole); // the warp's own group of keys
  if (!regular && !gather && !alone && rows == perGroup && stride % 8 == 0 && rows % stride == 0) {
    regular = true;
    blocks = false;
    step = stride;
    steps = rows / stride;
  }
  // More warps than rows: the surplus lanes repeat the last row, data and all.
  if (!even && blocks)
    lastRow = e.c32(rows - 1);
  int64_t granules = tileBytes / granule;
  apart = gather && lanesPerRow == shape.rowBytes / granule && granules % lanesPerRow == 0;
  if (!apart || !regular)
    nameLanes(hiddenLane(e));
}

void Copier::nameLanes(Value lane) {
  laneRow = e.shr(lane, llvm::Log2_64(lanesPerRow));
  laneChunk = e.bitAnd(lane, e.c32(lanesPerRow - 1));
  warpRow = e.mul(e.group.warp, e.c32(blocks ? perWarp : rowsAtOnce));
  first = e.add(warpRow, laneRow);
}

/// Row t of this lane, within the tile.
Index Copier::localRow(int64_t t) {
  if (!lastRow)
    return Index{first, t * step};
  return Index{LLVM::SMinOp::create(e.b, e.loc, e.add(first, e.c32(t * step)), lastRow), 0};
}

/// Bytes from row t to row t + 1 of a lane.
Value Copier::stepBytes() {
  return e.mul(e.stride(view.source, ViewOp(view.op).getResult().getType().isPaged() ? 1 : 0),
               e.c64(step * elementBytes));
}

/// Whether the rows of a warp are few whole pages, or part of one.
bool Copier::readsWholePages() {
  int64_t page = ViewOp(view.op).getResult().getType().getPage(), whole = std::min(page, perWarp);
  bool divides = perWarp % whole == 0 && page % whole == 0 && whole % rowsAtOnce == 0;
  return blocks && !lastRow && divides && divisor % whole == 0 && perWarp / whole <= 8;
}

LogicalResult Copier::findAddresses() {
  ViewType type = ViewOp(view.op).getResult().getType();
  if (type.isPaged())
    return readsWholePages() ? findPages() : lookUpRows();
  if (!type.isPacked() && !lastRow) {
    FailureOr<Value> start = rowAddress(e, view, e.addIndex(row0, localRow(0)));
    if (failed(start))
      return failure();
    Value bytes = stepBytes(), at = *start;
    for (int64_t t = 0; t < steps; ++t) {
      addresses.push_back(at);
      if (t + 1 < steps)
        at = leaf.shift(at, bytes);
    }
    return success();
  }
  for (int64_t t = 0; t < steps; ++t) {
    FailureOr<Value> address = rowAddress(e, view, e.addIndex(row0, localRow(t)));
    if (failed(address))
      return failure();
    addresses.push_back(*address);
  }
  return success();
}

/// A warp's rows are whole pages, or part of one: all lanes read the few entries, no exchange is needed.
LogicalResult Copier::findPages() {
  ViewType type = ViewOp(view.op).getResult().getType();
  int64_t page = type.getPage(), whole = std::min(page, perWarp);
  Type element = cast<MemRefType>(view.pages.getType()).getElementType();
  Index start = e.addIndex(row0, {warpRow, 0}); // the warp's first row
  auto offsetOf = [&](Value sum, Index i, int64_t dim) -> Value {
    if (i.isConstant() && i.offset == 0)
      return sum;
    Value part = e.mul(e.widen(i), e.stride(view.source, dim));
    return sum ? e.add(sum, part) : part;
  };
  Value inside = laneRow;
  if (page > whole) {
    Value narrow = e.narrow(start);
    inside = e.add(inside, llvm::isPowerOf2_64(page) ? e.bitAnd(narrow, e.c32(page - 1)) : leaf.rem(narrow, page));
  }
  Value fixed = offsetOf(Value(), {inside, 0}, 1);
  for (auto [i, head] : llvm::enumerate(view.offsets))
    fixed = offsetOf(fixed, head, 2 + i);
  for (int64_t p = 0; p < perWarp / whole; ++p) {
    Index row = {start.base, start.offset + p * whole};
    Value exists = rowExists(e, view, row), number;
    auto read = [&]() -> Value {
      Value slot = e.materialize(row);
      Value width = slot.getType() == e.i64 ? e.c64(page) : e.c32(page);
      slot = llvm::isPowerOf2_64(page) ? e.shr(slot, llvm::Log2_64(page))
                                       : Value(LLVM::UDivOp::create(e.b, e.loc, slot, width));
      Index entry = e.addIndex(view.first, {slot, 0});
      Value at = LLVM::GEPOp::create(e.b, e.loc, e.global, element, e.pointer(view.pages),
                                     ArrayRef<LLVM::GEPArg>{e.widen(entry)});
      auto load = LLVM::LoadOp::create(e.b, e.loc, element, at, element.getIntOrFloatBitWidth() / 8);
      load.setInvariant(true);
      return load;
    };
    if (exists) {
      Block *lookup = e.newBlock(), *join = e.newBlock({element});
      Value zero = LLVM::ConstantOp::create(e.b, e.loc, element, IntegerAttr::get(element, 0));
      LLVM::CondBrOp::create(e.b, e.loc, exists, lookup, ValueRange{}, join, ValueRange{zero});
      e.enter(lookup);
      Value found = read();
      LLVM::BrOp::create(e.b, e.loc, ValueRange{found}, join);
      e.enter(join);
      number = join->getArgument(0);
    } else {
      number = read();
    }
    if (element.isInteger(32))
      number = LLVM::SExtOp::create(e.b, e.loc, e.i64, number);
    Value elements = e.mul(number, e.stride(view.source, 0));
    if (fixed)
      elements = e.add(elements, fixed);
    Type stored = elementBytes == 1 ? e.i8 : cast<MemRefType>(view.source.getType()).getElementType();
    Value at =
        LLVM::GEPOp::create(e.b, e.loc, e.global, stored, e.pointer(view.source), ArrayRef<LLVM::GEPArg>{elements});
    Value bytes = stepBytes();
    for (int64_t t = 0; t < whole / rowsAtOnce; ++t) {
      addresses.push_back(at);
      if (t + 1 < whole / rowsAtOnce)
        at = leaf.shift(at, bytes);
    }
  }
  return success();
}

/// Any pages: a lane looks up one row's address, the others that copy of the row get it by shuffle.
LogicalResult Copier::lookUpRows() {
  if (!blocks) {
    // Rows of a warp are apart: each lane looks up its own.
    for (int64_t t = 0; t < steps; ++t) {
      FailureOr<Value> address = guardedRowAddress(e, view, e.addIndex(row0, localRow(t)));
      if (failed(address))
        return failure();
      addresses.push_back(*address);
    }
    return success();
  }
  FailureOr<Regs> looked = lookUp();
  if (failed(looked))
    return failure();
  for (int64_t t = 0; t < steps; ++t) {
    int64_t at = t / lanesPerRow * 2, lane = t % lanesPerRow;
    Value lowHere = leaf.shuffle((*looked)[at], lane, lanesPerRow);
    Value highHere = leaf.shuffle((*looked)[at + 1], lane, lanesPerRow);
    Value wide = LLVM::ShlOp::create(e.b, e.loc, LLVM::ZExtOp::create(e.b, e.loc, e.i64, highHere), e.c64(32));
    wide = LLVM::OrOp::create(e.b, e.loc, wide, LLVM::ZExtOp::create(e.b, e.loc, e.i64, lowHere));
    addresses.push_back(LLVM::IntToPtrOp::create(e.b, e.loc, e.global, wide));
  }
  return success();
}

/// The row of the warp's block, of those from `s` on, that a lane looks up. The lanes that share a row when they copy
/// hold all rows that they will copy, so that a shuffle takes the number of a lane among them, which is a constant.
Value Copier::rowOfLane(int64_t s) {
  Value within = e.add(e.mul(laneChunk, e.c32(rowsAtOnce)), laneRow);
  // Lanes past the warp's block would look up rows that nobody asks for.
  if (perWarp - s < 32)
    within = leaf.rem(within, perWarp - s);
  Value row = e.add(e.add(warpRow, within), e.c32(s));
  return lastRow ? Value(LLVM::SMinOp::create(e.b, e.loc, row, lastRow)) : row;
}

/// Low and high half of the addresses of the warp's rows, 32 at a time.
FailureOr<Regs> Copier::lookUp() {
  Regs looked;
  for (int64_t s = 0; s < perWarp; s += 32) {
    FailureOr<Value> address = guardedRowAddress(e, view, e.addIndex(row0, {rowOfLane(s), 0}));
    if (failed(address))
      return failure();
    Value bits = LLVM::PtrToIntOp::create(e.b, e.loc, e.i64, *address);
    Value low = LLVM::TruncOp::create(e.b, e.loc, e.i32, bits);
    Value high = LLVM::TruncOp::create(e.b, e.loc, e.i32, LLVM::LShrOp::create(e.b, e.loc, bits, e.c64(32)));
    looked.append({low, high});
  }
  return looked;
}

/// How far `row` is from the row that the view's pages begin with, in granules. The strides fit 32 bits (`stridesFit`),
/// so that one multiplication of 32 by 32 bits is enough for each.
Value Copier::unitsOf(Value row) {
  ViewType type = ViewOp(view.op).getResult().getType();
  Type element = cast<MemRefType>(view.pages.getType()).getElementType();
  auto wide = [&](Value narrow) -> Value { return LLVM::ZExtOp::create(e.b, e.loc, e.i64, narrow); };
  auto scaled = [&](Value number, int64_t dim) -> Value {
    return e.mul(number, wide(LLVM::TruncOp::create(e.b, e.loc, e.i32, strideUnits(dim))));
  };
  Value inside;
  if (int64_t page = type.getPage(); page > 1) {
    inside = scaled(wide(llvm::isPowerOf2_64(page) ? e.bitAnd(row, e.c32(page - 1)) : leaf.rem(row, page)), 1);
    row = leaf.div(row, page);
  }
  Value at = LLVM::GEPOp::create(e.b, e.loc, e.global, element, view.entries, ArrayRef<LLVM::GEPArg>{wide(row)});
  auto load = LLVM::LoadOp::create(e.b, e.loc, element, at, element.getIntOrFloatBitWidth() / 8);
  load.setInvariant(true);
  Value units = scaled(element.isInteger(32) ? wide(load) : Value(load), 0);
  return inside ? e.add(units, inside) : units;
}

/// Stride of a dimension of the buffer in granules.
Value Copier::strideUnits(int64_t dim) {
  return e.shr(e.stride(view.source, dim), llvm::Log2_64(granule / elementBytes));
}

Value Copier::stridesFit() {
  auto fits = [&](int64_t dim) -> Value {
    return e.compare(LLVM::ICmpPredicate::ult, strideUnits(dim), e.c64(int64_t(1) << 32));
  };
  return ViewOp(view.op).getResult().getType().getPage() > 1 ? e.bitAnd(fits(0), fits(1)) : fits(0);
}

/// Of a gather: offsets of the warp's rows in granules, 32 rows at a time; behind them whether these are the offsets,
/// that is whether all rows exist and none is 2^32 granules away.
Regs Copier::lookUpUnits() {
  if (auto known = e.rowAddresses.find(op); known != e.rowAddresses.end())
    return known->second;
  Value usual = stridesFit();
  if (view.rows)
    usual =
        e.bitAnd(usual, e.compare(LLVM::ICmpPredicate::sge, e.narrow(*view.rows), e.add(e.narrow(row0), e.c32(rows))));
  // The last one is not 0 where a row is far away, or none was looked up.
  SmallVector<Value> unknown(llvm::divideCeil(perWarp, 32) + 1, e.c32(1));
  Block *lookup = e.newBlock(), *join = e.newBlock(SmallVector<Type>(unknown.size(), e.i32));
  LLVM::CondBrOp::create(e.b, e.loc, usual, lookup, ValueRange(), join, unknown);
  e.enter(lookup);
  Regs looked;
  Value far;
  for (int64_t s = 0; s < perWarp; s += 32) {
    Value units = unitsOf(e.add(e.narrow(row0), lookedUpRow(s)));
    looked.push_back(LLVM::TruncOp::create(e.b, e.loc, e.i32, units));
    Value high = LLVM::TruncOp::create(e.b, e.loc, e.i32, e.shr(units, 32));
    far = far ? e.bitOr(far, high) : high;
  }
  looked.push_back(far);
  LLVM::BrOp::create(e.b, e.loc, looked, join);
  e.enter(join);
  looked.assign(join->args_begin(), join->args_end());
  Value near = e.compare(LLVM::ICmpPredicate::eq, looked.back(), e.c32(0));
  looked.back() = NVVM::VoteSyncOp::create(e.b, e.loc, e.i1, e.c32(-1), near, NVVM::VoteSyncKind::all);
  return looked;
}

/// Of a gather whose panels are apart, the same for all its blocks and made once: where column 0 of row `first` goes,
/// what the lane copies of a row's first panel (bytes), and the rows that it looks up.
ArrayRef<Value> Copier::gatherLane() {
  SmallVector<int64_t> key{rows, perGroup, groupBytes, shape.rowBytes, shape.rowShift, shape.chunkMask, granule};
  for (auto &[known, values] : e.gatherLanes)
    if (known == key)
      return values;
  OpBuilder::InsertPoint here = e.toEntry(e.group.entry);
  nameLanes(e.group.lane);
  Value bytes = e.mul(laneChunk, e.c32(granule));
  Value chunk = granule == 16 ? laneChunk : leaf.div(bytes, 16);
  Regs values{e.add(warpPlace(), e.add(e.mul(laneRow, e.c32(shape.rowBytes)), swizzled(laneRow, chunk))), bytes};
  if (granule != 16)
    values[0] = e.add(values[0], leaf.rem(bytes, 16));
  for (int64_t s = 0; s < perWarp; s += 32)
    values.push_back(rowOfLane(s));
  for (Value &value : values)
    value = e.hideLanePart(value);
  e.b.restoreInsertionPoint(here);
  e.forgetLocal();
  e.gatherLanes.push_back({key, values});
  return e.gatherLanes.back().second;
}

/// A row that this lane looks up, of those of the warp from `s` on.
Value Copier::lookedUpRow(int64_t s) { return apart && regular ? gatherLane()[2 + s / 32] : rowOfLane(s); }

LogicalResult Copier::lookUpAhead() {
  if (failed(prepare()))
    return failure();
  e.rowAddresses[op] = lookUpUnits();
  return success();
}

Value Copier::shared(Value bytes, int64_t constant) {
  return leaf.shift(e.smemPointer(offset ? e.add(offset, bytes) : bytes), constant);
}

/// Bytes of chunk `within` of the panel, permuted by the row.
Value Copier::swizzled(Value row, Value within) {
  Value factor = e.bitAnd(shape.rowShift ? e.shr(row, shape.rowShift) : row, e.c32(shape.chunkMask));
  return e.mul(e.bitXor(within, factor), e.c32(16));
}

/// Where a column of `row` goes.
Value Copier::placeAnywhere(Value row, const Column &column) {
  Value inGroup = leaf.rem(row, perGroup);
  Value at = e.add(e.add(column.chunkPart, e.mul(inGroup, e.c32(shape.rowBytes))), swizzled(inGroup, column.within));
  return shared(e.add(at, e.mul(leaf.div(row, perGroup), e.c32(groupBytes))), dest.base + column.shared);
}

/// Where a column of row t of this lane goes.
Value Copier::place(int64_t t, const Column &column) {
  if (!regular)
    return placeAnywhere(e.narrow(localRow(t)), column);
  int64_t factor = swizzleFactor(shape.rowBytes, t * step) * 16, constant = dest.base + column.shared;
  if (!blocks) {
    Value at = e.add(e.add(column.chunkPart, e.mul(first, e.c32(shape.rowBytes))), swizzled(first, column.within));
    return shared(at, constant + t * step * shape.rowBytes);
  }
  constant += t * step * shape.rowBytes;
  if (apart) {
    Value at = gatherLane().front();
    return leaf.shift(leaf.shift(e.smemPointer(offset), factor ? e.bitXor(at, e.c32(factor)) : at), constant);
  }
  Value lanePart =
      e.add(e.add(column.chunkPart, e.mul(laneRow, e.c32(shape.rowBytes))), swizzled(laneRow, column.within));
  return shared(e.add(warpPlace(), factor ? e.bitXor(lanePart, e.c32(factor)) : lanePart), constant);
}

/// Where the warp's rows begin.
Value Copier::warpPlace() {
  return e.add(e.mul(leaf.div(warpRow, perGroup), e.c32(groupBytes)),
               e.mul(leaf.rem(warpRow, perGroup), e.c32(shape.rowBytes)));
}

LogicalResult Copier::prepare() {
  ViewType type = ViewOp(view.op).getResult().getType();
  ArrayRef<int64_t> dims = dest.type.getShape();
  elementBytes = shape.elementBytes;
  if (type.getRank() != 2 || dest.type.getRank() < 2)
    return op->emitOpError() << "copies single elements to shared memory, expected rows";
  viewBytes = type.getShape()[1] * elementBytes, tileBytes = dims.back() * elementBytes;
  granule = viewBytes % 16 == 0 ? 16 : 8;
  if (viewBytes % granule || tileBytes % 16)
    return op->emitOpError() << "copies rows of " << viewBytes << " bytes, expected a multiple of 8";
  if (!dest.whole.getLayout())
    return op->emitOpError() << "copies to shared memory without a layout, run tile-assign-layouts first";
  for (int64_t extent : dims.drop_back())
    rows *= extent;
  perGroup = dims[dims.size() - 2];
  groupBytes = shape.panelBytes * shape.panels;
  choose();
  return success();
}

/// `once`: of a regular gather, of the values that are made once.
Copier::Column Copier::column(int64_t c, bool once) {
  int64_t granules = tileBytes / granule, perChunk = 16 / granule, perPanel = shape.rowBytes / granule;
  Column column;
  if (apart) {
    column.shared = c * shape.panelBytes;
    column.global = c * shape.rowBytes;
  }
  // Lanes beyond the row repeat its last granule.
  Value number;
  if (!once) {
    number = c && !apart ? e.add(laneChunk, e.c32(c * lanesPerRow)) : laneChunk;
    if ((c + 1) * lanesPerRow > granules)
      number = LLVM::UMinOp::create(e.b, e.loc, number, e.c32(granules - 1));
  }
  column.bytes = once ? gatherLane()[1] : e.mul(number, e.c32(granule));
  if (viewBytes < column.global + shape.rowBytes || (!apart && viewBytes < tileBytes))
    column.valid = e.select(e.compare(LLVM::ICmpPredicate::slt, column.bytes, e.c32(viewBytes - column.global)),
                            e.c32(granule), e.c32(0));
  if (once)
    return column;
  column.within = leaf.rem(number, perPanel);
  column.chunkPart = e.mul(leaf.div(number, perPanel), e.c32(shape.panelBytes));
  if (perChunk > 1) {
    column.chunkPart = e.add(column.chunkPart, e.mul(leaf.rem(column.within, perChunk), e.c32(granule)));
    column.within = leaf.div(column.within, perChunk);
  }
  return column;
}

LogicalResult Copier::runPlain() {
  if (failed(prepare()) || failed(findAddresses()))
    return failure();

  // Row t of this lane exists when step t < left.
  Value left;
  if (view.rows) {
    left = e.sub(e.narrow(*view.rows), e.narrow(row0));
    if (!lastRow)
      left = e.sub(left, first);
  }
  offset = e.smemOffset(dest);
  for (int64_t c = 0; c < columnSteps; ++c) {
    Column at = column(c);
    Value valid = at.valid ? at.valid : e.c32(granule);
    for (int64_t t = 0; t < steps; ++t) {
      Value to = place(t, at);
      Value bytes = valid;
      if (left) {
        Value row = lastRow ? e.narrow(localRow(t)) : e.c32(t * step);
        bytes = e.select(e.compare(LLVM::ICmpPredicate::sgt, left, row), valid, e.c32(0));
      }
      leaf.cpAsync(to, leaf.shift(leaf.shift(addresses[t], at.bytes), at.global), bytes, granule);
    }
  }
  return success();
}

/// Instructions are dear beside the consumers' (a warp issues one in five cycles or so), so a copy of the usual block
/// takes few beside the copy itself: no predicates, one shuffle and one multiplication for all copies of a row,
/// constant steps from panel to panel. A block that ends within the rows, or has rows that are far away, takes a loop.
LogicalResult Copier::runGather() {
  if (failed(prepare()))
    return failure();
  Regs looked = lookUpUnits();
  offset = e.smemOffset(dest);
  Block *whole = e.newBlock(), *any = e.newBlock(), *done = e.newBlock();
  LLVM::CondBrOp::create(e.b, e.loc, looked.back(), whole, ValueRange(), any, ValueRange());
  e.enter(whole);
  copyWhole(ArrayRef(looked).drop_back());
  LLVM::BrOp::create(e.b, e.loc, ValueRange(), done);
  e.enter(any);
  if (failed(copyAny()))
    return failure();
  LLVM::BrOp::create(e.b, e.loc, ValueRange(), done);
  e.enter(done);
  return success();
}

void Copier::copyWhole(ArrayRef<Value> units) {
  SmallVector<Column> columns;
  SmallVector<Value> starts; // of the columns in row 0 of the buffer
  for (int64_t c = 0; c < columnSteps; ++c) {
    columns.push_back(column(c, /*once=*/apart && regular));
    starts.push_back(c && apart ? starts.front() : leaf.shift(view.origin, columns[c].bytes));
  }
  for (int64_t t = 0; t < steps; ++t) {
    Value unit = leaf.shuffle(units[t / lanesPerRow], t % lanesPerRow, lanesPerRow);
    Value bytes =
        LLVM::ShlOp::create(e.b, e.loc, LLVM::ZExtOp::create(e.b, e.loc, e.i64, unit), e.c64(llvm::Log2_64(granule)));
    for (auto [column, start] : llvm::zip(columns, starts))
      leaf.cpAsync(place(t, column), leaf.shift(leaf.shift(start, bytes), column.global), column.valid, granule);
  }
}

/// Row by row, looked up again where it is copied.
LogicalResult Copier::copyAny() {
  nameLanes(hiddenLane(e));
  SmallVector<Column> columns;
  for (int64_t c = 0; c < columnSteps; ++c)
    columns.push_back(column(c));
  Block *header = e.newBlock({e.i32}), *back = e.newBlock(), *next = e.newBlock();
  LLVM::BrOp::create(e.b, e.loc, ValueRange{e.c32(0)}, header);
  e.enter(header);
  Value passed = header->getArgument(0), row = e.add(first, passed);
  if (lastRow)
    row = LLVM::SMinOp::create(e.b, e.loc, row, lastRow);
  Index at = e.addIndex(row0, {row, 0});
  FailureOr<Value> from = guardedRowAddress(e, view, at);
  if (failed(from))
    return failure();
  Value exists = rowExists(e, view, at);
  for (const Column &column : columns) {
    Value bytes = column.valid;
    if (exists)
      bytes = e.select(exists, bytes ? bytes : e.c32(granule), e.c32(0));
    leaf.cpAsync(placeAnywhere(row, column), leaf.shift(leaf.shift(*from, column.bytes), column.global), bytes,
                 granule);
  }
  Value following = e.add(passed, e.c32(step));
  Value more = e.compare(LLVM::ICmpPredicate::slt, following, e.c32(steps * step));
  LLVM::CondBrOp::create(e.b, e.loc, more, back, ValueRange(), next, ValueRange());
  e.enter(back);
  branchBack(e, header, {following});
  e.enter(next);
  return success();
}

LogicalResult sm80::copyRows(Emitter &e, Operation *op, const View &view, Value row, const Smem &dest) {
  FailureOr<SmemShape> shape = SmemShape::get(dest.whole, [&] { return op->emitOpError(); });
  if (failed(shape))
    return failure();
  auto known = op->getAttrOfType<IntegerAttr>(kRowDivisor);
  Copier copier(e, op, view, e.index(row), dest, *shape, known ? known.getInt() : 1);
  return copier.run();
}

//===----------------------------------------------------------------------===//
// Roles that gather
//===----------------------------------------------------------------------===//

LogicalResult tile::lookUpRows(Emitter &e, LoadAsyncOp op) {
  Smem slot; // the stage is not known yet, its shape is
  slot.type = slot.whole = op.getSlot().getType();
  FailureOr<SmemShape> shape = SmemShape::get(slot.whole, [&] { return op->emitOpError(); });
  if (failed(shape))
    return failure();
  const View &view = e.views.find(op.getView())->second;
  return Copier(e, op, view, e.index(op.getRow()), slot, *shape, /*divisor=*/1).lookUpAhead();
}

LogicalResult tile::gatherRows(Emitter &e, LoadAsyncOp op) {
  if (failed(checkPanels(op, e.smems[op.getSlot()])))
    return failure();
  return copyRows(e, op, e.views[op.getView()], op.getRow(), e.smems[op.getSlot()]);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Before the copies of a plain load nobody may still read the place, after them everybody may.
static LogicalResult emitLoad(Emitter &e, LoadOp load) {
  const Smem &dest = e.smems[load.getResult()];
  Leaf leaf(e.b, e.loc);
  leaf.barrier();
  if (failed(copyRows(e, load, e.views[load.getView()], load.getRow(), dest)))
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
  return copyRows(e, load, e.views[load.getView()], load.getRow(), e.smems[load.getSlot()]);
}

void tile::populateSm80Copy(Emitter &e) {
  auto usual = e.handler(LoadOp::getOperationName());
  e.handler(LoadOp::getOperationName()) = [usual](Emitter &e, Operation *op) -> LogicalResult {
    auto load = cast<LoadOp>(op);
    return isa<SmemType>(load.getResult().getType()) ? emitSharedLoad(e, load) : usual(e, op);
  };
  e.on<LoadAsyncOp>(emitLoadAsync);
}
