//===- RunTest.cpp - plan, run and merge against a plain loop -------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// End to end on the CPU: random batches over formats, levels, policies and
// grids.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"

#include <cstring>
#include <thread>

using namespace attnrt;
using namespace attnrt::test;

/// The range program of the tests reads as intended (a wrong one would only cost balance).
static void planAndCheck(Plan &plan, Batch &batch, const std::string &what) {
  ASSERT_OK(plan.plan(batch.input(), nullptr));
  batch.poison();
  ASSERT_OK(plan.run(batch.operands(), nullptr));
  EXPECT_EQ(batch.check(), "") << what;
}

static Batch randomBatch(const Shape &shape, uint32_t seed) {
  Batch batch(shape, seed);
  const int qoChoices[] = {0, 1, 1, 1, 2, 5, 17, 40, 130}, kvChoices[] = {0, 1, 5, 16, 33, 100, 300};
  int n = batch.pick(0, 9);
  std::vector<int> qo, kv;
  for (int i = 0; i < n; ++i)
    qo.push_back(qoChoices[batch.pick(0, 8)]);
  batch.addRequests(qo);
  // Prefix levels: runs nest, so cut each run of the level before into smaller ones.
  std::vector<int> runs{n};
  if (n == 0)
    runs.clear();
  for (int l = 0; l + 1 < shape.levels; ++l) {
    std::vector<int> next;
    for (int run : runs)
      while (run > 0) {
        int take = batch.pick(1, run);
        next.push_back(take);
        run -= take;
      }
    runs = next;
    kv.clear();
    for (size_t i = 0; i < runs.size(); ++i)
      kv.push_back(kvChoices[batch.pick(0, 6)]);
    if (runs.empty())
      batch.addLevel({});
    else
      batch.addLevel(kv, runs);
  }
  kv.clear();
  if (shape.format == "bsr") {
    for (int n : qo)
      for (int b = 0; b < n; b += shape.rowBlock)
        kv.push_back(kvChoices[batch.pick(0, 6)]);
  } else {
    for (int i = 0; i < n; ++i)
      kv.push_back(kvChoices[batch.pick(0, 6)]);
  }
  batch.addLevel(kv);
  batch.causal = batch.pick(0, 1);
  batch.window = batch.pick(0, 2) ? -1 : batch.pick(0, 60);
  batch.bias = 0.25f;
  batch.fill();
  return batch;
}

TEST(Run, RandomBatches) {
  uint32_t seed = 1;
  for (const char *format : {"ragged", "paged", "bsr"})
    for (int page : {1, 5, 16})
      for (int variant = 0; variant < 4; ++variant) {
        Shape shape;
        shape.format = format;
        bool ragged = shape.format == "ragged", bsr = shape.format == "bsr";
        if (ragged && page != 16)
          continue;
        shape.pageSize = page;
        shape.rowBlock = bsr ? (variant % 2 ? 8 : 3) : 0;
        shape.levels = bsr ? 1 : 1 + variant % 3;
        shape.rowTable = !bsr && variant >= 2;
        shape.headsQo = variant == 3 ? 5 : 4;
        shape.headsKv = variant == 3 ? 1 : 2;
        shape.dimVo = variant == 1 ? 12 : 8;
        auto executable = load(manifest(shape));
        for (int round = 0; round < 12; ++round, ++seed) {
          Batch batch = randomBatch(shape, seed);
          PlanOptions options;
          options.policy = static_cast<SplitPolicy>(round % 4);
          options.chunk = round % 8 < 4 ? 32 : 64;
          const int ctas[] = {0, 1, 3, 8, 31, 64};
          options.ctas = ctas[round % 6];
          auto plan = makePlan(executable, options);
          planAndCheck(*plan, batch, std::string(format) + " seed " + std::to_string(seed));
        }
      }
}

TEST(Run, OnePlanManyBatchesWithinMaxima) {
  Shape shape;
  shape.levels = 2;
  shape.rowTable = true;
  auto executable = load(manifest(shape));
  for (int policy = 0; policy < 4; ++policy) {
    PlanOptions options;
    options.policy = static_cast<SplitPolicy>(policy);
    options.chunk = 64;
    options.maxima = {9, 1200, 700, 2};
    options.fixedGrid = true;
    options.ctas = 16;
    auto plan = makePlan(executable, options);
    int64_t bytes = 0;
    ASSERT_OK(plan->workspaceSize(options.maxima, bytes));
    std::vector<char> memory(bytes + 256 + 64, 0x5a);
    char *base = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256) % 256;
    ASSERT_OK(plan->setWorkspace(base, bytes));
    const AttnWorkItem *first = nullptr;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      Batch batch = randomBatch(shape, 1000 + seed);
      planAndCheck(*plan, batch, "seed " + std::to_string(seed));
      // The layout does not move, and nothing is written past the end.
      const AttnWorkItem *items;
      const int32_t *indptr;
      int64_t count;
      int32_t ctas;
      ASSERT_OK(plan->items(2, items, count, indptr, ctas));
      first = first ? first : items;
      EXPECT_EQ(first, items);
      EXPECT_EQ(ctas, 16);
      for (int i = 0; i < 64; ++i)
        ASSERT_EQ(base[bytes + i], 0x5a);
    }
  }
}

TEST(Run, SixtyFourBitIndptr) {
  Shape shape;
  Batch batch(shape);
  batch.addRequests({1, 3});
  batch.addLevel({20, 40});
  batch.fill();
  std::vector<int64_t> qo(batch.qo.begin(), batch.qo.end());
  std::vector<int64_t> kv(batch.levels[0].kvIndptr.begin(), batch.levels[0].kvIndptr.end());
  PlanInput input = batch.input();
  input.qoIndptr = indices(qo);
  input.levels[0].kvIndptr = indices(kv);
  auto plan = makePlan(load(manifest(shape)));
  ASSERT_OK(plan->plan(input, nullptr));
  ASSERT_OK(plan->run(batch.operands(), nullptr));
  EXPECT_EQ(batch.check(), "");
}

TEST(Run, StridedViewsOfOnePackedBuffer) {
  Shape shape;
  shape.format = "ragged";
  Batch batch(shape);
  batch.addRequests({4, 9});
  batch.addLevel({4, 9});
  batch.causal = 1;
  batch.fill();
  // [token, q heads | k heads | v heads, d]
  int rows = 13, heads = shape.headsQo + 2 * shape.headsKv, d = shape.dimQk;
  std::vector<float> packed(rows * heads * d);
  for (int t = 0; t < rows; ++t) {
    std::copy_n(&batch.q[t * shape.headsQo * d], shape.headsQo * d, &packed[t * heads * d]);
    std::copy_n(&batch.k[t * shape.headsKv * d], shape.headsKv * d, &packed[(t * heads + shape.headsQo) * d]);
    std::copy_n(&batch.v[t * shape.headsKv * d], shape.headsKv * d,
                &packed[(t * heads + shape.headsQo + shape.headsKv) * d]);
  }
  auto plan = makePlan(load(manifest(shape)));
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  Operands ops = batch.operands();
  ops.q.data = packed.data();
  ops.k.data = packed.data() + shape.headsQo * d;
  ops.v.data = packed.data() + (shape.headsQo + shape.headsKv) * d;
  ops.q.strides[0] = ops.k.strides[0] = ops.v.strides[0] = heads * d;
  ASSERT_OK(plan->run(ops, nullptr));
  EXPECT_EQ(batch.check(), "");
}

TEST(Run, SameBitsTwice) {
  Shape shape;
  auto executable = load(manifest(shape));
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Batch batch = randomBatch(shape, 500 + seed);
    PlanOptions options;
    options.ctas = 24;
    auto plan = makePlan(executable, options), again = makePlan(executable, options);
    planAndCheck(*plan, batch, "first");
    std::vector<float> o = batch.o, lse = batch.lse;
    planAndCheck(*again, batch, "second");
    if (o.empty())
      continue; // memcmp takes no null
    EXPECT_EQ(0, std::memcmp(o.data(), batch.o.data(), o.size() * 4));
    EXPECT_EQ(0, std::memcmp(lse.data(), batch.lse.data(), lse.size() * 4));
  }
}

TEST(Run, BatchInvariantBits) {
  Shape shape;
  auto executable = load(manifest(shape));
  PlanOptions options;
  options.policy = SplitPolicy::BatchInvariant;
  options.chunk = 64;
  options.ctas = 7;
  Batch batch(shape);
  batch.addRequests({1, 40, 3, 1, 90});
  batch.addLevel({700, 300, 500, 70, 400});
  batch.causal = 1;
  batch.fill();
  auto plan = makePlan(executable, options);
  planAndCheck(*plan, batch, "batch");
  for (int r = 0; r < batch.requests(); ++r) {
    Batch alone(shape);
    alone.causal = 1;
    alone.addRequests({batch.qo[r + 1] - batch.qo[r]});
    Level level;
    const Level &all = batch.levels[0];
    level.kvIndptr = {0, all.kvIndptr[r + 1] - all.kvIndptr[r]};
    level.kvLast = {all.kvLast[r]};
    level.pages.assign(all.pages.begin() + all.kvIndptr[r], all.pages.begin() + all.kvIndptr[r + 1]);
    alone.levels = {level};
    alone.usedRows = batch.usedRows;
    int64_t width = shape.headsQo * shape.dimQk;
    alone.q.assign(batch.q.begin() + batch.qo[r] * width, batch.q.begin() + batch.qo[r + 1] * width);
    alone.k = batch.k;
    alone.v = batch.v;
    auto single = makePlan(executable, options);
    planAndCheck(*single, alone, "alone");
    EXPECT_EQ(
        0, std::memcmp(alone.o.data(), batch.o.data() + batch.qo[r] * shape.headsQo * shape.dimVo, alone.o.size() * 4))
        << "request " << r;
  }
}

TEST(Run, ItemsFromOneList) {
  // A kernel with a counter: whoever is free takes the next item, the dearest first; results do not change.
  Shape shape;
  Json m = manifest(shape);
  Json &kernel = m["kernels"][0];
  kernel["symbol"] = "paged_counter";
  kernel["words"].push_back(pointer("counter"));
  kernel["words"].push_back(size("cta_indptr", 0));
  auto shared = load(m), own = load(manifest(shape));
  PlanOptions options;
  options.ctas = 7;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Batch batch = randomBatch(shape, 900 + seed);
    auto plan = makePlan(shared, options), other = makePlan(own, options);
    planAndCheck(*plan, batch, "first");
    std::vector<float> o = batch.o;
    // The counter is back at 0: the same plan runs again.
    batch.poison();
    ASSERT_OK(plan->run(batch.operands(), nullptr));
    EXPECT_EQ(batch.check(), "") << "again";
    if (!o.empty())
      EXPECT_EQ(0, std::memcmp(o.data(), batch.o.data(), o.size() * 4)) << "the order changed a bit";

    const AttnWorkItem *items;
    const int32_t *indptr;
    int64_t count;
    int32_t ctas;
    ASSERT_OK(plan->items(0, items, count, indptr, ctas));
    EXPECT_EQ(indptr[ctas], count);
    auto keys = [&](int64_t i) { return int64_t(items[i].khi - items[i].klo); };
    for (int64_t i = 1; i < count && batch.causal == 0 && batch.window < 0; ++i)
      EXPECT_LE(keys(i) * items[i].rows, 2 * keys(i - 1) * items[i - 1].rows + 1000) << "cheap items go last";
  }
}

TEST(Run, TwoThreadsWithTheirOwnPlans) {
  Shape shape;
  auto executable = load(manifest(shape));
  auto work = [&](uint32_t seed) {
    PlanOptions options;
    options.ctas = 9;
    auto plan = makePlan(executable, options);
    for (uint32_t i = 0; i < 15; ++i) {
      Batch batch = randomBatch(shape, seed + i);
      planAndCheck(*plan, batch, "thread");
    }
  };
  std::thread other(work, 3000);
  work(4000);
  other.join();
}

TEST(Run, ChangedOperandsAreSeen) {
  Shape shape;
  Batch batch(shape);
  batch.addRequests({2});
  batch.addLevel({30});
  batch.fill();
  auto plan = makePlan(load(manifest(shape)));
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  ASSERT_OK(plan->run(batch.operands(), nullptr));
  EXPECT_EQ(batch.check(), "");
  batch.bias = 3;
  batch.window = 4;
  batch.poison();
  ASSERT_OK(plan->run(batch.operands(), nullptr));
  EXPECT_EQ(batch.check(), "");
}
