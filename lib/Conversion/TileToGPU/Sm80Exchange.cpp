//===- Sm80Exchange.cpp - warps exchange tiles through shared memory ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions over a dimension that is spread over warps (the merge of key
// groups) and conversions of layouts. The scratch memory may be that of idle
// pipelines, so the warps meet before it is written and after it is read.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::sm80;

static FailureOr<int64_t> scratchOf(Operation *op) {
  auto offset = op->getAttrOfType<IntegerAttr>(kSharedOffset);
  if (!offset) {
    op->emitOpError() << "has no '" << kSharedOffset << "', run tile-allocate-shared first";
    return failure();
  }
  return offset.getInt();
}

static Value combine(Emitter &e, ReduceKind kind, Value a, Value b) {
  if (!a)
    return b;
  if (kind == ReduceKind::AddF)
    return LLVM::FAddOp::create(e.b, e.loc, a, b);
  return LLVM::MaximumOp::create(e.b, e.loc, a, b);
}

/// Each thread leaves its registers of the result, then adds up those of the same lane of its peers, in warp order:
/// every warp gets the same bits.
static LogicalResult emitWarpsReduce(Emitter &e, ReduceOp op) {
  auto type = cast<RegType>(op.getValue().getType()), resultType = cast<RegType>(op.getResult().getType());
  const Fragment &from = e.fragment(type);
  const Fragment &to = e.fragment(resultType);
  int64_t dim = *op.getDim();
  const LanePart &part = from.getLanePart(dim);
  if (part.laneMul != 0)
    return op.emitOpError()
           << "reduces over rows of several warps, expected the dimension of key groups or the columns";
  if (!type.getElementType().isF32())
    return op.emitOpError() << "reduces " << type.getElementType() << " across warps, expected f32";
  FailureOr<int64_t> scratch = scratchOf(op);
  if (failed(scratch))
    return failure();

  Regs mine(to.getNumElements());
  const Regs &values = e.reg(op.getValue());
  for (int64_t i = 0; i < from.getNumElements(); ++i) {
    SmallVector<int64_t, 3> at(from.getOffsets(i));
    at.erase(at.begin() + dim);
    int64_t slot = to.find(at);
    if (slot < 0)
      return op.emitOpError() << "has a result whose layout is not the value's without dimension " << dim;
    mine[slot] = combine(e, op.getKind(), mine[slot], values[i]);
  }

  Leaf leaf(e.b, e.loc);
  int64_t count = mine.size(), width = count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1, vectors = count / width;
  Type vector = width == 1 ? e.f32 : VectorType::get({width}, e.f32);
  Value laneBytes = e.mul(e.group.lane, e.c32(4 * width));
  leaf.barrier();
  Value own = e.add(e.mul(e.group.warp, e.c32(count * 128)), laneBytes);
  for (int64_t v = 0; v < vectors; ++v) {
    Value value = mine[v * width];
    if (width > 1) {
      value = LLVM::PoisonOp::create(e.b, e.loc, vector);
      for (int64_t k = 0; k < width; ++k)
        value = LLVM::InsertElementOp::create(e.b, e.loc, value, mine[v * width + k], e.c32(k));
    }
    LLVM::StoreOp::create(e.b, e.loc, value, e.smemPointer(own, *scratch + v * width * 128), 4 * width);
  }
  leaf.barrier();
  // First of the peers: this warp with its coordinate along the dimension taken out.
  Value coordinate = leaf.rem(part.warpDiv > 1 ? leaf.div(e.group.warp, part.warpDiv) : e.group.warp, part.warpMod);
  Value first = e.sub(e.group.warp, e.mul(coordinate, e.c32(part.warpDiv)));
  Value start = e.add(e.mul(first, e.c32(count * 128)), laneBytes);
  Regs result(count);
  for (int64_t v = 0; v < vectors; ++v)
    for (int64_t w = 0; w < part.warpMod; ++w) {
      Value pointer = e.smemPointer(start, *scratch + w * part.warpDiv * count * 128 + v * width * 128);
      Value value = LLVM::LoadOp::create(e.b, e.loc, vector, pointer, 4 * width);
      for (int64_t k = 0; k < width; ++k) {
        Value one = width == 1 ? value : Value(LLVM::ExtractElementOp::create(e.b, e.loc, value, e.c32(k)));
        result[v * width + k] = combine(e, op.getKind(), result[v * width + k], one);
      }
    }
  leaf.barrier();
  if (op.getInit())
    for (auto [value, init] : llvm::zip_equal(result, e.reg(op.getInit())))
      value = combine(e, op.getKind(), value, init);
  e.regs[op.getResult()] = result;
  return success();
}

//===----------------------------------------------------------------------===//
// convert_layout
//===----------------------------------------------------------------------===//

/// Registers of a tile apart: 16-bit pairs are unpacked.
static Regs elementsOf(Emitter &e, RegType type, const Regs &registers) {
  if (e.fragment(type).getPack() == 1)
    return registers;
  Regs elements;
  for (Value pair : registers) {
    auto [low, high] = Leaf(e.b, e.loc).unpackPair(pair, type.getElementType());
    elements.append({low, high});
  }
  return elements;
}

/// Byte offset of element `i` in the row-major scratch copy: a thread part and a constant.
static std::pair<Value, int64_t> placeOf(Emitter &e, RegType type, const Fragment &fragment, int64_t i, int64_t bytes) {
  Value thread;
  int64_t constant = 0, stride = bytes;
  for (int64_t d = type.getRank() - 1; d >= 0; --d) {
    Index at = e.coordinate(fragment, i, d);
    constant += at.offset * stride;
    if (at.base) {
      Value scaled = e.mul(at.base, e.c32(stride));
      thread = thread ? e.add(thread, scaled) : scaled;
    }
    stride *= type.getShape()[d];
  }
  return {thread, constant};
}

static LogicalResult emitConvert(Emitter &e, ConvertLayoutOp op) {
  auto from = cast<RegType>(op.getSource().getType()), to = cast<RegType>(op.getResult().getType());
  Type element = from.getElementType();
  Type memory = element.isIndex() ? e.i32 : element.isInteger(1) ? e.i8 : element;
  int64_t bytes = memory.getIntOrFloatBitWidth() / 8;
  const Fragment &source = e.fragment(from);
  const Fragment &target = e.fragment(to);
  Leaf leaf(e.b, e.loc);
  // The same elements in the same order: nothing moves.
  bool same = source.getNumElements() == target.getNumElements() && source.getPack() == target.getPack();
  for (int64_t d = 0; same && d < from.getRank(); ++d)
    same = source.getLanePart(d) == target.getLanePart(d);
  for (int64_t i = 0; same && i < source.getNumElements(); ++i)
    same = source.getOffsets(i) == target.getOffsets(i);
  if (same) {
    Regs copy = e.reg(op.getSource());
    e.regs[op.getResult()] = copy;
    return success();
  }
  FailureOr<int64_t> scratch = scratchOf(op);
  if (failed(scratch))
    return failure();
  leaf.barrier();
  for (auto [i, value] : llvm::enumerate(elementsOf(e, from, e.reg(op.getSource())))) {
    auto [thread, constant] = placeOf(e, from, source, i, bytes);
    Value stored = element.isInteger(1) ? Value(LLVM::ZExtOp::create(e.b, e.loc, e.i8, value)) : value;
    LLVM::StoreOp::create(e.b, e.loc, stored, e.smemPointer(thread, *scratch + constant), bytes);
  }
  leaf.barrier();
  Regs elements;
  for (int64_t i = 0; i < target.getNumElements(); ++i) {
    auto [thread, constant] = placeOf(e, to, target, i, bytes);
    Value value = LLVM::LoadOp::create(e.b, e.loc, memory, e.smemPointer(thread, *scratch + constant), bytes);
    elements.push_back(element.isInteger(1) ? Value(LLVM::TruncOp::create(e.b, e.loc, e.i1, value)) : value);
  }
  leaf.barrier();
  Regs result;
  if (target.getPack() == 1)
    result = elements;
  else
    for (size_t i = 0; i < elements.size(); i += 2)
      result.push_back(leaf.packPair(elements[i], elements[i + 1]));
  e.regs[op.getResult()] = result;
  return success();
}

void tile::populateSm80Exchange(Emitter &e) {
  auto usual = e.handler(ReduceOp::getOperationName());
  e.handler(ReduceOp::getOperationName()) = [usual](Emitter &e, Operation *op) -> LogicalResult {
    auto reduce = cast<ReduceOp>(op);
    return getScratchBytes(op) ? emitWarpsReduce(e, reduce) : usual(e, op);
  };
  e.on<ConvertLayoutOp>(emitConvert);
}
