//===- HoldWaits.cpp - waits stay behind the work they overlap with ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas sees no order between the wait for a product and arithmetic on other
// registers. In some kernels it puts the wait for P V before the exponentials of
// the block that was meant to hide it, in others behind some of them, with no
// difference in the PTX that would tell: on an H200, 740 or 600 TFLOP/s. Held
// behind the first exponentials of each row the wait stands where the fast ones
// have it; held behind all of them, everything that follows comes too late
// (docs/Performance.md).
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEHOLDWAITSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// Terms of each row's sum in a key loop, and in the step between two items, which has more to hide.
static constexpr int64_t kTermsOfLoop = 1, kTermsBetweenItems = 4;

/// The last sum of a thread's terms between the youngest product and the wait for it.
static ReduceOp getOverlapped(AwaitOp await) {
  ReduceOp sum;
  for (Operation *op = await->getPrevNode(); op; op = op->getPrevNode()) {
    if (auto dot = dyn_cast<DotAsyncOp>(op))
      return dot.getResult() == await.getPending() ? sum : ReduceOp();
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!sum && reduce && reduce.getKind() == ReduceKind::AddF && reduce.getScope() == ReduceScope::Thread)
      sum = reduce;
  }
  return {};
}

namespace {
struct HoldWaitsPass : tile::impl::TileHoldWaitsPassBase<HoldWaitsPass> {
  void runOnOperation() override {
    getOperation().walk([&](AwaitOp await) {
      ReduceOp sum = getOverlapped(await);
      if (!sum || await.getAfter())
        return;
      await.getAfterMutable().assign(sum.getResult());
      await.setTerms(await->getParentOfType<scf::ForOp>() ? kTermsOfLoop : kTermsBetweenItems);
      ++numWaits;
    });
  }
};
} // namespace
