//===- FoldScale.cpp - the logits' last factor moves into the exponent ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   x = c s; y = mask x; m' = max(m, y); p = exp2(y - shift m'), a = exp2(m - shift m')
// becomes, for a constant c > 0, with the carried maximum in units of s,
//   y = mask s; m' = max(m, y); b = -c shift m'; p = exp2(c y + b), a = exp2(c m + b)
// and c m behind the loop: an fma an element where a product and a difference stood.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Softmax.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEFOLDSCALEPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// The ops of a step that the factor passes through.
struct Chain {
  scf::ForOp loop;
  MapOp scaled; // yields c s
  arith::MulFOp product;
  Value factor;              // c
  MaskOp mask;               // null: none
  ReduceOp maximum;          // carried
  unsigned carried;          // number of the loop result that it makes
  MapOp shift;               // the maximum, or 0 where it is -inf
  SmallVector<MapOp> powers; // exp2(a - shift)
};
} // namespace

/// A constant above zero and not infinite.
static bool isPositive(Value value) {
  APFloat c(0.0f);
  return matchPattern(value, m_ConstantFloat(&c)) && c.isFiniteNonZero() && !c.isNegative();
}

/// `map` yields exp2 of its first input less its second.
static bool isPower(MapOp map) {
  if (map.getInputs().size() != 2 || map.getNumResults() != 1 || map.getAt())
    return false;
  auto power = map.getYield().getOperand(0).getDefiningOp<math::Exp2Op>();
  auto difference = power ? power.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  return difference && difference.getLhs() == map.getBody().getArgument(0) &&
         difference.getRhs() == map.getBody().getArgument(1) && difference->hasOneUse();
}

/// The chain that ends in the exponentials of `loop`; nothing when a link is missing.
static std::optional<Chain> findChain(scf::ForOp loop) {
  for (auto maximum : loop.getBody()->getOps<ReduceOp>()) {
    auto init = dyn_cast_or_null<BlockArgument>(maximum.getInit());
    if (maximum.getKind() != ReduceKind::MaximumF || !init || init.getOwner() != loop.getBody() ||
        init.getArgNumber() == 0)
      continue;
    Chain chain;
    chain.loop = loop;
    chain.maximum = maximum;
    chain.carried = init.getArgNumber() - 1;
    if (loop.getBody()->getTerminator()->getOperand(chain.carried) != maximum.getResult())
      continue;
    chain.mask = maximum.getValue().getDefiningOp<MaskOp>();
    if (chain.mask && chain.mask.getZero())
      continue;
    chain.scaled = (chain.mask ? chain.mask.getValue() : maximum.getValue()).getDefiningOp<MapOp>();
    if (!chain.scaled || chain.scaled->getBlock() != loop.getBody() || chain.scaled.getNumResults() != 1)
      continue;
    chain.product = chain.scaled.getYield().getOperand(0).getDefiningOp<arith::MulFOp>();
    if (!chain.product || !chain.product->hasOneUse())
      continue;
    for (Value factor : chain.product->getOperands())
      if (isPositive(factor))
        chain.factor = factor;
    // The initial maximum is in both units: nothing seen yet.
    auto splat = loop.getInitArgs()[chain.carried].getDefiningOp<SplatOp>();
    if (!chain.factor || !splat || !matchPattern(splat.getValue(), m_NegInfFloat()))
      continue;
    // All uses are known: y goes into the maximum and one exponential, the carried maximum into another.
    Value logits = chain.mask ? chain.mask.getResult() : chain.scaled.getResult(0);
    bool known = chain.mask ? chain.scaled->hasOneUse() : true;
    auto power = [&](Operation *user, Value first) {
      auto map = dyn_cast<MapOp>(user);
      if (!map || !isPower(map) || map.getInputs()[0] != first || !chain.shift ||
          map.getInputs()[1] != chain.shift.getResult(0))
        return false;
      if (!llvm::is_contained(chain.powers, map))
        chain.powers.push_back(map);
      return true;
    };
    for (Operation *user : maximum.getResult().getUsers())
      if (auto map = dyn_cast<MapOp>(user); map && isZeroIfEmpty(map))
        chain.shift = map;
      else
        known &= isa<scf::YieldOp>(user);
    for (Operation *user : logits.getUsers())
      known &= user == maximum || power(user, logits);
    for (Operation *user : init.getUsers())
      known &= user == maximum || power(user, init);
    if (!known || !chain.shift)
      continue;
    for (Operation *user : chain.shift.getResult(0).getUsers())
      known &= llvm::is_contained(chain.powers, dyn_cast<MapOp>(user));
    if (known)
      return chain;
  }
  return {};
}

/// A map of one input times `factor`.
static Value scale(OpBuilder &builder, Location loc, Value value, Value factor, bool negate) {
  return MapOp::create(builder, loc, value.getType(), value, SmallVector<SmallVector<int64_t>>{{}}, /*at=*/false,
                       [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) {
                         Value product = arith::MulFOp::create(b, loc, in[0], factor);
                         if (negate)
                           product = arith::NegFOp::create(b, loc, product);
                         return SmallVector<Value>{product};
                       })
      .getResult(0);
}

static void fold(Chain &chain) {
  Location loc = chain.product.getLoc();
  OpBuilder builder(chain.loop);
  Value factor = arith::ConstantOp::create(builder, loc, cast<TypedAttr>([&] {
                                             Attribute value;
                                             matchPattern(chain.factor, m_Constant(&value));
                                             return value;
                                           }()));
  Value unscaled = chain.product.getLhs() == chain.factor ? chain.product.getRhs() : chain.product.getLhs();
  chain.product.getResult().replaceAllUsesWith(unscaled);
  chain.product.erase();
  // Nothing is left of a map that only scaled.
  MapOp map = chain.scaled;
  if (map.getInputs().size() == 1 && map.getYield().getOperand(0) == map.getBody().getArgument(0) &&
      map.getInputs()[0].getType() == map.getResult(0).getType())
    map.getResult(0).replaceAllUsesWith(map.getInputs()[0]);
  builder.setInsertionPointAfter(chain.shift);
  Value bias = scale(builder, loc, chain.shift.getResult(0), factor, /*negate=*/true);
  for (MapOp map : chain.powers) {
    map->setOperand(1, bias);
    auto power = map.getYield().getOperand(0).getDefiningOp<math::Exp2Op>();
    auto difference = power.getOperand().getDefiningOp<arith::SubFOp>();
    OpBuilder body(difference);
    Value sum = math::FmaOp::create(body, difference.getLoc(), difference.getLhs(), factor, difference.getRhs());
    difference.getResult().replaceAllUsesWith(sum);
    difference.erase();
  }
  builder.setInsertionPointAfter(chain.loop);
  Value result = chain.loop.getResult(chain.carried);
  if (result.use_empty())
    return;
  Value scaled = scale(builder, loc, result, factor, /*negate=*/false);
  result.replaceAllUsesExcept(scaled, scaled.getDefiningOp());
}

namespace {
struct FoldScalePass : tile::impl::TileFoldScalePassBase<FoldScalePass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkLevel(kernel, Level::Logical, "it runs before tile-multibuffer and tile-warp-specialize")))
      return signalPassFailure();
    for (scf::ForOp loop : getLoops(kernel))
      if (std::optional<Chain> chain = findChain(loop)) {
        fold(*chain);
        ++numLoops;
      }
  }
};
} // namespace
