//===- TestBundle.h - a bundle of hand-written host kernels -----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Manifest and blobs around Kernels.c, in any shape that the tests ask for.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_RUNTIME_TESTBUNDLE_H
#define ATTN_TEST_UNIT_RUNTIME_TESTBUNDLE_H

#include "attn/ABI/BundleFormat.h"
#include "attn/Runtime/Plan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace attnrt::test {

using Json = nlohmann::json;

struct Shape {
  std::string format = "paged";
  int headsQo = 4, headsKv = 2, dimQk = 8, dimVo = 8;
  int pageSize = 16, rowBlock = 0, levels = 1;
  bool rowTable = false, merge = true, range = true;
};

inline Json pointer(const char *operand) { return {{"kind", "pointer"}, {"operand", operand}}; }
inline Json stride(const char *operand, int dim) { return {{"kind", "stride"}, {"operand", operand}, {"dim", dim}}; }
inline Json size(const char *operand, int dim) { return {{"kind", "size"}, {"operand", operand}, {"dim", dim}}; }

inline const std::string &kernelBlob() {
  static const std::string blob = [] {
    std::ifstream file(ATTN_TEST_KERNELS, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return blob;
}

inline Json attentionWords(bool ragged) {
  int row = ragged ? 0 : 1, head = ragged ? 1 : 2;
  return Json::array({pointer("q"),
                      stride("q", 0),
                      stride("q", 1),
                      size("q", 1),
                      size("q", 2),
                      pointer("k"),
                      stride("k", 0),
                      stride("k", row),
                      stride("k", head),
                      size("k", head),
                      pointer("v"),
                      stride("v", 0),
                      stride("v", row),
                      stride("v", head),
                      pointer("o"),
                      stride("o", 0),
                      stride("o", 1),
                      size("o", 2),
                      pointer("lse"),
                      stride("lse", 0),
                      ragged ? pointer("q") : pointer("pages"),
                      size("k", row),
                      pointer("part_o"),
                      pointer("part_lse"),
                      pointer("items"),
                      pointer("cta_indptr"),
                      pointer("tokens"),
                      {{"kind", "scale"}},
                      {{"kind", "param"}, {"name", "causal"}},
                      {{"kind", "param"}, {"name", "window"}},
                      {{"kind", "param"}, {"name", "bias"}}});
}

inline Json mergeWords() {
  return Json::array({pointer("part_o"), pointer("part_lse"), pointer("items"), pointer("cta_indptr"),
                      pointer("pieces"), pointer("o"), stride("o", 0), stride("o", 1), size("o", 2), pointer("lse"),
                      stride("lse", 0)});
}

inline Json kernel(const std::string &symbol, int rows, int pack, int keys, bool rowTable, bool ragged) {
  return {
      {"symbol", symbol},      {"blob", 0},    {"rows", rows}, {"pack", pack},     {"keys", keys},
      {"row_table", rowTable}, {"threads", 1}, {"smem", 1024}, {"ctas_per_sm", 1}, {"words", attentionWords(ragged)},
      {"maps", Json::array()}};
}

/// Causal with window on the left: hi = causal ? qpos0 + rows : kv_total; lo = window < 0 ? 0 : qpos0 - window.
inline Json rangeProgram() {
  // Registers: 0..4 inputs, 5 causal, 6 window, 7 bias (unusable), 8.. temporaries.
  return {{"registers", 16},
          {"code", Json::array({{"add", 8, 0, 1},
                                {"sub", 9, 8, 3},
                                {"mul", 9, 9, 5},
                                {"add", 10, 9, 3}, // hi
                                {"const", 11, -1},
                                {"min", 12, 6, 11},
                                {"mul", 12, 12, 11}, // 1 when unbounded
                                {"const", 13, int64_t(1) << 40},
                                {"mul", 12, 12, 13},
                                {"sub", 14, 0, 6},
                                {"sub", 14, 14, 12},
                                {"const", 15, 0},
                                {"max", 14, 14, 15}})},
          {"result", {14, 15, 15, 10}}};
}

inline Json manifest(const Shape &shape) {
  bool ragged = shape.format == "ragged";
  int group = shape.headsQo / shape.headsKv;
  Json kernels = Json::array({kernel(shape.format + "_16", 16, group, 32, false, ragged)});
  if (shape.rowTable)
    kernels.push_back(kernel(shape.format + "_table", 32, group, 16, true, ragged));
  kernels.push_back(kernel(shape.format + "_64", 64, 1, 16, false, ragged));
  kernels.push_back(kernel(shape.format + "_96", 96, 1, 16, false, ragged));
  Json out = {{"abi", 1},
              {"name", "test"},
              {"target", "host"},
              {"heads_qo", shape.headsQo},
              {"heads_kv", shape.headsKv},
              {"head_dim_qk", shape.dimQk},
              {"head_dim_vo", shape.dimVo},
              {"type_q", "f32"},
              {"type_kv", "f32"},
              {"type_o", "f32"},
              {"format", shape.format},
              {"page_size", ragged ? 0 : shape.pageSize},
              {"row_block", shape.rowBlock},
              {"index_bits", 32},
              {"levels", shape.levels},
              {"normalizer", "softmax"},
              {"lse", "natural"},
              {"causal_rows", false},
              {"params", Json::array({{{"name", "causal"}, {"kind", "index"}},
                                      {{"name", "window"}, {"kind", "index"}},
                                      {{"name", "bias"}, {"kind", "f32"}}})},
              {"kernels", kernels},
              {"range", shape.range ? rangeProgram() : Json()},
              {"blobs", Json::array({{{"kind", "so"}, {"offset", 0}, {"bytes", kernelBlob().size()}}})}};
  if (shape.merge)
    out["merge"] = {{"symbol", "merge"},    {"blob", 0},    {"rows", 3}, {"pack", 1},        {"keys", 1},
                    {"row_table", false},   {"threads", 1}, {"smem", 0}, {"ctas_per_sm", 1}, {"words", mergeWords()},
                    {"maps", Json::array()}};
  return out;
}

inline std::string bundleBytes(const Json &manifest) { return attnabi::makeBundle(manifest.dump(), kernelBlob()); }

inline std::shared_ptr<Executable> load(const Json &manifest) {
  std::string bytes = bundleBytes(manifest);
  std::shared_ptr<const Bundle> bundle;
  std::shared_ptr<Device> device;
  std::shared_ptr<Executable> executable;
  Status status = Bundle::fromMemory(bytes.data(), bytes.size(), bundle);
  EXPECT_TRUE(status.ok()) << status.text();
  status = Device::open(DeviceKind::CPU, 0, device);
  EXPECT_TRUE(status.ok()) << status.text();
  status = Executable::load(bundle, device, executable);
  EXPECT_TRUE(status.ok()) << status.text();
  return executable;
}

inline std::shared_ptr<Plan> makePlan(const std::shared_ptr<Executable> &executable, const PlanOptions &options = {}) {
  std::shared_ptr<Plan> plan;
  Status status = Plan::create(executable, options, plan);
  EXPECT_TRUE(status.ok()) << status.text();
  return plan;
}

#define EXPECT_OK(expr)                                                                                                \
  do {                                                                                                                 \
    ::attnrt::Status attnTestStatus = (expr);                                                                          \
    EXPECT_TRUE(attnTestStatus.ok()) << attnTestStatus.text();                                                         \
  } while (false)

#define ASSERT_OK(expr)                                                                                                \
  do {                                                                                                                 \
    ::attnrt::Status attnTestStatus = (expr);                                                                          \
    ASSERT_TRUE(attnTestStatus.ok()) << attnTestStatus.text();                                                         \
  } while (false)

/// The call fails with that code and a text that contains `words`.
#define EXPECT_ERROR(expr, errorCode, words)                                                                           \
  do {                                                                                                                 \
    ::attnrt::Status attnTestStatus = (expr);                                                                          \
    EXPECT_EQ(attnTestStatus.code(), errorCode) << attnTestStatus.text();                                              \
    EXPECT_NE(attnTestStatus.text().find(words), std::string::npos) << attnTestStatus.text();                          \
  } while (false)

} // namespace attnrt::test

#endif // ATTN_TEST_UNIT_RUNTIME_TESTBUNDLE_H
