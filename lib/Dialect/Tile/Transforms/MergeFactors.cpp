//===- MergeFactors.cpp - the softmax's own factors join their neighbours ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product with `reassoc` is the softmax's own (its scale, log2 e: attn-to-tile
// marks them so); the author's arithmetic around it rounds as it is written.
//   (x c) u           -> x (c u)
//   fma(a, b, x c)    -> c fma(a (1 / c), b, x)       a the same for all elements, c a constant
//   fma(x, a, b) c    -> fma(x, a c, b c)             constants, the fma `reassoc` too
//   x / u with arcp   -> x (1 / u)                    u the same for all elements
// Factors of all elements alike cost nothing an element, so what remains is at
// most one product in front of the author's function and one behind it.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEMERGEFACTORSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

static bool hasFlag(arith::FastMathFlags flags, arith::FastMathFlags flag) { return bitEnumContainsAll(flags, flag); }

static bool isOwn(arith::MulFOp product) {
  return product && hasFlag(product.getFastmath(), arith::FastMathFlags::reassoc);
}

/// Whether `value` is the same for all elements of the map around it: nothing that it is made of is an argument.
static bool isUniform(Value value) {
  SmallVector<Value> work = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (isa<MapOp>(argument.getOwner()->getParentOp()))
        return false;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op->getParentOfType<MapOp>())
      continue;
    if (op->getNumRegions() > 0)
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

static std::optional<APFloat> constantOf(Value value) {
  APFloat c(0.0f);
  if (matchPattern(value, m_ConstantFloat(&c)) && c.isFiniteNonZero())
    return c;
  return {};
}

/// One product's factor: (x, c), c the one that is the same for all elements; nothing when there is none.
static std::optional<std::pair<Value, Value>> factorOf(arith::MulFOp product) {
  if (!product || !product.getType().isF32())
    return {};
  for (auto [x, c] : {std::pair{product.getLhs(), product.getRhs()}, {product.getRhs(), product.getLhs()}})
    if (isUniform(c) && !isUniform(x))
      return {{x, c}};
  return {};
}

namespace {
/// A rewrite that is counted.
template <typename OpT> struct CountedPattern : OpRewritePattern<OpT> {
  CountedPattern(MLIRContext *context, int64_t &moves) : OpRewritePattern<OpT>(context), moves(moves) {}
  int64_t &moves;
};

/// (x c) u -> x (c u), one of the products the softmax's own.
struct MergeProducts : CountedPattern<arith::MulFOp> {
  using CountedPattern::CountedPattern;
  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    auto outer = factorOf(op);
    auto product = outer ? outer->first.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
    auto inner = factorOf(product);
    if (!inner || !op->getParentOfType<MapOp>() || !product->hasOneUse() || !(isOwn(op) || isOwn(product)))
      return failure();
    // Constants at once; what would leave the range of f32 stays.
    Value factor;
    auto a = constantOf(inner->second), c = constantOf(outer->second);
    if (a && c) {
      APFloat both = *a;
      both.multiply(*c, APFloat::rmNearestTiesToEven);
      if (!both.isNormal())
        return failure();
      factor = arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getFloatAttr(op.getType(), both));
    } else {
      factor = arith::MulFOp::create(rewriter, op.getLoc(), inner->second, outer->second);
    }
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, inner->first, factor, arith::FastMathFlags::reassoc);
    ++moves;
    return success();
  }
};

/// fma(a, b, x c) -> c fma(a (1 / c), b, x).
struct PullThroughFma : CountedPattern<math::FmaOp> {
  using CountedPattern::CountedPattern;
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    auto product = op.getC().getDefiningOp<arith::MulFOp>();
    auto factor = factorOf(product);
    auto c = factor ? constantOf(factor->second) : std::nullopt;
    if (!c || !op->getParentOfType<MapOp>() || !isOwn(product) || !product->hasOneUse())
      return failure();
    Value a = op.getA(), b = op.getB();
    if (!isUniform(a))
      std::swap(a, b);
    APFloat inverse(1.0f);
    inverse.divide(*c, APFloat::rmNearestTiesToEven);
    if (!isUniform(a) || !inverse.isNormal())
      return failure();
    Location loc = op.getLoc();
    Value one = arith::ConstantOp::create(rewriter, loc, rewriter.getFloatAttr(op.getType(), inverse));
    Value scaled = arith::MulFOp::create(rewriter, loc, a, one);
    Value sum = math::FmaOp::create(rewriter, loc, scaled, b, factor->first);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, sum, factor->second, arith::FastMathFlags::reassoc);
    ++moves;
    return success();
  }
};

/// fma(x, a, b) c -> fma(x, a c, b c), all the softmax's own or merged with it.
struct MergeIntoFma : CountedPattern<arith::MulFOp> {
  using CountedPattern::CountedPattern;
  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    auto factor = factorOf(op);
    auto sum = factor ? factor->first.getDefiningOp<math::FmaOp>() : math::FmaOp();
    auto c = factor ? constantOf(factor->second) : std::nullopt;
    if (!sum || !c || !op->getParentOfType<MapOp>() || !isOwn(op) || !sum->hasOneUse() ||
        !hasFlag(sum.getFastmath(), arith::FastMathFlags::reassoc))
      return failure();
    auto scaled = [&](Value value) -> Value {
      auto a = constantOf(value);
      if (!a)
        return {};
      a->multiply(*c, APFloat::rmNearestTiesToEven);
      if (!a->isNormal())
        return {};
      return arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getFloatAttr(op.getType(), *a));
    };
    Value a = scaled(sum.getB()), b = a ? scaled(sum.getC()) : Value();
    if (!b)
      return failure();
    rewriter.replaceOpWithNewOp<math::FmaOp>(op, sum.getA(), a, b, sum.getFastmath());
    ++moves;
    return success();
  }
};

/// x / u with arcp -> x (1 / u).
struct InvertDivisor : CountedPattern<arith::DivFOp> {
  using CountedPattern::CountedPattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    if (!op->getParentOfType<MapOp>() || !op.getType().isF32() ||
        !hasFlag(op.getFastmath(), arith::FastMathFlags::arcp) || !isUniform(op.getRhs()) || isUniform(op.getLhs()))
      return failure();
    Location loc = op.getLoc();
    Value one = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(1.0f)), inverse;
    if (auto c = constantOf(op.getRhs())) {
      APFloat value(1.0f);
      value.divide(*c, APFloat::rmNearestTiesToEven);
      if (!value.isNormal())
        return failure();
      inverse = arith::ConstantOp::create(rewriter, loc, rewriter.getFloatAttr(op.getType(), value));
    } else {
      inverse = arith::DivFOp::create(rewriter, loc, one, op.getRhs(), op.getFastmath() & ~arith::FastMathFlags::arcp);
    }
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), inverse,
                                               op.getFastmath() & ~arith::FastMathFlags::reassoc);
    ++moves;
    return success();
  }
};

struct MergeFactorsPass : tile::impl::TileMergeFactorsPassBase<MergeFactorsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(checkLevel(kernel, Level::Logical, "it runs before tile-multibuffer and tile-warp-specialize")))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    int64_t moves = 0;
    patterns.add<MergeProducts, PullThroughFma, MergeIntoFma, InvertDivisor>(&getContext(), moves);
    if (failed(applyPatternsGreedily(
            kernel, std::move(patterns),
            GreedyRewriteConfig().setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled))))
      return signalPassFailure();
    numMoves += moves;
  }
};
} // namespace
