//===- AttnToTilePass.cpp - the pass around convertAttentionToTile ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "attn/Conversion/AttnToTile/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNTOTILEPASS
#include "attn/Conversion/AttnToTile/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
class AttnToTilePass : public attn::impl::AttnToTilePassBase<AttnToTilePass> {
  void runOnOperation() override {
    SmallVector<attn::AttentionOp> ops;
    getOperation().walk([&](attn::AttentionOp op) { ops.push_back(op); });
    for (attn::AttentionOp op : ops) {
      FailureOr<attn::AttentionKernels> made = attn::convertAttentionToTile(op);
      if (failed(made))
        return signalPassFailure();
      numKernels += made->kernels.size() + 1;
    }
  }
};
} // namespace
