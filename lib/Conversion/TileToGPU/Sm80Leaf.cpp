//===- Sm80Leaf.cpp - instructions of the mma.sync generation ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sm80Leaf.h"
#include "Sm80Fragments.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::tile::sm80;

Value Leaf::i32(int64_t value) {
  return LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value Leaf::rem(Value x, int64_t y) { return LLVM::URemOp::create(b, loc, x, i32(y)); }
Value Leaf::div(Value x, int64_t y) { return LLVM::UDivOp::create(b, loc, x, i32(y)); }

Value Leaf::shift(Value ptr, Value bytes) {
  return LLVM::GEPOp::create(b, loc, ptr.getType(), b.getI8Type(), ptr, ArrayRef<LLVM::GEPArg>{bytes});
}

Value Leaf::shift(Value ptr, int64_t bytes) {
  if (bytes == 0)
    return ptr;
  return LLVM::GEPOp::create(b, loc, ptr.getType(), b.getI8Type(), ptr,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value Leaf::packPair(Value low, Value high) {
  auto type = VectorType::get({2}, low.getType());
  Value pair = LLVM::PoisonOp::create(b, loc, type);
  pair = LLVM::InsertElementOp::create(b, loc, pair, low, i32(0));
  pair = LLVM::InsertElementOp::create(b, loc, pair, high, i32(1));
  return LLVM::BitcastOp::create(b, loc, b.getI32Type(), pair);
}

std::pair<Value, Value> Leaf::unpackPair(Value pair, Type element) {
  Value vector = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), pair);
  return {LLVM::ExtractElementOp::create(b, loc, vector, i32(0)),
          LLVM::ExtractElementOp::create(b, loc, vector, i32(1))};
}

Value Leaf::laneOffset(Value lane, int64_t bytes, bool columnsFirst) {
  // Sm80Fragments.h: laneRowsFirst and laneColumnsFirst, then the swizzle.
  Value row, chunk;
  if (columnsFirst) {
    row = add(rem(lane, 8), mul(div(lane, 16), i32(8)));
    chunk = rem(div(lane, 8), 2);
  } else {
    row = rem(lane, 16);
    chunk = div(lane, 16);
  }
  Value factor = bytes == 128 ? rem(row, 8) : bytes == 64 ? rem(div(row, 2), 4) : rem(div(row, 4), 2);
  Value at = LLVM::XOrOp::create(b, loc, chunk, factor);
  return add(mul(row, i32(bytes)), mul(at, i32(16)));
}

SmallVector<Value> Leaf::ldmatrix(const SharedTile &tile, Value laneOffset, int64_t row, int64_t chunk, bool transposed,
                                  int64_t count) {
  chunk += tile.chunk0;
  int64_t perPanel = tile.bytes / 16, panel = chunk / perPanel, within = chunk % perPanel;
  Value offset = within ? Value(LLVM::XOrOp::create(b, loc, laneOffset, i32(within * 16))) : laneOffset;
  Value ptr = shift(shift(tile.base, offset), panel * tile.rows * tile.bytes + row * tile.bytes);
  Type result = b.getI32Type();
  if (count > 1)
    result = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, b.getI32Type()));
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value loaded = NVVM::LdMatrixOp::create(b, loc, result, ptr, static_cast<uint32_t>(count),
                                          transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
                                          NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {loaded};
  SmallVector<Value> registers;
  for (int64_t i = 0; i < count; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, loc, loaded, ArrayRef<int64_t>{i}));
  return registers;
}

void Leaf::mma(MutableArrayRef<Value> acc, ArrayRef<Value> a, ArrayRef<Value> bRegs, bool bf16) {
  MLIRContext *context = b.getContext();
  auto asOperands = [&](ArrayRef<Value> registers) {
    SmallVector<Value> operands;
    for (Value value : registers) // f16 operands are vectors, bf16 operands are integers in NVVM
      operands.push_back(bf16 ? value : LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()), value));
    return operands;
  };
  Type f32 = b.getF32Type();
  auto result = LLVM::LLVMStructType::getLiteral(context, {f32, f32, f32, f32});
  auto type = bf16 ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Value d = NVVM::MmaOp::create(b, loc, result, asOperands(a), asOperands(bRegs), acc, ArrayRef<int64_t>{16, 8, 16},
                                std::nullopt, std::nullopt, std::array<NVVM::MMATypes, 2>{type, type},
                                std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (int64_t i = 0; i < 4; ++i)
    acc[i] = LLVM::ExtractValueOp::create(b, loc, d, ArrayRef<int64_t>{i});
}

void Leaf::cpAsync(Value shared, Value global, Value bytes, int64_t size) {
  // Only whole 16 bytes can bypass the L1 cache.
  auto cache = size == 16 ? NVVM::LoadCacheModifierKind::CG : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(b, loc, shared, global, static_cast<uint32_t>(size), cache, bytes);
}

Value Leaf::shuffle(Value value, int64_t lane, int64_t width) { return shuffle(value, i32(lane), width); }

Value Leaf::shuffle(Value value, Value lane, int64_t width) {
  // PTX ISA, shfl.sync: bits 8 to 12 of the last operand are the bits of the lane that stay its own.
  return NVVM::ShflOp::create(b, loc, value.getType(), i32(-1), value, lane, i32((32 - width) << 8 | 31),
                              NVVM::ShflKind::idx, UnitAttr());
}
