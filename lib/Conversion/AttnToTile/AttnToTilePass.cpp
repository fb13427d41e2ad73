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
    // Defined, but without a kernel so far: say so here rather than leave them to a later stage.
    WalkResult unsupported = getOperation().walk([](Operation *op) {
      if (!isa<attn::MergeOp, attn::AppendOp>(op))
        return WalkResult::advance();
      op->emitOpError()
          << "has no lowering yet; the runtime merges partial states, and pages are written by the caller";
      return WalkResult::interrupt();
    });
    if (unsupported.wasInterrupted())
      return signalPassFailure();
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
