//===- Convert.cpp - storage formats ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bf16 is the upper half of an f32. f16, e4m3 and e5m2 are scaled: the exponent
// and mantissa bits, shifted into place, are an f32 that is a power of two too
// small; multiplying also normalises what was subnormal. Rounding is to nearest
// even; beyond the largest number bf16, f16 and e5m2 go to infinity and e4m3 to
// NaN, as arith.truncf says.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

namespace {
/// What there is to know of a narrow format.
struct Format {
  unsigned bits, mantissa;
  int bias;
  bool hasInf;       // else the all-ones pattern is NaN and there is no infinity
  uint32_t infinity; // first pattern that is not finite
  float largest;
};
} // namespace

static Format getFormat(FloatType type) {
  if (type.isF16())
    return {16, 10, 15, true, 0x7c00, 65504.0f};
  if (isa<Float8E5M2Type>(type))
    return {8, 2, 15, true, 0x7c, 57344.0f};
  assert(isa<Float8E4M3FNType>(type));
  return {8, 3, 7, false, 0x7f, 448.0f};
}

bool Emitter::isNarrowFloat(Type type) {
  return type.isBF16() || type.isF16() || isa<Float8E5M2Type, Float8E4M3FNType>(type);
}

Type Emitter::computeType(Type type) const {
  return isNarrowFloat(type) ? Type(Float32Type::get(type.getContext())) : type;
}

Value Emitter::fromBits(Value bits, FloatType type) {
  Type i32 = withElement(bits.getType(), b.getI32Type()), f32 = withElement(bits.getType(), b.getF32Type());
  Value wide = arith::ExtUIOp::create(b, loc, i32, bits);
  if (type.isBF16()) {
    Value shifted = arith::ShLIOp::create(b, loc, wide, constantInt(i32, 16));
    return arith::BitcastOp::create(b, loc, f32, shifted);
  }
  Format format = getFormat(type);
  Value magnitude = arith::AndIOp::create(b, loc, wide, constantInt(i32, (1 << (format.bits - 1)) - 1));
  Value sign = arith::AndIOp::create(b, loc, wide, constantInt(i32, 1 << (format.bits - 1)));
  sign = arith::ShLIOp::create(b, loc, sign, constantInt(i32, 32 - format.bits));
  Value shifted = arith::ShLIOp::create(b, loc, magnitude, constantInt(i32, 23 - format.mantissa));
  Value scaled = arith::MulFOp::create(b, loc, arith::BitcastOp::create(b, loc, f32, shifted),
                                       constant(f32, std::ldexp(1.0, 127 - format.bias)));
  Value finite = arith::BitcastOp::create(b, loc, i32, scaled);
  Value special =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, magnitude, constantInt(i32, format.infinity));
  Value inf = arith::OrIOp::create(b, loc, shifted, constantInt(i32, format.hasInf ? 0x7f800000 : 0x7fc00000));
  Value result = arith::SelectOp::create(b, loc, special, inf, finite);
  return arith::BitcastOp::create(b, loc, f32, arith::OrIOp::create(b, loc, result, sign));
}

Value Emitter::toBits(Value value, FloatType type) {
  Type i32 = withElement(value.getType(), b.getI32Type()), f32 = value.getType();
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  if (type.isBF16()) {
    Value shifted = arith::ShRUIOp::create(b, loc, bits, constantInt(i32, 16));
    return arith::TruncIOp::create(b, loc, withElement(f32, b.getI16Type()), shifted);
  }
  Format format = getFormat(type);
  Value magnitude = arith::AndIOp::create(b, loc, bits, constantInt(i32, 0x7fffffff));
  Value sign = arith::ShRUIOp::create(b, loc, arith::XOrIOp::create(b, loc, bits, magnitude),
                                      constantInt(i32, 32 - format.bits));
  // The value is exact in the format: scaling down puts it where its bits are.
  Value absolute = arith::BitcastOp::create(b, loc, f32, magnitude);
  Value scaled = arith::MulFOp::create(b, loc, absolute, constant(f32, std::ldexp(1.0, format.bias - 127)));
  Value finite = arith::ShRUIOp::create(b, loc, arith::BitcastOp::create(b, loc, i32, scaled),
                                        constantInt(i32, 23 - format.mantissa));
  Value isInf = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, magnitude, constantInt(i32, 0x7f800000));
  Value isNan = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, magnitude, constantInt(i32, 0x7f800000));
  uint32_t nan = format.hasInf ? format.infinity | (1u << (format.mantissa - 1)) : format.infinity;
  Value result = arith::SelectOp::create(b, loc, isInf, constantInt(i32, format.infinity), finite);
  result = arith::SelectOp::create(b, loc, isNan, constantInt(i32, nan), result);
  result = arith::OrIOp::create(b, loc, result, sign);
  return arith::TruncIOp::create(b, loc, withElement(f32, b.getIntegerType(format.bits)), result);
}

Value Emitter::roundTo(Value value, FloatType type) {
  Type f32 = value.getType(), i32 = withElement(f32, b.getI32Type());
  if (type.isF16() && options.f16c) {
    Value half = arith::TruncFOp::create(b, loc, withElement(f32, type), value);
    return arith::ExtFOp::create(b, loc, f32, half);
  }
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  Value isNan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  unsigned mantissa = type.isBF16() ? 7 : getFormat(type).mantissa, drop = 23 - mantissa;
  // To nearest even: add half a unit, less one when the kept part is even.
  auto nearest = [&](Value raw) {
    Value odd =
        arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, raw, constantInt(i32, drop)), constantInt(i32, 1));
    Value add = arith::AddIOp::create(b, loc, odd, constantInt(i32, (1 << (drop - 1)) - 1));
    Value sum = arith::AddIOp::create(b, loc, raw, add);
    return arith::AndIOp::create(b, loc, sum, constantInt(i32, -(int64_t(1) << drop))).getResult();
  };
  if (type.isBF16()) {
    Value rounded = nearest(bits);
    Value quiet = arith::OrIOp::create(b, loc, arith::AndIOp::create(b, loc, bits, constantInt(i32, -(1 << 16))),
                                       constantInt(i32, 1 << 22));
    Value result = arith::SelectOp::create(b, loc, isNan, quiet, rounded);
    return arith::BitcastOp::create(b, loc, f32, result);
  }
  Format format = getFormat(type);
  Value magnitude = arith::AndIOp::create(b, loc, bits, constantInt(i32, 0x7fffffff));
  Value sign = arith::XOrIOp::create(b, loc, bits, magnitude);
  Value absolute = arith::BitcastOp::create(b, loc, f32, magnitude);
  Value normal = arith::BitcastOp::create(b, loc, f32, nearest(magnitude));
  // Subnormals of the format: adding a number whose unit is theirs rounds to that unit.
  double smallest = std::ldexp(1.0, 1 - format.bias);
  Value magic = constant(f32, std::ldexp(1.0, 1 - format.bias - int(format.mantissa) + 23));
  Value subnormal = arith::SubFOp::create(b, loc, arith::AddFOp::create(b, loc, absolute, magic), magic);
  Value isSubnormal = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, absolute, constant(f32, smallest));
  Value result = arith::SelectOp::create(b, loc, isSubnormal, subnormal, normal);
  Value over = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, result, constant(f32, format.largest));
  double beyond = format.hasInf ? INFINITY : NAN;
  result = arith::SelectOp::create(b, loc, over, constant(f32, beyond), result);
  Value signedBits = arith::OrIOp::create(b, loc, arith::BitcastOp::create(b, loc, i32, result), sign);
  result = arith::BitcastOp::create(b, loc, f32, signedBits);
  return arith::SelectOp::create(b, loc, isNan, value, result);
}

Value Emitter::loadConverted(Value pointer, Type element, int64_t w) {
  auto load = [&](Type type) -> Value {
    return LLVM::LoadOp::create(b, loc, vec(type, w), pointer, storageBytes(type));
  };
  if (element.isF16() && options.f16c)
    return arith::ExtFOp::create(b, loc, vec(b.getF32Type(), w), load(element));
  if (isNarrowFloat(element))
    return fromBits(load(b.getIntegerType(element.getIntOrFloatBitWidth())), cast<FloatType>(element));
  if (element.isIndex())
    return arith::IndexCastOp::create(b, loc, vec(element, w), load(b.getI64Type()));
  if (element.isInteger(1)) {
    Value byte = load(b.getI8Type());
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, byte, constantInt(byte.getType(), 0));
  }
  return load(element);
}

void Emitter::storeConverted(Value value, Type element, Value pointer) {
  auto store = [&](Value raw) {
    LLVM::StoreOp::create(b, loc, raw, pointer, storageBytes(getElementTypeOrSelf(raw.getType())));
  };
  if (element.isF16() && options.f16c)
    return store(arith::TruncFOp::create(b, loc, withElement(value.getType(), element), value));
  if (isNarrowFloat(element))
    return store(toBits(value, cast<FloatType>(element)));
  if (element.isIndex())
    return store(arith::IndexCastOp::create(b, loc, withElement(value.getType(), b.getI64Type()), value));
  if (element.isInteger(1))
    return store(arith::ExtUIOp::create(b, loc, withElement(value.getType(), b.getI8Type()), value));
  store(value);
}
