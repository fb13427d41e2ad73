//===- LegalizeHostKernelsPass.cpp - attn-legalize-host-kernels ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLEGALIZEHOSTKERNELSPASS
#include "attn/Conversion/AttnToHost/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
struct AttnLegalizeHostKernelsPass : attn::impl::AttnLegalizeHostKernelsPassBase<AttnLegalizeHostKernelsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr("attn.words"))
        continue;
      if (failed(attn::legalizeMath(function, attn::MathTarget::Host)))
        return signalPassFailure();
      ++numKernels;
    }
  }
};
} // namespace
