//===- Scratch.cpp - buffers in scratch and the tile values in them ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Offsets are constants: emission goes through the program in order, so a
// first-fit list of what is live is a plan of lifetimes.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

//===----------------------------------------------------------------------===//
// Small helpers
//===----------------------------------------------------------------------===//

Type Emitter::withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value Emitter::constant(Type type, double value) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  TypedAttr attr = FloatAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

Value Emitter::constantInt(Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  TypedAttr attr = IntegerAttr::get(element, APInt(bits, value, /*isSigned=*/true, /*implicitTrunc=*/true));
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

Value Emitter::gep(Value base, Type element, Value offset) {
  Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), offset);
  return LLVM::GEPOp::create(b, loc, ptr(), storageType(element, b.getContext()), base, ValueRange(wide));
}

Value Emitter::iota(Value base, int64_t w) {
  SmallVector<Attribute> steps;
  for (int64_t i = 0; i < w; ++i)
    steps.push_back(b.getIndexAttr(i));
  auto type = VectorType::get({w}, b.getIndexType());
  Value step = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, steps));
  Value result = arith::AddIOp::create(b, loc, vector::BroadcastOp::create(b, loc, type, base), step);
  iotas[result] = base;
  return result;
}

int64_t Emitter::widthFor(int64_t n) const {
  int64_t w = options.width;
  while (n % w)
    w /= 2;
  return w;
}

void Emitter::loop(int64_t count, int64_t step, llvm::function_ref<void(Value)> body) {
  if (count <= step)
    return body(index(0));
  auto forOp = scf::ForOp::create(b, loc, index(0), index(count), index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  body(forOp.getInductionVar());
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Type Emitter::storageType(Type element, MLIRContext *context) {
  if (isNarrowFloat(element))
    return IntegerType::get(context, element.getIntOrFloatBitWidth());
  if (element.isIndex())
    return IntegerType::get(context, 64);
  if (element.isInteger(1))
    return IntegerType::get(context, 8);
  return element;
}

int64_t Emitter::storageBytes(Type element) {
  if (element.isIndex())
    return 8;
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

Buffer *Emitter::allocate(int64_t bytes) {
  bytes = llvm::alignTo(bytes, 64);
  // `live` is sorted by offset; the first gap that is large enough.
  int64_t offset = 0;
  size_t at = 0;
  for (; at < live.size(); ++at) {
    if (live[at]->offset - offset >= bytes)
      break;
    offset = live[at]->offset + live[at]->bytes;
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->offset = offset;
  buffer->bytes = bytes;
  Buffer *result = buffer.get();
  live.insert(live.begin() + at, std::move(buffer));
  scratchBytes = std::max(scratchBytes, offset + bytes);
  return result;
}

void Emitter::release(Buffer *buffer) {
  for (auto it = want.begin(), end = want.end(); it != end; ++it)
    if (it->second == buffer)
      it->second = nullptr;
  llvm::erase_if(live, [&](const auto &entry) { return entry.get() == buffer; });
}

bool Emitter::isDead(Value value, ArrayRef<Operation *> alsoDone) const {
  Block *block = value.getParentBlock();
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    return !ancestor || emitted.contains(ancestor) || llvm::is_contained(alsoDone, ancestor);
  });
}

void Emitter::finish(ArrayRef<Operation *> ops) {
  emitted.insert_range(ops);
  SmallVector<Buffer *> dead;
  for (const auto &buffer : live)
    if (!buffer->pinned && llvm::all_of(buffer->occupants, [&](Value v) { return isDead(v, {}); }))
      dead.push_back(buffer.get());
  for (Buffer *buffer : dead)
    release(buffer);
}

TileRef Emitter::makeTile(Type type, Buffer *buffer) {
  TileRef tile;
  if (auto reg = dyn_cast<RegType>(type)) {
    tile.shape = llvm::to_vector(reg.getShape());
    tile.element = reg.getElementType();
  } else {
    auto smem = cast<SmemType>(type);
    tile.shape = llvm::to_vector(smem.getShape());
    tile.element = smem.getElementType();
  }
  tile.strides.resize(tile.shape.size());
  int64_t count = 1;
  for (int64_t i = tile.shape.size() - 1; i >= 0; --i) {
    tile.strides[i] = count;
    count *= tile.shape[i];
  }
  if (!buffer)
    buffer = allocate(count * storageBytes(computeType(tile.element)));
  tile.buffer = buffer;
  tile.base = LLVM::GEPOp::create(b, loc, ptr(), b.getI8Type(), scratchArg,
                                  ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(buffer->offset)});
  return tile;
}

void Emitter::bind(Value value, const TileRef &tile) {
  tiles[value] = tile;
  if (tile.buffer)
    tile.buffer->occupants.push_back(value);
}

TileRef Emitter::makeDestination(Value result, ArrayRef<Operation *> ops,
                                 llvm::function_ref<bool(Operation *, Value)> inPlace) {
  Buffer *buffer = want.lookup(result);
  if (buffer) {
    for (Value occupant : buffer->occupants) {
      if (!isDead(occupant, ops))
        buffer = nullptr;
      for (Operation *op : ops)
        if (buffer && llvm::is_contained(op->getOperands(), occupant) && !inPlace(op, occupant))
          buffer = nullptr;
      if (!buffer)
        break;
    }
  }
  return makeTile(result.getType(), buffer);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value Emitter::elementPointer(const TileRef &tile, ValueRange indices) {
  Value offset;
  for (auto [position, stride] : llvm::zip_equal(indices, tile.strides)) {
    Value term = stride == 1 ? Value(position) : arith::MulIOp::create(b, loc, position, index(stride)).getResult();
    offset = offset ? arith::AddIOp::create(b, loc, offset, term).getResult() : term;
  }
  return gep(tile.base, computeType(tile.element), offset);
}

Value Emitter::loadTile(const TileRef &tile, ValueRange indices, int64_t w) {
  if (tile.isSplat())
    return w ? widen(tile.splat, w) : tile.splat;
  return loadConverted(elementPointer(tile, indices), computeType(tile.element), w);
}

void Emitter::storeTile(Value value, const TileRef &tile, ValueRange indices) {
  storeConverted(value, computeType(tile.element), elementPointer(tile, indices));
}

void Emitter::copyTile(const TileRef &from, const TileRef &to) {
  int64_t w = widthFor(to.shape.back());
  SmallVector<Value> position;
  std::function<void(size_t)> nest = [&](size_t dim) {
    bool last = dim + 1 == to.shape.size();
    loop(to.shape[dim], last ? w : 1, [&](Value at) {
      position.push_back(at);
      if (last)
        storeTile(loadTile(from, position, w), to, position);
      else
        nest(dim + 1);
      position.pop_back();
    });
  };
  nest(0);
}

TileRef Emitter::materialize(const TileRef &tile) {
  if (!tile.isSplat())
    return tile;
  TileRef copy = makeTile(RegType::get(tile.shape, tile.element), nullptr);
  copyTile(tile, copy); // without occupants: freed after the op
  return copy;
}
