//===- Variants.cpp - ready hooks for tests -------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small closures; whatever they capture by value is shared read-only between
// threads.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Variants.h"

#include <cmath>
#include <memory>
#include <utility>

namespace attn {
namespace ref {

Mask causal() {
  return [](const Coord &at) { return at.kvPos <= at.qPos; };
}

Mask window(int64_t left, int64_t right) {
  return [=](const Coord &at) {
    return (left < 0 || at.qPos - left <= at.kvPos) && (right < 0 || at.kvPos <= at.qPos + right);
  };
}

Mask sinkTokens(int64_t count, Mask inside) {
  return maskOr([=](const Coord &at) { return at.kvPos < count; }, std::move(inside));
}

Mask prefixLM(std::vector<int64_t> prefix) {
  return [prefix = std::move(prefix)](const Coord &at) { return at.kvPos < prefix[at.request] || at.kvPos <= at.qPos; };
}

Mask document(std::vector<int64_t> ids, std::vector<int64_t> offsets) {
  return [ids = std::move(ids), offsets = std::move(offsets)](const Coord &at) {
    return at.qPos >= 0 && ids[offsets[at.request] + at.qPos] == ids[offsets[at.request] + at.kvPos];
  };
}

Mask treeMask(std::vector<uint8_t> bits, std::vector<int64_t> offsets, bool perHead) {
  return [bits = std::move(bits), offsets = std::move(offsets), perHead](const Coord &at) {
    int64_t base = offsets[at.request];
    if (perHead)
      base += at.qHead * ((at.qoLen * at.kvLen + 7) / 8);
    int64_t bit = at.row * at.kvLen + at.kvPos;
    return bool(bits[base + bit / 8] >> (bit % 8) & 1);
  };
}

Mask maskAnd(Mask a, Mask b) {
  return [a = std::move(a), b = std::move(b)](const Coord &at) { return a(at) && b(at); };
}

Mask maskOr(Mask a, Mask b) {
  return [a = std::move(a), b = std::move(b)](const Coord &at) { return a(at) || b(at); };
}

Logits softCap(double cap) {
  return [=](double x, const Coord &) { return cap * std::tanh(x / cap); };
}

Logits alibi(std::vector<double> slopes) {
  return [slopes = std::move(slopes)](double x, const Coord &at) {
    return x + slopes[at.qHead] * double(at.kvPos - at.qPos);
  };
}

std::vector<double> alibiSlopes(int64_t heads, int64_t first, int64_t count) {
  std::vector<double> all;
  int64_t n = 1;
  while (2 * n <= heads)
    n *= 2;
  for (int64_t k = 1; k <= n && int64_t(all.size()) < heads; ++k)
    all.push_back(std::exp2(-8.0 * double(k) / double(n)));
  for (int64_t k = 1; int64_t(all.size()) < heads; k += 2)
    all.push_back(std::exp2(-4.0 * double(k) / double(n)));
  if (count < 0)
    count = heads - first;
  return std::vector<double>(all.begin() + first, all.begin() + first + count);
}

Logits sigmoid(double bias) {
  return [=](double x, const Coord &) { return 1.0 / (1.0 + std::exp(-(x + bias))); };
}

Logits chain(Logits a, Logits b) {
  return [a = std::move(a), b = std::move(b)](double x, const Coord &at) { return b(a(x, at), at); };
}

std::function<double(const Coord &)> headSink(std::vector<double> values) {
  return [values = std::move(values)](const Coord &at) { return values[at.qHead]; };
}

std::vector<float> ropeFrequencies(const Rope &rope, int64_t dim) {
  int64_t rotary = rope.rotary ? rope.rotary : dim;
  const double pi = std::acos(-1.0);
  std::vector<float> result;
  for (int64_t t = 0; 2 * t < rotary; ++t) {
    double frequency = std::pow(rope.theta, -2.0 * double(t) / double(rotary));
    double wavelength = 2.0 * pi / frequency;
    if (!(rope.lowFreq > 0 && rope.highFreq > 0 && rope.original > 0)) {
      frequency /= rope.factor;
    } else if (wavelength > double(rope.original) / rope.lowFreq) {
      frequency /= rope.factor;
    } else if (wavelength >= double(rope.original) / rope.highFreq) {
      double smooth = (double(rope.original) / wavelength - rope.lowFreq) / (rope.highFreq - rope.lowFreq);
      frequency = (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
    }
    result.push_back(float(frequency));
  }
  return result;
}

Vec rotate(Vec x, int64_t position, const Rope &rope) {
  int64_t rotary = rope.rotary ? rope.rotary : int64_t(x.size());
  std::vector<float> frequencies = ropeFrequencies(rope, int64_t(x.size()));
  for (int64_t t = 0; 2 * t < rotary; ++t) {
    // Exact up to positions of 2^29: a 24-bit frequency times the position fits a double.
    double angle = double(position) * double(frequencies[t]), c = std::cos(angle), s = std::sin(angle);
    double &a = rope.interleaved ? x[2 * t] : x[t];
    double &b = rope.interleaved ? x[2 * t + 1] : x[t + rotary / 2];
    double first = a * c - b * s, second = b * c + a * s;
    a = first;
    b = second;
  }
  return x;
}

VecHook ropeQuery(const Rope &rope) {
  return [=](Vec x, const Coord &at) { return rotate(std::move(x), at.qPos, rope); };
}

VecHook ropeKey(const Rope &rope) {
  return [=](Vec x, const Coord &at) { return rotate(std::move(x), at.kvPos, rope); };
}

} // namespace ref
} // namespace attn
