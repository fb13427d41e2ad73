//===- BuildTest.cpp - tensors, tables and parameters of a batch ----------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Placement, strides and composition change no result; what nobody owns is NaN
// and stays unseen; parameters have the values that the file says.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Build.h"
#include "attn/Reference/Compare.h"
#include "attn/Reference/Variants.h"

#include <cmath>
#include <cstring>
#include <set>

#include "gtest/gtest.h"

using namespace attn;
using namespace attn::batch;
using ref::Format;
using ref::Storage;

namespace {

Geometry geometry(Format format, int64_t levels = 1, int64_t pageSize = 16) {
  Geometry g;
  g.headsQo = 4;
  g.headsKv = 2;
  g.headDimQk = 16;
  g.headDimVo = 8;
  g.typeQ = g.typeO = Storage::BF16;
  g.typeKv = Storage::BF16;
  g.format = format;
  g.pageSize = format == Format::Ragged ? 0 : pageSize;
  g.rowBlock = format == Format::Bsr ? 4 : 0;
  g.levels = levels;
  return g;
}

Batch treeBatch() {
  Batch b;
  b.requests = {{1, 70}, {3, 90}, {1, 48}, {0, 20}, {2, 33}};
  b.prefixes = {{0, 2, 32}, {0, 1, 16}};
  b.seed = 11;
  return b;
}

Built built(const Batch &batch, const Geometry &g) {
  Built result;
  std::string error;
  EXPECT_TRUE(build(batch, g, result, error)) << error;
  EXPECT_EQ("", ref::validate(result.problem()));
  return result;
}

std::string buildError(const Batch &batch, const Geometry &g) {
  Built result;
  std::string error;
  EXPECT_FALSE(build(batch, g, result, error));
  return error;
}

ref::Result attend(const Built &b) {
  ref::Hooks hooks;
  hooks.mask = ref::causal();
  hooks.logits = ref::alibi(ref::alibiSlopes(4));
  return ref::run(b.problem(), hooks);
}

TEST(BatchBuild, EveryFormOfABatchHasTheSameResult) {
  Batch b = treeBatch();
  ref::Result want = attend(built(b, geometry(Format::Ragged)));
  for (double x : want.o)
    EXPECT_TRUE(std::isfinite(x));
  for (Strides strides : {Strides::Nhd, Strides::Hnd, Strides::Packed})
    for (PageOrder order : {PageOrder::Random, PageOrder::Sequential})
      for (Unowned fill : {Unowned::NaN, Unowned::Zero, Unowned::Random}) {
        b.strides = strides;
        b.pageOrder = order;
        b.unowned = fill;
        for (int64_t page : {1, 16})
          for (int64_t levels : {1, 3, 4}) {
            ref::Result got = attend(built(b, geometry(Format::Paged, levels, page)));
            EXPECT_EQ(want.o, got.o) << page << " " << levels;
            EXPECT_EQ(want.lse, got.lse);
          }
        EXPECT_EQ(want.o, attend(built(b, geometry(Format::Paged, 3, 5))).o); // no multiple of the page is needed
        EXPECT_EQ(want.o, attend(built(b, geometry(Format::Ragged, 3))).o);
        EXPECT_EQ(want.o, attend(built(b, geometry(Format::Ragged, 1))).o);
      }
}

TEST(BatchBuild, TablesOfATree) {
  Batch b = treeBatch();
  b.pageOrder = PageOrder::Sequential;
  Built paged = built(b, geometry(Format::Paged, 3));
  ASSERT_EQ(3u, paged.levels.size());
  EXPECT_EQ((std::vector<int64_t>{0, 3, 5}), paged.levels[0].rowIndptr);
  EXPECT_EQ((std::vector<int64_t>{0, 2, 2}), paged.levels[0].kvIndptr);
  EXPECT_EQ((std::vector<int64_t>{0, 2, 5}), paged.levels[1].rowIndptr);
  EXPECT_EQ((std::vector<int64_t>{0, 1, 2, 3, 4, 5}), paged.levels[2].rowIndptr);
  EXPECT_EQ((std::vector<int64_t>{0, 2, 5, 6, 8, 11}), paged.levels[2].kvIndptr); // own: 22, 42, 16, 20, 33
  EXPECT_EQ((std::vector<int64_t>{6, 10, 16, 4, 1}), paged.levels[2].last);
  Built flat = built(b, geometry(Format::Paged, 1));
  EXPECT_TRUE(flat.levels[0].rowIndptr.empty());
  EXPECT_EQ(flat.levels[0].indices[0], flat.levels[0].indices[5]); // requests 0 and 1 share pages
  EXPECT_EQ((std::vector<int64_t>{0, 1, 4, 5, 5, 7}), flat.qoIndptr);
}

TEST(BatchBuild, PagesAreAPermutationWithSpareOnes) {
  Batch b = treeBatch();
  Built paged = built(b, geometry(Format::Paged, 3));
  std::set<int64_t> used;
  size_t count = 0;
  for (const ref::Level &level : paged.levels) {
    used.insert(level.indices.begin(), level.indices.end());
    count += level.indices.size();
  }
  EXPECT_EQ(count, used.size());
  EXPECT_LT(*used.rbegin(), paged.pages);
  EXPECT_GT(paged.pages, int64_t(used.size()));
  b.seed = 12;
  EXPECT_NE(paged.levels[2].indices, built(b, geometry(Format::Paged, 3)).levels[2].indices);
}

TEST(BatchBuild, SameSeedSameBytes) {
  Batch b = treeBatch();
  Built x = built(b, geometry(Format::Paged)), y = built(b, geometry(Format::Paged));
  EXPECT_EQ(*x.q.bytes, *y.q.bytes);
  EXPECT_EQ(*x.k.bytes, *y.k.bytes);
  b.seed = 99;
  EXPECT_NE(*x.q.bytes, *built(b, geometry(Format::Paged)).q.bytes);
}

TEST(BatchBuild, UnownedBytesAreNaNInEveryType) {
  for (Storage type : {Storage::F32, Storage::BF16, Storage::F16, Storage::E4M3, Storage::E5M2}) {
    Geometry g = geometry(Format::Paged);
    g.typeKv = type;
    Batch b;
    b.requests = {{1, 17}};
    Built p = built(b, g);
    int64_t page = p.levels[0].indices[1];
    auto at = [&](const ref::View &v, int64_t row) { return *v.at(page, row, 1); };
    EXPECT_TRUE(std::isfinite(at(p.problem().k, 0))) << storageName(type);
    EXPECT_TRUE(std::isnan(at(p.problem().k, 1)));
    EXPECT_TRUE(std::isnan(at(p.problem().v, 15)));
    EXPECT_TRUE(std::isfinite(attend(p).o[3]));
  }
}

TEST(BatchBuild, OutputsArePoisoned) {
  Built b = built(treeBatch(), geometry(Format::Paged));
  EXPECT_TRUE(ref::isPoison(Storage::BF16, b.o.data(), 5));
  EXPECT_TRUE(ref::isPoison(Storage::F32, b.lse.data(), 5));
  ref::Comparison c = ref::compareOutput(b.problem(), attend(b), {b.o.data(), b.o.type, b.o.strides[0], b.o.strides[1]},
                                         ref::Tolerance::output(Storage::BF16));
  EXPECT_EQ(c.checked, c.unwritten);
}

TEST(BatchBuild, BsrListsFollowTheDensity) {
  Batch b;
  b.requests = {{10, 40}, {0, 8}, {3, 70}};
  b.density = 0.5;
  Built p = built(b, geometry(Format::Bsr));
  EXPECT_EQ(5u, p.levels[0].kvIndptr.size()); // 3 + 0 + 1 row blocks
  EXPECT_EQ((std::vector<int64_t>{40, 8, 70}), p.kvTotal);
  for (int64_t row : {0, 4, 9})
    for (const ref::KeyPlace &key : ref::keysOf(p.problem(), 0, row))
      EXPECT_LT(key.position, 40);
  b.density = 1;
  p = built(b, geometry(Format::Bsr));
  EXPECT_EQ((std::vector<int64_t>{8, 8, 8, 6}), p.levels[0].last);
  EXPECT_EQ(40u, ref::keysOf(p.problem(), 0, 9).size());
  b.density = 0;
  p = built(b, geometry(Format::Bsr));
  EXPECT_TRUE(p.levels[0].indices.empty());
  EXPECT_TRUE(std::isinf(attend(p).lse[0]));
}

TEST(BatchBuild, MagnitudeAndRange) {
  Batch b;
  b.requests = {{64, 64}};
  b.magnitudeK = 1000;
  Geometry g = geometry(Format::Ragged);
  g.typeKv = Storage::E4M3;
  Built p = built(b, g);
  double square = 0;
  for (int64_t i = 0; i != 64 * 4 * 16; ++i) {
    double x = ref::loadElement(g.typeQ, p.q.data(), i);
    square += x * x / (64 * 4 * 16);
  }
  EXPECT_NEAR(1.0, square, 0.05);
  for (int64_t i = 0; i != 64 * 2 * 16; ++i) // clamped, not NaN
    EXPECT_LE(std::fabs(ref::loadElement(g.typeKv, p.k.data(), i)), 448.0);
}

TEST(BatchBuild, EmptyBatch) {
  Batch b;
  for (Format format : {Format::Ragged, Format::Paged, Format::Bsr})
    EXPECT_TRUE(attend(built(b, geometry(format))).o.empty());
  b.requests = {{0, 0}, {2, 0}};
  for (int64_t levels : {1, 2})
    EXPECT_TRUE(std::isinf(attend(built(b, geometry(Format::Paged, levels))).lse[0]));
}

TEST(BatchBuild, LargerThanMemoryIsRefused) {
  Batch b;
  b.requests = {{1 << 30, 1 << 30}};
  for (Format format : {Format::Ragged, Format::Paged, Format::Bsr}) {
    std::string error = buildError(b, geometry(format));
    EXPECT_NE(std::string::npos, error.find("the batch needs about ")) << error;
    EXPECT_NE(std::string::npos, error.find("shorten its requests")) << error;
  }
  b.requests = {{1, 1}};
  EXPECT_NE(std::string::npos,
            buildError(b, geometry(Format::Paged, 1, int64_t(1) << 62)).find("shorten its requests"));
}

TEST(BatchBuild, Errors) {
  Batch b = treeBatch();
  EXPECT_EQ(
      "'levels[0].prefix' must be a multiple of the page size 5, as the op has one level and requests share whole "
      "pages only; got 32",
      buildError(b, geometry(Format::Paged, 1, 5)));
  EXPECT_EQ("the batch file has 2 nested levels of prefixes and the op 2 levels in all; the op needs 3 (or 1, to share "
            "pages)",
            buildError(b, geometry(Format::Paged, 2)));
  EXPECT_EQ("'levels' of the batch file are for ragged and paged ops; a bsr op has one level, remove them",
            buildError(b, geometry(Format::Bsr)));
  Geometry g = geometry(Format::Paged, 3);
  g.headsQo = 3;
  EXPECT_EQ("heads and head dims must be positive and query heads a multiple of kv heads", buildError(b, g));
  EXPECT_EQ("paged and bsr formats need a page size of at least 1", buildError(b, geometry(Format::Paged, 3, 0)));
  g = geometry(Format::Bsr);
  g.rowBlock = 0;
  EXPECT_EQ("the bsr format needs a row block of at least 1", buildError(b, g));
  EXPECT_EQ("the op must have at least one level", buildError(b, geometry(Format::Ragged, 0)));
  b.lseBase = "base2";
  EXPECT_EQ("'lse_base' of the batch file is base2, but the op's lse is natural; change one of them",
            buildError(b, geometry(Format::Ragged)));
  b.requests[0].kv = 1;
  EXPECT_EQ("'levels[0]' gives request 0 more shared keys than its kv of 1; kv counts the prefixes too",
            buildError(b, geometry(Format::Ragged)));
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

struct Params {
  Batch batch;
  Built b;
  std::string error;

  explicit Params(const std::string &params) {
    EXPECT_TRUE(parse("{\"requests\": [{\"qo\": 3, \"kv\": 5}, {\"qo\": 2, \"kv\": 9}], \"params\": {" + params + "}}",
                      ".", batch, error))
        << error;
    b = built(batch, geometry(Format::Ragged));
  }
  ParamValue get(const std::string &element, std::vector<int64_t> shape = {-1}) {
    ParamValue value;
    ParamDecl decl = {"p", ParamDecl::Kind::Buffer, element, shape};
    error.clear();
    EXPECT_EQ(resolveParam(batch, b, decl, value, error), error.empty());
    return value;
  }
  ParamValue scalar(ParamDecl::Kind kind) {
    ParamValue value;
    error.clear();
    EXPECT_EQ(resolveParam(batch, b, {"p", kind, "", {}}, value, error), error.empty());
    return value;
  }
};

TEST(BatchParams, Scalars) {
  Params p("\"p\": 50.1");
  EXPECT_EQ(double(50.1f), p.scalar(ParamDecl::Kind::F32).number);
  p.scalar(ParamDecl::Kind::Index);
  EXPECT_EQ("'params.p' must be an integer: the variant's parameter is an index", p.error);
  Params q("\"p\": {\"values\": [1]}");
  q.scalar(ParamDecl::Kind::F32);
  EXPECT_EQ("'params.p' must be a number: the variant's parameter is a scalar", q.error);
  Params none("");
  none.scalar(ParamDecl::Kind::F32);
  EXPECT_EQ("'params.p' is missing in the batch file; the variant has a parameter 'p'", none.error);
}

TEST(BatchParams, Buffers) {
  std::vector<double> slopes = Params(R"("p": {"generator": "alibi", "heads": 12, "first": 8})").get("f32").values;
  ASSERT_EQ(4u, slopes.size());
  for (size_t i = 0; i != 4; ++i)
    EXPECT_EQ(double(float(ref::alibiSlopes(12, 8, 4)[i])), slopes[i]);
  ParamValue v = Params(R"("p": {"values": [1, 2.5, 3, 4, 5, 6], "shape": [2, 3]})").get("bf16", {2, -1});
  EXPECT_EQ((std::vector<int64_t>{2, 3}), v.shape);
  EXPECT_EQ(12u, v.bytes.size());
  EXPECT_EQ(2.5f, ref::loadElement(Storage::BF16, v.bytes.data(), 1));
  v = Params(R"("p": {"random": [-2, 7], "shape": [1000]})").get("i32");
  for (double x : v.values)
    EXPECT_TRUE(x >= -2 && x < 7 && x == std::floor(x));
  v = Params(R"("p": {"generator": "iota"})").get("i64", {4});
  int64_t third;
  std::memcpy(&third, v.bytes.data() + 24, 8);
  EXPECT_EQ(3, third);
  EXPECT_EQ((std::vector<double>(6, 1.5)),
            Params(R"("p": {"generator": "fill", "value": 1.5})").get("f32", {2, 3}).values);
  EXPECT_EQ((std::vector<double>(2, 7)), Params(R"("p": 7)").get("i8", {2}).values);
  EXPECT_EQ((std::vector<double>{5, 9}), Params(R"("p": {"generator": "per_request", "of": "kv"})").get("i32").values);
  EXPECT_EQ((std::vector<double>{3, 2}), Params(R"("p": {"generator": "per_request", "of": "qo"})").get("i32").values);
  EXPECT_EQ((std::vector<double>{0, 3}),
            Params(R"("p": {"generator": "per_request", "of": "qo_offset"})").get("i32").values);
  EXPECT_EQ((std::vector<double>{0, 5}),
            Params(R"("p": {"generator": "per_request", "of": "kv_offset"})").get("i32").values);
  for (double x : Params(R"("p": {"generator": "prefix_lengths", "fraction": 1})").get("i32").values)
    EXPECT_TRUE(x >= 0 && x <= 9);
}

TEST(BatchParams, TreeMaskFitsItsOffsets) {
  ParamValue offsets = Params(R"("p": {"generator": "tree_mask", "part": "offsets"})").get("i64");
  EXPECT_EQ((std::vector<double>{0, 2, 5}), offsets.values); // 15 and 18 bits
  ParamValue bits = Params(R"("p": {"generator": "tree_mask", "kind": "causal"})").get("i8");
  ASSERT_EQ(5u, bits.bytes.size());
  ref::Mask mask = ref::treeMask(bits.bytes, {0, 2}), causal = ref::causal();
  ParamValue tree = Params(R"("p": {"generator": "tree_mask"})").get("i8");
  ref::Mask sparse = ref::treeMask(tree.bytes, {0, 2});
  for (int64_t r = 0; r != 2; ++r)
    for (int64_t row = 0; row != 3 - r; ++row)
      for (int64_t j = 0; j != (r ? 9 : 5); ++j) {
        ref::Coord at;
        at.request = r;
        at.row = row;
        at.qoLen = 3 - r;
        at.kvLen = r ? 9 : 5;
        at.qPos = row + at.kvLen - at.qoLen;
        at.kvPos = j;
        EXPECT_EQ(causal(at), mask(at));
        if (sparse(at))
          EXPECT_TRUE(causal(at));
        if (j <= at.kvLen - at.qoLen || j == at.qPos) // old keys, the root, itself
          EXPECT_TRUE(sparse(at));
      }
}

TEST(BatchParams, DocumentsFitTheirOffsets) {
  std::vector<double> ids = Params(R"("p": {"generator": "documents", "mean": 2})").get("i32").values;
  std::vector<double> starts =
      Params(R"("p": {"generator": "documents", "mean": 2, "part": "starts"})").get("i32").values;
  EXPECT_EQ((std::vector<double>{0, 5, 14}),
            Params(R"("p": {"generator": "documents", "part": "offsets"})").get("i32").values);
  ASSERT_EQ(14u, ids.size());
  for (int64_t i = 0; i != 14; ++i) {
    int64_t base = i < 5 ? 0 : 5;
    EXPECT_EQ(ids[i], ids[base + int64_t(starts[i])]);
    if (i != base)
      EXPECT_EQ(ids[i] != ids[i - 1], starts[i] == double(i - base));
  }
}

TEST(BatchParams, LargerThanMemoryIsRefused) {
  Params filled("\"p\": 1");
  filled.get("f32", {int64_t(1) << 40, 1 << 20});
  EXPECT_EQ("'params.p' has about 1000000000000000000 values, which do not fit this machine's memory; make it smaller",
            filled.error);
  Params huge("\"p\": 1e300");
  huge.scalar(ParamDecl::Kind::Index);
  EXPECT_EQ("'params.p' must be an integer up to 2^53 in size", huge.error);
}

TEST(BatchParams, Errors) {
  Params p(R"("p": {"values": [1, 2, 300]}, "spare": 1)");
  p.get("f64");
  EXPECT_EQ("'params.p' has elements of type f64, which batch files cannot make", p.error);
  p.get("i8");
  EXPECT_EQ("'params.p' holds a value that i8 cannot, at element 2", p.error);
  p.get("f32", {-1, -1});
  EXPECT_EQ("'params.p' needs a \"shape\": the variant's buffer has dynamic extents", p.error);
  p.get("f32", {4});
  EXPECT_EQ("'params.p' gives 3 values for a buffer of 4", p.error);
  Params shaped(R"("p": {"random": [0, 1], "shape": [3]})");
  shaped.get("f32", {2, 2});
  EXPECT_EQ("'params.p' has a shape of rank 1, the variant's buffer has rank 2", shaped.error);
  shaped.get("f32", {4});
  EXPECT_EQ("'params.p' has extent 3 in dimension 0, the variant's buffer has 4", shaped.error);
  Params dynamic(R"("p": {"random": [0, 1]})");
  dynamic.get("f32");
  EXPECT_EQ("'params.p' needs a \"shape\": the variant's buffer has dynamic extents", dynamic.error);
  ParamDecl decl = {"p", ParamDecl::Kind::F32, "", {}};
  EXPECT_EQ("'params.spare' is no parameter of variant 'v'; it has: p", unknownParams(p.batch, {decl}, "v"));
  EXPECT_EQ("'params.p' is no parameter of variant 'v', which has none", unknownParams(p.batch, {}, "v"));
  EXPECT_EQ("", unknownParams(dynamic.batch, {decl}, "v"));
}

TEST(BatchRandom, NormalIsNearlyNormal) {
  double mean = 0, square = 0, fourth = 0;
  for (int i = 0; i != 100000; ++i) {
    double x = randomNormal(1, 2, i);
    mean += x / 100000;
    square += x * x / 100000;
    fourth += x * x * x * x / 100000;
    EXPECT_LE(std::fabs(x), 3.5);
  }
  EXPECT_NEAR(0, mean, 0.02);
  EXPECT_NEAR(1, square, 0.02);
  EXPECT_NEAR(2.7, fourth, 0.1); // of a sum of four uniforms
}

TEST(BatchRandom, IndexBytes) {
  EXPECT_EQ(8u, indexBytes({1, -1}, 32).size());
  EXPECT_EQ(0xff, indexBytes({1, -1}, 32)[4]);
  EXPECT_EQ(16u, indexBytes({1, -1}, 64).size());
}

} // namespace
