//===- Sm90Tma.cpp - tensor copies and their maps ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A dense tile is one box: {panel, rows, panels, head}; with GQA packing the
// rows split into {heads of the group, tokens}. Where the rows are no whole
// panels it is a box for each panel: the map then ends with the row, so that
// columns beside it read as zeros and are not written. A paged tile is a box per
// page and panel (or, where neither the page nor the tile is a multiple of the
// other, of the rows that divide both), issued by the lanes, each reading its own
// entry of the page table. The swizzle follows the bits of the address, so that a
// box may begin at any row of a stage.
// Rows past the end of a tensor read as zeros, rows past the end of a request
// are the next request's: tail legalisation zeroes them.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include <numeric>

using namespace mlir;
using namespace mlir::tile;

static std::string elementName(Type type) {
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  if (type.isF32())
    return "f32";
  if (isa<Float8E4M3FNType>(type))
    return "e4m3";
  if (isa<Float8E5M2Type>(type))
    return "e5m2";
  return "";
}

namespace {
/// Collects a tensor map record (ABI.h, MAP).
struct MapBuilder {
  Emitter &e;
  Value source;
  MemRefType type;
  int64_t bytes;
  SmallVector<Attribute> dims;
  SmallVector<int64_t> strides;
  int64_t offset = 0;

  MapBuilder(Emitter &e, Value source) : e(e), source(source), type(cast<MemRefType>(source.getType())) {
    bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
    (void)type.getStridesAndOffset(strides, offset);
  }
  void fixed(int64_t extent, std::optional<int64_t> strideBytes) {
    NamedAttrList list;
    list.append("extent", e.b.getI64IntegerAttr(extent));
    if (strideBytes)
      list.append("stride", e.b.getI64IntegerAttr(*strideBytes));
    dims.push_back(list.getDictionary(e.context));
  }
  void dimension(int64_t dim) {
    NamedAttrList list;
    list.append("extent", type.isDynamicDim(dim)
                              ? Attribute(e.b.getDictionaryAttr({e.b.getNamedAttr("size", e.b.getI64IntegerAttr(dim))}))
                              : Attribute(e.b.getI64IntegerAttr(type.getDimSize(dim))));
    // Strides stay symbolic when the type leaves them open; fixed ones are bytes.
    list.append("stride",
                ShapedType::isDynamic(strides[dim])
                    ? Attribute(e.b.getDictionaryAttr({e.b.getNamedAttr("stride", e.b.getI64IntegerAttr(dim))}))
                    : Attribute(e.b.getI64IntegerAttr(strides[dim] * bytes)));
    dims.push_back(list.getDictionary(e.context));
  }
  Value finish(ArrayRef<int64_t> box, int64_t swizzle) {
    NamedAttrList list;
    list.append("operand", e.b.getStringAttr(e.role(source)));
    list.append("element", e.b.getStringAttr(elementName(type.getElementType())));
    list.append("dims", e.b.getArrayAttr(dims));
    SmallVector<Attribute> boxes;
    for (int64_t extent : box)
      boxes.push_back(e.b.getI64IntegerAttr(extent));
    list.append("box", e.b.getArrayAttr(boxes));
    list.append("swizzle", e.b.getI64IntegerAttr(swizzle));
    list.append("promotion", e.b.getI64IntegerAttr(256));
    return e.tensorMap(list.getDictionary(e.context));
  }
};

/// A box: its map, where it starts, and where its memory begins in the stage.
struct Box {
  Value map;
  SmallVector<Value> coordinates;
  int64_t offset = 0;
};
} // namespace

static FailureOr<SmemShape> checkSlot(Operation *op, const Smem &slot, ViewType view, MemRefType source) {
  if (slot.type != slot.whole || slot.type.getRank() != 2 || view.getRank() != 2)
    return op->emitOpError() << "copies " << view << " and " << slot.type << ", expected whole stages of rank 2";
  if (slot.type.getElementType() != view.getElementType() || slot.type.getShape()[1] < view.getShape()[1])
    return op->emitOpError() << "copies between " << view << " and " << slot.type << ", expected the same rows";
  if (elementName(view.getElementType()).empty())
    return op->emitOpError() << "copies elements of type " << view.getElementType() << ", which no tensor map has";
  FailureOr<SmemShape> shape = SmemShape::get(slot.whole, [&]() { return op->emitOpError(); });
  if (failed(shape))
    return failure();
  if (!slot.type.getLayout())
    return op->emitOpError() << "copies to a stage without #tile.swizzle";
  if (shape->rows > 256)
    return op->emitOpError() << "copies " << shape->rows << " rows in a box, expected at most 256";
  return shape;
}

/// The boxes of a dense view that start at `row`.
static FailureOr<SmallVector<Box>> denseBoxes(Emitter &e, Operation *op, const View &view, Index row,
                                              const SmemShape &shape, int64_t swizzle) {
  View v = view;
  ViewType type = v.op.getResult().getType();
  auto source = cast<MemRefType>(view.source.getType());
  if (source.getRank() != 3 || view.offsets.size() != 2)
    return op->emitOpError() << "copies from " << source
                             << ", expected a buffer of tokens, heads and vectors with two offsets";
  MapBuilder map(e, view.source);
  int64_t columns = type.getShape()[1], pack = type.isPacked() ? type.getPack() : 1;
  if (type.isPacked()) {
    if (shape.rows < pack)
      return op->emitOpError() << "copies " << shape.rows << " rows of groups of " << pack << ", expected as many";
    if (!row.isConstant() || row.offset % pack)
      return op->emitOpError() << "copies packed rows from a row that is not a constant multiple of " << pack;
  }
  // Whole panels are a dimension of one box; else each has a box of its own, clipped where the row ends.
  // So have those whose groups do not fill the rows: what is left of a panel is not touched.
  bool whole = columns == shape.panels * shape.panelColumns && shape.rows % pack == 0;
  map.fixed(whole ? shape.panelColumns : columns, std::nullopt);
  Value zero = e.c32(0), head = e.narrow(view.offsets[1]);
  SmallVector<Value> at = {zero};
  SmallVector<int64_t> extents = {shape.panelColumns};
  auto panelDimension = [&]() {
    if (!whole)
      return;
    map.fixed(shape.panels, shape.panelColumns * map.bytes);
    at.push_back(zero);
    extents.push_back(shape.panels);
  };
  if (type.isPacked()) {
    map.dimension(1);
    map.dimension(0);
    at.append({head, e.narrow(e.addIndex(view.offsets[0], {Value(), row.offset / pack}))});
    extents.append({pack, shape.rows / pack});
    panelDimension();
  } else {
    map.dimension(0);
    at.push_back(e.narrow(e.addIndex(view.offsets[0], row)));
    extents.push_back(shape.rows);
    panelDimension();
    map.dimension(1);
    at.push_back(head);
    extents.push_back(1);
  }
  Value tensor = map.finish(extents, swizzle);
  SmallVector<Box> boxes;
  for (int64_t first = 0; first < (whole ? 1 : shape.panels); ++first) {
    at[0] = e.c32(first * shape.panelColumns);
    boxes.push_back({tensor, at, first * shape.panelBytes});
  }
  return boxes;
}

static void copyIn(Emitter &e, Value destination, const Box &box, Value barrier) {
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(e.b, e.loc, destination, box.map, box.coordinates, barrier,
                                                         ValueRange(), Value(), Value(), NVVM::TMALoadMode::TILE,
                                                         /*isCTAOnly=*/true, NVVM::CTAGroupKindAttr(), Value());
}
static void expectBytes(Emitter &e, Value barrier, int64_t bytes, Value predicate) {
  if (predicate) {
    NVVM::InlinePtxOp::create(e.b, e.loc, TypeRange(), ValueRange{barrier, e.c32(bytes)}, ValueRange(),
                              e.b.getStringAttr("mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1;"), predicate);
    return;
  }
  NVVM::MBarrierArriveExpectTxOp::create(e.b, e.loc, Type(), barrier, e.c32(bytes), NVVM::MemScopeKind::CTA, false,
                                         Value());
}

namespace {
/// How a paged tile, which begins at a multiple of its rows, falls into boxes: `rows` of one page and one panel each,
/// panels innermost, so that neighbouring lanes read the same table entry.
struct PageBoxes {
  int64_t page, rows, panels, count;
  /// With `rowGroups` a box takes all panels of 8 rows.
  static PageBoxes get(ViewType view, const SmemShape &shape, bool rowGroups) {
    int64_t page = view.getPage(), rows = std::gcd(page, shape.rows), panels = shape.panels;
    if (rowGroups)
      rows = 8, panels = 1;
    return {page, rows, panels, shape.rows / rows * panels};
  }
  /// Panel and group of rows of box `number`.
  std::pair<Value, Value> split(Emitter &e, Value number) const {
    if (panels == 1)
      return {e.c32(0), number};
    return {LLVM::URemOp::create(e.b, e.loc, number, e.c32(panels)),
            LLVM::UDivOp::create(e.b, e.loc, number, e.c32(panels))};
  }
};
} // namespace

/// Pages of the boxes of a load, one register for every 32 boxes: the lane's own. Boxes past the end read outside the
/// tensor, that is zeros, and never outside the table.
void tile::lookUpPages(Emitter &e, LoadAsyncOp op) {
  if (e.pageNumbers.contains(op))
    return;
  const View view = e.views.find(op.getView())->second;
  FailureOr<SmemShape> shape = SmemShape::get(op.getSlot().getType(), [&]() { return op->emitOpError(); });
  if (failed(shape))
    return;
  ViewType type = op.getView().getType();
  PageBoxes boxes = PageBoxes::get(type, *shape, e.pipeline(op.getPipeline()).rowGroups);
  Index row = e.index(op.getRow());
  Type entry = cast<MemRefType>(view.pages.getType()).getElementType();
  Regs pages;
  for (int64_t first = 0; first < boxes.count; first += 32) {
    Value number = e.add(e.group.lane, e.c32(first));
    Value piece = boxes.split(e, number).second;
    Index at = e.addIndex(row, {e.mul(piece, e.c32(boxes.rows)), 0});
    Value position = e.narrow(at);
    Value slot = LLVM::UDivOp::create(e.b, e.loc, position, e.c32(boxes.page));
    Value exists = rowExists(e, view, at);
    if (boxes.count - first < 32) {
      Value mine = e.compare(LLVM::ICmpPredicate::ult, number, e.c32(boxes.count));
      exists = exists ? e.bitAnd(exists, mine) : mine;
    }
    Block *look = e.newBlock(), *join = e.newBlock({e.i32});
    if (exists)
      LLVM::CondBrOp::create(e.b, e.loc, exists, look, ValueRange(), join, ValueRange(e.c32(-1)));
    else
      LLVM::BrOp::create(e.b, e.loc, ValueRange(), look);
    e.enter(look);
    Value where = LLVM::GEPOp::create(e.b, e.loc, e.global, entry, e.pointer(view.pages),
                                      ArrayRef<LLVM::GEPArg>{e.widen(e.addIndex(view.first, {slot, 0}))});
    auto load = LLVM::LoadOp::create(e.b, e.loc, entry, where, entry.getIntOrFloatBitWidth() / 8);
    load.setInvariant(true);
    Value found = load;
    if (entry.isInteger(64))
      found = LLVM::TruncOp::create(e.b, e.loc, e.i32, found);
    LLVM::BrOp::create(e.b, e.loc, ValueRange(found), join);
    e.enter(join);
    pages.push_back(join->getArgument(0));
  }
  e.pageNumbers[op] = pages;
}

static LogicalResult emitPaged(Emitter &e, LoadAsyncOp op, const View &view, const Smem &slot, const SmemShape &shape,
                               int64_t swizzle) {
  assert(cast<MemRefType>(view.source.getType()).getRank() == 4 && view.offsets.size() == 1 &&
         "view_c2 refuses other buffers of pages");
  if (slot.rowGroups && (std::gcd(op.getView().getType().getPage(), shape.rows) % 8 || shape.rowBytes != 128 ||
                         op.getView().getType().getShape()[1] != shape.panels * shape.panelColumns))
    return op.emitOpError() << "copies pages of " << op.getView().getType().getPage() << " rows and panels of "
                            << shape.rowBytes << " bytes to a stage by groups of rows, expected multiples of 8 rows "
                            << "and whole panels of 128 bytes";
  PageBoxes boxes = PageBoxes::get(op.getView().getType(), shape, slot.rowGroups);
  MapBuilder map(e, view.source);
  map.fixed(slot.rowGroups ? shape.panelColumns : op.getView().getType().getShape()[1], std::nullopt);
  map.dimension(1);
  if (slot.rowGroups)
    map.fixed(shape.panels, shape.panelColumns * map.bytes);
  map.dimension(2);
  map.dimension(0);
  Value tensor = slot.rowGroups ? map.finish({shape.panelColumns, boxes.rows, shape.panels, 1, 1}, swizzle)
                                : map.finish({shape.panelColumns, boxes.rows, 1, 1}, swizzle);
  lookUpPages(e, op);
  Value barrier = fullBarrierOfAcquired(e, op.getPipeline());
  expectBytes(e, barrier, slot.type.getBytes(), e.group.laneIsZero);
  NVVM::SyncWarpOp::create(e.b, e.loc, e.c32(-1));
  Index row = e.index(op.getRow());
  for (auto [i, pageNumber] : llvm::enumerate(e.pageNumbers[op])) {
    int64_t first = 32 * i;
    Value number = e.add(e.group.lane, e.c32(first));
    Block *mine = e.newBlock(), *join = e.newBlock();
    if (boxes.count - first < 32)
      LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::ult, number, e.c32(boxes.count)), mine,
                             ValueRange(), join, ValueRange());
    else
      LLVM::BrOp::create(e.b, e.loc, ValueRange(), mine);
    e.enter(mine);
    auto [panel, piece] = boxes.split(e, number);
    Value inside = e.c32(0);
    if (boxes.rows < boxes.page) // part of a page
      inside = LLVM::URemOp::create(e.b, e.loc, e.narrow(e.addIndex(row, {e.mul(piece, e.c32(boxes.rows)), 0})),
                                    e.c32(boxes.page));
    Box box;
    box.map = tensor;
    Value head = e.narrow(view.offsets[0]);
    if (slot.rowGroups)
      box.coordinates = {e.c32(0), inside, e.c32(0), head, pageNumber};
    else
      box.coordinates = {e.mul(panel, e.c32(shape.panelColumns)), inside, head, pageNumber};
    // A box is whole rows of a panel, or all panels of a group.
    int64_t boxBytes = boxes.rows * shape.rowBytes * (slot.rowGroups ? shape.panels : 1);
    Value offset =
        e.add(e.smemOffset(slot), e.add(e.mul(panel, e.c32(shape.panelBytes)), e.mul(piece, e.c32(boxBytes))));
    copyIn(e, e.smemPointer(offset, slot.base), box, barrier);
    LLVM::BrOp::create(e.b, e.loc, ValueRange(), join);
    e.enter(join);
  }
  NVVM::SyncWarpOp::create(e.b, e.loc, e.c32(-1));
  return success();
}

/// The stage is full when the copies of all threads have arrived.
static LogicalResult emitGather(Emitter &e, LoadAsyncOp op) {
  if (failed(gatherRows(e, op)))
    return failure();
  NVVM::CpAsyncMBarrierArriveOp::create(e.b, e.loc, fullBarrierOfAcquired(e, op.getPipeline()), /*noinc=*/true);
  return success();
}

static LogicalResult emitLoadAsync(Emitter &e, LoadAsyncOp op) {
  if (isGather(op))
    return emitGather(e, op);
  const View view = e.views.find(op.getView())->second;
  const Smem slot = e.smems.find(op.getSlot())->second;
  auto source = cast<MemRefType>(view.source.getType());
  FailureOr<SmemShape> shape = checkSlot(op, slot, op.getView().getType(), source);
  if (failed(shape))
    return failure();
  if (e.group.warps != 1)
    return op.emitOpError() << "is run by " << e.group.warps
                            << " warps, tensor copies are issued by one; use 'tile.gather' or a role of one warp";
  int64_t swizzle = cast<SwizzleAttr>(slot.type.getLayout()).getBytes();
  if (op.getView().getType().isPaged())
    return emitPaged(e, op, view, slot, *shape, swizzle);
  if (failed(checkPanels(op, slot)))
    return failure();
  FailureOr<SmallVector<Box>> boxes = denseBoxes(e, op, view, e.index(op.getRow()), *shape, swizzle);
  if (failed(boxes))
    return failure();
  Value barrier = fullBarrierOfAcquired(e, op.getPipeline());
  Value start = e.smemOffset(slot);
  int64_t pack = std::max<int64_t>(1, op.getView().getType().getPack());
  int64_t bytes = shape->panels * (shape->rows / pack * pack) * shape->rowBytes;
  auto copyAll = [&]() {
    for (const Box &box : *boxes)
      copyIn(e, e.smemPointer(start, slot.base + box.offset), box, barrier);
  };
  if (e.group.single) {
    expectBytes(e, barrier, bytes, Value());
    copyAll();
    return success();
  }
  expectBytes(e, barrier, bytes, e.group.laneIsZero);
  Block *issue = e.newBlock(), *join = e.newBlock();
  LLVM::CondBrOp::create(e.b, e.loc, e.group.laneIsZero, issue, ValueRange(), join, ValueRange());
  e.enter(issue);
  copyAll();
  LLVM::BrOp::create(e.b, e.loc, ValueRange(), join);
  e.enter(join);
  return success();
}

static LogicalResult emitStoreAsync(Emitter &e, StoreAsyncOp op) {
  const View view = e.views.find(op.getView())->second;
  const Smem slot = e.smems.find(op.getSlot())->second;
  FailureOr<SmemShape> shape = checkSlot(op, slot, op.getView().getType(), cast<MemRefType>(view.source.getType()));
  if (failed(shape))
    return failure();
  if (op.getView().getType().isPaged() || op.getView().getType().isPacked() || !e.group.single)
    return op.emitOpError() << "has code in roles of one warp and to dense views only";
  if (failed(checkPanels(op, slot)))
    return failure();
  FailureOr<SmallVector<Box>> boxes =
      denseBoxes(e, op, view, e.index(op.getRow()), *shape, cast<SwizzleAttr>(slot.type.getLayout()).getBytes());
  if (failed(boxes))
    return failure();
  Value start = e.smemOffset(slot);
  for (const Box &box : *boxes)
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(e.b, e.loc, box.map,
                                                       e.smemPointer(start, slot.base + box.offset), box.coordinates,
                                                       Value(), NVVM::TMAStoreMode::TILE, Value());
  NVVM::CpAsyncBulkCommitGroupOp::create(e.b, e.loc);
  // The stage has been read when the release that follows takes effect.
  NVVM::CpAsyncBulkWaitGroupOp::create(e.b, e.loc, 0, e.b.getUnitAttr());
  return success();
}

void tile::populateSm90Tma(Emitter &e) {
  e.on<LoadAsyncOp>(emitLoadAsync);
  e.on<StoreAsyncOp>(emitStoreAsync);
}
