//===- HookEvalTests.cpp - hooks from IR against hooks by hand ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The variants of examples/variants, evaluated, must be the sentences of the
// semantics that lib/Reference states as code.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/HookEval/HookEval.h"
#include "attn/Reference/Variants.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace attn;

namespace {

class HookEvalTest : public ::testing::Test {
protected:
  HookEvalTest() {
    context.loadDialect<mlir::attn::AttnDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::memref::MemRefDialect, mlir::scf::SCFDialect,
                        mlir::vector::VectorDialect>();
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diag) { diagnostics += diag.str() + "\n"; });
  }

  mlir::attn::VariantOp parse(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    return variant();
  }
  mlir::attn::VariantOp example(const std::string &name) {
    module = mlir::parseSourceFile<mlir::ModuleOp>(ATTN_SOURCE_ROOT "/examples/variants/" + name + ".mlir", &context);
    return variant();
  }
  mlir::attn::VariantOp variant() {
    EXPECT_TRUE(module) << diagnostics;
    if (!module)
      return {};
    auto ops = module->getOps<mlir::attn::VariantOp>();
    return *ops.begin();
  }
  HookEvaluator evaluator(mlir::attn::VariantOp variant, std::vector<HookParam> params) {
    auto result = HookEvaluator::create(variant, params);
    EXPECT_TRUE(mlir::succeeded(result)) << diagnostics;
    return mlir::succeeded(result) ? *result : HookEvaluator();
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string diagnostics;
};

HookParam number(double x) {
  HookParam param;
  param.f32 = x;
  param.index = int64_t(x);
  return param;
}
template <typename T> HookParam buffer(const std::vector<T> &data, std::vector<int64_t> shape = {}) {
  HookParam param;
  param.buffer.data = data.data();
  param.buffer.shape = shape.empty() ? std::vector<int64_t>{int64_t(data.size())} : shape;
  return param;
}

/// All coordinates of a few small requests.
std::vector<ref::Coord> coordinates(int64_t heads = 8, int64_t group = 4) {
  std::vector<ref::Coord> result;
  int64_t shapes[][2] = {{3, 20}, {7, 7}, {1, 33}, {9, 4}};
  for (int64_t request = 0; request < 4; ++request) {
    auto [qo, kv] = shapes[request];
    for (int64_t row = 0; row < qo; ++row)
      for (int64_t key = 0; key < kv; ++key)
        for (int64_t head = 0; head < heads; head += 3)
          result.push_back({request, head, head / group, row + kv - qo, key, qo, kv, row});
  }
  return result;
}

void expectMask(const HookEvaluator &hooks, const ref::Mask &mask) {
  ASSERT_TRUE(bool(hooks.hooks().mask));
  for (const ref::Coord &at : coordinates())
    ASSERT_EQ(hooks.hooks().mask(at), mask(at)) << at.request << " " << at.row << " " << at.kvPos;
}
void expectLogits(const HookEvaluator &hooks, const ref::Logits &logits, double tolerance = 1e-12) {
  ASSERT_TRUE(bool(hooks.hooks().logits));
  double x = -31;
  for (const ref::Coord &at : coordinates()) {
    ASSERT_NEAR(hooks.hooks().logits(x, at), logits(x, at), tolerance);
    x = x > 30 ? -31 : x + 0.37;
  }
}

TEST_F(HookEvalTest, Causal) { expectMask(evaluator(example("causal"), {}), ref::causal()); }

TEST_F(HookEvalTest, SoftCap) {
  auto hooks = evaluator(example("softcap"), {number(30)});
  EXPECT_TRUE(hooks.isApproximate());
  expectLogits(hooks, ref::softCap(30));
}

TEST_F(HookEvalTest, Window) {
  int64_t sizes[][2] = {{5, 0}, {-1, 2}, {3, -1}, {-1, -1}, {0, 0}};
  auto variant = example("sliding_window");
  for (auto [left, right] : sizes)
    expectMask(evaluator(variant, {number(left), number(right)}), ref::window(left, right));
}

TEST_F(HookEvalTest, Alibi) {
  std::vector<float> slopes;
  for (double slope : ref::alibiSlopes(12))
    slopes.push_back(float(slope));
  std::vector<double> mine(slopes.begin() + 4, slopes.end());
  auto hooks = evaluator(example("alibi"), {buffer(slopes), number(4)});
  expectLogits(hooks, ref::alibi(mine));
  EXPECT_EQ(hooks.takeError(), "");
}

TEST_F(HookEvalTest, PrefixDocumentTree) {
  std::vector<int32_t> prefix = {4, 7, 0, 2};
  expectMask(evaluator(example("prefix_lm"), {buffer(prefix)}), ref::prefixLM({4, 7, 0, 2}));

  std::vector<int32_t> ids(64), offsets = {0, 20, 27, 60};
  std::vector<int64_t> ids64(64);
  for (int i = 0; i < 64; ++i)
    ids64[i] = ids[i] = i / 6;
  expectMask(evaluator(example("document"), {buffer(ids), buffer(offsets)}),
             ref::maskAnd(ref::document(ids64, {0, 20, 27, 60}), ref::causal()));

  std::vector<uint8_t> bits(64);
  std::mt19937 random(3);
  for (uint8_t &byte : bits)
    byte = uint8_t(random());
  std::vector<int64_t> starts = {0, 8, 15, 20};
  expectMask(evaluator(example("tree_mask"), {buffer(bits), buffer(starts)}), ref::treeMask(bits, starts));
}

TEST_F(HookEvalTest, Sigmoid) {
  auto hooks = evaluator(example("sigmoid"), {number(-4)});
  EXPECT_EQ(hooks.normalizer(), ref::Normalizer::None);
  EXPECT_FALSE(hooks.isApproximate());
  expectLogits(hooks, ref::sigmoid(-4));
}

TEST_F(HookEvalTest, SinkAndWindow) {
  std::vector<float> sinks = {0, 1, 2, 3, 4, 5, 6, 7};
  auto hooks = evaluator(example("sink_window"), {buffer(sinks), number(6)});
  expectMask(hooks, ref::window(6, 0));
  for (const ref::Coord &at : coordinates())
    ASSERT_EQ(hooks.hooks().sink(at), double(at.qHead));
}

TEST_F(HookEvalTest, Rope) {
  auto hooks = evaluator(example("rope"), {});
  ref::Rope rope;
  rope.theta = 500000;
  rope.factor = 8;
  rope.lowFreq = 1;
  rope.highFreq = 4;
  rope.original = 8192;
  ref::VecHook query = ref::ropeQuery(rope), key = ref::ropeKey(rope);
  ref::Vec x(128);
  for (int i = 0; i < 128; ++i)
    x[i] = std::sin(i);
  for (int64_t position : {0, 1, 4095, 1000000}) {
    ref::Coord at;
    at.qPos = at.kvPos = position;
    ref::Vec a = hooks.hooks().query(x, at), b = query(x, at), c = hooks.hooks().key(x, at), d = key(x, at);
    for (int i = 0; i < 128; ++i) {
      ASSERT_NEAR(a[i], b[i], 1e-9) << position << " " << i;
      ASSERT_NEAR(c[i], d[i], 1e-9);
    }
  }
}

TEST_F(HookEvalTest, AllHooks) {
  std::vector<float> slopes(8, 0.5f), sinks(8, 1), gate(32, 0);
  std::vector<uint16_t> scale = {0x4000, 0x3f80}; // bf16 2, 1
  auto hooks = evaluator(example("all_hooks"),
                         {number(20), buffer(slopes), number(100), buffer(sinks), buffer(scale), buffer(gate, {4, 8})});
  const ref::Hooks &h = hooks.hooks();
  EXPECT_TRUE(h.query && h.key && h.value && h.output && h.logits && h.mask && h.sink);
  ref::Coord at;
  at.kvHead = 0;
  ref::Vec x(64, 3.0);
  EXPECT_EQ(h.value(x, at)[63], 6.0);
  EXPECT_EQ(h.output(x, at)[5], 1.5);
  EXPECT_EQ(hooks.takeError(), "");
}

TEST_F(HookEvalTest, LoadsOutOfBoundsAreReported) {
  std::vector<float> slopes(4, 1);
  auto hooks = evaluator(example("alibi"), {buffer(slopes), number(0)});
  ref::Coord at;
  at.qHead = 7;
  at.kvPos = 3;
  EXPECT_EQ(hooks.hooks().logits(1, at), 1.0);
  EXPECT_NE(hooks.takeError().find("is out of bounds: [7] of [4]"), std::string::npos);
  EXPECT_EQ(hooks.takeError(), "");
}

TEST_F(HookEvalTest, ParametersMustFit) {
  auto variant = example("alibi");
  EXPECT_TRUE(mlir::failed(HookEvaluator::create(variant, {number(1)})));
  EXPECT_NE(diagnostics.find("@alibi has 2 parameters, got 1 values"), std::string::npos);
  EXPECT_TRUE(mlir::failed(HookEvaluator::create(variant, {number(1), number(1)})));
  EXPECT_NE(diagnostics.find("got a buffer of rank 0"), std::string::npos);
}

TEST_F(HookEvalTest, ScalarsAreRoundedToFp32) {
  auto hooks = evaluator(parse(R"(attn.variant @v(%c: f32) {
    attn.hook logits (%x: f32, %at: !attn.coord) {
      attn.yield %c : f32
    } })"),
                         {number(0.1)});
  EXPECT_EQ(hooks.hooks().logits(1, {}), double(0.1f));
}

TEST_F(HookEvalTest, BranchesConversionsAndBits) {
  auto hooks = evaluator(parse(R"(attn.variant @v(%n: index) {
    %one = arith.constant 1.0 : f32
    attn.hook logits (%x: f32, %at: !attn.coord) {
      %k = attn.kv_pos %at
      %c = arith.cmpi ult, %k, %n : index
      %y = scf.if %c -> f32 {
        %b = arith.bitcast %x : f32 to i32
        %s = arith.constant 8388608 : i32
        %t = arith.addi %b, %s : i32
        %f = arith.bitcast %t : i32 to f32
        scf.yield %f : f32
      } else {
        %i = arith.fptosi %x : f32 to i32
        %z = arith.constant 0 : i32
        %d = arith.divsi %i, %z : i32
        %g = arith.sitofp %d : i32 to f32
        %h = arith.truncf %one : f32 to bf16
        %e = arith.extf %h : bf16 to f32
        %f = arith.addf %g, %e : f32
        scf.yield %f : f32
      }
      attn.yield %y : f32
    } })"),
                         {number(5)});
  ref::Coord at;
  EXPECT_EQ(hooks.hooks().logits(3, at), 6.0);
  at.kvPos = 5;
  EXPECT_EQ(hooks.hooks().logits(3, at), 1.0);
}

/// docs/Spec.md, section 4: what arith leaves undefined.
TEST_F(HookEvalTest, IntegersAreDefined) {
  auto apply = [&](const std::string &op, const std::string &type, int64_t a, int64_t b) {
    std::string cast = type == "i64" ? "" : "%r = arith.extsi %y : " + type + " to i64\n";
    auto hooks =
        evaluator(parse("attn.variant @v() { attn.hook logits (%x: f32, %at: !attn.coord) {\n%a = arith.constant " +
                        std::to_string(a) + " : " + type + "\n%b = arith.constant " + std::to_string(b) + " : " + type +
                        "\n" + (type == "i64" ? "%r" : "%y") + " = arith." + op + " %a, %b : " + type + "\n" + cast +
                        "%f = arith.sitofp %r : i64 to f32\nattn.yield %f : f32\n} }"),
                  {});
    return hooks.hooks().logits(0, {});
  };
  for (const char *type : {"i8", "i32", "i64"})
    for (const char *op : {"divsi", "divui", "remsi", "remui"})
      EXPECT_EQ(0, apply(op, type, 77, 0)) << op << ' ' << type;
  EXPECT_EQ(-128, apply("divsi", "i8", -128, -1));
  EXPECT_EQ(0, apply("remsi", "i8", -128, -1));
  EXPECT_EQ(-2147483648.0, apply("divsi", "i32", -2147483647 - 1, -1));
  EXPECT_EQ(std::ldexp(-1, 63), apply("divsi", "i64", std::numeric_limits<int64_t>::min(), -1));
  EXPECT_EQ(0, apply("remsi", "i64", std::numeric_limits<int64_t>::min(), -1));
  for (int64_t amount : {32, 33, 64, -1}) {
    EXPECT_EQ(0, apply("shli", "i32", -5, amount));
    EXPECT_EQ(0, apply("shrui", "i32", -5, amount));
    EXPECT_EQ(-1, apply("shrsi", "i32", -5, amount));
    EXPECT_EQ(0, apply("shrsi", "i32", 5, amount));
  }
  EXPECT_EQ(-2147483648.0, apply("addi", "i32", 2147483647, 1));
  EXPECT_EQ(-1, apply("shrsi", "i1", -1, -1));
  EXPECT_EQ(-1, apply("divsi", "i1", -1, -1));
  EXPECT_EQ(0, apply("shli", "i1", -1, -1));

  auto convert = [&](const std::string &op, const std::string &type, double value) {
    auto hooks =
        evaluator(parse("attn.variant @v() { attn.hook logits (%x: f32, %at: !attn.coord) {\n%y = arith." + op +
                        " %x : f32 to " + type + "\n%f = arith." + (op == "fptosi" ? "sitofp" : "uitofp") +
                        " %y : " + type + " to f32\nattn.yield %f : f32\n} }"),
                  {});
    return hooks.hooks().logits(value, {});
  };
  EXPECT_EQ(0, convert("fptosi", "i32", NAN));
  EXPECT_EQ(0, convert("fptoui", "i8", NAN));
  EXPECT_EQ(2147483648.0, convert("fptosi", "i32", INFINITY) + 1);
  EXPECT_EQ(-2147483648.0, convert("fptosi", "i32", -3e38));
  EXPECT_EQ(127, convert("fptosi", "i8", 1000));
  EXPECT_EQ(-128, convert("fptosi", "i8", -129.5));
  EXPECT_EQ(255, convert("fptoui", "i8", 256));
  EXPECT_EQ(0, convert("fptoui", "i8", -1));
  EXPECT_EQ(-1, convert("fptosi", "i1", -7));
  EXPECT_EQ(0, convert("fptosi", "i1", 7));
  EXPECT_EQ(1, convert("fptoui", "i1", 7));
}

} // namespace
