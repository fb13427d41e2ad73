//===- Views.cpp - rows of global memory ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     copy:  for r in 0 .. n        n = clamp(rows - row, 0, rows of the tile)
//              for d in 0 .. D step W: tile[r, d] = widen(address(row + r)[d])
//     zero:  for r in n .. R: tile[r, :] = 0
//
// A view is never read or written outside its rows.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

LogicalResult Emitter::emitView(ViewOp op) {
  auto source = memrefs.find(op.getSource());
  if (source == memrefs.end())
    return error(op, "expected operand 'source' to be an argument of the kernel; pass the buffer itself");
  ViewRef view;
  view.source = source->second;
  view.type = op.getResult().getType();
  for (Value offset : op.getOffsets())
    view.offsets.push_back(lookup(offset));
  if (view.type.isPaged()) {
    auto pages = memrefs.find(op.getPages());
    if (pages == memrefs.end())
      return error(op, "expected operand 'pages' to be an argument of the kernel; pass the buffer itself");
    view.pages = pages->second;
    view.first = lookup(op.getFirst());
  }
  view.rows = op.getRows() ? lookup(op.getRows()) : index(view.type.getShape()[0]);
  views[op.getResult()] = view;
  return success();
}

Value Emitter::rowPointer(const ViewRef &view, Value row) {
  auto add = [&](Value x, Value y) -> Value { return x ? arith::AddIOp::create(b, loc, x, y).getResult() : y; };
  auto mul = [&](Value x, Value y) -> Value { return arith::MulIOp::create(b, loc, x, y); };
  Value offset;
  size_t firstDim = 0;
  if (view.type.isPaged()) {
    Value size = index(view.type.getPage());
    Value page = add(view.first, arith::DivUIOp::create(b, loc, row, size));
    Value inPage = arith::RemUIOp::create(b, loc, row, size);
    Value entry =
        loadConverted(gep(view.pages.pointer, view.pages.type.getElementType(), mul(page, view.pages.strides[0])),
                      view.pages.type.getElementType(), 0);
    if (!entry.getType().isIndex())
      entry = arith::IndexCastOp::create(b, loc, b.getIndexType(), entry);
    offset = add(mul(entry, view.source.strides[0]), mul(inPage, view.source.strides[1]));
    firstDim = 2;
    for (auto [i, at] : llvm::enumerate(view.offsets))
      offset = add(offset, mul(at, view.source.strides[firstDim + i]));
  } else {
    Value first = row, second;
    if (view.type.isPacked()) {
      Value pack = index(view.type.getPack());
      first = arith::DivUIOp::create(b, loc, row, pack);
      second = arith::RemUIOp::create(b, loc, row, pack);
    }
    for (auto [i, at] : llvm::enumerate(view.offsets)) {
      Value position = at;
      if (i == 0)
        position = add(at, first);
      else if (i == 1 && second)
        position = add(at, second);
      offset = add(offset, mul(position, view.source.strides[i]));
    }
  }
  return gep(view.source.pointer, view.type.getElementType(), offset);
}

Value Emitter::clampRows(const ViewRef &view, Value row, int64_t count) {
  Value left = arith::SubIOp::create(b, loc, view.rows, row);
  left = arith::MaxSIOp::create(b, loc, left, index(0));
  return arith::MinSIOp::create(b, loc, left, index(count));
}

LogicalResult Emitter::emitLoad(LoadOp op) {
  const ViewRef &view = views.find(op.getView())->second;
  TileRef tile = makeDestination(op.getResult(), op.getOperation(), [](Operation *, Value) { return false; });
  bool vectorRows = view.type.getRank() == 2;
  if (vectorRows && tile.shape.back() != view.type.getShape()[1])
    return op.emitOpError() << "pads rows of " << view.type.getShape()[1] << " to " << tile.shape.back()
                            << ", which the host has no code for: it takes any head dim";
  int64_t length = vectorRows ? tile.shape.back() : 1, rows = 1;
  for (int64_t extent : tile.shape)
    rows *= extent;
  rows /= length;
  int64_t w = widthFor(length);
  if (w == 1)
    w = 0;
  Value row = lookup(op.getRow()), count = clampRows(view, row, rows), one = index(1);
  Type type = vec(computeType(tile.element), w);
  Type element = computeType(tile.element);
  auto target = [&](Value r, Value d) {
    Value offset =
        vectorRows ? arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, r, index(length)), d).getResult() : r;
    return gep(tile.base, element, offset);
  };
  auto forRows = [&](Value from, Value to, llvm::function_ref<void(Value)> body) {
    auto forOp = scf::ForOp::create(b, loc, from, to, one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    body(forOp.getInductionVar());
  };
  forRows(index(0), count, [&](Value r) {
    Value source = rowPointer(view, arith::AddIOp::create(b, loc, row, r));
    loop(length, std::max<int64_t>(w, 1), [&](Value d) {
      Value value = loadConverted(gep(source, tile.element, d), tile.element, w);
      storeConverted(value, element, target(r, d));
    });
  });
  Value zero = isa<FloatType>(element) ? constant(type, 0.0) : constantInt(type, 0);
  forRows(count, index(rows), [&](Value r) {
    loop(length, std::max<int64_t>(w, 1), [&](Value d) { storeConverted(zero, element, target(r, d)); });
  });
  bind(op.getResult(), tile);
  return success();
}

LogicalResult Emitter::emitStore(StoreOp op) {
  const ViewRef &view = views.find(op.getView())->second;
  const TileRef tile = tiles.find(op.getValue())->second;
  bool vectorRows = view.type.getRank() == 2;
  if (vectorRows && tile.shape.back() != view.type.getShape()[1])
    return op.emitOpError() << "stores rows of " << tile.shape.back() << " to rows of " << view.type.getShape()[1]
                            << ", which the host has no code for: it takes any head dim";
  int64_t length = vectorRows ? tile.shape.back() : 1;
  SmallVector<int64_t> outer(tile.shape.begin(), tile.shape.end() - vectorRows);
  int64_t rows = 1;
  for (int64_t extent : outer)
    rows *= extent;
  int64_t w = widthFor(length);
  if (w == 1)
    w = 0;
  Value row = lookup(op.getRow()), count = clampRows(view, row, rows);
  auto forOp = scf::ForOp::create(b, loc, index(0), count, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  Value r = forOp.getInductionVar();
  SmallVector<Value> position(outer.size());
  Value rest = r;
  for (int64_t i = outer.size() - 1; i > 0; --i) {
    position[i] = arith::RemUIOp::create(b, loc, rest, index(outer[i]));
    rest = arith::DivUIOp::create(b, loc, rest, index(outer[i]));
  }
  position[0] = rest;
  Value target = rowPointer(view, arith::AddIOp::create(b, loc, row, r));
  loop(length, std::max<int64_t>(w, 1), [&](Value d) {
    SmallVector<Value> at = position;
    if (vectorRows)
      at.push_back(d);
    storeConverted(loadTile(tile, at, w), tile.element, gep(target, tile.element, d));
  });
  return success();
}
