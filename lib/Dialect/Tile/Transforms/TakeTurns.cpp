//===- TakeTurns.cpp - consumers issue their products in turns ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two groups that issue their products at the same time also run their softmax
// at the same time, and the tensor cores idle meanwhile. Left alone the groups
// drift apart, and at head dim 128 that is as good; where the softmax is long for
// its products (small heads, logits hooks) turns are faster (docs/Performance.md).
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILETAKETURNSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// The product that is issued behind `dot` before anything is waited for.
static DotAsyncOp getCompanion(DotAsyncOp dot) {
  for (Operation *op = dot->getNextNode(); op && !isa<AwaitOp>(op); op = op->getNextNode())
    if (auto next = dyn_cast<DotAsyncOp>(op))
      return next;
  return {};
}

namespace {
struct TakeTurnsPass : tile::impl::TileTakeTurnsPassBase<TakeTurnsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkLevel(kernel, Level::Specialized, "it runs after tile-warp-specialize")))
      return signalPassFailure();
    attn::ConfigAttr config = requireConfig(kernel);
    if (!config)
      return signalPassFailure();
    if (!config.getTurns())
      return;
    UnitAttr unit = UnitAttr::get(&getContext());
    kernel.walk([&](RoleOp role) {
      if (role.getGroups() < 2)
        return;
      role.walk([&](DotAsyncOp dot) {
        DotAsyncOp next = getCompanion(dot);
        if (!next || dot->hasAttr(kPassesTurn))
          return;
        dot->setAttr(kTakesTurn, unit);
        next->setAttr(kPassesTurn, unit);
        ++numTurns;
      });
    });
  }
};
} // namespace
