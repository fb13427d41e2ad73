//===- LaunchPass.cpp - attn-to-launch ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNTOLAUNCHPASS
#include "attn/Conversion/AttnToHost/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
struct AttnToLaunchPass : attn::impl::AttnToLaunchPassBase<AttnToLaunchPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<attn::AttentionOp> ops;
    module.walk([&](attn::AttentionOp op) { ops.push_back(op); });
    for (attn::AttentionOp op : ops) {
      FailureOr<int64_t> launches = attn::convertToLaunches(op);
      if (failed(launches))
        return signalPassFailure();
      numLaunches += *launches;
    }
    // The hooks are in the kernels now.
    for (auto variant : llvm::make_early_inc_range(module.getOps<attn::VariantOp>()))
      if (SymbolTable::symbolKnownUseEmpty(variant, module))
        variant.erase();
  }
};
} // namespace
