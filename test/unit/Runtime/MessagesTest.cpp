//===- MessagesTest.cpp - what the runtime says to rarer mistakes ---------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "attn-c/Runtime.h"

#include <cstring>

using namespace attnrt;
using namespace attnrt::test;

static Status read(const std::string &bytes) {
  std::shared_ptr<const Bundle> bundle;
  return Bundle::fromMemory(bytes.data(), bytes.size(), bundle);
}

static Batch decodeBatch(const Shape &shape, const std::vector<int> &kv = {20, 7}) {
  Batch batch(shape);
  batch.addRequests(std::vector<int>(kv.size(), 1));
  batch.addLevel(kv);
  batch.fill();
  return batch;
}

TEST(Messages, Bundles) {
  const std::string good = bundleBytes(manifest(Shape()));
  auto with = [&](size_t offset, uint32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    return bytes;
  };
  EXPECT_ERROR(read("short"), Code::InvalidBundle, "bundle: expected at least 32 bytes, got 5");
  EXPECT_ERROR(read(with(0, 0)), Code::InvalidBundle, "bundle: wrong magic; this is not a bundle");
  EXPECT_ERROR(read(with(8, 99)), Code::InvalidBundle,
               "bundle: this runtime reads ABI version 1, got 99; compile the variant again");
  EXPECT_ERROR(read(with(12, 5)), Code::InvalidBundle, "expected 0 in the header's reserved field, got 5");
  EXPECT_ERROR(read(good.substr(0, 200)), Code::InvalidBundle, "the manifest reaches past the end");
  EXPECT_ERROR(read(good + "more"), Code::InvalidBundle, "the file is cut short or has bytes too many");
  std::shared_ptr<const Bundle> bundle;
  EXPECT_ERROR(Bundle::fromMemory(nullptr, 0, bundle), Code::InvalidArgument, "bundle: argument 'data' is null");
  EXPECT_ERROR(Bundle::fromFile("/no/such/bundle", bundle), Code::IoError, "bundle: cannot open '/no/such/bundle': No");
  EXPECT_ERROR(Bundle::fromFile("/", bundle), Code::IoError, "bundle: cannot read '/'");
  EXPECT_ERROR(Bundle::fromFile("/dev/null", bundle), Code::InvalidBundle, "'/dev/null' is empty");

  Json m = manifest(Shape());
  m["kernels"][0] = 3;
  EXPECT_ERROR(read(bundleBytes(m)), Code::InvalidBundle, "kernels[0]: expected an object, got 3");
  Shape ragged;
  ragged.format = "ragged";
  m = manifest(ragged);
  m["kernels"][0]["words"][0] = pointer("pages");
  EXPECT_ERROR(read(bundleBytes(m)), Code::InvalidBundle, "a ragged bundle has no pages");
  m = manifest(Shape());
  for (int i = 0; i < 5000; ++i)
    m["range"]["code"].push_back({"add", 8, 0, 1});
  EXPECT_ERROR(read(bundleBytes(m)), Code::InvalidBundle, "range.code: expected at most 4096 instructions, got 5013");
  Shape bsr;
  bsr.format = "bsr", bsr.rowBlock = 16, bsr.levels = 2;
  EXPECT_ERROR(read(bundleBytes(manifest(bsr))), Code::InvalidBundle, "levels: a bsr bundle has one level, got 2");
}

TEST(Messages, Devices) {
  std::shared_ptr<Device> device;
  EXPECT_ERROR(Device::open(DeviceKind::CPU, 3, device), Code::InvalidArgument,
               "device: argument 'ordinal' is 3, but there are 1 cpu devices; number them from 0");
  ASSERT_OK(Device::open(DeviceKind::CPU, 0, device));
  void *pointer = nullptr;
  EXPECT_ERROR(device->alloc(size_t(1) << 62, pointer), Code::OutOfMemory, "cpu: cannot allocate");
  TensorMap map;
  EXPECT_ERROR(device->encodeTensorMap({}, map), Code::Unsupported, "cpu: there are no tensor maps on the cpu");
  void *graph = nullptr;
  for (Status status : {device->beginCapture(nullptr), device->endCapture(nullptr, graph),
                        device->launchGraph(nullptr, nullptr), device->destroyGraph(nullptr)}) {
    EXPECT_EQ(status.code(), Code::Unsupported);
    EXPECT_NE(status.text().find("no graphs on the cpu"), std::string::npos) << status.text();
  }
  if (Device::count(DeviceKind::CUDA) == 0) {
    Status status = Device::open(DeviceKind::CUDA, 0, device);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(status.text().find("libcuda.so.1") != std::string::npos ||
                status.text().find("is there a GPU") != std::string::npos ||
                status.text().find("there is no GPU on this machine") != std::string::npos)
        << status.text();
  }
  std::shared_ptr<const Bundle> bundle;
  std::string bytes = bundleBytes(manifest(Shape()));
  ASSERT_OK(Bundle::fromMemory(bytes.data(), bytes.size(), bundle));
  std::shared_ptr<Executable> executable;
  EXPECT_ERROR(Executable::load(bundle, nullptr, executable), Code::InvalidArgument,
               "executable: argument 'device' is null");
}

TEST(Messages, Plans) {
  Shape shape;
  Batch batch = decodeBatch(shape);
  PlanOptions options;
  options.maxima = {2, 2, 32, 0};
  auto plan = makePlan(load(manifest(shape)), options);
  const AttnWorkItem *items;
  const AttnMergePiece *pieces;
  const int32_t *indptr;
  int64_t count;
  int32_t ctas;
  EXPECT_ERROR(plan->items(0, items, count, indptr, ctas), Code::InvalidArgument, "items: there is no plan");
  EXPECT_ERROR(plan->pieces(pieces, count), Code::InvalidArgument, "pieces: there is no plan");
  alignas(256) static char space[256];
  EXPECT_ERROR(plan->setWorkspace(space + 8, 100), Code::InvalidArgument,
               "set workspace: argument 'pointer': expected device memory aligned to 256 bytes");
  EXPECT_ERROR(plan->setWorkspace(space, 100), Code::WorkspaceTooSmall, "set workspace: the workspace has 100 bytes");
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  EXPECT_ERROR(plan->items(9, items, count, indptr, ctas), Code::InvalidArgument,
               "items: argument 'index': expected a kernel 0..2 or -1 for the merge kernel, got 9");
  auto exceeds = [&](const std::vector<int> &kv, const char *words) {
    Batch large = decodeBatch(shape, kv);
    EXPECT_ERROR(plan->plan(large.input(), nullptr), Code::ExceedsMaxima, words);
  };
  exceeds({1, 1, 1},
          "plan: the batch has 3 requests, more than the declared maximum of 2; create the plan with larger");
  exceeds({1, 33}, "plan: the batch has 33 keys in one request, more than the declared maximum of 32");
  Batch tokens(shape);
  tokens.addRequests({3});
  tokens.addLevel({9});
  tokens.fill();
  EXPECT_ERROR(plan->plan(tokens.input(), nullptr), Code::ExceedsMaxima, "plan: the batch has 3 query tokens");

  int64_t bytes = 0;
  EXPECT_ERROR(plan->workspaceSize(Maxima{1 << 30, 1 << 30, 1 << 30, 1}, bytes), Code::ExceedsMaxima,
               "declare smaller maxima or a larger chunk");
  shape.merge = false, shape.levels = 2;
  auto single = makePlan(load(manifest(shape)));
  batch.levels.push_back(batch.levels[0]);
  EXPECT_ERROR(single->plan(batch.input(), nullptr), Code::InvalidArgument,
               "plan: levels: several levels need the merge kernel that this bundle lacks");
  PlanOptions chunk;
  chunk.policy = SplitPolicy::Chunk;
  std::shared_ptr<Plan> none;
  EXPECT_ERROR(Plan::create(load(manifest(shape)), chunk, none), Code::InvalidArgument,
               "plan: option 'policy': this bundle has no merge kernel, so nothing can be split; use auto or none");
}

TEST(Messages, Batches) {
  Shape shape;
  Batch batch = decodeBatch(shape);
  auto plan = makePlan(load(manifest(shape)));
  PlanInput input = batch.input();
  input.qoIndptr.data = nullptr;
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument,
               "plan: qo_indptr: the host array is null or has a negative size");
  std::vector<int64_t> many{0, 2000000000, 4000000000};
  input = batch.input();
  input.qoIndptr = indices(many);
  EXPECT_ERROR(plan->plan(input, nullptr), Code::InvalidArgument,
               "plan: qo_indptr: 4000000000 query tokens are more than 2147483647; split the batch");
  EXPECT_ERROR(plan->validatePages(batch.input(), {}, 4), Code::InvalidArgument,
               "validate pages: expected 1 arrays (one for each level), got 0");
  std::vector<int32_t> few{0};
  EXPECT_ERROR(plan->validatePages(batch.input(), {indices(few)}, 4), Code::InvalidArgument,
               "validate pages: level 0: expected at least 3 indices, got 1");

  Shape bsr;
  bsr.format = "bsr", bsr.rowBlock = 16;
  auto blocks = makePlan(load(manifest(bsr)));
  Batch sparse = decodeBatch(bsr);
  input = sparse.input();
  std::vector<int64_t> totals{20};
  input.kvTotal = indices(totals);
  EXPECT_ERROR(blocks->plan(input, nullptr), Code::InvalidArgument,
               "plan: kv_total: expected 2 entries (one for each request), got 1");
  totals = {20, 3};
  input.kvTotal = indices(totals);
  EXPECT_ERROR(blocks->plan(input, nullptr), Code::InvalidArgument,
               "plan: kv_total: request 1: expected 7 (its longest list of column blocks) to 2147483647, got 3");
  std::vector<int32_t> runs{0, 2};
  input = sparse.input();
  input.levels[0].rowIndptr = indices(runs);
  EXPECT_ERROR(blocks->plan(input, nullptr), Code::InvalidArgument,
               "plan: row_indptr of level 0: a bsr batch has none; its row blocks are the runs");

  Shape ragged;
  ragged.format = "ragged", ragged.levels = 2;
  auto parts = makePlan(load(manifest(ragged)));
  Batch tokens = decodeBatch(ragged);
  tokens.levels.push_back(tokens.levels[0]);
  tokens.levels[1].kvIndptr[0] = -1;
  EXPECT_ERROR(parts->plan(tokens.input(), nullptr), Code::InvalidArgument,
               "plan: kv_indptr of level 1: expected a start of at least 0, got -1");
  EXPECT_ERROR(parts->validatePages(tokens.input(), {}, 4), Code::InvalidArgument,
               "validate pages: a ragged bundle has no pages");
}

TEST(Messages, Operands) {
  Shape shape;
  Batch batch = decodeBatch(shape);
  Json m = manifest(shape);
  m["params"][2] = {{"name", "bias"}, {"kind", "buffer"}, {"element", "f32"}, {"rank", 1}};
  for (Json &kernel : m["kernels"])
    kernel["words"][30] = {{"kind", "stride"}, {"operand", "param:bias"}, {"dim", 0}};
  m["range"] = nullptr;
  auto plan = makePlan(load(m));
  ASSERT_OK(plan->plan(batch.input(), nullptr));
  std::vector<float> bias(4);
  auto expect = [&](const char *words, auto change) {
    Operands operands = batch.operands();
    std::vector<ParamArg> params(operands.params, operands.params + operands.numParams);
    params[2].buffer = Batch::tensor(bias, {4});
    change(params[2].buffer);
    operands.params = params.data();
    EXPECT_ERROR(plan->run(operands, nullptr), Code::InvalidArgument, words);
  };
  expect("run: parameter 'bias': expected element type f32, got i32", [](TensorArg &t) { t.element = Element::I32; });
  expect("run: parameter 'bias': expected rank 1, got 2", [](TensorArg &t) { t.rank = 2; });
  expect("run: parameter 'bias': dimension 0: expected a size of at least 0, got -1",
         [](TensorArg &t) { t.sizes[0] = -1; });
  expect("run: parameter 'bias': the data pointer is null", [](TensorArg &t) { t.data = nullptr; });
  expect("run: parameter 'bias': expected an address that is a multiple of 4 bytes",
         [](TensorArg &t) { t.data = static_cast<char *>(t.data) + 2; });

  m = manifest(shape);
  m["lse"] = "none";
  for (Json *kernel : {&m["kernels"][0], &m["kernels"][1], &m["kernels"][2], &m["merge"]})
    for (Json &word : (*kernel)["words"])
      if (word.value("operand", "") == "lse")
        word = pointer("o");
  auto without = makePlan(load(m));
  ASSERT_OK(without->plan(batch.input(), nullptr));
  EXPECT_ERROR(without->run(batch.operands(), nullptr), Code::InvalidArgument,
               "run: operand 'lse' was given, but this bundle does not write it; leave it out or compile it with lse");
}

namespace {
/// A plan through the C API.
struct CPlan {
  AttnRtBundle *bundle = nullptr;
  AttnRtDevice *device = nullptr;
  AttnRtExecutable *executable = nullptr;
  AttnRtPlan *plan = nullptr;
  CPlan() {
    std::string bytes = bundleBytes(manifest(Shape()));
    EXPECT_EQ(attnrtBundleFromMemory(bytes.data(), bytes.size(), &bundle), ATTNRT_OK);
    EXPECT_EQ(attnrtDeviceOpen(ATTNRT_CPU, 0, &device), ATTNRT_OK);
    EXPECT_EQ(attnrtExecutableLoad(bundle, device, &executable), ATTNRT_OK);
    AttnRtPlanOptions options;
    ATTNRT_INIT(&options);
    EXPECT_EQ(attnrtPlanCreate(executable, &options, &plan), ATTNRT_OK) << attnrtLastError();
  }
  ~CPlan() {
    attnrtPlanDestroy(plan);
    attnrtExecutableDestroy(executable);
    attnrtDeviceDestroy(device);
    attnrtBundleDestroy(bundle);
  }
};
} // namespace

static void expectC(AttnRtCode code, AttnRtCode wanted, const char *words) {
  EXPECT_EQ(code, wanted);
  EXPECT_NE(std::string(attnrtLastError()).find(words), std::string::npos) << attnrtLastError();
}

TEST(Messages, CApi) {
  CPlan c;
  AttnRtDevice *device = nullptr;
  expectC(attnrtDeviceOpen(static_cast<AttnRtDeviceKind>(7), 0, &device), ATTNRT_INVALID_ARGUMENT,
          "attnrtDeviceOpen: argument 'kind': expected ATTNRT_CPU or ATTNRT_CUDA, got 7");
  expectC(attnrtDeviceOpen(ATTNRT_CPU, 0, nullptr), ATTNRT_INVALID_ARGUMENT,
          "attnrtDeviceOpen: argument 'device' is null");
  expectC(attnrtBundleFromMemory(nullptr, 0, &c.bundle), ATTNRT_INVALID_ARGUMENT, "is null");
  expectC(attnrtPlanCreate(nullptr, nullptr, &c.plan), ATTNRT_INVALID_ARGUMENT,
          "attnrtPlanCreate: argument 'executable' is null");
  expectC(attnrtPlan(c.plan, nullptr, nullptr), ATTNRT_INVALID_ARGUMENT, "attnrtPlan: argument 'batch' is null");

  AttnRtBatch batch;
  ATTNRT_INIT(&batch);
  batch.num_levels = 1;
  expectC(attnrtPlan(c.plan, &batch, nullptr), ATTNRT_INVALID_ARGUMENT,
          "batch: 'levels' is null or 'num_levels' is negative");
  batch.num_levels = 0;
  batch.num_params = -1;
  expectC(attnrtPlan(c.plan, &batch, nullptr), ATTNRT_INVALID_ARGUMENT,
          "batch: 'params' is null or 'num_params' is negative");
  batch.struct_size = 3;
  expectC(attnrtPlan(c.plan, &batch, nullptr), ATTNRT_INVALID_ARGUMENT, "expected struct_size of at least");

  AttnRtOperands operands;
  ATTNRT_INIT(&operands);
  operands.num_params = 1;
  expectC(attnrtRun(c.plan, &operands, nullptr), ATTNRT_INVALID_ARGUMENT,
          "run: 'params' is null or 'num_params' is negative");
  operands.num_params = 0;
  operands.q.element = 99;
  expectC(attnrtRun(c.plan, &operands, nullptr), ATTNRT_INVALID_ARGUMENT,
          "run: a tensor has an unknown element type or a rank outside 0..8");
  operands.q.element = 0;
  AttnRtParam param = {};
  param.buffer.rank = 9;
  operands.params = &param;
  operands.num_params = 1;
  expectC(attnrtRun(c.plan, &operands, nullptr), ATTNRT_INVALID_ARGUMENT,
          "run: parameter 0 has an unknown element type or a rank outside 0..8");
  char *text = nullptr;
  expectC(attnrtPlanDescribe(c.plan, &text), ATTNRT_INVALID_ARGUMENT, "describe: there is no plan");
  expectC(attnrtPlanSvg(c.plan, nullptr), ATTNRT_INVALID_ARGUMENT, "attnrtPlanSvg: argument");
  expectC(attnrtCaptureBegin(c.device, nullptr), ATTNRT_UNSUPPORTED, "no graphs on the cpu");
}
