//===- PlanTest.cpp - the planner's rules ---------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages, sizes, determinism, and what a plan must look like.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"

#include "attn-c/Runtime.h"

#include <chrono>
#include <cstring>

using namespace attnrt;
using namespace attnrt::test;

/// Requests with so many query rows and keys, in one level.
static Batch makeBatch(const Shape &shape, std::vector<int> rows, std::vector<int> keys) {
  Batch batch(shape);
  batch.addRequests(rows);
  batch.addLevel(keys);
  batch.fill();
  return batch;
}
static Batch smallBatch(const Shape &shape) { return makeBatch(shape, {1, 3, 2}, {20, 33, 7}); }

namespace {
/// What a plan gives to one of its kernels.
struct WorkList {
  WorkList(Plan &plan, int kernel) { EXPECT_OK(plan.items(kernel, items, count, indptr, ctas)); }
  const AttnWorkItem *items = nullptr;
  const int32_t *indptr = nullptr;
  int64_t count = 0;
  int32_t ctas = 0;
};
} // namespace

TEST(Plan, InputErrors) {
  Shape shape;
  shape.levels = 2;
  auto plan = makePlan(load(manifest(shape)));
  auto expect = [&](const char *text, auto change) {
    Batch batch = smallBatch(shape);
    change(batch);
    EXPECT_ERROR(plan->plan(batch.input(), nullptr), Code::InvalidArgument, text);
  };
  expect("qo_indptr: expected 0 as its first entry, got 1", [](Batch &b) { b.qo[0] = 1; });
  expect("qo_indptr: request 1: expected entries that never fall, got 4 then 2", [](Batch &b) { b.qo = {0, 4, 2, 6}; });
  expect("qo_indptr: expected one entry more than there are requests, got none", [](Batch &b) { b.qo.clear(); });
  expect("levels: expected 1..2 (the bundle's), got 0", [](Batch &b) { b.levels.clear(); });
  expect("kv_indptr of level 0: expected 4 entries (requests + 1), got 3",
         [](Batch &b) { b.levels[0].kvIndptr.pop_back(); });
  expect("kv_indptr of level 0: request 1: expected entries that never fall",
         [](Batch &b) { b.levels[0].kvIndptr[2] = 0; });
  expect("kv_last of level 0: expected 3 entries (one for each request), got 2",
         [](Batch &b) { b.levels[0].kvLast.pop_back(); });
  expect("kv_last of level 0: request 1: expected 1..16 keys on the last page, got 17",
         [](Batch &b) { b.levels[0].kvLast[1] = 17; });
  expect("kv_last of level 0: request 2: expected 1..16 keys on the last page, got 0",
         [](Batch &b) { b.levels[0].kvLast[2] = 0; });
  expect("row_indptr of level 0: expected to end at the number of requests (3), got 2",
         [](Batch &b) { b.levels[0].rowIndptr = {0, 1, 1, 2}; });
  expect("request 2: its keys of earlier levels (7) differ from those of request 0", [](Batch &b) {
    b.levels.push_back(b.levels[0]);
    b.levels[0].kvIndptr = {0, 1, 2, 3};
    b.levels[0].kvLast = {16, 16, 7};
    b.levels[1].kvIndptr = {0, 2};
    b.levels[1].kvLast = {3};
    b.levels[1].rowIndptr = {0, 3};
  });
  Batch batch = smallBatch(shape);
  PlanInput input = batch.input();
  input.levels[0].pages = nullptr;
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument,
               "pages of level 0: the device array of page indices is null");
  input = batch.input();
  input.levels[0].pages = reinterpret_cast<const char *>(batch.levels[0].pages.data()) + 2;
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument,
               "pages of level 0: expected an address that is a multiple of 4");
  input = batch.input();
  input.params.pop_back();
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument, "params: expected none or 3, got 2");
  input = batch.input();
  input.qoIndptr.bits = 16;
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument, "qo_indptr: expected bits 32 or 64, got 16");
  std::vector<int64_t> huge{0, 1, 2, int64_t(3) << 31};
  input = batch.input();
  input.qoIndptr = indices(huge);
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument, "request 2: 6442450942 is more than 2147483647");
  // A failed plan leaves nothing to run.
  EXPECT_ERROR(plan->run(batch.operands(), nullptr), Code::InvalidArgument, "there is no plan; call plan first");
  EXPECT_ERROR(plan->validatePages(batch.input(), {indices(batch.levels[0].pages)}, 4), Code::InvalidArgument,
               "is outside 0..3");
  EXPECT_OK(plan->validatePages(batch.input(), {indices(batch.levels[0].pages)}, batch.usedRows));
  EXPECT_OK(plan->plan(batch.input(), nullptr));
}

TEST(Plan, OptionErrors) {
  Shape shape;
  auto executable = load(manifest(shape));
  std::shared_ptr<Plan> plan;
  auto expect = [&](const char *text, auto change) {
    PlanOptions options;
    change(options);
    EXPECT_ERROR(Plan::create(executable, options, plan), Code::InvalidArgument, text);
  };
  EXPECT_ERROR(Plan::create(nullptr, {}, plan), Code::InvalidArgument, "argument 'executable' is null");
  expect("option 'policy': expected 0..3, got 7", [](PlanOptions &o) { o.policy = static_cast<SplitPolicy>(7); });
  expect("option 'causal': expected 0..2", [](PlanOptions &o) { o.causal = static_cast<Hint>(3); });
  expect("option 'chunk': expected 0..", [](PlanOptions &o) { o.chunk = -1; });
  expect("option 'ctas': expected 0..1048576", [](PlanOptions &o) { o.ctas = -1; });
  expect("option 'units': expected 0..16384", [](PlanOptions &o) { o.units = -1; });
  expect("option 'fixed_grid' needs declared maxima", [](PlanOptions &o) { o.fixedGrid = true; });
  expect("maxima.tokens: expected 0..2147483647, got -1", [](PlanOptions &o) { o.maxima.tokens = -1; });
  expect("maxima.levels: expected 0..1", [](PlanOptions &o) { o.maxima.levels = 2; });
  expect("maxima.kv_len: the chunked policies need", [](PlanOptions &o) {
    o.policy = SplitPolicy::Chunk;
    o.maxima.requests = o.maxima.tokens = 4;
  });
  PlanOptions options;
  options.maxima = {2000000000, 2000000000, 0, 1};
  EXPECT_ERROR(Plan::create(executable, options, plan), Code::ExceedsMaxima, "work items, more than 2147483647");
  shape.merge = false;
  options = PlanOptions();
  options.policy = SplitPolicy::Chunk;
  EXPECT_ERROR(Plan::create(load(manifest(shape)), options, plan), Code::InvalidArgument,
               "this bundle has no merge kernel");
}

TEST(Plan, BeyondMaximaAndTooSmallAWorkspace) {
  Shape shape;
  auto executable = load(manifest(shape));
  PlanOptions options;
  options.maxima = {3, 6, 33, 1};
  auto plan = makePlan(executable, options);
  Batch batch = smallBatch(shape);
  EXPECT_OK(plan->plan(batch.input(), nullptr));
  auto refuse = [&](Maxima maxima, const char *text) {
    PlanOptions smaller;
    smaller.maxima = maxima;
    EXPECT_ERROR(makePlan(executable, smaller)->plan(batch.input(), nullptr), Code::ExceedsMaxima, text);
  };
  refuse({2, 6, 33, 1}, "the batch has 3 requests, more than the declared maximum of 2");
  refuse({3, 5, 33, 1}, "6 query tokens, more than the declared maximum of 5");
  refuse({3, 6, 32, 1}, "33 keys in one request, more than the declared maximum of 32");
  int64_t bytes = 0;
  ASSERT_OK(plan->workspaceSize(options.maxima, bytes));
  alignas(256) static char memory[1024];
  EXPECT_ERROR(plan->setWorkspace(memory, 1024), Code::WorkspaceTooSmall, std::to_string(bytes) + " are needed");
  EXPECT_ERROR(plan->setWorkspace(memory + 8, 1024), Code::InvalidArgument, "aligned to 256 bytes");
  auto loose = makePlan(executable);
  EXPECT_OK(loose->setWorkspace(memory, 1024));
  int64_t need = 0;
  ASSERT_OK(loose->workspaceSize(batch.input(), need));
  EXPECT_ERROR(loose->plan(batch.input(), nullptr), Code::WorkspaceTooSmall, std::to_string(need) + " are needed");
  // Exactly that many bytes are enough.
  std::vector<char> exact(need + 256);
  ASSERT_OK(loose->setWorkspace(exact.data() + (256 - reinterpret_cast<uintptr_t>(exact.data()) % 256) % 256, need));
  EXPECT_OK(loose->plan(batch.input(), nullptr));
  EXPECT_OK(loose->run(batch.operands(), nullptr));
  EXPECT_EQ(batch.check(), "");
}

TEST(Plan, SizesScale) {
  Shape shape;
  shape.headsQo = 32, shape.headsKv = 2, shape.dimVo = 256;
  auto executable = load(manifest(shape));
  PlanOptions options;
  options.units = 132;
  auto plan = makePlan(executable, options);
  int64_t bytes = 0;
  ASSERT_OK(plan->workspaceSize(Maxima{512, 512, 0, 1}, bytes));
  EXPECT_LT(bytes, int64_t(64) << 20);
  ASSERT_OK(plan->planSize(Maxima{16384, 16384, 0, 1}, bytes));
  EXPECT_LT(bytes, int64_t(256) << 20);
}

TEST(Plan, RunErrors) {
  Shape shape;
  auto plan = makePlan(load(manifest(shape)));
  Batch batch = smallBatch(shape);
  EXPECT_ERROR(plan->run(batch.operands(), nullptr), Code::InvalidArgument, "there is no plan; call plan first");
  std::string text;
  EXPECT_ERROR(plan->describe(text), Code::InvalidArgument, "there is no plan");
  EXPECT_ERROR(plan->svg(text), Code::InvalidArgument, "there is no plan");
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  auto expect = [&](const char *words, auto change) {
    Operands ops = batch.operands();
    change(ops);
    EXPECT_ERROR(plan->run(ops, nullptr), Code::InvalidArgument, words);
  };
  expect("operand 'q': expected element type f32, got bf16", [](Operands &o) { o.q.element = Element::BF16; });
  expect("operand 'k': expected rank 4 ([pages, page size, heads, head_dim]), got 3",
         [](Operands &o) { o.k.rank = 3; });
  expect("operand 'v': dimension 2: expected 2, got 7", [](Operands &o) { o.v.sizes[2] = 7; });
  expect("operand 'q': dimension 2: expected 8, got 9", [](Operands &o) { o.q.sizes[2] = 9; });
  expect("operand 'o': expected a contiguous last dimension (stride 1), got stride 2",
         [](Operands &o) { o.o.strides[2] = 2; });
  expect("operand 'o': the data pointer is null", [](Operands &o) { o.o.data = nullptr; });
  expect("operand 'q': expected an address that is a multiple of 4 bytes",
         [](Operands &o) { o.q.data = static_cast<char *>(o.q.data) + 1; });
  expect("operand 'lse' is missing", [](Operands &o) { o.lse.data = nullptr; });
  std::vector<ParamArg> far(batch.params);
  far[1].index = (int64_t(1) << 30) + 1;
  expect("expected at most 2^30 in magnitude, got 1073741825; a bound beyond every length can be 2^30",
         [&](Operands &o) { o.params = far.data(); });
  expect("params: expected 3, got 2", [](Operands &o) { o.numParams = 2; });
  expect("operand 'q': the plan has 6 query tokens, but the tensor only 5", [](Operands &o) { o.q.sizes[0] = 5; });
  expect("operand 'o': the plan has 6 query tokens", [](Operands &o) { o.o.sizes[0] = 5; });
  expect("operand 'lse': the plan has 6 query tokens", [](Operands &o) { o.lse.sizes[0] = 5; });
}

TEST(Plan, Deterministic) {
  Shape shape;
  shape.levels = 2;
  shape.rowTable = true;
  auto executable = load(manifest(shape));
  Batch batch(shape);
  batch.addRequests({1, 1, 40, 1, 200});
  batch.addLevel({64, 100}, {3, 2});
  batch.addLevel({20, 3, 500, 0, 77});
  batch.fill();
  PlanOptions options;
  options.ctas = 20;
  std::string first, second;
  auto a = makePlan(executable, options), b = makePlan(executable, options);
  ASSERT_OK(a->plan(batch.input(), nullptr));
  ASSERT_OK(b->plan(batch.input(), nullptr));
  ASSERT_OK(a->describe(first));
  ASSERT_OK(b->describe(second));
  EXPECT_EQ(first, second);
  EXPECT_TRUE(Json::accept(first));
  ASSERT_OK(a->svg(second));
  EXPECT_NE(second.find("</svg>"), std::string::npos);
}

// Short requests go to the smallest kernel, also when it could hold rows of several.
TEST(Plan, DecodeUsesTheNarrowKernel) {
  Shape shape;
  Json m = manifest(shape);
  m["kernels"][0]["row_table"] = true;
  auto executable = load(m);
  Batch batch = makeBatch(shape, {1, 1, 1, 100}, {50, 60, 70, 100});
  auto plan = makePlan(executable);
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  EXPECT_GT(WorkList(*plan, 0).count, 0); // 16 rows
  EXPECT_EQ(WorkList(*plan, 1).count, 0); // 64 rows
  EXPECT_GT(WorkList(*plan, 2).count, 0); // 96 rows
}

// A largest class of 192 rows, whose kernel has tiles of 176 keys: requests end within tiles, chunks begin at multiples
// of 176.
TEST(Plan, ClassesThatAreNoPowersOfTwo) {
  Shape shape;
  Json m = manifest(shape);
  m["kernels"][2]["rows"] = 192;
  m["kernels"][2]["keys"] = 176;
  auto executable = load(m);
  Batch batch = makeBatch(shape, {65, 192, 193, 500}, {65, 192, 1000, 5000});
  auto plan = makePlan(executable);
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  WorkList work(*plan, 2);
  int64_t rows = 0;
  for (int64_t i = 0; i < work.count; ++i) {
    EXPECT_LE(work.items[i].rows, 192);
    EXPECT_EQ(work.items[i].row0 % 192, 0);
    EXPECT_EQ(work.items[i].klo % 176, 0);
    rows += work.items[i].klo == 0 ? work.items[i].rows : 0;
  }
  EXPECT_EQ(rows, (65 + 192 + 193 + 500) * shape.headsQo);
}

TEST(Plan, SplitsOneLongRequest) {
  Shape shape;
  auto executable = load(manifest(shape));
  Batch batch = makeBatch(shape, {1}, {8000});
  PlanOptions options;
  options.ctas = 16;
  auto plan = makePlan(executable, options);
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  WorkList work(*plan, 0);
  EXPECT_EQ(work.count, 16); // two heads in eight pieces
  for (int c = 0; c < work.ctas; ++c)
    EXPECT_EQ(work.indptr[c + 1] - work.indptr[c], 1);
  ASSERT_OK(plan->run(batch.operands(), nullptr));
  EXPECT_EQ(batch.check(), "");
}

// Items of wide kernels are handed out in sections whose K and V fit the shared cache: here one KV head of one request.
TEST(Plan, SectionsOfTheSharedCache) {
  Shape shape;
  auto executable = load(manifest(shape));
  Batch batch(shape);
  batch.addRequests({300, 0, 300, 300, 300});
  batch.addLevel({300, 0, 300, 300, 300});
  batch.causal = 1;
  batch.fill();
  const int64_t head = 300 * (shape.dimQk + shape.dimVo) * elementBytes(executable->manifest().typeKv);
  auto sections = [&](int64_t cache) {
    PlanOptions options;
    options.ctas = 3;
    options.cache = cache;
    auto plan = makePlan(executable, options);
    EXPECT_OK(plan->plan(batch.input(), nullptr));
    WorkList work(*plan, 2);
    EXPECT_EQ(work.count, 4 * 4 * shape.headsQo); // requests, row tiles, heads
    int changes = 0;
    for (int c = 0; c < work.ctas; ++c)
      for (int i = work.indptr[c]; i + 1 < work.indptr[c + 1]; ++i)
        changes +=
            work.items[i].request != work.items[i + 1].request || work.items[i].head / 2 != work.items[i + 1].head / 2;
    EXPECT_OK(plan->run(batch.operands(), nullptr));
    EXPECT_EQ(batch.check(), "");
    return changes;
  };
  EXPECT_LE(sections(2 * head), 3 * 7); // eight sections, each CTA takes part in each
  EXPECT_GT(sections(0), 3 * 7);
  EXPECT_EQ(sections(0), sections(int64_t(1) << 30)); // all in one
  EXPECT_LE(sections(32), 3 * 7);                     // nothing fits: one head at a time
  batch.causal = 0;                                   // all items cost the same: those of a head follow each other
  batch.fill();
  EXPECT_LE(sections(0), 3 * 7);
}

// A plan may be made before the variant's parameters are known; a range that does not read them balances it all the
// same.
TEST(Plan, RangeWithoutParameters) {
  Shape shape;
  Json causal = manifest(shape);
  causal["range"] = {
      {"registers", 11}, {"code", Json::array({{"const", 8, 0}, {"add", 9, 0, 1}})}, {"result", {8, 8, 8, 9}}};
  Json aware = causal; // adds 0 times a parameter
  aware["range"]["code"] = Json::array({{"const", 8, 0}, {"mul", 10, 8, 5}, {"add", 9, 0, 1}, {"add", 9, 9, 10}});
  auto lists = [&](const Json &m, bool params) {
    auto executable = load(m);
    Batch batch = makeBatch(shape, {300}, {300});
    PlanOptions options;
    options.ctas = 3;
    auto plan = makePlan(executable, options);
    auto input = batch.input();
    if (!params)
      input.params.clear();
    EXPECT_OK(plan->plan(input, nullptr));
    WorkList work(*plan, 2);
    std::vector<int32_t> order;
    for (int64_t i = 0; i < work.count; ++i)
      order.push_back(work.items[i].qpos0);
    return order;
  };
  EXPECT_EQ(lists(causal, false), lists(causal, true));
  EXPECT_EQ(lists(aware, true), lists(causal, true));
  EXPECT_NE(lists(aware, false), lists(causal, true)); // all keys are taken to be visible
}

TEST(Plan, BalanceOfManyRequests) {
  Shape shape;
  shape.headsQo = 32, shape.headsKv = 8;
  auto executable = load(manifest(shape));
  PlanOptions options;
  options.ctas = 132;
  auto plan = makePlan(executable, options);
  Batch batch(shape);
  std::vector<int> kv;
  for (int i = 0; i < 64; ++i)
    kv.push_back(batch.pick(512, 2048));
  batch.addRequests(std::vector<int>(64, 1));
  batch.addLevel(kv);
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  std::string text;
  ASSERT_OK(plan->describe(text));
  EXPECT_GT(Json::parse(text)["kernels"][0]["balance"].get<double>(), 0.85);
}

TEST(CApi, Errors) {
  AttnRtBundle *bundle = nullptr;
  EXPECT_EQ(attnrtAbiVersion(), 1);
  EXPECT_EQ(attnrtBundleOpen(nullptr, &bundle), ATTNRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(attnrtLastError()).find("attnrtBundleOpen: argument 'path' is null"), std::string::npos);
  EXPECT_EQ(attnrtBundleOpen("/nonexistent", &bundle), ATTNRT_IO_ERROR);
  std::string bytes = bundleBytes(manifest(Shape()));
  ASSERT_EQ(attnrtBundleFromMemory(bytes.data(), bytes.size(), &bundle), ATTNRT_OK);
  AttnRtDevice *device = nullptr;
  ASSERT_EQ(attnrtDeviceOpen(ATTNRT_CPU, 0, &device), ATTNRT_OK);
  AttnRtExecutable *executable = nullptr;
  ASSERT_EQ(attnrtExecutableLoad(bundle, device, &executable), ATTNRT_OK);
  attnrtBundleDestroy(bundle);
  attnrtDeviceDestroy(device); // the executable keeps both
  AttnRtPlan *plan = nullptr;
  AttnRtPlanOptions options = {};
  EXPECT_EQ(attnrtPlanCreate(executable, &options, &plan), ATTNRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(attnrtLastError()).find("use ATTNRT_INIT"), std::string::npos);
  options.struct_size = sizeof(options);
  ASSERT_EQ(attnrtPlanCreate(executable, &options, &plan), ATTNRT_OK);
  attnrtExecutableDestroy(executable);
  AttnRtBatch batch = {};
  batch.struct_size = sizeof(batch);
  EXPECT_EQ(attnrtPlan(plan, &batch, nullptr), ATTNRT_INVALID_ARGUMENT);
  attnrtPlanDestroy(plan);
}
