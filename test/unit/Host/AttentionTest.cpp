//===- AttentionTest.cpp - the hand-written kernels against the reference ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/Kernels/*-l.mlir through the host path: ragged and paged batches, page
// sizes, storage types, strides, split requests and the merge kernel. Memory
// that no request owns is NaN.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "attn/Reference/Compare.h"
#include "attn/Reference/Reference.h"
#include "attn/Reference/Variants.h"
#include <gtest/gtest.h>
#include <random>

using namespace attn;

namespace {
constexpr int64_t kHeadsQo = 32, kHeadsKv = 8, kDim = 128;

struct Shape {
  std::vector<int64_t> qoLens, kvLens;
  int64_t pageSize = 16; // 0: ragged
  ref::Storage type = ref::Storage::BF16;
  bool headsFirst = false; // pages of [head, row, d]
  int64_t pad = 0;         // elements behind each head vector's row of heads
  int64_t chunk = 0;       // keys of a piece; 0: not split
  bool decode = false;
  unsigned seed = 1;
};

/// A batch in memory, twice: as the kernels see it and as floats for the reference.
struct Batch {
  Shape shape;
  ref::Problem problem;
  std::vector<char> q, k, v, o;
  std::vector<float> qf, kf, vf, lse, partO, partLse;
  std::vector<int32_t> pages, ctaIndptr, mergeIndptr;
  std::vector<AttnWorkItem> items, merges;
  std::vector<AttnMergePiece> pieces;
  std::vector<AttnTokenInfo> tokens;
  Arguments arguments;
  int ctas = 3;

  explicit Batch(const Shape &shape) : shape(shape) { build(); }

  void fill(std::vector<char> &bytes, std::vector<float> &values, size_t count) {
    values.assign(count, NAN);
    bytes.assign(count * ref::storageBytes(shape.type), 0);
    for (size_t i = 0; i < count; ++i)
      ref::storeElement(shape.type, bytes.data(), i, NAN);
  }
  void set(std::vector<char> &bytes, std::vector<float> &values, size_t i, double value) {
    ref::storeElement(shape.type, bytes.data(), i, value);
    values[i] = ref::loadElement(shape.type, bytes.data(), i);
  }

  void build() {
    std::mt19937 random(shape.seed);
    std::normal_distribution<double> normal;
    size_t requests = shape.qoLens.size();
    problem.headsQo = kHeadsQo;
    problem.headsKv = kHeadsKv;
    problem.headDimQk = problem.headDimVo = kDim;
    problem.qoIndptr = {0};
    for (int64_t n : shape.qoLens)
      problem.qoIndptr.push_back(problem.qoIndptr.back() + n);
    int64_t count = problem.tokens();
    int64_t qHead = kDim + shape.pad, qToken = qHead * kHeadsQo + shape.pad;
    if (!shape.pad)
      qHead = kDim, qToken = kDim * kHeadsQo;
    fill(q, qf, count * qToken + 1);
    for (int64_t t = 0; t < count; ++t)
      for (int64_t h = 0; h < kHeadsQo; ++h)
        for (int64_t d = 0; d < kDim; ++d)
          set(q, qf, t * qToken + h * qHead + d, normal(random));
    problem.q = {qf.data(), 0, qToken, qHead};

    ref::Level level;
    level.kvIndptr = {0};
    std::vector<int64_t> tables;
    int64_t rowStride = kDim * kHeadsKv, headStride = kDim, blockStride = 0, size = shape.pageSize;
    if (size) {
      problem.format = ref::Format::Paged;
      problem.pageSize = size;
      if (shape.headsFirst)
        rowStride = kDim, headStride = kDim * size;
      blockStride = size * kDim * kHeadsKv + shape.pad;
      int64_t used = 0;
      for (int64_t n : shape.kvLens)
        used += (n + size - 1) / size;
      std::vector<int32_t> order(used + 3);
      for (size_t i = 0; i < order.size(); ++i)
        order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (int64_t n : shape.kvLens) {
        tables.push_back(pages.size());
        for (int64_t p = 0; p * size < n; ++p) {
          level.indices.push_back(order[pages.size()]);
          pages.push_back(order[pages.size()]);
        }
        level.kvIndptr.push_back(pages.size());
        level.last.push_back(n ? (n - 1) % size + 1 : 1);
      }
      fill(k, kf, (used + 3) * blockStride);
      fill(v, vf, (used + 3) * blockStride);
    } else {
      for (int64_t n : shape.kvLens) {
        tables.push_back(level.kvIndptr.back());
        level.kvIndptr.push_back(level.kvIndptr.back() + n);
      }
      fill(k, kf, (level.kvIndptr.back() + 2) * rowStride);
      fill(v, vf, (level.kvIndptr.back() + 2) * rowStride);
    }
    problem.levels = {level};
    problem.k = {kf.data(), blockStride, rowStride, headStride};
    problem.v = {vf.data(), blockStride, rowStride, headStride};
    for (size_t r = 0; r < requests; ++r)
      for (const ref::KeyPlace &key : ref::keysOf(problem, r))
        for (int64_t h = 0; h < kHeadsKv; ++h)
          for (int64_t d = 0; d < kDim; ++d) {
            size_t at = key.block * blockStride + key.row * rowStride + h * headStride + d;
            set(k, kf, at, normal(random));
            set(v, vf, at, normal(random));
          }
    o.assign(count * qToken * ref::storageBytes(shape.type), 0);
    ref::poison(shape.type, o.data(), count * qToken);
    lse.assign(count * kHeadsQo, 0);
    ref::poison(ref::Storage::F32, lse.data(), lse.size());

    // Items: one per tile of rows, heads of it, and chunk.
    int64_t pack = shape.decode ? 4 : 1, tile = shape.decode ? 16 : 128, tileTokens = tile / pack;
    int64_t slots = 0;
    for (size_t r = 0; r < requests; ++r) {
      int64_t qo = shape.qoLens[r], kv = shape.kvLens[r];
      for (int64_t row0 = 0; row0 < qo; row0 += tileTokens) {
        int64_t n = std::min(tileTokens, qo - row0), token0 = problem.qoIndptr[r] + row0;
        int64_t chunk = shape.chunk ? shape.chunk : std::max<int64_t>(kv, 1);
        int64_t chunks = std::max<int64_t>(1, (kv + chunk - 1) / chunk);
        int64_t firstSlot = slots;
        for (int64_t c = 0; c < chunks; ++c)
          for (int64_t h = 0; h < kHeadsQo; h += pack) {
            AttnWorkItem item = {};
            item.token0 = token0;
            item.rows = n * pack;
            item.head = h;
            item.request = r;
            item.table = tables[r];
            item.kv_len = kv;
            item.qpos0 = row0 + kv - qo;
            item.klo = c * chunk;
            item.khi = std::min(kv, (c + 1) * chunk);
            item.slot = -1;
            if (chunks > 1) {
              item.slot = slots;
              slots += n * pack;
            }
            item.qo_len = qo;
            item.row0 = row0;
            item.kv_total = kv;
            items.push_back(item);
          }
        if (chunks == 1)
          continue;
        int64_t chunkSlots = (slots - firstSlot) / chunks;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t h = 0; h < kHeadsQo; h += 16) {
            AttnWorkItem merge = {};
            merge.token0 = token0 + i;
            merge.rows = 16;
            merge.head = h;
            merge.request = r;
            merge.table = pieces.size();
            merge.khi = chunks;
            for (int64_t c = 0; c < chunks; ++c)
              pieces.push_back({static_cast<int32_t>(firstSlot + c * chunkSlots + i * pack),
                                static_cast<int32_t>(n * pack), static_cast<int32_t>(pack), 0});
            merges.push_back(merge);
          }
      }
      for (int64_t i = 0; i < qo; ++i)
        tokens.push_back({static_cast<int32_t>(i + kv - qo),
                          static_cast<int32_t>(r),
                          static_cast<int32_t>(i),
                          static_cast<int32_t>(qo),
                          static_cast<int32_t>(kv),
                          {}});
    }
    auto spread = [&](size_t n) {
      std::vector<int32_t> indptr;
      for (int c = 0; c <= ctas; ++c)
        indptr.push_back(n * c / ctas);
      return indptr;
    };
    ctaIndptr = spread(items.size());
    mergeIndptr = spread(merges.size());
    partO.assign(slots * kDim + 1, NAN);
    partLse.assign(slots + 1, NAN);

    auto &operands = arguments.operands;
    operands["q"] = {q.data(), {count, kHeadsQo, kDim}, {qToken, qHead, 1}};
    operands["o"] = {o.data(), {count, kHeadsQo, kDim}, {qToken, qHead, 1}};
    for (auto [name, data] : {std::pair("k", k.data()), std::pair("v", v.data())})
      operands[name] = size ? Operand{data, {}, {blockStride, rowStride, headStride, 1}}
                            : Operand{data, {}, {rowStride, headStride, 1}};
    operands["lse"] = {lse.data(), {count, kHeadsQo}, {kHeadsQo, 1}};
    operands["pages"] = {pages.data(), {}, {1}};
    operands["part_o"] = {partO.data(), {}, {kDim, 1}};
    operands["part_lse"] = {partLse.data(), {}, {1}};
    operands["items"] = {items.data(), {}, {}};
    operands["cta_indptr"] = {ctaIndptr.data(), {}, {}};
    operands["tokens"] = {tokens.data(), {}, {8, 1}};
    operands["pieces"] = {pieces.data(), {}, {4, 1}};
    arguments.scale = problem.smScale();
  }

  void check() {
    ref::Hooks hooks;
    hooks.mask = ref::causal();
    ASSERT_EQ(ref::validate(problem, hooks), "");
    ref::Result expected = ref::run(problem, hooks);
    const Operand &out = arguments.operands["o"];
    auto compared = ref::compareOutput(problem, expected, {o.data(), shape.type, out.strides[0], out.strides[1]},
                                       ref::Tolerance::output(shape.type));
    EXPECT_TRUE(compared.ok) << compared.text();
    EXPECT_EQ(compared.checked, problem.tokens() * kHeadsQo * kDim);
    auto sums = ref::compareLse(problem, expected, {lse.data(), ref::Storage::F32, kHeadsQo, 1}, ref::Tolerance::lse());
    EXPECT_TRUE(sums.ok) << sums.text();
  }
};

std::string typeName(ref::Storage type) {
  return type == ref::Storage::BF16 ? "bf16" : type == ref::Storage::F16 ? "f16" : "f32";
}

/// A kernel with another page size and storage type.
std::string kernelText(const std::string &file, const std::string &name, const Shape &shape) {
  std::string text = onlyKernel(readKernel(file), name), page = std::to_string(shape.pageSize ? shape.pageSize : 16);
  text = replaceAll(text, "memref<?x16x8x128x", "memref<?x" + page + "x8x128x");
  text = replaceAll(text, "paged<16>", "paged<" + page + ">");
  return replaceAll(text, "bf16", typeName(shape.type));
}

void runShape(const Shape &shape, const mlir::tile::TileToCPUOptions &options) {
  Batch batch(shape);
  Kernels kernels, merge;
  std::string name = shape.decode ? "decode" : shape.pageSize ? "prefill_paged_128" : "prefill_ragged_128";
  std::string text = kernelText(shape.decode ? "decode-l.mlir" : "prefill-l.mlir", name, shape);
  ASSERT_EQ(kernels.compile(text, options), "");
  ASSERT_EQ(kernels.run(name, batch.arguments, batch.ctas), "");
  if (!batch.merges.empty()) {
    ASSERT_EQ(merge.compile(kernelText("merge-l.mlir", "merge", shape), options), "");
    Arguments arguments = batch.arguments;
    arguments.operands["items"].pointer = batch.merges.data();
    arguments.operands["cta_indptr"].pointer = batch.mergeIndptr.data();
    ASSERT_EQ(merge.run("merge", arguments, batch.ctas), "");
  }
  batch.check();
}

mlir::tile::TileToCPUOptions native() { return HostTarget().conversionOptions(); }
} // namespace

TEST(HostAttention, RaggedPrefill) {
  Shape shape;
  shape.qoLens = {1, 129, 0, 40, 7};
  shape.kvLens = {1, 129, 50, 296, 3};
  shape.pageSize = 0;
  runShape(shape, native());
}

TEST(HostAttention, PagedPrefill) {
  for (int64_t pageSize : {1, 5, 16}) {
    Shape shape;
    shape.qoLens = {3, 17, 128, 2};
    shape.kvLens = {0, 300, 127, 129};
    shape.pageSize = pageSize;
    shape.headsFirst = pageSize == 5;
    shape.pad = pageSize == 16 ? 8 : 0;
    SCOPED_TRACE(pageSize);
    runShape(shape, native());
  }
}

TEST(HostAttention, PagedDecode) {
  for (int64_t pageSize : {1, 5, 16}) {
    Shape shape;
    shape.qoLens = {1, 1, 4, 1, 6};
    shape.kvLens = {1, 700, 130, 128, 257};
    shape.pageSize = pageSize;
    shape.headsFirst = pageSize == 16;
    shape.decode = true;
    SCOPED_TRACE(pageSize);
    runShape(shape, native());
  }
}

TEST(HostAttention, SplitAndMerge) {
  for (bool decode : {false, true}) {
    Shape shape;
    shape.qoLens = {1, 5, 2};
    shape.kvLens = {513, 300, 90};
    shape.chunk = 128;
    shape.decode = decode;
    SCOPED_TRACE(decode);
    runShape(shape, native());
  }
}

TEST(HostAttention, HalfPrecision) {
  for (bool f16c : {true, false}) {
    Shape shape;
    shape.qoLens = {5, 20};
    shape.kvLens = {33, 140};
    shape.type = ref::Storage::F16;
    shape.decode = true;
    auto options = native();
    options.f16c &= f16c;
    SCOPED_TRACE(f16c);
    runShape(shape, options);
  }
}

TEST(HostAttention, EveryWidth) {
  for (int64_t width : {4, 8, 16}) {
    Shape shape;
    shape.qoLens = {5, 20};
    shape.kvLens = {33, 140};
    auto options = native();
    options.width = width;
    SCOPED_TRACE(width);
    for (bool decode : {false, true}) {
      shape.decode = decode;
      runShape(shape, options);
    }
  }
}
