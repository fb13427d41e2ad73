//===- Rounding.cpp - storage types and their exact rounding --------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One generic encoder and decoder, driven by the exponent and mantissa widths
// of each type. Rounding happens once, from the bits of a double.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Rounding.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace attn {
namespace ref {

namespace {

struct Shape {
  int exponentBits, mantissaBits;
  bool finite; // no infinity: the top exponent holds numbers, all ones is NaN
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint32_t signBit() const { return 1u << (exponentBits + mantissaBits); }
};

Shape shapeOf(Storage type) {
  switch (type) {
  case Storage::F32:
    return {8, 23, false};
  case Storage::BF16:
    return {8, 7, false};
  case Storage::F16:
    return {5, 10, false};
  case Storage::E4M3:
    return {4, 3, true};
  case Storage::E5M2:
    return {5, 2, false};
  }
  return {8, 23, false};
}

uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

} // namespace

size_t storageBytes(Storage type) {
  switch (type) {
  case Storage::F32:
    return 4;
  case Storage::BF16:
  case Storage::F16:
    return 2;
  case Storage::E4M3:
  case Storage::E5M2:
    return 1;
  }
  return 4;
}

const char *storageName(Storage type) {
  switch (type) {
  case Storage::F32:
    return "f32";
  case Storage::BF16:
    return "bf16";
  case Storage::F16:
    return "f16";
  case Storage::E4M3:
    return "e4m3";
  case Storage::E5M2:
    return "e5m2";
  }
  return "f32";
}

bool parseStorage(const std::string &name, Storage &type) {
  for (Storage candidate : {Storage::F32, Storage::BF16, Storage::F16, Storage::E4M3, Storage::E5M2})
    if (name == storageName(candidate)) {
      type = candidate;
      return true;
    }
  return false;
}

double storageMax(Storage type) {
  Shape s = shapeOf(type);
  int top = (1 << s.exponentBits) - 1 - s.bias(); // exponent of an all-ones exponent field
  double step = std::ldexp(1.0, -s.mantissaBits);
  return s.finite ? std::ldexp(2.0 - 2 * step, top) : std::ldexp(2.0 - step, top - 1);
}

double storageEpsilon(Storage type) { return std::ldexp(1.0, -shapeOf(type).mantissaBits); }

uint32_t encodeDouble(Storage type, double value) {
  Shape s = shapeOf(type);
  uint64_t bits = bitsOf(value);
  uint32_t sign = (bits >> 63) ? s.signBit() : 0;
  uint32_t topField = (1u << s.exponentBits) - 1;
  uint32_t infinity = topField << s.mantissaBits;
  uint32_t nan = s.finite ? s.signBit() - 1 : infinity | (1u << (s.mantissaBits - 1));
  if (std::isnan(value))
    return sign | nan;
  if (std::isinf(value))
    return s.finite ? sign | nan : sign | infinity;
  uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  int field = int((bits >> 52) & 0x7ff);
  if (field == 0) // zero and double's own subnormals: far below half of every type's smallest value
    return sign;
  int exponent = field - 1023;
  uint64_t significand = fraction | (uint64_t(1) << 52);
  // `shift` bits fall off; subnormals of the target lose more.
  int shift = 52 - s.mantissaBits;
  int targetField = exponent + s.bias();
  if (targetField < 1) {
    shift += 1 - targetField;
    targetField = 1;
    if (shift > 54)
      return sign;
  }
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // kept holds the hidden bit when normal; adding it to the field lets a carry walk into the exponent.
  uint64_t result = (uint64_t(targetField - 1) << s.mantissaBits) + kept;
  uint64_t limit = s.finite ? s.signBit() - 1 : infinity;
  if (result >= limit)
    return s.finite ? sign | nan : sign | infinity;
  return sign | uint32_t(result);
}

uint32_t encode(Storage type, float value) {
  if (type == Storage::F32) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  return encodeDouble(type, value);
}

float decode(Storage type, uint32_t bits) {
  if (type == Storage::F32 || type == Storage::BF16) {
    uint32_t wide = type == Storage::F32 ? bits : bits << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  Shape s = shapeOf(type);
  bool negative = bits & s.signBit();
  uint32_t topField = (1u << s.exponentBits) - 1;
  uint32_t field = (bits >> s.mantissaBits) & topField;
  uint32_t mantissa = bits & ((1u << s.mantissaBits) - 1);
  float magnitude;
  if (s.finite ? (bits & (s.signBit() - 1)) == s.signBit() - 1 : field == topField && mantissa)
    magnitude = std::numeric_limits<float>::quiet_NaN();
  else if (!s.finite && field == topField)
    magnitude = std::numeric_limits<float>::infinity();
  else if (field == 0)
    magnitude = std::ldexp(float(mantissa), 1 - s.bias() - s.mantissaBits);
  else
    magnitude = std::ldexp(float(mantissa + (1u << s.mantissaBits)), int(field) - s.bias() - s.mantissaBits);
  return negative ? -magnitude : magnitude;
}

double roundTo(Storage type, double value) {
  if (type == Storage::F32)
    return float(value);
  return decode(type, encodeDouble(type, value));
}

namespace {
uint32_t rawElement(Storage type, const void *data, size_t index) {
  size_t bytes = storageBytes(type);
  uint32_t bits = 0;
  std::memcpy(&bits, static_cast<const char *>(data) + index * bytes, bytes);
  return bits;
}

void setRaw(Storage type, void *data, size_t index, uint32_t bits) {
  size_t bytes = storageBytes(type);
  std::memcpy(static_cast<char *>(data) + index * bytes, &bits, bytes);
}
} // namespace

float loadElement(Storage type, const void *data, size_t index) { return decode(type, rawElement(type, data, index)); }

void storeElement(Storage type, void *data, size_t index, double value) {
  setRaw(type, data, index, type == Storage::F32 ? encode(type, float(value)) : encodeDouble(type, value));
}

uint32_t poisonBits(Storage type) {
  switch (type) {
  case Storage::F32:
    return 0xffbadbadu;
  case Storage::BF16:
    return 0xffbau;
  case Storage::F16:
    return 0xfeadu;
  case Storage::E4M3:
    return 0xffu;
  case Storage::E5M2:
    return 0xfeu;
  }
  return 0;
}

void poison(Storage type, void *data, size_t count) {
  uint32_t bits = poisonBits(type);
  for (size_t i = 0; i != count; ++i)
    setRaw(type, data, i, bits);
}

bool isPoison(Storage type, const void *data, size_t index) {
  return rawElement(type, data, index) == poisonBits(type);
}

} // namespace ref
} // namespace attn
