//===- plain.cpp - attention as a plain loop ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What somebody writes who wants the right answer: one row at a time, fp32,
// expf, no fast-math. The benchmark compiles it with gcc -O3 -march=native.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <vector>

/// q, k, v, o: [tokens, heads, dim]; one request; causal is bottom-right aligned.
extern "C" void plain_attention(const float *q, const float *k, const float *v, float *o, long qo, long kv, long heads,
                                long headsKv, long dim, float scale, int causal) {
  std::vector<float> weights(kv);
  for (long h = 0; h < heads; ++h) {
    long hk = h / (heads / headsKv);
    for (long i = 0; i < qo; ++i) {
      const float *qi = q + (i * heads + h) * dim;
      float *oi = o + (i * heads + h) * dim;
      long visible = causal ? i + kv - qo + 1 : kv;
      float largest = -INFINITY, sum = 0;
      for (long j = 0; j < visible; ++j) {
        const float *kj = k + (j * headsKv + hk) * dim;
        float x = 0;
        for (long d = 0; d < dim; ++d)
          x += qi[d] * kj[d];
        weights[j] = x * scale;
        largest = weights[j] > largest ? weights[j] : largest;
      }
      for (long j = 0; j < visible; ++j) {
        weights[j] = expf(weights[j] - largest);
        sum += weights[j];
      }
      for (long d = 0; d < dim; ++d)
        oi[d] = 0;
      for (long j = 0; j < visible; ++j) {
        const float *vj = v + (j * headsKv + hk) * dim;
        for (long d = 0; d < dim; ++d)
          oi[d] += weights[j] * vj[d];
      }
      for (long d = 0; d < dim; ++d)
        oi[d] = sum > 0 ? oi[d] / sum : 0;
    }
  }
}
