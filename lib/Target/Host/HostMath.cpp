//===- HostMath.cpp - math without libm ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp2 and log2 as polynomials (coefficients of Cephes' exp2f and logf), the
// rest from them or from upstream's approximations.
//
//===----------------------------------------------------------------------===//

#include "HostMath.h"
#include "mlir/Dialect/Math/Transforms/Approximation.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

using namespace mlir;

namespace {
/// Arithmetic on f32 or vectors of f32.
struct Expr {
  OpBuilder &b;
  Location loc;
  Type f32;
  Type i32() const {
    if (auto vector = dyn_cast<VectorType>(f32))
      return VectorType::get(vector.getShape(), b.getI32Type());
    return b.getI32Type();
  }
  Value c(double value) const {
    TypedAttr attr = b.getF32FloatAttr(value);
    if (auto vector = dyn_cast<VectorType>(f32))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value ci(int32_t value) const {
    TypedAttr attr = b.getI32IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(f32))
      attr = DenseElementsAttr::get(cast<ShapedType>(i32()), Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  Value fma(Value x, Value y, Value z) const { return math::FmaOp::create(b, loc, x, y, z); }
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) const { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) const { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) const { return arith::DivFOp::create(b, loc, x, y); }
  Value bits(Value x) const { return arith::BitcastOp::create(b, loc, i32(), x); }
  Value fromBits(Value x) const { return arith::BitcastOp::create(b, loc, f32, x); }
  Value cmp(arith::CmpFPredicate p, Value x, Value y) const { return arith::CmpFOp::create(b, loc, p, x, y); }
  Value select(Value p, Value x, Value y) const { return arith::SelectOp::create(b, loc, p, x, y); }

  Value exp2(Value x) const {
    // The low bits of x + 1.5 * 2^23 are round(x).
    Value magic = c(12582912.0), shifted = add(x, magic), f = sub(x, sub(shifted, magic));
    Value p = c(1.535336188319500e-4);
    for (double k : {1.339887440266574e-3, 9.618437357674640e-3, 5.550332471162809e-2, 2.402264791363012e-1,
                     6.931472028550421e-1, 1.0})
      p = fma(p, f, c(k));
    Value n = arith::ShLIOp::create(b, loc, bits(shifted), ci(23));
    Value r = fromBits(arith::AddIOp::create(b, loc, bits(p), n));
    r = select(cmp(arith::CmpFPredicate::OLT, x, c(-126.0)), c(0.0), r);
    return select(cmp(arith::CmpFPredicate::OGE, x, c(128.0)), c(INFINITY), r);
  }

  Value log2(Value x) const {
    // x = 2^e m, m in [sqrt(1/2), sqrt(2)).
    Value small = cmp(arith::CmpFPredicate::OLT, x, c(1.17549435e-38));
    Value scaled = select(small, mul(x, c(8388608.0)), x);
    Value raw = arith::SubIOp::create(b, loc, bits(scaled), ci(0x3f3504f3));
    Value e = arith::ShRSIOp::create(b, loc, raw, ci(23));
    Value m = fromBits(arith::SubIOp::create(b, loc, bits(scaled), arith::ShLIOp::create(b, loc, e, ci(23))));
    Value f = sub(m, c(1.0));
    Value p = c(7.0376836292e-2);
    for (double k : {-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                     2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1})
      p = fma(p, f, c(k));
    Value f2 = mul(f, f), ln = fma(f2, c(-0.5), mul(mul(f2, f), p)); // log(m) - f
    Value exponent = sub(arith::SIToFPOp::create(b, loc, f32, e), select(small, c(23.0), c(0.0)));
    Value r = add(fma(f, c(1.4426950408889634), mul(ln, c(1.4426950408889634))), exponent);
    r = select(cmp(arith::CmpFPredicate::OEQ, x, c(0.0)), c(-INFINITY), r);
    r = select(cmp(arith::CmpFPredicate::OEQ, x, c(INFINITY)), x, r);
    return select(cmp(arith::CmpFPredicate::OGE, x, c(0.0)), r, c(NAN));
  }

  Value tanh(Value x) const {
    // 1 - 2 / (exp(2 x) + 1); near 0 a polynomial, where that would cancel.
    Value e = exp2(mul(x, c(2.8853900817779268)));
    Value big = sub(c(1.0), div(c(2.0), add(e, c(1.0))));
    Value x2 = mul(x, x), p = c(-5.70498872745e-3);
    for (double k : {2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1})
      p = fma(p, x2, c(k));
    Value small = fma(mul(x2, x), p, x);
    Value magnitude = math::AbsFOp::create(b, loc, x);
    return select(cmp(arith::CmpFPredicate::OLT, magnitude, c(0.625)), small, big);
  }
};

struct HostMath : PassWrapper<HostMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostMath)
  StringRef getArgument() const override { return "attn-host-math"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0)).isF32() || op->getNumOperands() < 1)
        return;
      OpBuilder b(op);
      Expr x{b, op->getLoc(), op->getResult(0).getType()};
      Value in = op->getOperand(0), out;
      if (isa<math::Exp2Op>(op))
        out = x.exp2(in);
      else if (isa<math::ExpOp>(op))
        out = x.exp2(x.mul(in, x.c(1.4426950408889634)));
      else if (isa<math::Log2Op>(op))
        out = x.log2(in);
      else if (isa<math::LogOp>(op))
        out = x.mul(x.log2(in), x.c(0.6931471805599453));
      else if (isa<math::TanhOp>(op))
        out = x.tanh(in);
      else if (isa<math::RsqrtOp>(op))
        out = x.div(x.c(1.0), math::SqrtOp::create(b, op->getLoc(), in));
      if (!out)
        return;
      op->replaceAllUsesWith(ValueRange(out));
      op->erase();
    });
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> attn::createHostMathPass() { return std::make_unique<HostMath>(); }
