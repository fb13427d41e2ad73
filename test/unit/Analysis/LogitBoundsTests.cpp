//===- LogitBoundsTests.cpp - intervals of logits hooks ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What findLogitRange says of hooks whose intervals are known, and, of random
// hooks, that no value which the evaluator makes lies outside.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/LogitBounds.h"
#include "attn/HookEval/HookEval.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace attn;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class LogitBoundsTest : public ::testing::Test {
protected:
  LogitBoundsTest() {
    context.loadDialect<mlir::attn::AttnDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                        mlir::vector::VectorDialect>();
  }

  mlir::attn::VariantOp parse(const std::string &body) {
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "attn.variant @v(%p: f32, %t: memref<?xi8>) {\n  %outer = arith.constant 3.0 : f32\n"
        "  attn.hook logits (%x: f32, %at: !attn.coord) {\n" +
            body + "    attn.yield %y : f32\n  }\n}\n",
        &context);
    if (!module) {
      ADD_FAILURE() << body;
      return {};
    }
    return *module->getOps<mlir::attn::VariantOp>().begin();
  }

  /// The range of what `body` names %y, to a thousandth (rounding is allowed for).
  void expect(const std::string &body, double lo, double hi) {
    SCOPED_TRACE(body);
    auto variant = parse(body);
    if (!variant)
      return;
    mlir::attn::FloatRange range = mlir::attn::findLogitRange(variant.getHook(mlir::attn::HookKind::Logits));
    auto close = [](double got, double wanted, bool least) {
      if (std::isinf(wanted))
        return got == wanted;
      double room = std::abs(wanted) * 4e-3 + 1e-5;
      return least ? got <= wanted && got >= wanted - room : got >= wanted && got <= wanted + room;
    };
    EXPECT_TRUE(close(range.lo, lo, true)) << range.lo << ", not " << lo;
    EXPECT_TRUE(close(range.hi, hi, false)) << range.hi << ", not " << hi;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

const std::string kConstants = "    %one = arith.constant 1.0 : f32\n    %two = arith.constant 2.0 : f32\n"
                               "    %m2 = arith.constant -2.0 : f32\n    %ten = arith.constant 10.0 : f32\n"
                               "    %fifty = arith.constant 50.0 : f32\n    %zero = arith.constant 0.0 : f32\n"
                               "    %nan = arith.constant 0x7FC00000 : f32\n";
const std::string kCapped = "    %t0 = math.tanh %x fastmath<afn> : f32\n    %c = arith.mulf %t0, %fifty : f32\n";

TEST_F(LogitBoundsTest, Bounded) {
  auto y = [&](const std::string &text) { return kConstants + kCapped + text; };
  expect(y("    %y = arith.addf %c, %zero : f32\n"), -50, 50);
  expect(y("    %y = arith.mulf %t0, %outer : f32\n"), -3, 3);
  expect(y("    %y = arith.subf %c, %ten : f32\n"), -60, 40);
  expect(y("    %y = arith.negf %c : f32\n"), -50, 50);
  expect(y("    %y = math.fma %t0, %m2, %ten : f32\n"), 8, 12);
  expect(y("    %y = math.absf %c : f32\n"), 0, 50);
  expect(y("    %y = arith.divf %c, %m2 : f32\n"), -25, 25);
  expect(y("    %y = math.exp %t0 : f32\n"), std::exp(-1), std::exp(1));
  expect(y("    %e = math.exp2 %t0 : f32\n    %y = math.log2 %e : f32\n"), -1, 1);
  expect(y("    %e = arith.addf %c, %ten : f32\n    %y = math.sqrt %e : f32\n"), 0, std::sqrt(60));
  expect(y("    %y = math.sin %x : f32\n"), -1, 1);
  expect(y("    %y = math.cos %c fastmath<afn> : f32\n"), -1, 1);
  expect(y("    %h = arith.truncf %c : f32 to bf16\n    %y = arith.extf %h : bf16 to f32\n"), -50.1, 50.1);
  expect(y("    %y = math.floor %c : f32\n"), -51, 50);
  // The sigmoid, whose exponential may be infinite.
  expect(y("    %n = arith.negf %x : f32\n    %e = math.exp %n : f32\n    %d = arith.addf %e, %one : f32\n"
           "    %y = arith.divf %one, %d : f32\n"),
         0, 1);
}

TEST_F(LogitBoundsTest, Clamped) {
  auto y = [&](const std::string &text) { return kConstants + text; };
  for (std::string kind : {"imumf", "numf"})
    expect(y("    %a = arith.min" + kind + " %x, %ten : f32\n    %y = arith.max" + kind + " %a, %m2 : f32\n"), -2, 10);
  // Of NaN and a number minnumf makes the number: the root, where the capped logit is NaN.
  expect(y(kCapped + "    %a = math.sqrt %x : f32\n    %y = arith.minnumf %a, %c : f32\n"), -50, kInf);
  for (std::string p : {"ogt", "oge", "ugt", "uge"})
    expect(y("    %above = arith.cmpf " + p + ", %x, %ten : f32\n    %a = arith.select %above, %ten, %x : f32\n" +
             "    %below = arith.cmpf " + p + ", %m2, %a : f32\n    %y = arith.select %below, %m2, %a : f32\n"),
           -2, 10);
  for (std::string p : {"olt", "ole", "ult", "ule"})
    expect(y("    %below = arith.cmpf " + p + ", %x, %ten : f32\n    %a = arith.select %below, %x, %ten : f32\n" +
             "    %above = arith.cmpf " + p + ", %m2, %a : f32\n    %y = arith.select %above, %a, %m2 : f32\n"),
           -2, 10);
  // The wrong way round, other comparisons, other values than the compared one.
  expect(y("    %above = arith.cmpf ogt, %x, %ten : f32\n    %y = arith.select %above, %x, %ten : f32\n"), 10, kInf);
  expect(y("    %same = arith.cmpf oeq, %x, %ten : f32\n    %y = arith.select %same, %ten, %x : f32\n"), -kInf, kInf);
  expect(y("    %above = arith.cmpf ogt, %p, %ten : f32\n    %y = arith.select %above, %ten, %x : f32\n"), -kInf, kInf);
  expect(y("    %above = arith.cmpf ogt, %x, %nan : f32\n    %y = arith.select %above, %ten, %x : f32\n"), -kInf, kInf);
}

TEST_F(LogitBoundsTest, Branches) {
  expect(kConstants + "    %q = attn.q_pos %at\n    %k = attn.kv_pos %at\n    %b = arith.cmpi slt, %q, %k : index\n"
                      "    %y = scf.if %b -> f32 {\n      %a = math.tanh %x : f32\n      scf.yield %a : f32\n"
                      "    } else {\n      scf.yield %ten : f32\n    }\n",
         -1, 10);
  expect("    %k = attn.kv_pos %at\n    %i = memref.load %t[%k] : memref<?xi8>\n    %y = arith.sitofp %i : i8 to f32\n",
         -128, 127);
  expect("    %k = attn.kv_pos %at\n    %i = memref.load %t[%k] : memref<?xi8>\n    %y = arith.uitofp %i : i8 to f32\n",
         0, 255);
}

TEST_F(LogitBoundsTest, Unbounded) {
  auto y = [&](const std::string &text) { return kConstants + kCapped + text; };
  expect("    %y = arith.addf %x, %outer : f32\n", -kInf, kInf);
  expect(y("    %y = arith.mulf %t0, %p : f32\n"), -kInf, kInf);
  expect(y("    %y = arith.addf %c, %x : f32\n"), -kInf, kInf);
  expect(y("    %y = arith.mulf %t0, %nan : f32\n"), -kInf, kInf);
  expect(y("    %y = arith.divf %one, %c : f32\n"), -kInf, kInf);
  expect(y("    %e = math.exp %c : f32\n    %f = math.exp %e : f32\n    %y = arith.divf %one, %f : f32\n"), 0, 1);
  // A divisor that may be flushed to zero.
  expect(y("    %n = arith.mulf %c, %two : f32\n    %e = math.exp %n : f32\n    %y = arith.divf %one, %e : f32\n"),
         -kInf, kInf);
  expect(y("    %y = math.exp %x : f32\n"), 0, kInf);
  expect(y("    %y = math.log %t0 : f32\n"), -kInf, 9.7e-4);
  expect(y("    %y = math.rsqrt %t0 : f32\n"), -kInf, kInf);
  // The hardware's sine of large angles promises nothing.
  expect(y("    %y = math.sin %x fastmath<afn> : f32\n"), -kInf, kInf);
  expect(y("    %i = arith.bitcast %c : f32 to i32\n    %y = arith.bitcast %i : i32 to f32\n"), -kInf, kInf);
  expect(y("    %k = attn.kv_pos %at\n    %q = attn.q_pos %at\n    %b = arith.cmpi slt, %k, %q : index\n"
           "    %y = scf.if %b -> f32 {\n      scf.yield %c : f32\n    } else {\n      scf.yield %x : f32\n    }\n"),
         -kInf, kInf);
  // What overflows f16 is infinite.
  expect(y("    %s = arith.mulf %c, %fifty : f32\n    %u = arith.mulf %s, %fifty : f32\n"
           "    %h = arith.truncf %u : f32 to f16\n    %y = arith.extf %h : f16 to f32\n"),
         -kInf, kInf);
}

/// Values of random hooks lie in their ranges.
TEST_F(LogitBoundsTest, Sound) {
  std::mt19937 random(11);
  auto pick = [&](int n) { return static_cast<int>(random() % n); };
  int bounded = 0, values = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> names = {"%x", "%p", "%one", "%two", "%m2", "%ten"};
    std::string body = kConstants;
    for (int i = 0; i < 10; ++i) {
      auto name = [&]() { return names[pick(names.size())]; };
      std::string made = "%v" + std::to_string(i), a = name(), b = name(), text;
      const char *unary[] = {"tanh", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "absf", "floor", "ceil"};
      const char *binary[] = {"addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"};
      const char *predicates[] = {"olt", "ole", "ogt", "oge", "ult", "uge", "oeq"};
      int kind = pick(10);
      if (kind < 4) {
        text = made + " = math." + unary[pick(11)] + " " + a + " : f32\n";
      } else if (kind < 8) {
        text = made + " = arith." + binary[pick(8)] + " " + a + ", " + b + " : f32\n";
      } else if (kind == 8) {
        text = made + " = math.fma " + a + ", " + b + ", " + name() + " : f32\n";
      } else {
        bool swap = pick(2);
        text = "%c" + std::to_string(i) + " = arith.cmpf " + predicates[pick(7)] + ", " + a + ", " + b +
               " : f32\n    " + made + " = arith.select %c" + std::to_string(i) + ", " + (swap ? b : a) + ", " +
               (swap ? a : b) + " : f32\n";
      }
      body += "    " + text;
      names.push_back(made);
      if (i > 5 && pick(2))
        break;
    }
    body += "    %y = arith.addf " + names.back() + ", %zero : f32\n";
    auto variant = parse(body);
    ASSERT_TRUE(variant);
    mlir::attn::FloatRange range = mlir::attn::findLogitRange(variant.getHook(mlir::attn::HookKind::Logits));
    bounded += std::isfinite(range.lo) && std::isfinite(range.hi);
    for (double p : {-3.0, 0.0, 0.7, 1e30, kInf}) {
      HookParam number, table;
      number.f32 = p;
      int8_t byte = 1;
      table.buffer.data = &byte;
      table.buffer.shape = {1};
      auto evaluator = HookEvaluator::create(variant, {number, table});
      ASSERT_TRUE(mlir::succeeded(evaluator));
      for (double x : {0.0, 1.0, -1.0, 0.3, -7.7, 1e4, -1e4, 3e38, kInf, -kInf, std::nan("")}) {
        double value = evaluator->hooks().logits(x, ref::Coord{});
        ++values;
        if (!std::isnan(value))
          EXPECT_TRUE(value >= range.lo && value <= range.hi)
              << body << "x = " << x << ", p = " << p << ": " << value << " not in " << range.lo << ", " << range.hi;
      }
    }
  }
  EXPECT_GT(bounded, 50);
  EXPECT_GT(values, 20000);
}

} // namespace
