//===- Baseline.cpp - a plain fp32 softmax, rounded where kernels round ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The yardstick of the bf16 tolerance: what precision costs anyone who keeps
// the tensor cores' operands in 16 bits and everything else in fp32.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Reference.h"

#include <algorithm>
#include <cmath>

namespace attn {
namespace ref {

namespace {

using Row = std::vector<float>;

Row hooked(const float *data, int64_t dim, const VecHook &hook, const Coord &at, Storage type) {
  Row row(data, data + dim);
  if (!hook)
    return row;
  Vec result = hook(Vec(row.begin(), row.end()), at);
  for (int64_t d = 0; d != dim; ++d)
    row[d] = float(roundTo(type, float(result[d])));
  return row;
}

/// What the rounding of hooked q and k to `type` does to one logit, as a standard deviation: an element is off by at
/// most half a unit in its last place, evenly spread.
double logitRounding(const Row &q, const Row &k, double scale, const Hooks &hooks, Storage type) {
  double relative = storageEpsilon(type) / 2 / std::sqrt(3.0), sum = 0;
  for (size_t d = 0; d != q.size(); ++d)
    sum += double(q[d]) * k[d] * (double(q[d]) * k[d]);
  return std::fabs(scale) * relative * std::sqrt(sum * (bool(hooks.query) + bool(hooks.key)));
}

struct Keys {
  std::vector<KeyPlace> places;
  std::vector<Row> k, v;
};

} // namespace

Result fp32Baseline(const Problem &p, const Hooks &hooks, Storage typeQ, Storage typeO) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  bool softmax = p.normalizer == Normalizer::Softmax;
  Result result;
  result.heads = p.headsQo;
  result.dim = p.headDimVo;
  result.o.assign(p.tokens() * p.headsQo * p.headDimVo, 0.0);
  result.logitMagnitude.assign(p.tokens() * p.headsQo, 0.0);
  result.valueMagnitude.assign(p.tokens() * p.headsQo, 0.0);
  if (softmax)
    result.lse.assign(p.tokens() * p.headsQo, -inf);
  bool rounds = softmax && (hooks.query || hooks.key);
  if (rounds)
    result.lseRounding.assign(p.tokens() * p.headsQo, 0.0);
  float scale = float(p.smScale());

  for (int64_t request = 0; request != p.requests(); ++request) {
    Coord at;
    at.request = request;
    at.qoLen = p.qoLen(request);
    at.kvLen = kvLen(p, request);
    int64_t step = p.format == Format::Bsr ? p.rowBlock : std::max<int64_t>(at.qoLen, 1);
    for (int64_t first = 0; first < at.qoLen; first += step)
      for (int64_t kvHead = 0; kvHead != p.headsKv; ++kvHead) {
        Keys keys = {keysOf(p, request, first), {}, {}};
        Coord head = at;
        head.kvHead = kvHead;
        head.qHead = kvHead * p.group();
        head.qPos = at.kvLen - at.qoLen;
        keys.k.resize(keys.places.size());
        keys.v.resize(keys.places.size());
#pragma omp parallel for schedule(static)
        for (int64_t j = 0; j < int64_t(keys.places.size()); ++j) {
          Coord here = head;
          const KeyPlace &place = keys.places[j];
          here.kvPos = place.position;
          keys.k[j] = hooked(p.k.at(place.block, place.row, kvHead), p.headDimQk, hooks.key, here, typeQ);
          keys.v[j] = hooked(p.v.at(place.block, place.row, kvHead), p.headDimVo, hooks.value, here, typeQ);
        }
        int64_t rows = std::min(step, at.qoLen - first);
#pragma omp parallel for schedule(dynamic, 1)
        for (int64_t i = 0; i < rows * p.group(); ++i) {
          Coord here = head;
          here.row = first + i / p.group();
          here.qHead += i % p.group();
          here.qPos = here.row + at.kvLen - at.qoLen;
          int64_t token = p.qoIndptr[request] + here.row;
          Row q = hooked(p.q.at(0, token, here.qHead), p.headDimQk, hooks.query, here, typeQ);
          Row x(keys.places.size(), -inf);
          std::vector<char> visible(keys.places.size(), 1);
          std::vector<double> rounding(rounds ? keys.places.size() : 0);
          float top = -inf;
          for (size_t j = 0; j != x.size(); ++j) {
            here.kvPos = keys.places[j].position;
            if (hooks.mask && !hooks.mask(here)) {
              visible[j] = 0;
              continue;
            }
            float dot = 0;
            for (int64_t d = 0; d != p.headDimQk; ++d)
              dot += q[d] * keys.k[j][d];
            x[j] = scale * dot;
            if (rounds)
              rounding[j] = logitRounding(q, keys.k[j], scale, hooks, typeQ);
            if (hooks.logits) {
              float logit = float(hooks.logits(x[j], here));
              if (rounds)
                rounding[j] = std::max(std::fabs(hooks.logits(x[j] + rounding[j], here) - logit),
                                       std::fabs(hooks.logits(x[j] - rounding[j], here) - logit));
              x[j] = logit;
            }
            top = std::max(top, x[j]);
          }
          if (softmax && top == -inf)
            continue;
          float sum = 0;
          double deviation = 0;
          Row o(p.headDimVo, 0.0f);
          for (size_t j = 0; j != x.size(); ++j) {
            if (!visible[j])
              continue;
            float weight = softmax ? std::exp(x[j] - top) : x[j];
            sum += weight;
            if (rounds && weight > 0)
              deviation += weight * rounding[j];
            float operand = float(roundTo(typeQ, weight));
            for (int64_t d = 0; d != p.headDimVo; ++d)
              o[d] += operand * keys.v[j][d];
          }
          double *out = result.row(token, here.qHead);
          for (int64_t d = 0; d != p.headDimVo; ++d)
            out[d] = softmax ? o[d] / sum : o[d];
          if (softmax) {
            double lse = double(top + std::log(sum)), unit = p.lseBase == LseBase::Base2 ? std::log(2.0) : 1.0;
            result.lse[token * p.headsQo + here.qHead] = lse / unit;
            if (rounds)
              result.lseRounding[token * p.headsQo + here.qHead] = deviation / sum / unit;
          }
        }
      }
  }
  finalise(result, p, hooks);
  for (double &value : result.o)
    value = roundTo(typeO, value);
  return result;
}

} // namespace ref
} // namespace attn
