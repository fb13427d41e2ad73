//===- RoundingTest.cpp - storage types against simple definitions --------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every bit pattern is decoded and encoded again; rounding is checked at every
// midpoint and its neighbours against a search among all values of the type.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Rounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

using namespace attn::ref;

namespace {

/// The value of a pattern from the textbook: (-1)^s * 2^(e - bias) * 1.m.
double textbook(Storage type, uint32_t bits) {
  int e, m;
  switch (type) {
  case Storage::BF16:
    e = 8, m = 7;
    break;
  case Storage::F16:
    e = 5, m = 10;
    break;
  case Storage::E4M3:
    e = 4, m = 3;
    break;
  default:
    e = 5, m = 2;
    break;
  }
  int sign = bits >> (e + m) & 1, field = bits >> m & ((1 << e) - 1), mantissa = bits & ((1 << m) - 1);
  int bias = (1 << (e - 1)) - 1;
  double value;
  if (type == Storage::E4M3 && field == 15 && mantissa == 7)
    value = NAN;
  else if (type != Storage::E4M3 && field == (1 << e) - 1)
    value = mantissa ? NAN : INFINITY;
  else if (field == 0)
    value = mantissa * std::pow(2.0, 1 - bias - m);
  else
    value = (1 + mantissa * std::pow(2.0, -m)) * std::pow(2.0, field - bias);
  return sign ? -value : value;
}

const Storage kTypes[] = {Storage::BF16, Storage::F16, Storage::E4M3, Storage::E5M2};

TEST(Rounding, DecodeIsTheTextbook) {
  for (Storage type : kTypes)
    for (uint32_t bits = 0; bits != 1u << (8 * storageBytes(type)); ++bits) {
      double want = textbook(type, bits), got = decode(type, bits);
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(got)) << storageName(type) << " " << bits;
      else
        EXPECT_EQ(want, got) << storageName(type) << " " << bits;
    }
}

TEST(Rounding, EncodeInvertsDecode) {
  for (Storage type : kTypes)
    for (uint32_t bits = 0; bits != 1u << (8 * storageBytes(type)); ++bits) {
      float value = decode(type, bits);
      if (!std::isnan(value))
        EXPECT_EQ(bits, encode(type, value)) << storageName(type);
      else
        EXPECT_TRUE(std::isnan(decode(type, encode(type, value))));
    }
}

TEST(Rounding, NearestEvenAtEveryMidpoint) {
  for (Storage type : kTypes) {
    uint32_t positive = 1u << (8 * storageBytes(type) - 1);
    for (uint32_t bits = 0; bits + 1 != positive; ++bits) {
      double low = textbook(type, bits), high = textbook(type, bits + 1);
      if (!std::isfinite(low) || !std::isfinite(high))
        continue;
      double middle = (low + high) / 2; // exact: one bit more
      uint32_t even = bits & 1 ? bits + 1 : bits;
      EXPECT_EQ(even, encodeDouble(type, middle)) << storageName(type) << " " << bits;
      EXPECT_EQ(bits, encodeDouble(type, std::nextafter(middle, low)));
      EXPECT_EQ(bits + 1, encodeDouble(type, std::nextafter(middle, high)));
      EXPECT_EQ(even | positive, encodeDouble(type, -middle));
      EXPECT_EQ(bits, encode(type, std::nextafter(float(middle), float(low))));
    }
  }
}

TEST(Rounding, EdgesOfTheRange) {
  EXPECT_EQ(448.0, storageMax(Storage::E4M3));
  EXPECT_EQ(57344.0, storageMax(Storage::E5M2));
  EXPECT_EQ(65504.0, storageMax(Storage::F16));
  EXPECT_EQ(double(std::numeric_limits<float>::max()), storageMax(Storage::F32));
  EXPECT_EQ(448.0, roundTo(Storage::E4M3, 464.0)); // the tie between 448 and what would be 480 goes to the even one
  EXPECT_TRUE(std::isnan(roundTo(Storage::E4M3, 464.001)));
  EXPECT_TRUE(std::isnan(roundTo(Storage::E4M3, INFINITY)));
  EXPECT_EQ(65504.0, roundTo(Storage::F16, 65519.99));
  EXPECT_TRUE(std::isinf(roundTo(Storage::F16, 65520.0)));
  EXPECT_EQ(-INFINITY, roundTo(Storage::BF16, -3.4e38 * 1.01));
  EXPECT_EQ(0.0, roundTo(Storage::F16, std::ldexp(1.0, -25)));
  EXPECT_EQ(std::ldexp(1.0, -24), roundTo(Storage::F16, std::ldexp(1.0001, -25)));
  EXPECT_EQ(0u, encodeDouble(Storage::BF16, 1e-300));
  EXPECT_EQ(0x8000u, encodeDouble(Storage::BF16, -1e-300));
  EXPECT_EQ(0.0078125, storageEpsilon(Storage::BF16));
}

TEST(Rounding, BF16AgreesWithTheAddAndShiftIdiom) {
  uint32_t state = 12345;
  for (int i = 0; i != 1000000; ++i) {
    state = state * 1664525u + 1013904223u;
    float value;
    std::memcpy(&value, &state, 4);
    if (std::isnan(value))
      continue;
    EXPECT_EQ((state + 0x7fff + (state >> 16 & 1)) >> 16, encode(Storage::BF16, value));
  }
}

TEST(Rounding, NamesRoundTrip) {
  for (Storage type : {Storage::F32, Storage::BF16, Storage::F16, Storage::E4M3, Storage::E5M2}) {
    Storage back = Storage::F32;
    EXPECT_TRUE(parseStorage(storageName(type), back));
    EXPECT_EQ(type, back);
  }
  Storage unused;
  EXPECT_FALSE(parseStorage("f8", unused));
}

TEST(Rounding, PoisonIsNaNAndRecognised) {
  for (Storage type : {Storage::F32, Storage::BF16, Storage::F16, Storage::E4M3, Storage::E5M2}) {
    std::vector<char> memory(16 * storageBytes(type));
    poison(type, memory.data(), 16);
    EXPECT_TRUE(std::isnan(loadElement(type, memory.data(), 7)));
    EXPECT_TRUE(isPoison(type, memory.data(), 7));
    storeElement(type, memory.data(), 7, 1.5);
    EXPECT_FALSE(isPoison(type, memory.data(), 7));
    EXPECT_EQ(1.5f, loadElement(type, memory.data(), 7));
    storeElement(type, memory.data(), 7, NAN);
    EXPECT_TRUE(std::isnan(loadElement(type, memory.data(), 7)));
    if (type != Storage::E4M3) // e4m3 has two NaNs only: positive is a value, negative the poison
      EXPECT_FALSE(isPoison(type, memory.data(), 7)) << storageName(type);
  }
}

} // namespace
