//===- RangeTest.cpp - what the host knows of a mask ----------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Extents and scans of tables against plain loops, and plans of packed
// documents.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Range.h"
#include "Batch.h"

#include <climits>
#include <cstring>

using namespace attnrt;
using namespace attnrt::test;

namespace {
/// A manifest with nothing but index parameters, one table, and a range program.
struct Program {
  Manifest manifest;
  std::vector<ParamValue> params;
  RangeInterpreter interpreter;

  Program(int indices, Element element) {
    manifest.params.resize(indices + 1);
    for (int i = 0; i < indices; ++i)
      manifest.params[i].kind = ParamDesc::Index;
    manifest.params[indices].kind = ParamDesc::Buffer;
    manifest.params[indices].element = element;
    manifest.params[indices].rank = 1;
    params.resize(indices + 1);
    manifest.range.emplace();
    manifest.range->registers = 5 + indices + 1 + 8;
  }

  void give(const std::vector<int64_t> &values) {
    for (size_t i = 0; i < values.size(); ++i)
      params[i].index = values[i];
  }

  void finish(std::vector<RangeProgram::Instruction> code, int lo, int hi) {
    manifest.range->code = std::move(code);
    manifest.range->result[0] = lo, manifest.range->result[3] = hi;
    manifest.range->slice(manifest.params.size());
    interpreter.begin(manifest, params);
  }
};

using Instruction = RangeProgram::Instruction;

/// Parameters: base, from, to, lo, hi.
struct Scan : Program {
  static constexpr int dst = 11;
  Scan(Element element, bool outside, const void *host, int64_t size) : Program(5, element) {
    params[5].host = host, params[5].hostSize = size;
    Instruction inst;
    inst.op = RangeProgram::Scan;
    inst.dst = dst;
    inst.a = 5, inst.b = 5;
    inst.from = 6, inst.to = 7, inst.someLo = 8, inst.someHi = 9, inst.outside = outside;
    finish({inst}, dst, dst + 1);
  }
};
} // namespace

template <typename T> static void randomScans(Element element) {
  std::mt19937 rng(11);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
  for (int round = 0; round < 600; ++round) {
    const int64_t size = pick(1, round % 8 ? 300 : 9000);
    const bool ordered = round % 3 == 0;
    std::vector<T> table(size);
    int64_t value = pick(-3, 3), step = pick(1, 400);
    for (T &entry : table) {
      if (ordered)
        value += pick(0, step) == 0 && value < 100;
      else
        value = pick(-60, 60);
      entry = static_cast<T>(value);
    }
    Scan scan(element, round % 2, table.data(), size);
    for (int i = 0; i < 12; ++i) {
      const int64_t base = pick(-20, size), from = pick(-base, size - base), to = pick(from - 2, size - base);
      const int64_t lo = pick(-62, 62), hi = lo + pick(-2, ordered ? 1 : 9);
      scan.give({base, from, to, lo, hi});
      int64_t first = std::max(from, to), end = from, gotLo, gotHi;
      for (int64_t k = from; k < to; ++k)
        if ((table[base + k] >= lo && table[base + k] <= hi) != (round % 2)) {
          first = std::min(first, k);
          end = k + 1;
        }
      ASSERT_TRUE(scan.interpreter.run({}, true, gotLo, gotHi));
      if (first < end) {
        EXPECT_LE(gotLo, first) << round;
        EXPECT_GE(gotHi, end) << round;
      }
      if (gotLo < gotHi) {
        EXPECT_GE(gotLo, from);
        EXPECT_LE(gotHi, to);
      } else {
        EXPECT_EQ(gotLo, std::max(from, to));
        EXPECT_EQ(gotHi, from);
      }
      // Numbers that rise one by one leave no doubt.
      if (ordered) {
        EXPECT_EQ(gotLo, first) << round;
        EXPECT_EQ(gotHi, end) << round;
      }
      // A kernel that does not scan sees everything.
      ASSERT_TRUE(scan.interpreter.run({}, false, gotLo, gotHi));
      EXPECT_EQ(gotLo, from);
      EXPECT_EQ(gotHi, std::max(from, to));
    }
  }
}

TEST(Range, ScansAgainstALoop) {
  randomScans<int8_t>(Element::I8);
  randomScans<int32_t>(Element::I32);
  randomScans<int64_t>(Element::I64);
}

TEST(Range, ExtentsAgainstALoop) {
  std::mt19937 rng(12);
  std::vector<int32_t> table(10000);
  for (int32_t &entry : table)
    entry = static_cast<int32_t>(rng());
  Program extent(2, Element::I32);
  extent.params[2].host = table.data(), extent.params[2].hostSize = static_cast<int64_t>(table.size());
  Instruction inst;
  inst.op = RangeProgram::Extent;
  inst.dst = 8, inst.a = 2, inst.from = 5, inst.to = 6;
  extent.finish({inst}, 8, 9);
  int64_t least, greatest;
  for (int i = 0; i < 3000; ++i) {
    int64_t from = rng() % 10000, to = from + rng() % (10001 - from);
    if (i % 2)
      to = std::min<int64_t>(to, from + 200);
    extent.give({from, to});
    ASSERT_TRUE(extent.interpreter.run({}, true, least, greatest));
    EXPECT_EQ(least, from < to ? *std::min_element(table.begin() + from, table.begin() + to) : 0);
    EXPECT_EQ(greatest, from < to ? *std::max_element(table.begin() + from, table.begin() + to) : 0);
  }
  for (std::vector<int64_t> outside : {std::vector<int64_t>{0, 10001}, {-1, 5}, {INT64_MIN, INT64_MAX}}) {
    extent.give(outside);
    EXPECT_FALSE(extent.interpreter.run({}, true, least, greatest));
  }
  extent.give({INT64_MAX, INT64_MIN}); // empty
  ASSERT_TRUE(extent.interpreter.run({}, true, least, greatest));
  EXPECT_EQ(least, 0);
  EXPECT_EQ(greatest, 0);
}

// Where a table cannot be read, a scan is taken to see everything: what else bounds the keys still does.
TEST(Range, TablesThatCannotBeRead) {
  std::vector<int32_t> table(100, 7);
  int64_t lo, hi;
  auto expect = [&](Scan &scan, std::vector<int64_t> values, int64_t wantLo, int64_t wantHi) {
    scan.give(values);
    ASSERT_TRUE(scan.interpreter.run({}, true, lo, hi));
    EXPECT_EQ(lo, wantLo);
    EXPECT_EQ(hi, wantHi);
  };
  Scan none(Element::I32, false, nullptr, 100), part(Element::I32, false, table.data(), 100);
  expect(none, {0, 0, 50, 3, 3}, 0, 50);
  expect(part, {0, 0, 100, 3, 3}, 100, 0);
  expect(part, {0, 0, 101, 3, 3}, 0, 101);
  expect(part, {-1, 0, 50, 3, 3}, 0, 50);
  expect(part, {60, 0, 50, 3, 3}, 0, 50);
  expect(part, {INT64_MAX, 1, 50, 3, 3}, 1, 50);
  expect(part, {0, 0, INT64_MAX, 3, 3}, 0, INT64_MAX);
  expect(part, {0, INT64_MIN, INT64_MAX, 3, 3}, INT64_MIN, INT64_MAX);
  // Another batch has other entries at the same address.
  std::fill_n(table.begin() + 40, 2, 3);
  part.interpreter.begin(part.manifest, part.params);
  expect(part, {0, 0, 100, 3, 3}, 40, 42);

  // A plan without parameters: the base is not known, but everything is.
  std::vector<ParamValue> unknown;
  part.manifest.range->code.front().from = 0, part.manifest.range->code.front().to = 3;
  part.manifest.range->slice(part.manifest.params.size());
  part.interpreter.begin(part.manifest, unknown);
  RangeInputs inputs;
  inputs.qpos0 = 2, inputs.kvTotal = 9;
  ASSERT_TRUE(part.interpreter.run(inputs, true, lo, hi));
  EXPECT_EQ(lo, 2);
  EXPECT_EQ(hi, 9);
}

// Of a bundle from anywhere the program may be anything that is well formed.
TEST(Range, AnyProgramEnds) {
  std::mt19937_64 rng(13);
  std::vector<int8_t> table(5000);
  for (int8_t &entry : table)
    entry = static_cast<int8_t>(rng());
  const int64_t wild[] = {0, 1, -1, 31, 32, 2048, 4999, 5000, 5001, INT64_MAX, INT64_MIN, INT64_MAX - 1};
  for (int round = 0; round < 3000; ++round) {
    Program program(3, Element::I8);
    program.params[3].host = table.data(), program.params[3].hostSize = static_cast<int64_t>(table.size());
    for (int i = 0; i < 3; ++i)
      program.params[i].index = wild[rng() % 12];
    const int registers = program.manifest.range->registers;
    std::vector<Instruction> code(1 + rng() % 30);
    for (Instruction &inst : code) {
      auto reg = [&] { return static_cast<int>(rng() % registers); };
      inst.op = static_cast<RangeProgram::Op>(rng() % (RangeProgram::Scan + 1));
      inst.dst = static_cast<int>(rng() % (registers - 3));
      inst.a = inst.op == RangeProgram::Const ? wild[rng() % 12] : inst.op >= RangeProgram::Load ? 3 : reg();
      inst.b = reg(), inst.from = reg(), inst.to = reg(), inst.someLo = reg(), inst.someHi = reg();
      inst.outside = rng() % 2;
    }
    program.finish(code, static_cast<int>(rng() % registers), static_cast<int>(rng() % registers));
    int64_t lo, hi;
    for (bool scans : {false, true})
      for (int64_t position : {0, 100, 4000})
        (void)program.interpreter.run({position, 128, 5000, 5000, 0}, scans, lo, hi);
    for (const RangeProgram::Slice &slice : program.manifest.range->slices)
      EXPECT_LE(slice.code.size(), code.size());
  }
}

/// doc[base + q] == doc[base + k] and k <= q: the keys from the first of the rows' documents to the last row.
static Json documents(bool scans) {
  Shape shape;
  shape.format = "ragged";
  Json m = manifest(shape);
  m["params"].push_back({{"name", "base"}, {"kind", "index"}});
  m["params"].push_back({{"name", "doc"}, {"kind", "buffer"}, {"element", "i32"}, {"rank", 1}});
  // Registers: 5 to 9 parameters, 10.. temporaries.
  m["range"] = {{"registers", 24},
                {"code", Json::array({{"add", 10, 0, 1}, // one past the last row
                                      {"add", 11, 8, 0},
                                      {"add", 12, 8, 10},
                                      {"extent", 13, 4, 11, 12},
                                      {"const", 15, 0},
                                      {"scan", 16, 4, 8, 15, 3, 13, 14, 13, 13, 0},
                                      {"max", 20, 16, 18},
                                      {"min", 21, 17, 10}})},
                {"result", {16, 20, 20, 21}}};
  for (Json &kernel : m["kernels"])
    kernel["scans"] = scans;
  return m;
}

namespace {
struct Documents {
  Batch batch{[] {
    Shape shape;
    shape.format = "ragged";
    return shape;
  }()};
  std::vector<int32_t> doc;

  /// Requests of that length, of documents of 256 to 1792 tokens.
  Documents(int requests, int length) {
    batch.addRequests(std::vector<int>(requests, length));
    batch.addLevel(std::vector<int>(requests, length));
    int32_t number = 0;
    for (int r = 0; r < requests; ++r, ++number)
      for (int left = length, take; left > 0; left -= take, ++number) {
        take = std::min(left, batch.pick(256, 1792));
        doc.insert(doc.end(), take, number);
      }
  }

  PlanInput input(int64_t known) {
    PlanInput in = batch.input();
    in.params.resize(5);
    in.params[4].host = known ? doc.data() : nullptr;
    in.params[4].hostSize = known;
    return in;
  }
};
} // namespace

/// The largest number of visible keys that a CTA has, as a multiple of the mean.
static double imbalance(Documents &documents, bool scans, int64_t known) {
  auto executable = load(::documents(scans));
  PlanOptions options;
  options.ctas = 64;
  options.policy = SplitPolicy::None;
  auto plan = makePlan(executable, options);
  EXPECT_OK(plan->plan(documents.input(known), nullptr));
  const std::vector<int32_t> &doc = documents.doc;
  double most = 0, total = 0;
  int32_t ctas = 0;
  for (int k = 0; k < 3; ++k) {
    const AttnWorkItem *items;
    const int32_t *indptr;
    int64_t count;
    EXPECT_OK(plan->items(k, items, count, indptr, ctas));
    EXPECT_EQ(count > 0, k == 2);
    for (int c = 0; k == 2 && c < ctas; ++c) {
      double keys = 0;
      for (int i = indptr[c]; i < indptr[c + 1]; ++i) {
        int64_t end = items[i].qpos0 + items[i].rows, start = items[i].qpos0;
        while (start > 0 && doc[start - 1] == doc[items[i].qpos0])
          --start;
        keys += static_cast<double>(end - start);
      }
      most = std::max(most, keys);
      total += keys;
    }
  }
  return most * ctas / total;
}

TEST(Range, DocumentsAreBalancedByWhatTheySee) {
  Documents documents(1, 8192);
  const int64_t all = static_cast<int64_t>(documents.doc.size());
  EXPECT_LT(imbalance(documents, true, all), 1.06);
  const double causal = imbalance(documents, false, all);
  EXPECT_GT(causal, 1.3); // to the planner the documents are one
  EXPECT_EQ(imbalance(documents, true, 0), causal);
  EXPECT_EQ(imbalance(documents, false, 0), causal);
  // Every tile scans all keys, so a copy of half of them is of no use.
  EXPECT_EQ(imbalance(documents, true, all / 2), causal);
}
