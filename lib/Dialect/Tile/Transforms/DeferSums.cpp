//===- DeferSums.cpp - sums over lanes move behind the key loop ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row's sum is l = a l + sum of P(j), or l + sum of P(j) where no maximum
// moves: linear in l, so each of the four lanes that share a row may keep a sum
// of its own: in the loop a thread adds what it holds, and the lanes are added
// once, where the loop's result is used.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEDEFERSUMSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// fma(l, a, s), l * a + s or l + s, of the inputs in any order; the number of s.
static bool isScaledSum(MapOp map, Value carried, unsigned &sum) {
  if (map.getNumResults() != 1 || map.getAt())
    return false;
  auto position = llvm::find(map.getInputs(), carried);
  if (position == map.getInputs().end())
    return false;
  Value l = map.getBody().getArgument(position - map.getInputs().begin()), factor, term;
  Operation *op = map.getYield().getOperand(0).getDefiningOp();
  if (auto fma = dyn_cast_or_null<math::FmaOp>(op)) {
    if (fma.getA() != l && fma.getB() != l)
      return false;
    factor = fma.getA() == l ? fma.getB() : fma.getA();
    term = fma.getC();
  } else if (auto add = dyn_cast_or_null<arith::AddFOp>(op)) {
    for (bool swap : {false, true}) {
      if ((swap ? add.getRhs() : add.getLhs()) == l) {
        term = swap ? add.getLhs() : add.getRhs();
        break;
      }
      auto mul = (swap ? add.getRhs() : add.getLhs()).getDefiningOp<arith::MulFOp>();
      if (!mul || (mul.getLhs() != l && mul.getRhs() != l))
        continue;
      factor = mul.getLhs() == l ? mul.getRhs() : mul.getLhs();
      term = swap ? add.getLhs() : add.getRhs();
      break;
    }
  }
  auto argument = dyn_cast_or_null<BlockArgument>(term);
  if (!argument || argument.getOwner() != map.getYield()->getBlock() || term == l || factor == l || factor == term)
    return false;
  sum = argument.getArgNumber();
  return llvm::hasSingleElement(l.getUsers()) && llvm::hasSingleElement(term.getUsers());
}

static RegType getPartial(RegType type) {
  auto slice = cast<SliceAttr>(type.getLayout());
  return type.withLayout(SliceAttr::get(type.getContext(), slice.getDim(), slice.getParent(), true));
}

/// Defers the sum that result `i` of `loop` carries; false when it carries none.
static bool defer(scf::ForOp loop, unsigned i) {
  auto type = dyn_cast<RegType>(loop.getResult(i).getType());
  auto slice = type ? dyn_cast_or_null<SliceAttr>(type.getLayout()) : SliceAttr();
  // Sums over columns: one a row, or one a row and group of keys.
  if (!slice || slice.getPartial() || slice.getDim() != type.getRank() || !isa<MmaAttr>(slice.getParent()))
    return false;
  Value arg = loop.getRegionIterArgs()[i];
  auto map = loop.getBody()->getTerminator()->getOperand(i).getDefiningOp<MapOp>();
  unsigned sum;
  if (!map || !arg.hasOneUse() || !map->hasOneUse() || !isScaledSum(map, arg, sum))
    return false;
  auto reduce = map.getInputs()[sum].getDefiningOp<ReduceOp>();
  auto init = loop.getInitArgs()[i].getDefiningOp<SplatOp>();
  if (!reduce || !reduce->hasOneUse() || reduce.getKind() != ReduceKind::AddF || reduce.getInit() ||
      reduce.getScope() != ReduceScope::All || !init || !matchPattern(init.getValue(), m_AnyZeroFloat()))
    return false;
  if (cast<RegType>(reduce.getValue().getType()).getLayout() != slice.getParent())
    return false;
  RegType partial = getPartial(type);
  OpBuilder builder(loop);
  Value zero = SplatOp::create(builder, init.getLoc(), partial, init.getValue());
  loop.getInitArgsMutable()[i].set(zero);
  arg.setType(partial);
  reduce.getResult().setType(partial);
  reduce.setScope(ReduceScope::Thread);
  map.getResult(0).setType(partial);
  loop.getResult(i).setType(partial);
  builder.setInsertionPointAfter(loop);
  auto whole = ReduceOp::create(builder, loop.getLoc(), type, ReduceKind::AddF, loop.getResult(i), IntegerAttr(),
                                Value(), ReduceScope::Lanes);
  loop.getResult(i).replaceAllUsesExcept(whole.getResult(), whole);
  return true;
}

namespace {
struct DeferSumsPass : tile::impl::TileDeferSumsPassBase<DeferSumsPass> {
  void runOnOperation() override {
    getOperation().walk([&](scf::ForOp loop) {
      for (unsigned i = 0; i < loop.getNumResults(); ++i)
        if (defer(loop, i))
          ++numSums;
    });
  }
};
} // namespace
