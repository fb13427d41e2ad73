//===- PlanView.h - reading a finished plan ---------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_PLANVIEW_H
#define ATTN_LIB_RUNTIME_PLANVIEW_H

#include "PlanImpl.h"

#include <array>
#include <map>

namespace attnrt {

struct KernelView {
  const KernelDesc *desc = nullptr;
  const AttnWorkItem *items = nullptr;
  const int32_t *indptr = nullptr;
  int ctas = 0;
  int64_t count = 0;
};

/// Finds what an item was made from.
class PlanView {
public:
  explicit PlanView(const PlanImpl &plan);
  struct Known {
    int32_t cost = 0;
    int32_t level = 0;
  };
  /// `index` -1: the merge kernel.
  KernelView kernel(int index) const;
  Known find(int kernel, const AttnWorkItem &item) const;

private:
  const PlanImpl &plan;
  std::map<std::array<int32_t, 5>, Known> known;
};

} // namespace attnrt

#endif // ATTN_LIB_RUNTIME_PLANVIEW_H
