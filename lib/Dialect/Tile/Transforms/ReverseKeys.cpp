//===- ReverseKeys.cpp - key loops run from the last block to the first ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   for j = lo to hi step keys: ...
// becomes
//   for n = lo to max(hi, lo + 1) step keys: j = lo + last - n; ...
//
// The ragged end and the diagonal come first: that block is peeled off by the
// skewing anyway, so what follows needs no mask. A range without keys visits one
// block, which the mask empties: no branch stands around the loop.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "WarpSpecialize.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEREVERSEKEYSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// True when the loop's first product goes through a mask: blocks outside of the range then have no weight.
static bool isMasked(scf::ForOp loop) { return !loop.getBody()->getOps<MaskOp>().empty(); }

static void reverse(scf::ForOp loop) {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  Value lo = loop.getLowerBound(), hi = loop.getUpperBound(), step = loop.getStep();
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value least = arith::AddIOp::create(builder, loc, lo, one);
  Value end = arith::MaxSIOp::create(builder, loc, hi, least);
  Value last = createLastStep(builder, loc, lo, end, step);
  Value c = arith::AddIOp::create(builder, loc, lo, last);
  loop.setUpperBound(end);
  builder.setInsertionPointToStart(loop.getBody());
  Value iv = loop.getInductionVar();
  auto key = arith::SubIOp::create(builder, loc, c, iv);
  iv.replaceAllUsesExcept(key, key);
  loop->setAttr(specialize::kAtLeastOnce, builder.getUnitAttr());
  if (llvm::all_of(loop.getBody()->getOps<MaskOp>(), [&](MaskOp mask) { return mask.getLo() == lo; }))
    loop->setAttr(specialize::kFromInterval, builder.getUnitAttr());
}

namespace {
struct ReverseKeysPass : tile::impl::TileReverseKeysPassBase<ReverseKeysPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkLevel(kernel, Level::Logical, "it runs before tile-multibuffer and tile-warp-specialize")))
      return signalPassFailure();
    for (scf::ForOp loop : getProductLoops(kernel)) {
      if (!isMasked(loop)) {
        loop.emitOpError() << "has products and no tile.mask: what an empty range visits would count";
        return signalPassFailure();
      }
      reverse(loop);
      ++numLoops;
    }
  }
};
} // namespace
