//===- LegalizeMathPass.cpp - attn-legalize-math ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_LEGALIZEMATHPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct LegalizeMathPass : attn::impl::LegalizeMathPassBase<LegalizeMathPass> {
  using LegalizeMathPassBase::LegalizeMathPassBase;
  void runOnOperation() override {
    if (failed(legalizeMath(getOperation(), target)))
      signalPassFailure();
  }
};
} // namespace
