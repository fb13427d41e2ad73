//===- Rounding.h - storage types and their exact rounding ------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// bf16, f16, e4m3 (finite, NaN is 0x7f) and e5m2 to and from float, rounding to
// nearest even. Written bit by bit, without relying on compiler types, so that
// every other path can be compared with it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REFERENCE_ROUNDING_H
#define ATTN_REFERENCE_ROUNDING_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace attn {
namespace ref {

/// Element types of q, k, v and o in memory.
enum class Storage { F32, BF16, F16, E4M3, E5M2 };

/// Bytes of one element.
size_t storageBytes(Storage type);
/// "f32", "bf16", "f16", "e4m3", "e5m2": the manifest's names.
const char *storageName(Storage type);
/// The inverse of storageName; false when there is no such type.
bool parseStorage(const std::string &name, Storage &type);
/// Largest finite value.
double storageMax(Storage type);
/// Distance from 1 to the next value.
double storageEpsilon(Storage type);

/// Rounds to nearest even. Out of range gives infinity (e4m3, which has none: NaN). NaN stays NaN.
uint32_t encode(Storage type, float value);
/// The value of a bit pattern; exact.
float decode(Storage type, uint32_t bits);
/// The nearest value that the type holds. Double rounding is avoided: double to the type in one step.
double roundTo(Storage type, double value);
/// encode of a double in one rounding.
uint32_t encodeDouble(Storage type, double value);

/// Reads or writes element `index` of an array of `type`.
float loadElement(Storage type, const void *data, size_t index);
void storeElement(Storage type, void *data, size_t index, double value);

/// The bits of a NaN that outputs are filled with beforehand: an element that still holds it was never written.
uint32_t poisonBits(Storage type);
/// Fills `count` elements with poisonBits.
void poison(Storage type, void *data, size_t count);
/// Whether element `index` still holds the poison.
bool isPoison(Storage type, const void *data, size_t index);

} // namespace ref
} // namespace attn

#endif
