//===- BundleTest.cpp - what a bundle may not say -------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every message of the bundle and manifest readers.
//
//===----------------------------------------------------------------------===//

#include "TestBundle.h"

#include <random>

using namespace attnrt;
using namespace attnrt::test;

static Status read(const std::string &bytes) {
  std::shared_ptr<const Bundle> bundle;
  return Bundle::fromMemory(bytes.data(), bytes.size(), bundle);
}

TEST(Bundle, Header) {
  std::string good = bundleBytes(manifest(Shape()));
  EXPECT_OK(read(good));
  std::shared_ptr<const Bundle> bundle;
  EXPECT_ERROR(Bundle::fromMemory(nullptr, 5, bundle), Code::InvalidArgument, "argument 'data' is null");
  EXPECT_ERROR(read(good.substr(0, 31)), Code::InvalidBundle, "expected at least 32 bytes, got 31");
  std::string bad = good;
  bad[0] = 'X';
  EXPECT_ERROR(read(bad), Code::InvalidBundle, "wrong magic");
  bad = good;
  bad[8] = 9;
  EXPECT_ERROR(read(bad), Code::InvalidBundle, "got 9; compile the variant again");
  bad = good;
  bad[12] = 1;
  EXPECT_ERROR(read(bad), Code::InvalidBundle, "reserved field, got 1");
  bad = good;
  bad[23] = 0x7f;
  EXPECT_ERROR(read(bad), Code::InvalidBundle, "manifest reaches past the end");
  EXPECT_ERROR(read(good.substr(0, good.size() - 1)), Code::InvalidBundle, "cut short or has bytes too many");
  EXPECT_ERROR(read(good + "x"), Code::InvalidBundle, "cut short or has bytes too many");
  EXPECT_ERROR(Bundle::fromFile("/nonexistent/x", bundle), Code::IoError, "cannot open '/nonexistent/x'");
  EXPECT_ERROR(Bundle::fromFile("/dev/null", bundle), Code::InvalidBundle, "is empty");
  EXPECT_ERROR(read(attnabi::makeBundle("{", "")), Code::InvalidBundle, "not a JSON text");
  EXPECT_ERROR(read(attnabi::makeBundle("[1]", "")), Code::InvalidBundle, "expected a JSON object, got [1]");
}

TEST(Bundle, Manifest) {
  Shape shape;
  shape.rowTable = true;
  const Json good = manifest(shape);
  struct Case {
    const char *pointer;
    Json value;
    const char *text;
  };
  const Case cases[] = {
      {"/abi", 2, "abi: this runtime reads version 1, got 2"},
      {"/extra", 1, "extra: unknown key"},
      {"/kernels/0/extra", 1, "kernels[0].extra: unknown key"},
      {"/name", 3, "name: expected a string, got 3"},
      {"/target", "gfx90a", "target: expected \"host\" or \"sm_NN\""},
      {"/heads_qo", 0, "heads_qo: expected an integer in 1..4096, got 0"},
      {"/heads_qo", 1.5, "heads_qo: expected an integer in 1..4096, got 1.5"},
      {"/heads_qo", 5, "heads_qo: expected a multiple of heads_kv (2), got 5"},
      {"/type_q", "f64", "type_q: unknown element type \"f64\""},
      {"/type_q", "i32", "type_q: expected a float type"},
      {"/format", "dense", "format: expected one of \"ragged\", \"paged\", \"bsr\", got \"dense\""},
      {"/page_size", 0, "page_size: expected an integer in 1..1048576, got 0"},
      {"/row_block", 4, "row_block: expected an integer in 0..0, got 4"},
      {"/index_bits", 48, "index_bits: expected 32 or 64, got 48"},
      {"/levels", 0, "levels: expected an integer in 1..64"},
      {"/normalizer", "relu", "normalizer: expected one of"},
      {"/lse", "log10", "lse: expected one of"},
      {"/causal_rows", 1, "causal_rows: expected true or false, got 1"},
      {"/params", 1, "params: expected an array, got 1"},
      {"/params/0/kind", "f64", "params[0].kind: expected one of"},
      {"/params/1/name", "causal", "params[1].name: a second parameter \"causal\""},
      {"/params/0", {{"name", "b"}, {"kind", "buffer"}}, "params[0].element: missing key"},
      {"/params/0", {{"name", "b"}, {"kind", "buffer"}, {"element", "e4m3"}, {"rank", 1}}, "cannot be e4m3"},
      {"/kernels", Json::array(), "kernels: expected 1 to 16 kernels, got 0"},
      {"/kernels/0/symbol", "", "kernels[0].symbol: expected a name"},
      {"/kernels/0/blob", 1, "kernels[0].blob: expected an integer in 0..0, got 1"},
      {"/kernels/0/pack", 3, "kernels[0].pack: expected 1 or heads_qo / heads_kv (2), got 3"},
      {"/kernels/0/rows", 1, "kernels[0].rows: expected at least pack (2), got 1"},
      {"/kernels/3/rows", 8, "kernels[3].rows: expected tile classes in ascending order"},
      {"/kernels/0/words/0/kind", "value", "kernels[0].words[0].kind: expected one of"},
      {"/kernels/0/words/0/operand", "qq", "kernels[0].words[0].operand: unknown operand \"qq\""},
      {"/kernels/0/words/0/operand", "param:causal", "unknown operand \"param:causal\""},
      {"/kernels/0/words/1/dim", 3, "kernels[0].words[1].dim: expected an integer in 0..2, got 3"},
      {"/kernels/0/words/28/name", "cap", "no f32 or index parameter \"cap\""},
      {"/kernels/0/maps/0",
       {{"operand", "q"},
        {"element", "bf16"},
        {"dims", Json::array({{{"extent", 8}}})},
        {"box", {8}},
        {"swizzle", 0},
        {"promotion", 0}},
       "a host kernel takes no tensor maps"},
      {"/kernels/0/maps/0", {{"operand", "lse"}}, "a tensor map needs"},
      {"/kernels/0/maps/0",
       {{"operand", "q"}, {"element", "bf16"}, {"dims", Json::array()}, {"box", Json::array()}},
       "expected 1 to 5 dimensions, got 0"},
      {"/kernels/0/maps/0",
       {{"operand", "q"}, {"element", "bf16"}, {"dims", Json::array({{{"extent", 8}}})}, {"box", Json::array()}},
       "box: expected as many entries as dims (1), got 0"},
      {"/kernels/0/maps/0",
       {{"operand", "q"},
        {"element", "bf16"},
        {"dims", Json::array({{{"extent", 8}}})},
        {"box", {8}},
        {"swizzle", 16},
        {"promotion", 0}},
       "swizzle: expected 0, 32, 64 or 128, got 16"},
      {"/kernels/0/maps/0",
       {{"operand", "q"},
        {"element", "bf16"},
        {"dims", Json::array({{{"extent", 8}}})},
        {"box", {8}},
        {"swizzle", 0},
        {"promotion", 100}},
       "promotion: expected 0, 64, 128 or 256"},
      {"/range/code/0", {{"pow", 8, 0, 1}}, "range.code[0]: expected [op, dst, a, b]"},
      {"/range/code/0", {"pow", 8, 0, 1}, "range.code[0]: unknown op \"pow\""},
      {"/range/code/0", {"add", 16, 0, 1}, "range.code[0][1]: expected an integer in 0..15, got 16"},
      {"/range/code/0", {"load", 8, 0, 1}, "range.code[0][2]: parameter 0 is not a buffer of rank 1"},
      {"/range/code/0", {"add", 8, 0}, "range.code[0]: expected [op, dst, a, b]"},
      {"/range/code/0", {"add", 8, 0, 1, 2}, "range.code[0]: expected [op, dst, a, b]"},
      {"/range/code/0", Json::array(), "range.code[0]: expected [op, dst, a, b]"},
      {"/range/registers", 3, "range.registers: expected an integer in 8..4096, got 3"},
      {"/range/result", {1, 2}, "range.result: expected 4 registers, got 2"},
      {"/blobs", Json::array(), "blobs: expected at least one blob"},
      {"/blobs/0/kind", "ptx", "target \"host\" does not run this kind of blob"},
      {"/blobs/0/bytes", int64_t(1) << 40, "blobs[0]: reaches past the end of the blobs"},
      {"/lse", "none", "\"lse\" is \"none\" in this manifest"},
  };
  for (const Case &c : cases) {
    Json bad = good;
    bad[Json::json_pointer(c.pointer)] = c.value;
    EXPECT_ERROR(read(bundleBytes(bad)), Code::InvalidBundle, c.text);
  }
  for (auto it = good.begin(); it != good.end(); ++it) {
    Json bad = good;
    bad.erase(it.key());
    if (it.key() == "merge")
      EXPECT_OK(read(bundleBytes(bad)));
    else
      EXPECT_ERROR(read(bundleBytes(bad)), Code::InvalidBundle, it.key() + ": missing key");
  }
  for (auto it = good["kernels"][0].begin(); it != good["kernels"][0].end(); ++it) {
    Json bad = good;
    bad["kernels"][0].erase(it.key());
    EXPECT_ERROR(read(bundleBytes(bad)), Code::InvalidBundle, "kernels[0]." + it.key() + ": missing key");
  }
}

// What reads a table needs one that has integers, and as many registers in a row as it has results.
TEST(Bundle, ScansOfTheRange) {
  Json good = manifest(Shape());
  auto buffer = [&](const char *name, const char *element, int rank) {
    good["params"].push_back({{"name", name}, {"kind", "buffer"}, {"element", element}, {"rank", rank}});
  };
  buffer("doc", "i32", 1), buffer("table", "i8", 2), buffer("slope", "f32", 1); // 3 to 5, registers 8 to 10
  good["kernels"][1]["scans"] = true;
  good["range"] = {{"registers", 20},
                   {"code", Json::array({{"extent", 18, 3, 0, 1}, {"scan", 16, 3, 4, 0, 1, 18, 19, 18, 19, 3}})},
                   {"result", {16, 18, 19, 17}}};
  std::string bytes = bundleBytes(good);
  std::shared_ptr<const Bundle> bundle;
  ASSERT_OK(Bundle::fromMemory(bytes.data(), bytes.size(), bundle));
  EXPECT_FALSE(bundle->manifest().kernels[0].scans);
  EXPECT_TRUE(bundle->manifest().kernels[1].scans);
  const RangeProgram::Slice *slices = bundle->manifest().range->slices;
  EXPECT_EQ(slices[1].code.size(), 2u);
  EXPECT_TRUE(slices[1].readsParams);
  ASSERT_EQ(slices[0].code.size(), 1u); // nobody asks for the extent
  EXPECT_EQ(slices[0].code[0].op, RangeProgram::Whole);
  EXPECT_FALSE(slices[0].readsParams);

  const std::string scan =
      "expected [\"scan\", dst, param, base, from, to, some_lo, some_hi, all_lo, all_hi, flags], got";
  const std::string extent = "expected [\"extent\", dst, param, from, to], got";
  struct Case {
    Json line;
    std::string text;
  };
  const Case cases[] = {
      {{"extent", 18, 3, 0}, "range.code[0]: " + extent},
      {{"extent", 18, 3, 0, 1, 2}, "range.code[0]: " + extent},
      {{"extent", 19, 3, 0, 1}, "range.code[0][1]: expected an integer in 0..18, got 19"},
      {{"extent", 18, 6, 0, 1}, "range.code[0][2]: expected an integer in 0..5, got 6"},
      {{"extent", 18, 0, 0, 1}, "range.code[0][2]: parameter 0 is not a buffer of rank 1"},
      {{"extent", 18, 4, 0, 1}, "range.code[0][2]: parameter 4 is not a buffer of rank 1"},
      {{"extent", 18, 5, 0, 1}, "range.code[0][2]: parameter 5 has elements of f32; expected i8, i32 or i64"},
      {{"extent", 18, 3, -1, 1}, "range.code[0][3]: expected an integer in 0..19, got -1"},
      {{"extent", 18, 3, 0, 20}, "range.code[0][4]: expected an integer in 0..19, got 20"},
      {{"scan", 16, 3, 4, 0, 1, 18, 19, 18, 19}, "range.code[0]: " + scan},
      {{"scan", 16, 3, 4, 0, 1, 18, 19, 18, 19, 0, 0}, "range.code[0]: " + scan},
      {{"scan", 17, 3, 4, 0, 1, 18, 19, 18, 19, 0}, "range.code[0][1]: expected an integer in 0..16, got 17"},
      {{"scan", 16, 5, 4, 0, 1, 18, 19, 18, 19, 0}, "parameter 5 has elements of f32; expected i8, i32 or i64"},
      {{"scan", 16, 3, 20, 0, 1, 18, 19, 18, 19, 0}, "range.code[0][3]: expected an integer in 0..19, got 20"},
      {{"scan", 16, 3, 4, 0, 1, 18, 20, 18, 19, 0}, "range.code[0][7]: expected an integer in 0..19, got 20"},
      {{"scan", 16, 3, 4, 0, 1, 18, 19, 18, 20, 0}, "range.code[0][9]: expected an integer in 0..19, got 20"},
      {{"scan", 16, 3, 4, 0, 1, 18, 19, 18, 19, 4}, "range.code[0][10]: expected an integer in 0..3, got 4"},
      {{"scan", 16, 3, 4, 0, 1, 18, 19, 18, 19, "all"}, "range.code[0][10]: expected an integer in 0..3, got \"all\""},
  };
  for (const Case &c : cases) {
    Json bad = good;
    bad["range"]["code"][0] = c.line;
    EXPECT_ERROR(read(bundleBytes(bad)), Code::InvalidBundle, c.text);
  }
  Json bad = good;
  bad["kernels"][1]["scans"] = 1;
  EXPECT_ERROR(read(bundleBytes(bad)), Code::InvalidBundle, "kernels[1].scans: expected true or false, got 1");
}

TEST(Bundle, DamagedBytesNeverCrash) {
  std::string good = attnabi::makeBundle(manifest(Shape()).dump(), std::string(64, 'x'));
  std::mt19937 rng(1);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int n = 1 + rng() % 3; n > 0; --n)
      bad[rng() % bad.size()] = static_cast<char>(rng());
    if (rng() % 4 == 0)
      bad.resize(rng() % bad.size());
    Status status = read(bad);
    EXPECT_TRUE(status.ok() || !status.text().empty());
  }
}

TEST(Bundle, CodeForTheDevice) {
  Manifest m;
  BlobDesc cubin, ptx;
  cubin.kind = BlobDesc::Cubin;
  ptx.kind = BlobDesc::Ptx;
  auto choose = [&](const char *target, std::vector<BlobDesc> blobs, int capability) {
    m.target = target;
    m.blobs = blobs;
    int chosen = -1;
    Status status = chooseBlob(m, capability, 0, chosen);
    return status.ok() ? chosen : -1;
  };
  EXPECT_EQ(choose("sm_80", {cubin, ptx}, 80), 0);
  EXPECT_EQ(choose("sm_80", {cubin, ptx}, 86), 0); // same major version
  EXPECT_EQ(choose("sm_80", {cubin, ptx}, 90), 1); // by way of PTX
  EXPECT_EQ(choose("sm_80", {ptx}, 90), 0);
  EXPECT_EQ(choose("sm_80", {cubin}, 90), -1);
  EXPECT_EQ(choose("sm_86", {cubin, ptx}, 80), -1); // an earlier machine
  EXPECT_EQ(choose("sm_90a", {cubin}, 90), 0);
  EXPECT_EQ(choose("sm_90a", {cubin, ptx}, 100), -1);
  EXPECT_EQ(choose("sm_100a", {cubin}, 100), 0);
  m.target = "sm_90a";
  int chosen = 0;
  EXPECT_ERROR(
      chooseBlob(m, 80, 0, chosen), Code::InvalidArgument,
      "the bundle is for target \"sm_90a\" and the device has compute capability 8.0; compile it for that machine");
}

TEST(Bundle, Loading) {
  std::shared_ptr<Device> device;
  EXPECT_ERROR(Device::open(DeviceKind::CPU, 1, device), Code::InvalidArgument, "argument 'ordinal' is 1");
  ASSERT_OK(Device::open(DeviceKind::CPU, 0, device));
  auto tryLoad = [&](const std::string &bytes) {
    std::shared_ptr<const Bundle> bundle;
    std::shared_ptr<Executable> executable;
    ATTNRT_TRY(Bundle::fromMemory(bytes.data(), bytes.size(), bundle));
    return Executable::load(bundle, device, executable);
  };
  Json m = manifest(Shape());
  m["kernels"][0]["symbol"] = "absent";
  EXPECT_ERROR(tryLoad(bundleBytes(m)), Code::InvalidBundle, "has no symbol 'absent'");
  m = manifest(Shape());
  m["blobs"][0]["bytes"] = 10;
  EXPECT_ERROR(tryLoad(attnabi::makeBundle(m.dump(), "not an ELF")), Code::InvalidBundle,
               "cannot load the bundle's shared object");
  m["target"] = "sm_90a";
  m["blobs"][0]["kind"] = "cubin";
  m["type_q"] = m["type_kv"] = m["type_o"] = "bf16";
  EXPECT_ERROR(tryLoad(attnabi::makeBundle(m.dump(), "0123456789")), Code::InvalidArgument,
               "does not run on device 'cpu'");
  m["type_o"] = "f32";
  EXPECT_ERROR(read(attnabi::makeBundle(m.dump(), "0123456789")), Code::InvalidBundle,
               "f32 is for target \"host\" only");
  std::shared_ptr<Executable> executable;
  EXPECT_ERROR(Executable::load(nullptr, device, executable), Code::InvalidArgument, "argument 'bundle' is null");
  void *graph = nullptr;
  EXPECT_ERROR(device->beginCapture(nullptr), Code::Unsupported, "no graphs on the cpu");
  (void)graph;
}
