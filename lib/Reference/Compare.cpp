//===- Compare.cpp - tolerances, and what is worst ------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk over all elements serves o and lse; infinities must match exactly.
//
//===----------------------------------------------------------------------===//

#include "attn/Reference/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace attn {
namespace ref {

Tolerance Tolerance::output(Storage typeO, bool approximate) {
  if (approximate)
    return {2e-2, 2e-2, 0};
  switch (typeO) {
  case Storage::F32:
    return {1e-5, 1e-5, 0};
  case Storage::F16:
    return {1e-3, 1e-3, 0};
  case Storage::BF16:
    return {1e-2, 1e-2, 2};
  case Storage::E4M3:
  case Storage::E5M2:
    break;
  }
  // Half a unit in the last place of the type and as much for the arithmetic before it.
  return {storageEpsilon(typeO), storageEpsilon(typeO), 0};
}

Tolerance Tolerance::lse(bool approximate) { return approximate ? Tolerance{2e-2, 2e-2, 0} : Tolerance{1e-3, 0, 0}; }

namespace {

/// How far off `got` is in units of what is allowed; above 1 is bad.
double severity(double expected, double got, double allowed) {
  if (std::isnan(got))
    return std::numeric_limits<double>::max() / 2;
  if (std::isinf(expected) || std::isinf(got))
    return expected == got ? 0 : std::numeric_limits<double>::max() / 4;
  return std::fabs(got - expected) / std::max(allowed, 1e-300);
}

Comparison compareAll(const Problem &p, const Result &expected, const std::vector<double> &values, int64_t dim,
                      const OutputView &got, const Tolerance &tol, bool isLse, const Result *baseline) {
  Comparison result;
  double worst = -1, largest = 0;
  constexpr double fp32 = 1.0 / (1 << 22);
  double unit = isLse && p.lseBase == LseBase::Base2 ? 1.0 / std::log(2.0) : 1.0;
  for (int64_t request = 0; request != p.requests(); ++request)
    for (int64_t token = p.qoIndptr[request]; token != p.qoIndptr[request + 1]; ++token)
      for (int64_t head = 0; head != p.headsQo; ++head) {
        int64_t index = token * p.headsQo + head;
        double logits = expected.logitMagnitude.empty() ? 0 : expected.logitMagnitude[index] * fp32 * unit;
        if (!isLse && p.normalizer == Normalizer::Softmax)
          logits = std::min(logits, 1.0) * (expected.valueMagnitude.empty() ? 0 : expected.valueMagnitude[index]);
        else if (!isLse)
          logits = 0;
        const std::vector<double> *base = !baseline ? nullptr : isLse ? &baseline->lse : &baseline->o;
        double unavoidable = 0; // of this row, by the baseline
        for (int64_t d = 0; base && d != dim; ++d)
          if (std::isfinite(values[index * dim + d]) && std::isfinite((*base)[index * dim + d]))
            unavoidable = std::max(unavoidable, 2 * std::fabs((*base)[index * dim + d] - values[index * dim + d]));
        result.baselineError = std::max(result.baselineError, unavoidable / 2);
        // Four standard deviations: one row of 16 000 goes beyond.
        if (isLse && baseline && !baseline->lseRounding.empty())
          unavoidable = std::max(unavoidable, 4 * baseline->lseRounding[index]);
        for (int64_t d = 0; d != dim; ++d) {
          size_t place = token * got.tokenStride + head * got.headStride + d;
          double want = values[index * dim + d], have = loadElement(got.type, got.data, place);
          double allowed = std::max(tol.abs + tol.rel * std::fabs(want), unavoidable) + logits;
          if (std::isinf(want))
            allowed = 0;
          ++result.checked;
          double how = severity(want, have, allowed);
          // A reference NaN (a hook that makes one) matches a NaN.
          if (std::isnan(want))
            how = std::isnan(have) ? 0 : severity(0, std::nan(""), 1);
          bool unwritten = isPoison(got.type, got.data, place);
          if (unwritten) {
            ++result.unwritten;
            how = std::numeric_limits<double>::max();
          } else if (std::isnan(have)) {
            ++result.nans;
          } else if (std::isfinite(have) && std::isfinite(want)) {
            result.maxError = std::max(result.maxError, std::fabs(have - want));
          }
          if (std::isfinite(want))
            largest = std::max(largest, std::fabs(want));
          result.bad += how > 1;
          if (how > worst) {
            worst = how;
            result.worst = {request, token - p.qoIndptr[request], token, head, d, want, have, allowed};
          }
        }
      }
  result.ok = result.bad == 0;
  if (baseline && tol.baselineFactor > 0) {
    double ceiling = std::max(tol.baselineFactor * result.baselineError, storageEpsilon(got.type) * largest);
    if (result.maxError > ceiling)
      result.ok = false;
  }
  return result;
}

} // namespace

Comparison compareOutput(const Problem &problem, const Result &expected, const OutputView &got, const Tolerance &tol,
                         const Result *baseline) {
  return compareAll(problem, expected, expected.o, problem.headDimVo, got, tol, false, baseline);
}

Comparison compareLse(const Problem &problem, const Result &expected, const OutputView &got, const Tolerance &tol,
                      const Result *baseline) {
  return compareAll(problem, expected, expected.lse, 1, got, tol, true, baseline);
}

std::string Comparison::text() const {
  char line[400];
  if (checked == 0)
    return "nothing to compare";
  if (ok) {
    std::snprintf(line, sizeof line, "ok: %lld elements, max error %.3g", (long long)checked, maxError);
    return line;
  }
  if (bad == 0) {
    std::snprintf(line, sizeof line, "max error %.3g exceeds the limit set by the fp32 baseline, whose error is %.3g",
                  maxError, baselineError);
    return line;
  }
  std::snprintf(line, sizeof line,
                "%lld of %lld elements wrong (%lld unwritten, %lld nan); worst at request %lld, row %lld, head %lld, "
                "dim %lld (token %lld): expected %.9g, got %.9g, allowed %.3g",
                (long long)bad, (long long)checked, (long long)unwritten, (long long)nans, (long long)worst.request,
                (long long)worst.row, (long long)worst.head, (long long)worst.dim, (long long)worst.token,
                worst.expected, worst.got, worst.allowed);
  return line;
}

} // namespace ref
} // namespace attn
