//===- OpsTest.cpp - every op of level L on small tiles ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each test is a kernel of a few lines that reads buffer `q` and writes buffer
// `o`, for one item, at every vector width, against plain C++.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace attn;

namespace {
using Floats = std::vector<float>;

Floats randomFloats(size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(n);
  for (float &x : values)
    x = normal(random);
  return values;
}

/// `body` of a kernel over q: memref<?xD>, o: memref<?xD>; `rows` rows.
struct Small {
  std::string types, functions, body, extraArguments;
  std::string qType, oType;
  Arguments arguments;
  int64_t rows = 1;

  std::string text() const {
    return types + functions + "tile.kernel @test(%q: " + qType + " {tile.arg = \"q\"}, %o: " + oType +
           " {tile.arg = \"o\"}, %items: !tile.items {tile.arg = \"items\"}" + extraArguments +
           ") attributes {level = #tile.level<logical>} {\n"
           "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
           "  tile.for_each (%rows = rows, %n = khi) in %items {\n" +
           body + "  }\n}\n";
  }

  /// Runs at one width.
  void run(void *q, void *o, const mlir::tile::TileToCPUOptions &options, int n = 0) {
    AttnWorkItem item = {};
    item.rows = rows;
    item.khi = n;
    int32_t indptr[] = {0, 1};
    Arguments all = arguments;
    all.operands["q"] = {q, {rows, 0, 0}, {1, 1, 1}};
    all.operands["o"] = {o, {rows, 0, 0}, {1, 1, 1}};
    all.operands["items"].pointer = &item;
    all.operands["cta_indptr"].pointer = indptr;
    Kernels kernels;
    ASSERT_EQ(kernels.compile(text(), options, /*optLevel=*/1), "") << text();
    ASSERT_EQ(kernels.run("test", all, 1), "");
  }
};

/// Every vector width, with and without conversions of f16.
std::vector<mlir::tile::TileToCPUOptions> allOptions() {
  bool f16c = HostTarget().conversionOptions().f16c;
  return {{4, f16c}, {8, f16c}, {8, false}, {16, f16c}};
}

void expectNear(const Floats &got, const Floats &expected, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i;
      continue;
    }
    if (got[i] == expected[i])
      continue;
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << "element " << i;
  }
}

/// A kernel that loads a tile of f32, does something and stores a tile of f32.
void runFloats(const std::string &in, const std::string &out, int64_t inDim, int64_t outDim, const std::string &body,
               const Floats &q, const Floats &expected, int n = 0, const std::string &functions = "",
               const Arguments &extra = {}, const std::string &extraArguments = "") {
  Small small;
  small.functions = functions;
  small.extraArguments = extraArguments;
  small.arguments = extra;
  small.qType = "memref<?x" + std::to_string(inDim) + "xf32>";
  small.oType = "memref<?x" + std::to_string(outDim) + "xf32>";
  std::string iv = "!tile.view<?x" + std::to_string(inDim) + "xf32>",
              ov = "!tile.view<?x" + std::to_string(outDim) + "xf32>";
  small.rows = std::max(q.size() / inDim, expected.size() / outDim);
  small.body = "    %qv = tile.view %q[%c0] rows(%rows) : " + small.qType + " -> " + iv + "\n" +
               "    %ov = tile.view %o[%c0] rows(%rows) : " + small.oType + " -> " + ov + "\n" +
               "    %x = tile.load %qv[%c0] : " + iv + " -> " + in + "\n" + body +
               "    tile.store %y, %ov[%c0] : " + out + ", " + ov + "\n";
  for (const auto &options : allOptions()) {
    SCOPED_TRACE(options.width);
    Floats input = q, output(expected.size(), NAN);
    small.run(input.data(), output.data(), options, n);
    if (testing::Test::HasFatalFailure())
      return;
    expectNear(output, expected);
    if (testing::Test::HasFatalFailure())
      return;
  }
}
} // namespace

TEST(HostOps, SliceMapConcat) {
  // Halves of a rank-3 tile are rotated against each other; two results of one map.
  Floats q = randomFloats(2 * 8 * 32), expected(q.size());
  for (int r = 0; r < 16; ++r)
    for (int d = 0; d < 16; ++d) {
      float x = q[r * 32 + d], y = q[r * 32 + d + 16];
      expected[r * 32 + d] = x * d - y;
      expected[r * 32 + d + 16] = y + x * (r / 8 * 100 + r % 8);
    }
  runFloats("!tile.reg<2x8x32xf32>", "!tile.reg<2x8x32xf32>", 32, 32, R"(
    %l = tile.slice %x [0, 0, 0] : !tile.reg<2x8x32xf32> -> !tile.reg<2x8x16xf32>
    %h = tile.slice %x [0, 0, 16] : !tile.reg<2x8x32xf32> -> !tile.reg<2x8x16xf32>
    %a, %b = tile.map (%e = %l : !tile.reg<2x8x16xf32>, %f = %h : !tile.reg<2x8x16xf32>) at (%g, %i, %d) -> (!tile.reg<2x8x16xf32>, !tile.reg<2x8x16xf32>) {
      %c100 = arith.constant 100 : index
      %di = arith.index_cast %d : index to i32
      %df = arith.sitofp %di : i32 to f32
      %g0 = arith.muli %g, %c100 : index
      %g1 = arith.addi %g0, %i : index
      %gi = arith.index_cast %g1 : index to i32
      %gf = arith.sitofp %gi : i32 to f32
      %u = arith.mulf %e, %df : f32
      %v = arith.subf %u, %f : f32
      %w = arith.mulf %e, %gf : f32
      %z = arith.addf %w, %f : f32
      tile.yield %v, %z : f32, f32
    }
    %y = tile.concat %a, %b dim 2 : !tile.reg<2x8x16xf32>, !tile.reg<2x8x16xf32> -> !tile.reg<2x8x32xf32>
)",
            q, expected);
}

TEST(HostOps, LoopSwapsItsTiles) {
  for (int n : {0, 1, 4, 7}) {
    Floats q = randomFloats(8 * 16), expected(q.size());
    for (size_t i = 0; i < q.size(); ++i)
      expected[i] = n % 2 ? -q[i] : q[i];
    runFloats("!tile.reg<8x16xf32>", "!tile.reg<8x16xf32>", 16, 16, R"(
    %m = tile.map arith.negf(%x : !tile.reg<8x16xf32>) -> !tile.reg<8x16xf32>
    %y, %z = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %m) -> (!tile.reg<8x16xf32>, !tile.reg<8x16xf32>) {
      scf.yield %b, %a : !tile.reg<8x16xf32>, !tile.reg<8x16xf32>
    }
)",
              q, expected, n);
  }
}

TEST(HostOps, LoopKeepsWhatItStillNeeds) {
  // b is the a of the step before: built while a is live, so not in its place.
  Floats q = randomFloats(8 * 16), expected(q.size());
  for (size_t i = 0; i < q.size(); ++i) {
    float a = q[i], b = 0;
    for (int k = 0; k < 5; ++k) {
      float next = a + 1;
      b = a + b * 2;
      a = next;
    }
    expected[i] = a + b;
  }
  runFloats("!tile.reg<8x16xf32>", "!tile.reg<8x16xf32>", 16, 16, R"(
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %s = tile.splat %zero : f32 -> !tile.reg<8x16xf32>
    %a1, %b1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %s) -> (!tile.reg<8x16xf32>, !tile.reg<8x16xf32>) {
      %an = tile.map (%e = %a : !tile.reg<8x16xf32>) -> !tile.reg<8x16xf32> {
        %z = arith.addf %e, %one : f32
        tile.yield %z : f32
      }
      %bn = tile.map (%e = %a : !tile.reg<8x16xf32>, %f = %b : !tile.reg<8x16xf32>) -> !tile.reg<8x16xf32> {
        %z = arith.mulf %f, %two : f32
        %w = arith.addf %z, %e : f32
        tile.yield %w : f32
      }
      scf.yield %an, %bn : !tile.reg<8x16xf32>, !tile.reg<8x16xf32>
    }
    %y = tile.map arith.addf(%a1 : !tile.reg<8x16xf32>, %b1 : !tile.reg<8x16xf32>) -> !tile.reg<8x16xf32>
)",
            q, expected, 5);
}

TEST(HostOps, WhileAndIf) {
  Floats q = randomFloats(8 * 8), expected(q.size());
  for (int n : {0, 3}) {
    for (size_t i = 0; i < q.size(); ++i)
      expected[i] = n == 0 ? -q[i] : q[i] * 8;
    runFloats("!tile.reg<8x8xf32>", "!tile.reg<8x8xf32>", 8, 8, R"(
    %t, %k = scf.while (%a = %x, %i = %c0) : (!tile.reg<8x8xf32>, index) -> (!tile.reg<8x8xf32>, index) {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %a, %i : !tile.reg<8x8xf32>, index
    } do {
    ^bb0(%a: !tile.reg<8x8xf32>, %i: index):
      %b = tile.map arith.addf(%a : !tile.reg<8x8xf32>, %a : !tile.reg<8x8xf32>) -> !tile.reg<8x8xf32>
      %j = arith.addi %i, %c1 : index
      scf.yield %b, %j : !tile.reg<8x8xf32>, index
    }
    %none = arith.cmpi eq, %k, %c0 : index
    %y = scf.if %none -> (!tile.reg<8x8xf32>) {
      %m = tile.map arith.negf(%t : !tile.reg<8x8xf32>) -> !tile.reg<8x8xf32>
      scf.yield %m : !tile.reg<8x8xf32>
    } else {
      scf.yield %t : !tile.reg<8x8xf32>
    }
)",
              q, expected, n);
  }
}

TEST(HostOps, Reductions) {
  // Outer, middle and last dimension, with an initial value; NaN survives a maximum.
  Floats q = randomFloats(4 * 8 * 16), expected(8 * 16);
  q[5] = NAN;
  for (int i = 0; i < 8; ++i)
    for (int d = 0; d < 16; ++d) {
      float sum = 0, top = -INFINITY;
      for (int g = 0; g < 4; ++g)
        sum += q[(g * 8 + i) * 16 + d];
      for (int g = 0; g < 4; ++g) // the maximum over the rows of group 0 comes in as init
        top = std::max(top, 0.0f);
      float rowTop = -1e30f;
      bool nan = false;
      for (int k = 0; k < 16; ++k) {
        nan |= std::isnan(q[i * 16 + k]);
        rowTop = std::max(rowTop, q[i * 16 + k]);
      }
      expected[i * 16 + d] = sum + (nan ? NAN : std::max(rowTop, 0.5f));
    }
  runFloats("!tile.reg<4x8x16xf32>", "!tile.reg<8x16xf32>", 16, 16, R"(
    %half = arith.constant 0.5 : f32
    %init = tile.splat %half : f32 -> !tile.reg<4x8xf32>
    %top = tile.reduce maximumf %x dim 2 init %init : !tile.reg<4x8xf32>, : !tile.reg<4x8x16xf32> -> !tile.reg<4x8xf32>
    %first = tile.slice %top [0, 0] : !tile.reg<4x8xf32> -> !tile.reg<1x8xf32>
    %row = tile.reduce addf %first dim 0 : !tile.reg<1x8xf32> -> !tile.reg<8xf32>
    %sum = tile.reduce addf %x dim 0 : !tile.reg<4x8x16xf32> -> !tile.reg<8x16xf32>
    %y = tile.map arith.addf(%sum : !tile.reg<8x16xf32>, %row[0] : !tile.reg<8xf32>) -> !tile.reg<8x16xf32>
)",
            q, expected);
}

TEST(HostOps, ColumnInputs) {
  // [2], [0, 2] and [1] of a rank-3 result.
  Floats q = randomFloats(2 * 8 * 16), expected(q.size());
  for (int g = 0; g < 2; ++g)
    for (int i = 0; i < 8; ++i)
      for (int d = 0; d < 16; ++d) {
        float c = 0, gd = 0, r = 0;
        for (int k = 0; k < 8; ++k)
          gd += q[(g * 8 + k) * 16 + d];
        for (int h = 0; h < 2; ++h)
          for (int k = 0; k < 8; ++k)
            c += q[(h * 8 + k) * 16 + d];
        for (int h = 0; h < 2; ++h)
          for (int k = 0; k < 16; ++k)
            r += q[(h * 8 + i) * 16 + k];
        expected[(g * 8 + i) * 16 + d] = c + gd * 2 + r * 3;
      }
  runFloats("!tile.reg<2x8x16xf32>", "!tile.reg<2x8x16xf32>", 16, 16, R"(
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %gd = tile.reduce addf %x dim 1 : !tile.reg<2x8x16xf32> -> !tile.reg<2x16xf32>
    %c = tile.reduce addf %gd dim 0 : !tile.reg<2x16xf32> -> !tile.reg<16xf32>
    %gi = tile.reduce addf %x dim 2 : !tile.reg<2x8x16xf32> -> !tile.reg<2x8xf32>
    %i = tile.reduce addf %gi dim 0 : !tile.reg<2x8xf32> -> !tile.reg<8xf32>
    %y = tile.map (%p = %c[2] : !tile.reg<16xf32>, %r = %gd[0, 2] : !tile.reg<2x16xf32>, %s = %i[1] : !tile.reg<8xf32>) -> !tile.reg<2x8x16xf32> {
      %r2 = arith.mulf %r, %two : f32
      %s3 = arith.mulf %s, %three : f32
      %t = arith.addf %p, %r2 : f32
      %u = arith.addf %t, %s3 : f32
      tile.yield %u : f32
    }
)",
            q, expected);
}

TEST(HostOps, BodiesWithoutVectorForm) {
  // A guarded load behind a condition that varies, a gather, loops and a while in a body, calls.
  Floats q = randomFloats(8 * 16), table = randomFloats(40, 2), expected(q.size());
  for (int i = 0; i < 8; ++i)
    for (int d = 0; d < 16; ++d) {
      float x = q[i * 16 + d];
      int at = i * 16 + d - 50; // outside the table for most elements
      float guarded = at >= 0 && at < 40 ? table[at] : 7.0f;
      float gathered = table[(i * d) % 40];
      float sum = 0;
      for (int k = 0; k < d; ++k)
        sum += k * 0.5f;
      float walked = std::fabs(x) + 0.1f;
      while (walked < 4)
        walked *= 2;
      expected[i * 16 + d] = guarded + gathered + sum + walked + (x > 0 ? x * 3 : x + 1) + table[d];
    }
  Arguments extra;
  extra.operands["param:table"] = {table.data(), {40}, {1}};
  runFloats("!tile.reg<8x16xf32>", "!tile.reg<8x16xf32>", 16, 16, R"(
    %y = tile.map (%e = %x : !tile.reg<8x16xf32>) at (%i, %d) -> !tile.reg<8x16xf32> {
      %z = func.call @hook(%e, %i, %d, %table) : (f32, index, index, memref<?xf32>) -> f32
      tile.yield %z : f32
    }
)",
            q, expected, 0, R"(
func.func private @triple(%x: f32) -> f32 {
  %three = arith.constant 3.0 : f32
  %y = arith.mulf %x, %three : f32
  return %y : f32
}
func.func private @hook(%e: f32, %i: index, %d: index, %table: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c50 = arith.constant 50 : index
  %zero = arith.constant 0.0 : f32
  %tenth = arith.constant 0.1 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %four = arith.constant 4.0 : f32
  %seven = arith.constant 7.0 : f32
  %size = memref.dim %table, %c0 : memref<?xf32>
  %i16 = arith.muli %i, %c16 : index
  %id = arith.addi %i16, %d : index
  %at = arith.subi %id, %c50 : index
  %ge = arith.cmpi sge, %at, %c0 : index
  %lt = arith.cmpi slt, %at, %size : index
  %in = arith.andi %ge, %lt : i1
  %guarded = scf.if %in -> (f32) {
    %v = memref.load %table[%at] : memref<?xf32>
    scf.yield %v : f32
  } else {
    scf.yield %seven : f32
  }
  %prod = arith.muli %i, %d : index
  %mod = arith.remui %prod, %size : index
  %gathered = memref.load %table[%mod] : memref<?xf32>
  %sum = scf.for %k = %c0 to %d step %c1 iter_args(%s = %zero) -> (f32) {
    %k32 = arith.index_cast %k : index to i32
    %kf = arith.sitofp %k32 : i32 to f32
    %kh = arith.mulf %kf, %half : f32
    %t = arith.addf %s, %kh : f32
    scf.yield %t : f32
  }
  %abs = math.absf %e : f32
  %start = arith.addf %abs, %tenth : f32
  %walked = scf.while (%w = %start) : (f32) -> f32 {
    %more = arith.cmpf olt, %w, %four : f32
    scf.condition(%more) %w : f32
  } do {
  ^bb0(%w: f32):
    %w2 = arith.addf %w, %w : f32
    scf.yield %w2 : f32
  }
  %pos = arith.cmpf ogt, %e, %zero : f32
  %piece = scf.if %pos -> (f32) {
    %t = func.call @triple(%e) : (f32) -> f32
    scf.yield %t : f32
  } else {
    %t = arith.addf %e, %one : f32
    scf.yield %t : f32
  }
  %row = memref.load %table[%d] : memref<?xf32>
  %r0 = arith.addf %guarded, %gathered : f32
  %r1 = arith.addf %r0, %sum : f32
  %r2 = arith.addf %r1, %walked : f32
  %r3 = arith.addf %r2, %piece : f32
  %r4 = arith.addf %r3, %row : f32
  return %r4 : f32
}
)",
            extra, ", %table: memref<?xf32> {tile.arg = \"param:table\"}");
}

TEST(HostOps, OtherElementTypes) {
  // i1, i32 and index tiles between maps; parameters.
  Floats q = randomFloats(8 * 16), expected(q.size());
  for (int i = 0; i < 8; ++i)
    for (int d = 0; d < 16; ++d)
      expected[i * 16 + d] = (q[i * 16 + d] > 0.25f ? i + d : -(i * d)) + 11;
  Arguments extra;
  extra.params["limit"].f32 = 0.25f;
  extra.params["shift"].integer = 11;
  runFloats("!tile.reg<8x16xf32>", "!tile.reg<8x16xf32>", 16, 16, R"(
    %b = tile.map (%e = %x : !tile.reg<8x16xf32>) -> !tile.reg<8x16xi1> {
      %z = arith.cmpf ogt, %e, %limit : f32
      tile.yield %z : i1
    }
    %k = tile.map () at (%i, %d) -> !tile.reg<8x16xindex> {
      %z = arith.addi %i, %d : index
      tile.yield %z : index
    }
    %m = tile.map () at (%i, %d) -> !tile.reg<8x16xi32> {
      %p = arith.muli %i, %d : index
      %p32 = arith.index_cast %p : index to i32
      %zero = arith.constant 0 : i32
      %z = arith.subi %zero, %p32 : i32
      tile.yield %z : i32
    }
    %kc = tile.concat %k, %k dim 0 : !tile.reg<8x16xindex>, !tile.reg<8x16xindex> -> !tile.reg<16x16xindex>
    %ks = tile.slice %kc [8, 0] : !tile.reg<16x16xindex> -> !tile.reg<8x16xindex>
    %bc = tile.concat %b, %b dim 0 : !tile.reg<8x16xi1>, !tile.reg<8x16xi1> -> !tile.reg<16x16xi1>
    %bs = tile.slice %bc [0, 0] : !tile.reg<16x16xi1> -> !tile.reg<8x16xi1>
    %mc = tile.concat %m, %m dim 0 : !tile.reg<8x16xi32>, !tile.reg<8x16xi32> -> !tile.reg<16x16xi32>
    %ms = tile.slice %mc [8, 0] : !tile.reg<16x16xi32> -> !tile.reg<8x16xi32>
    %y = tile.map (%p = %bs : !tile.reg<8x16xi1>, %e = %ks : !tile.reg<8x16xindex>, %f = %ms : !tile.reg<8x16xi32>) -> !tile.reg<8x16xf32> {
      %e32 = arith.index_cast %e : index to i32
      %w = arith.select %p, %e32, %f : i32
      %s32 = arith.index_cast %shift : index to i32
      %v = arith.addi %w, %s32 : i32
      %z = arith.sitofp %v : i32 to f32
      tile.yield %z : f32
    }
)",
            q, expected, 0, "", extra,
            ", %limit: f32 {tile.arg = \"param:limit\"}, %shift: index {tile.arg = \"param:shift\"}");
}

TEST(HostOps, LocalStores) {
  // A load from shared memory is a copy: what is stored later does not change it.
  Floats q = randomFloats(16 * 8), expected(q.size());
  for (int i = 0; i < 16; ++i)
    for (int d = 0; d < 8; ++d)
      expected[i * 8 + d] = q[i * 8 + d] + (i >= 8 ? -q[i * 8 + d] * 2 : q[i * 8 + d]);
  runFloats("!tile.smem<16x8xf32>", "!tile.reg<16x8xf32>", 8, 8, R"(
    %c8 = arith.constant 8 : index
    %before = tile.local_load %x : !tile.smem<16x8xf32> -> !tile.reg<16x8xf32>
    %part = tile.subview %x[%c8, 0] : !tile.smem<16x8xf32> -> !tile.smem<8x8xf32>
    %r = tile.local_load %part : !tile.smem<8x8xf32> -> !tile.reg<8x8xf32>
    %s = tile.map (%e = %r : !tile.reg<8x8xf32>) -> !tile.reg<8x8xf32> {
      %d = arith.addf %e, %e : f32
      %z = arith.negf %d : f32
      tile.yield %z : f32
    }
    tile.local_store %s, %part : !tile.reg<8x8xf32>, !tile.smem<8x8xf32>
    %after = tile.local_load %x : !tile.smem<16x8xf32> -> !tile.reg<16x8xf32>
    %y = tile.map arith.addf(%before : !tile.reg<16x8xf32>, %after : !tile.reg<16x8xf32>) -> !tile.reg<16x8xf32>
)",
            q, expected);
}

TEST(HostOps, Dots) {
  // Shapes that no block divides, batches, shared operands, with and without an accumulator.
  const int shapes[][3] = {{8, 24, 40}, {24, 8, 56}, {16, 40, 24}};
  for (auto [m, n, k] : shapes) {
    for (bool transpose : {true, false}) {
      SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << (transpose ? " transposed" : ""));
      // q holds a [m, k], then b; one memref of rows of k (a) and one of the rows of b.
      Floats a = randomFloats(m * k, 3), b = randomFloats(2 * n * k, 4), expected(2 * m * n);
      for (int g = 0; g < 2; ++g)
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double sum = i;
            for (int l = 0; l < k; ++l)
              sum += a[i * k + l] * (transpose ? b[g * n * k + j * k + l] : b[g * n * k + l * n + j]);
            expected[(g * m + i) * n + j] = sum;
          }
      auto number = [](int x) { return std::to_string(x); };
      int rows = transpose ? n : k, columns = transpose ? k : n;
      std::string bType = "memref<?x" + number(columns) + "xf32>", bv = "!tile.view<?x" + number(columns) + "xf32>";
      std::string bTile = "!tile.smem<2x" + number(rows) + "x" + number(columns) + "xf32>";
      std::string out = "!tile.reg<2x" + number(m) + "x" + number(n) + "xf32>";
      std::string left = "!tile.reg<" + number(m) + "x" + number(k) + "xf32>";
      Arguments extra;
      extra.operands["k"] = {b.data(), {}, {columns, 1}};
      std::string body = "    %count = arith.constant " + number(2 * rows) +
                         " : index\n    %bv = tile.view %b[%c0] rows(%count) : " + bType + " -> " + bv +
                         "\n    %bt = tile.load %bv[%c0] : " + bv + " -> " + bTile +
                         "\n    %acc = tile.map () at (%g, %i, %j) -> " + out +
                         " {\n      %i32 = arith.index_cast %i : index to i32\n      %z = arith.sitofp %i32 : i32 to "
                         "f32\n      tile.yield %z : f32\n    }\n" +
                         "    %y = tile.dot %x, %bt " + (transpose ? "transpose_b " : "") + "acc %acc : (" + left +
                         ", " + bTile + ") -> " + out + "\n";
      runFloats(left, out, k, n, body, a, expected, 0, "", extra, ", %b: " + bType + " {tile.arg = \"k\"}");
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
}

namespace {
/// Loads `rows` x 16 of `from`, converts by `body` and stores as `to`.
void convert(const std::string &from, const std::string &to, const std::string &op, void *q, void *o, int64_t rows,
             const mlir::tile::TileToCPUOptions &options) {
  Small small;
  small.qType = "memref<?x16x" + from + ">";
  small.oType = "memref<?x16x" + to + ">";
  small.rows = rows;
  std::string iv = "!tile.view<?x16x" + from + ">", ov = "!tile.view<?x16x" + to + ">";
  std::string in = "!tile.reg<8x16x" + from + ">", out = "!tile.reg<8x16x" + to + ">";
  small.body = "    %c8 = arith.constant 8 : index\n    %qv = tile.view %q[%c0] rows(%rows) : " + small.qType + " -> " +
               iv + "\n    %ov = tile.view %o[%c0] rows(%rows) : " + small.oType + " -> " + ov +
               "\n    scf.for %i = %c0 to %rows step %c8 {\n      %x = tile.load %qv[%i] : " + iv + " -> " + in +
               "\n      %y = tile.map " + op + "(%x : " + in + ") -> " + out +
               "\n      tile.store %y, %ov[%i] : " + out + ", " + ov + "\n    }\n";
  small.run(q, o, options);
}

const std::pair<ref::Storage, const char *> kNarrow[] = {{ref::Storage::BF16, "bf16"},
                                                         {ref::Storage::F16, "f16"},
                                                         {ref::Storage::E4M3, "f8E4M3FN"},
                                                         {ref::Storage::E5M2, "f8E5M2"}};
} // namespace

TEST(HostOps, WidenEveryPattern) {
  for (auto [type, name] : kNarrow) {
    for (const auto &options : allOptions()) {
      SCOPED_TRACE(testing::Message() << name << " " << options.width << " " << options.f16c);
      size_t bytes = ref::storageBytes(type), count = bytes == 1 ? 256 : 65536;
      std::vector<uint8_t> q(count * bytes);
      for (size_t i = 0; i < count; ++i)
        for (size_t b = 0; b < bytes; ++b)
          q[i * bytes + b] = i >> (8 * b);
      Floats o(count, -1);
      convert(name, "f32", "arith.extf", q.data(), o.data(), count / 16, options);
      if (HasFatalFailure())
        return;
      for (size_t i = 0; i < count; ++i) {
        float expected = ref::decode(type, i);
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(o[i])) << i;
        else
          ASSERT_EQ(o[i], expected) << i;
      }
    }
  }
}

TEST(HostOps, RoundToNearestEven) {
  for (auto [type, name] : kNarrow) {
    for (const auto &options : allOptions()) {
      SCOPED_TRACE(testing::Message() << name << " " << options.width << " " << options.f16c);
      size_t bytes = ref::storageBytes(type), patterns = bytes == 1 ? 256 : 65536;
      // Every value of the format, the middles between neighbours, their neighbours, and random bits.
      Floats q;
      for (size_t i = 0; i + 1 < patterns; ++i) {
        float x = ref::decode(type, i), y = ref::decode(type, i + 1), middle = (x + y) / 2;
        for (float z : {x, middle, std::nextafterf(middle, 1e38f), std::nextafterf(middle, -1e38f)})
          q.push_back(z);
      }
      std::mt19937 random(1);
      for (int i = 0; i < 4096; ++i) {
        uint32_t bits = random();
        float x;
        std::memcpy(&x, &bits, 4);
        q.push_back(x);
      }
      while (q.size() % 128)
        q.push_back(0);
      std::vector<uint8_t> o(q.size() * bytes, 0xee);
      convert("f32", name, "arith.truncf", q.data(), o.data(), q.size() / 16, options);
      if (HasFatalFailure())
        return;
      for (size_t i = 0; i < q.size(); ++i) {
        uint32_t got = o[i * bytes] | (bytes > 1 ? o[i * bytes + 1] << 8 : 0), expected = ref::encode(type, q[i]);
        float value = ref::decode(type, expected);
        if (std::isnan(value))
          ASSERT_TRUE(std::isnan(ref::decode(type, got))) << q[i];
        else
          ASSERT_EQ(got, expected) << q[i];
      }
    }
  }
}

TEST(HostOps, NarrowArithmetic) {
  // An op on a narrow type rounds its result.
  for (auto [type, name] : kNarrow) {
    Floats values = randomFloats(128);
    size_t bytes = ref::storageBytes(type);
    std::vector<uint8_t> q(128 * bytes), o(128 * bytes);
    for (int i = 0; i < 128; ++i)
      ref::storeElement(type, q.data(), i, values[i]);
    Small small;
    std::string t = name;
    small.qType = small.oType = "memref<?x16x" + t + ">";
    small.rows = 8;
    std::string view = "!tile.view<?x16x" + t + ">", tile = "!tile.reg<8x16x" + t + ">";
    small.body = "    %qv = tile.view %q[%c0] rows(%rows) : " + small.qType + " -> " + view +
                 "\n    %ov = tile.view %o[%c0] rows(%rows) : " + small.oType + " -> " + view +
                 "\n    %x = tile.load %qv[%c0] : " + view + " -> " + tile + "\n    %y = tile.map (%e = %x : " + tile +
                 ") -> " + tile + " {\n      %k = arith.constant 1.5 : " + t + "\n      %z = arith.mulf %e, %k : " + t +
                 "\n      %w = arith.addf %z, %e : " + t + "\n      tile.yield %w : " + t +
                 "\n    }\n    tile.store %y, %ov[%c0] : " + tile + ", " + view + "\n";
    small.run(q.data(), o.data(), HostTarget().conversionOptions());
    if (HasFatalFailure())
      return;
    for (int i = 0; i < 128; ++i) {
      float x = ref::loadElement(type, q.data(), i);
      float product = ref::decode(type, ref::encode(type, x * 1.5f));
      EXPECT_EQ(ref::loadElement(type, o.data(), i), ref::decode(type, ref::encode(type, product + x)))
          << name << " " << x;
    }
  }
}

TEST(HostOps, PagesOf64BitIndices) {
  Floats k = randomFloats(5 * 3 * 2 * 8), o(7 * 8, NAN), expected(7 * 8);
  std::vector<int64_t> pages = {99, 4, 0, 2};
  for (int r = 0; r < 7; ++r)
    for (int d = 0; d < 8; ++d)
      expected[r * 8 + d] = r < 6 ? k[((pages[1 + (r + 1) / 3] * 3 + (r + 1) % 3) * 2 + 1) * 8 + d] : 0;
  Small small;
  small.qType = "memref<?x3x2x8xf32>";
  small.oType = "memref<?x8xf32>";
  small.rows = 7;
  small.extraArguments = ", %pages: memref<?xi64> {tile.arg = \"pages\"}";
  small.arguments.operands["pages"] = {pages.data(), {}, {1}};
  small.body = R"(
    %kv = tile.view %q[%c1] rows(%rows) pages(%pages[%c1] : memref<?xi64>) : memref<?x3x2x8xf32> -> !tile.view<?x8xf32, paged<3>>
    %ov = tile.view %o[%c0] rows(%rows) : memref<?x8xf32> -> !tile.view<?x8xf32>
    %x = tile.load %kv[%c1] : !tile.view<?x8xf32, paged<3>> -> !tile.reg<8x8xf32>
    tile.store %x, %ov[%c0] : !tile.reg<8x8xf32>, !tile.view<?x8xf32>
)";
  for (const auto &options : allOptions()) {
    small.run(k.data(), o.data(), options);
    expectNear(o, expected);
  }
}
