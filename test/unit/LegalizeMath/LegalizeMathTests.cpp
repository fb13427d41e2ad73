//===- LegalizeMathTests.cpp - largest errors of the math expansions ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs each expansion with every operation rounded to fp32, over dense ranges,
// against double precision. The bounds are those of the table in docs/Spec.md.
// What remains for a GPU's hardware is evaluated correctly rounded here; its own
// error comes on top. With ATTN_PRINT_ERRORS set the table is printed.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "attn/HookEval/Program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace attn;
using mlir::attn::MathTarget;

namespace {

constexpr int lanes = 4096;

class LegalizeMathTest : public ::testing::Test {
protected:
  LegalizeMathTest() {
    context.loadDialect<mlir::attn::AttnDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::vector::VectorDialect>();
  }

  /// The function on a vector, legalised.
  Program program(const std::string &op, bool fast, MathTarget target, const std::string &attributes = "") {
    std::string type = "vector<" + std::to_string(lanes) + "xf32>";
    module = mlir::parseSourceString<mlir::ModuleOp>("func.func @f(%x: " + type + ") -> " + type + " {\n %y = math." +
                                                         op + " %x" + (fast ? " fastmath<afn>" : "") + attributes +
                                                         " : " + type + "\n return %y : " + type + "\n}\n",
                                                     &context);
    EXPECT_TRUE(bool(module));
    EXPECT_TRUE(mlir::succeeded(mlir::attn::legalizeMath(*module, target)));
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    module->walk([&](mlir::Operation *inner) { EXPECT_TRUE(mlir::attn::isLegalMath(inner, target)); });
    return compile();
  }
  Program compile() {
    auto func = *module->getOps<mlir::func::FuncOp>().begin();
    llvm::DenseMap<mlir::Value, HookParam> none;
    auto result = Program::compile(func.getBody().front(), none, EvalPrecision::Float, std::make_shared<EvalErrors>());
    EXPECT_TRUE(mlir::succeeded(result));
    return mlir::succeeded(result) ? std::move(*result) : Program();
  }
  double at(const Program &code, double x) {
    std::vector<double> in(lanes, double(float(x)));
    return code.runFloat(nullptr, {in.data()})[0];
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

struct Range {
  const char *op;
  double (*exact)(double);
  double lo, hi;
  bool relative;
  /// Bounds for: gpu, gpu afn, host, host afn; in units of 2^-24.
  double bound[4];
};

double rsqrtExact(double x) { return 1 / std::sqrt(x); }

const Range ranges[] = {
    {"exp2", std::exp2, -125.9, 127.9, true, {1, 1, 1.2, 3}},
    {"exp", std::exp, -87.3, 88.7, true, {2, 70, 2, 70}},
    {"log2", std::log2, 1e-30, 100, true, {2, 1, 2, 2.5}},
    {"log2", std::log2, 0.5, 2, true, {2, 1, 2, 2.5}},
    {"log", std::log, 1e-30, 100, true, {1.5, 2, 1.5, 2}},
    {"log", std::log, 0.5, 2, true, {1.5, 2, 1.5, 2}},
    {"tanh", std::tanh, -1, 1, true, {4, 1, 3, 1e9}},
    {"tanh", std::tanh, -12, 12, false, {5, 1, 2, 3}},
    {"sin", std::sin, -4, 4, false, {2, 1, 2, 2}},
    {"sin", std::sin, -30000, 30000, false, {2, 1, 2, 2}},
    {"sin", std::sin, -6.5e6, 6.5e6, false, {17, 1, 17, 17}},
    {"sin", std::sin, -0.7, 0.7, true, {4, 1, 4, 4}},
    {"cos", std::cos, -4, 4, false, {2, 1, 2, 2}},
    {"cos", std::cos, -6.5e6, 6.5e6, false, {17, 1, 17, 17}},
    {"rsqrt", rsqrtExact, 1e-30, 1e5, true, {2, 1, 2, 2}},
};

TEST_F(LegalizeMathTest, LargestErrors) {
  bool print = std::getenv("ATTN_PRINT_ERRORS") != nullptr;
  constexpr int points = 60 * lanes;
  for (const Range &range : ranges) {
    for (int flavour = 0; flavour < 4; ++flavour) {
      bool fast = flavour % 2;
      Program code = program(range.op, fast, flavour < 2 ? MathTarget::Gpu : MathTarget::Host);
      double worst = 0, where = 0;
      std::vector<double> x(lanes);
      for (int first = 0; first < points; first += lanes) {
        for (int i = 0; i < lanes; ++i) {
          double t = (first + i + 0.5) / points;
          // Positive ranges of many magnitudes: evenly over exponents.
          bool wide = range.lo > 0 && range.hi / range.lo > 100;
          x[i] =
              double(float(wide ? range.lo * std::pow(range.hi / range.lo, t) : range.lo + t * (range.hi - range.lo)));
        }
        const double *y = code.runFloat(nullptr, {x.data()});
        for (int i = 0; i < lanes; ++i) {
          double exact = range.exact(x[i]), error = std::fabs(y[i] - exact);
          if (range.relative)
            error = exact == 0 ? error : error / std::fabs(exact);
          if (!(error <= worst))
            worst = std::isnan(error) ? INFINITY : error, where = x[i];
        }
      }
      worst *= 16777216.0;
      const char *names[] = {"gpu", "gpu afn", "host", "host afn"};
      if (print)
        printf("%-6s [%g, %g] %-8s %s %8.2f * 2^-24 = 2^%.1f at %g\n", range.op, range.lo, range.hi, names[flavour],
               range.relative ? "relative" : "absolute", worst, std::log2(worst) - 24, where);
      EXPECT_LE(worst, range.bound[flavour]) << range.op << " " << names[flavour] << " at " << where;
    }
  }
}

/// Where small results need not be more precise than large ones. The evaluator's functions are exact to rounding; the
/// hardware's errors (2 ulp of exp2, 1 of the reciprocal) add at most 1.5 * 2^-23.
TEST_F(LegalizeMathTest, AbsoluteTanh) {
  std::string attribute = " {" + mlir::attn::kAbsoluteError.str() + "}";
  for (MathTarget target : {MathTarget::Gpu, MathTarget::Host}) {
    Program code = program("tanh", false, target, attribute);
    int functions = 0;
    module->walk([&](mlir::math::Exp2Op) { ++functions; });
    EXPECT_EQ(functions, target == MathTarget::Gpu ? 1 : 0); // on the host it stays precise
    double worst = 0;
    std::vector<double> x(lanes);
    for (int i = 0; i < lanes; ++i)
      x[i] = float((i - lanes / 2) * 0.00517);
    const double *y = code.runFloat(nullptr, {x.data()});
    for (int i = 0; i < lanes; ++i)
      worst = std::max(worst, std::fabs(y[i] - std::tanh(x[i])));
    EXPECT_LE(worst * 16777216.0, target == MathTarget::Gpu ? 3.0 : 2.5);
    EXPECT_EQ(at(code, INFINITY), 1.0);
    EXPECT_EQ(at(code, -INFINITY), -1.0);
    EXPECT_EQ(at(code, 1e30), 1.0);
    EXPECT_EQ(at(code, 0), 0.0);
    EXPECT_TRUE(std::isnan(at(code, NAN)));
  }
  // `afn` has the hardware's own.
  program("tanh", true, MathTarget::Gpu, attribute);
  int own = 0;
  module->walk([&](mlir::math::TanhOp) { ++own; });
  EXPECT_EQ(own, 1);
}

TEST_F(LegalizeMathTest, SpecialValues) {
  const double inf = INFINITY;
  for (MathTarget target : {MathTarget::Gpu, MathTarget::Host})
    for (bool fast : {false, true}) {
      for (const char *op : {"exp", "exp2"}) {
        Program e = program(op, fast, target);
        EXPECT_EQ(at(e, -inf), 0.0) << op << fast;
        EXPECT_EQ(at(e, inf), inf) << op << fast;
        EXPECT_EQ(at(e, 0), 1.0);
        EXPECT_EQ(at(e, -0.0), 1.0);
        EXPECT_EQ(at(e, 1000), inf) << op << fast;
        EXPECT_EQ(at(e, -1000), 0.0);
        EXPECT_TRUE(std::isnan(at(e, NAN)));
      }
      for (const char *op : {"log", "log2"}) {
        Program l = program(op, fast, target);
        EXPECT_EQ(at(l, 0), -inf);
        EXPECT_EQ(at(l, inf), inf);
        EXPECT_EQ(at(l, 1), 0.0);
        EXPECT_TRUE(std::isnan(at(l, -1)));
        EXPECT_TRUE(std::isnan(at(l, NAN)));
        EXPECT_NEAR(at(l, 1e-42), std::string(op) == "log" ? std::log(double(1e-42f)) : std::log2(double(1e-42f)),
                    1e-4);
      }
      Program t = program("tanh", fast, target);
      const double slack = target == MathTarget::Gpu && !fast ? 3e-7 : 0; // a quotient of polynomials there
      EXPECT_NEAR(at(t, inf), 1.0, slack);
      EXPECT_NEAR(at(t, -inf), -1.0, slack);
      EXPECT_EQ(at(t, 0), 0.0);
      EXPECT_TRUE(std::isnan(at(t, NAN)));
      for (const char *op : {"sin", "cos"}) {
        Program s = program(op, fast, target);
        EXPECT_TRUE(std::isnan(at(s, inf))) << op;
        EXPECT_TRUE(std::isnan(at(s, NAN)));
        EXPECT_EQ(at(s, 0), *op == 's' ? 0.0 : 1.0);
      }
      Program r = program("rsqrt", fast, target);
      EXPECT_EQ(at(r, 0), inf);
      EXPECT_EQ(at(r, inf), 0.0);
      EXPECT_TRUE(std::isnan(at(r, -1)));
    }
  // NaNs with any payload.
  for (uint32_t bits : {0x7fffffffu, 0x7fc00001u, 0xffffffffu}) {
    float nan;
    std::memcpy(&nan, &bits, 4);
    EXPECT_TRUE(std::isnan(at(program("exp2", true, MathTarget::Host), nan)));
  }
}

TEST_F(LegalizeMathTest, FloorAndCeil) {
  for (MathTarget target : {MathTarget::Gpu, MathTarget::Host}) {
    Program f = program("floor", false, target), c = program("ceil", false, target);
    for (double x : {0.0,
                     -0.0,
                     0.25,
                     -0.25,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.0,
                     -3.0,
                     4194304.5,
                     -4194305.5,
                     8388607.5,
                     -8388607.5,
                     8388609.0,
                     1e30,
                     -1e30,
                     double(INFINITY),
                     -double(INFINITY)}) {
      EXPECT_EQ(at(f, x), std::floor(double(float(x)))) << x;
      EXPECT_EQ(at(c, x), std::ceil(double(float(x)))) << x;
    }
    EXPECT_TRUE(std::isnan(at(f, NAN)));
  }
}

TEST_F(LegalizeMathTest, RopeAngle) {
  using mlir::attn::RopeSpec;
  std::vector<RopeSpec> specs(6);
  specs[0].rotary = 128;
  specs[1].rotary = 128;
  specs[1].theta = 500000;
  specs[1].factor = 8;
  specs[1].lowFreq = 1;
  specs[1].highFreq = 4;
  specs[1].original = 8192;
  specs[2].rotary = 64;
  specs[2].theta = 1e6;
  specs[2].factor = 3;
  specs[3].rotary = 2;
  specs[4].rotary = 256;
  specs[4].theta = 0.5; // rising frequencies
  specs[5].rotary = 6;
  specs[5].theta = 1e300; // below what exponents hold: the table of numbers itself
  double worst = 0;
  for (const RopeSpec &spec : specs)
    for (int64_t position : {0ll, 1ll, 4095ll, 4096ll, 131071ll, 1000000ll, 16777217ll, -5ll, 2147483647ll})
      for (int64_t t = 0; t < spec.pairs(); t += position == 1 || position == 1000000 ? 1 : 5)
        for (bool sine : {false, true}) {
          mlir::OpBuilder b(&context);
          mlir::Location loc = b.getUnknownLoc();
          module = mlir::ModuleOp::create(loc);
          b.setInsertionPointToStart(module->getBody());
          auto func = mlir::func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {b.getF32Type()}));
          b.setInsertionPointToStart(func.addEntryBlock());
          mlir::Value p = mlir::arith::ConstantIndexOp::create(b, loc, position);
          mlir::Value pair = mlir::arith::ConstantIndexOp::create(b, loc, t);
          auto [c, s] = mlir::attn::buildRopeAngle(b, loc, p, pair, spec);
          mlir::func::ReturnOp::create(b, loc, sine ? s : c);
          for (mlir::Operation &op : func.getBody().front())
            EXPECT_TRUE(mlir::attn::isLegalMath(&op, MathTarget::Gpu));
          ASSERT_TRUE(mlir::succeeded(mlir::attn::legalizeMath(*module, MathTarget::Host)));
          double angle = double(position) * double(mlir::attn::ropeFrequency(spec, t));
          // theta < 1: frequencies above 1 turn past any use.
          if (std::fabs(angle) > 2.2e9)
            continue;
          double error = std::fabs(*compile().runFloat(nullptr, {}) - (sine ? std::sin(angle) : std::cos(angle)));
          double bound = std::abs(position) <= (1 << 24) ? 1e-5 : 1e-4;
          ASSERT_LE(error, bound) << "theta " << spec.theta << " position " << position << " t " << t;
          if (std::abs(position) <= 1000000)
            worst = std::max(worst, error);
        }
  if (std::getenv("ATTN_PRINT_ERRORS"))
    printf("rope angle up to 1 000 000: %g\n", worst);
}

} // namespace
