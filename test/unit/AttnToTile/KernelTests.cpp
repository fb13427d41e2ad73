//===- KernelTests.cpp - generated kernels against the reference ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-to-tile on every example variant, for configs of the host and of GPUs
// (key groups, packing, row tables, one head a tile), run through the host path
// and compared with the reference, whose hooks come from the same IR. Ragged,
// paged and composed batches, split and whole. Memory that no request owns is
// NaN.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/HookEval/HookEval.h"
#include "attn/Reference/Compare.h"
#include "attn/Reference/Reference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace attn;

namespace {
struct Param {
  double f32 = 0;
  int64_t index = 0;
  std::vector<double> values; // a buffer's
  std::vector<int64_t> shape;
  std::vector<char> bytes;
};

struct KernelCase {
  std::string variant; // name of a file of examples/variants; "": none
  std::string config;  // inside #attn.config<...>
  std::vector<int64_t> qoLens = {1, 5, 20, 0, 3}, kvLens = {70, 5, 150, 9, 2};
  int64_t headsQo = 8, headsKv = 2, dimQk = 64, dimVo = 64;
  int64_t pageSize = 16; // 0: ragged
  int64_t chunk = 0;     // keys of a piece; 0: not split
  int64_t prefix = 0;    // keys that all requests share, as a level of their own
  double scale = 0.2;
  ref::Storage type = ref::Storage::F32, kvType = ref::Storage::F32, typeO = ref::Storage::F32;
  std::map<std::string, Param> params;
  bool lse = true;
};

std::string typeName(ref::Storage type) {
  switch (type) {
  case ref::Storage::F32:
    return "f32";
  case ref::Storage::BF16:
    return "bf16";
  case ref::Storage::F16:
    return "f16";
  case ref::Storage::E4M3:
    return "f8E4M3FN";
  case ref::Storage::E5M2:
    return "f8E5M2";
  }
  return "";
}

class Runner {
public:
  explicit Runner(KernelCase setup) : setup(std::move(setup)), random(7) {}

  void run() {
    SCOPED_TRACE(setup.variant + " " + setup.config);
    parse();
    if (testing::Test::HasFatalFailure())
      return;
    bindParams();
    if (testing::Test::HasFatalFailure())
      return;
    buildBatch();
    buildItems();
    Kernels kernels;
    ASSERT_EQ(kernels.compile(kernelText, HostTarget().conversionOptions()), "") << kernelText;
    ASSERT_EQ(kernels.run(kernelName, arguments, 2), "");
    if (!merges.empty()) {
      Arguments merge = arguments;
      merge.operands["items"].pointer = merges.data();
      merge.operands["cta_indptr"].pointer = mergeIndptr.data();
      ASSERT_EQ(kernels.run(mergeName, merge, 2), "");
    }
    check();
  }

private:
  std::string opText(mlir::attn::VariantOp variant) {
    std::string q = typeName(setup.type), kv = typeName(setup.kvType), o = typeName(setup.typeO);
    auto n = [](int64_t x) { return std::to_string(x); };
    std::string page = setup.pageSize ? "x" + n(setup.pageSize) : "";
    std::string head = "x" + n(setup.headsKv) + "x";
    std::string qt = "memref<?x" + n(setup.headsQo) + "x" + n(setup.dimQk) + "x" + q + ">";
    std::string kt = "memref<?" + page + head + n(setup.dimQk) + "x" + kv + ">";
    std::string vt = "memref<?" + page + head + n(setup.dimVo) + "x" + kv + ">";
    std::string ot = "memref<?x" + n(setup.headsQo) + "x" + n(setup.dimVo) + "x" + o + ">";
    std::string lt = "memref<?x" + n(setup.headsQo) + "xf32>", it = "memref<?xi32>";
    std::string args = "%q: " + qt + ", %qo: " + it + ", %k: " + kt + ", %v: " + vt + ", %i: " + it + ", %x: " + it +
                       ", %o: " + ot + ", %l: " + lt + ", %s: f32";
    std::string names, types, op = "attn.attention ";
    if (variant) {
      for (mlir::BlockArgument param : variant.getParams()) {
        std::string name = "%" + variant.getParamName(param.getArgNumber()), type;
        llvm::raw_string_ostream(type) << param.getType();
        args += ", " + name + ": " + type;
        names += (names.empty() ? "" : ", ") + name;
        types += (types.empty() ? "" : ", ") + type;
      }
      op += "@" + variant.getSymName().str() + "(" + names + (names.empty() ? "" : " : ") + types + ") ";
    }
    op += "scale %s q(%q, %qo : " + qt + ", " + it + ") kv(%k, %v : " + kt + ", " + vt + ") ";
    std::string i = setup.prefix ? "%i, %i : " + it + ", " + it : "%i : " + it;
    std::string x = setup.prefix ? "%x, %x : " + it + ", " + it : "%x : " + it;
    op += "indptr(" + i + ") ";
    if (setup.pageSize)
      op += "indices(" + x + ") last(" + x + ") ";
    if (setup.prefix)
      op += "row_indptr(" + x + ") ";
    op += "outs(%o : " + ot + (setup.lse ? ", %l : " + lt : "") + ") {format = #attn.format<" +
          (setup.pageSize ? "paged" : "ragged") + ">, configs = [#attn.config<" + setup.config + ">]}";
    return "func.func @test(" + args + ") {\n" + op + "\nreturn\n}\n";
  }

  void parse() {
    mlir::DialectRegistry registry;
    registry.insert<mlir::attn::AttnDialect, mlir::tile::TileDialect, mlir::func::FuncDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &d) { messages += d.str() + "\n"; });
    std::string text;
    if (!setup.variant.empty()) {
      std::ifstream in(std::string(ATTN_SOURCE_ROOT) + "/examples/variants/" + setup.variant + ".mlir");
      std::stringstream all;
      all << in.rdbuf();
      text = all.str();
      text.resize(text.find("func.func"));
      module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
      ASSERT_TRUE(module) << messages;
    }
    mlir::attn::VariantOp variant;
    if (module)
      variant = *module->getOps<mlir::attn::VariantOp>().begin();
    module = mlir::parseSourceString<mlir::ModuleOp>(text + opText(variant), &context);
    ASSERT_TRUE(module) << messages;
    mlir::attn::AttentionOp op;
    module->walk([&](mlir::attn::AttentionOp found) { op = found; });
    auto made = mlir::attn::convertAttentionToTile(op);
    ASSERT_TRUE(mlir::succeeded(made)) << messages;
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module))) << messages;
    config = made->kernels[0]->getAttrOfType<mlir::attn::ConfigAttr>("config");
    kernelName = made->kernels[0].getSymName().str();
    mergeName = made->merge.getSymName().str();
    llvm::raw_string_ostream os(kernelText);
    os << *made->kernels[0] << "\n" << *made->merge << "\n";
  }

  void fill(std::vector<char> &bytes, std::vector<float> &values, ref::Storage type, size_t count) {
    values.assign(count, NAN);
    bytes.assign(count * ref::storageBytes(type), 0);
    for (size_t i = 0; i < count; ++i)
      ref::storeElement(type, bytes.data(), i, NAN);
  }
  void set(std::vector<char> &bytes, std::vector<float> &values, ref::Storage type, size_t i) {
    ref::storeElement(type, bytes.data(), i, normal(random));
    values[i] = ref::loadElement(type, bytes.data(), i);
  }

  int64_t total(size_t r) const { return setup.kvLens[r] + setup.prefix; }

  void buildBatch() {
    problem.headsQo = setup.headsQo;
    problem.headsKv = setup.headsKv;
    problem.headDimQk = setup.dimQk;
    problem.headDimVo = setup.dimVo;
    problem.scale = setup.scale;
    problem.qoIndptr = {0};
    for (int64_t n : setup.qoLens)
      problem.qoIndptr.push_back(problem.qoIndptr.back() + n);
    int64_t tokensCount = problem.tokens(), size = setup.pageSize;
    fill(q, qf, setup.type, tokensCount * setup.headsQo * setup.dimQk);
    for (size_t i = 0; i < qf.size(); ++i)
      set(q, qf, setup.type, i);
    problem.q = {qf.data(), 0, setup.headsQo * setup.dimQk, setup.dimQk};
    problem.format = size ? ref::Format::Paged : ref::Format::Ragged;
    problem.pageSize = size;
    int64_t used = 0;
    auto addLevel = [&](std::vector<int64_t> lens, bool shared) {
      ref::Level level;
      std::vector<int64_t> starts;
      level.kvIndptr = {size ? 0 : used};
      for (int64_t n : lens) {
        starts.push_back(size ? pages.size() : used);
        for (int64_t p = 0; size && p * size < n; ++p) {
          level.indices.push_back(used);
          pages.push_back(used++);
        }
        if (!size)
          used += n;
        level.kvIndptr.push_back(size ? level.indices.size() : used);
        if (size)
          level.last.push_back(n ? (n - 1) % size + 1 : 1);
      }
      if (shared)
        level.rowIndptr = {0, int64_t(setup.qoLens.size())};
      problem.levels.push_back(level);
      tables.push_back(starts);
    };
    if (setup.prefix)
      addLevel({setup.prefix}, true);
    addLevel(setup.kvLens, false);
    int64_t rows = (size ? used * size : used) + 3;
    rows = size ? (used + 1) * size : rows;
    fill(k, kf, setup.kvType, rows * setup.headsKv * setup.dimQk);
    fill(v, vf, setup.kvType, rows * setup.headsKv * setup.dimVo);
    int64_t kRow = setup.headsKv * setup.dimQk, vRow = setup.headsKv * setup.dimVo;
    problem.k = {kf.data(), size * kRow, kRow, setup.dimQk};
    problem.v = {vf.data(), size * vRow, vRow, setup.dimVo};
    for (size_t r = 0; r < setup.qoLens.size(); ++r)
      for (const ref::KeyPlace &key : ref::keysOf(problem, r)) {
        for (int64_t i = 0; i < kRow; ++i)
          set(k, kf, setup.kvType, key.block * size * kRow + key.row * kRow + i);
        for (int64_t i = 0; i < vRow; ++i)
          set(v, vf, setup.kvType, key.block * size * vRow + key.row * vRow + i);
      }
    o.assign(tokensCount * setup.headsQo * setup.dimVo * ref::storageBytes(setup.typeO), 0);
    ref::poison(setup.typeO, o.data(), tokensCount * setup.headsQo * setup.dimVo);
    lse.assign(tokensCount * setup.headsQo, 0);
    ref::poison(ref::Storage::F32, lse.data(), lse.size());
    for (size_t r = 0; r < setup.qoLens.size(); ++r)
      for (int64_t i = 0; i < setup.qoLens[r]; ++i)
        tokens.push_back({int32_t(i + total(r) - setup.qoLens[r]),
                          int32_t(r),
                          int32_t(i),
                          int32_t(setup.qoLens[r]),
                          int32_t(total(r)),
                          {}});
    auto &operands = arguments.operands;
    int64_t hq = setup.headsQo;
    operands["q"] = {q.data(), {tokensCount, hq, setup.dimQk}, {hq * setup.dimQk, setup.dimQk, 1}};
    operands["o"] = {o.data(), {tokensCount, hq, setup.dimVo}, {hq * setup.dimVo, setup.dimVo, 1}};
    operands["k"] = size ? Operand{k.data(), {}, {size * kRow, kRow, setup.dimQk, 1}}
                         : Operand{k.data(), {}, {kRow, setup.dimQk, 1}};
    operands["v"] = size ? Operand{v.data(), {}, {size * vRow, vRow, setup.dimVo, 1}}
                         : Operand{v.data(), {}, {vRow, setup.dimVo, 1}};
    operands["lse"] = {lse.data(), {tokensCount, hq}, {hq, 1}};
    operands["pages"] = {pages.data(), {}, {1}};
    operands["tokens"] = {tokens.data(), {}, {8, 1}};
    arguments.scale = setup.scale;
  }

  /// One tile of rows against one level: items for its heads and chunks, pieces for its tokens.
  void addTile(int64_t token0, int64_t count, int64_t request, int64_t row0, int64_t level, int64_t entry, bool split) {
    int64_t pack = config.getPack(), kv = level < int64_t(setup.prefix ? 1 : 0) ? setup.prefix : setup.kvLens[entry];
    int64_t chunk = setup.chunk ? setup.chunk : std::max<int64_t>(kv, 1);
    for (int64_t lo = 0; lo < std::max<int64_t>(kv, 1); lo += chunk) {
      int64_t base = slots;
      for (int64_t h = 0; h < setup.headsQo; h += pack) {
        AttnWorkItem item = {};
        item.token0 = token0;
        item.rows = count * pack;
        item.head = h;
        item.request = request;
        item.table = tables[level][entry];
        item.kv_len = kv;
        item.kpos0 = setup.prefix && level == 1 ? setup.prefix : 0;
        item.qpos0 = row0 + total(request) - setup.qoLens[request];
        item.klo = lo;
        item.khi = std::min(kv, lo + chunk);
        item.slot = split ? slots : -1;
        item.qo_len = setup.qoLens[request];
        item.row0 = row0;
        item.kv_total = total(request);
        slots += split ? count * pack : 0;
        items.push_back(item);
      }
      for (int64_t i = 0; i < count && split; ++i)
        piecesOf[token0 + i].push_back({int32_t(base + i * pack), int32_t(count * pack), int32_t(pack), 0});
    }
  }

  void buildItems() {
    int64_t pack = config.getPack(), tileTokens = config.getRows() / pack, count = problem.tokens();
    piecesOf.resize(count);
    bool split = setup.chunk || setup.prefix;
    if (setup.prefix) // rows of several requests in one tile
      for (int64_t t = 0; t < count; t += tileTokens)
        addTile(t, std::min(tileTokens, count - t), tokens[t].request, tokens[t].row, 0, 0, split);
    for (size_t r = 0; r < setup.qoLens.size(); ++r)
      for (int64_t row = 0; row < setup.qoLens[r]; row += tileTokens)
        addTile(problem.qoIndptr[r] + row, std::min(tileTokens, setup.qoLens[r] - row), r, row, setup.prefix ? 1 : 0, r,
                split);
    for (int64_t t = 0; t < count && split; ++t)
      for (int64_t h = 0; h < setup.headsQo; h += 16) {
        const AttnTokenInfo &info = tokens[t];
        AttnWorkItem merge = {};
        merge.token0 = t;
        merge.rows = std::min<int64_t>(16, setup.headsQo - h);
        merge.head = h;
        merge.request = info.request;
        merge.qpos0 = info.position;
        merge.row0 = info.row;
        merge.qo_len = info.qo_len;
        merge.kv_total = info.kv_total;
        merge.table = pieces.size();
        merge.khi = piecesOf[t].size();
        pieces.insert(pieces.end(), piecesOf[t].begin(), piecesOf[t].end());
        merges.push_back(merge);
      }
    itemIndptr = {0, int32_t(items.size() / 2), int32_t(items.size())};
    mergeIndptr = {0, int32_t(merges.size() / 2), int32_t(merges.size())};
    partO.assign(slots * setup.dimVo + 1, NAN);
    partLse.assign(slots + 1, NAN);
    auto &operands = arguments.operands;
    operands["part_o"] = {partO.data(), {}, {setup.dimVo, 1}};
    operands["part_lse"] = {partLse.data(), {}, {1}};
    operands["items"] = {items.data(), {}, {}};
    operands["cta_indptr"] = {itemIndptr.data(), {}, {}};
    operands["pieces"] = {pieces.data(), {}, {4, 1}};
  }

  /// Values of a parameter, for the kernel and for the hooks of the reference.
  HookParam bindParam(const std::string &name, mlir::Type type) {
    Param &param = setup.params[name];
    HookParam value;
    value.f32 = param.f32;
    value.index = param.index;
    AttnWord word;
    word.bits = 0;
    if (auto memref = mlir::dyn_cast<mlir::MemRefType>(type)) {
      mlir::Type element = memref.getElementType();
      if (param.shape.empty())
        param.shape = {int64_t(param.values.size())};
      auto store = [&](auto sample, double v) {
        auto x = static_cast<decltype(sample)>(v);
        const char *bytes = reinterpret_cast<const char *>(&x);
        param.bytes.insert(param.bytes.end(), bytes, bytes + sizeof(x));
      };
      for (double v : param.values) {
        if (element.isF32())
          store(float(), v);
        else if (element.isInteger(64))
          store(int64_t(), v);
        else if (element.isInteger(32))
          store(int32_t(), v);
        else if (element.isInteger(8))
          store(uint8_t(), v);
        else
          store(uint16_t(), ref::encode(ref::Storage::BF16, v));
      }
      std::vector<int64_t> strides(param.shape.size(), 1);
      for (size_t i = param.shape.size(); i-- > 1;)
        strides[i - 1] = strides[i] * param.shape[i];
      value.buffer = {param.bytes.data(), param.shape, {}};
      arguments.operands["param:" + name] = {param.bytes.data(), param.shape, strides};
      return value;
    }
    if (type.isF32())
      word.f32 = param.f32;
    else
      word.integer = param.index;
    arguments.params[name] = word;
    return value;
  }
  void bindParams() {
    if (setup.variant.empty())
      return;
    mlir::attn::VariantOp variant = *module->getOps<mlir::attn::VariantOp>().begin();
    std::vector<HookParam> values;
    for (mlir::BlockArgument param : variant.getParams())
      values.push_back(bindParam(variant.getParamName(param.getArgNumber()), param.getType()));
    auto made = HookEvaluator::create(variant, values);
    ASSERT_TRUE(mlir::succeeded(made)) << messages;
    evaluator = *made;
  }

  void check() {
    problem.normalizer = evaluator.normalizer();
    ASSERT_EQ(ref::validate(problem, evaluator.hooks()), "");
    ref::Result expected = ref::run(problem, evaluator.hooks());
    if (!setup.variant.empty()) // without one the evaluator has nothing to ask
      ASSERT_EQ(evaluator.takeError(), "");
    bool approximate = evaluator.isApproximate();
    // Eight bits of K and V are exact in the type of q; f32 storage is compared as f16 is.
    ref::Storage as = setup.type == ref::Storage::F32 ? ref::Storage::F16 : setup.type;
    auto compared =
        ref::compareOutput(problem, expected, {o.data(), setup.typeO, setup.headsQo * setup.dimVo, setup.dimVo},
                           ref::Tolerance::output(as, approximate));
    EXPECT_TRUE(compared.ok) << compared.text();
    if (!setup.lse)
      return;
    auto sums = ref::compareLse(problem, expected, {lse.data(), ref::Storage::F32, setup.headsQo, 1},
                                ref::Tolerance::lse(approximate));
    EXPECT_TRUE(sums.ok) << sums.text();
  }

private:
  KernelCase setup;
  std::mt19937 random;
  std::normal_distribution<double> normal;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string messages, kernelText, kernelName, mergeName;
  mlir::attn::ConfigAttr config;
  HookEvaluator evaluator;
  ref::Problem problem;
  std::vector<char> q, k, v, o;
  std::vector<float> qf, kf, vf, lse, partO, partLse;
  std::vector<int32_t> pages, itemIndptr, mergeIndptr;
  std::vector<std::vector<int64_t>> tables;
  std::vector<AttnWorkItem> items, merges;
  std::vector<AttnMergePiece> pieces;
  std::vector<std::vector<AttnMergePiece>> piecesOf;
  std::vector<AttnTokenInfo> tokens;
  int64_t slots = 0;
  Arguments arguments;
};

const char *kHost = "rows = 16, keys = 64, stages = 1, warps = 1, pack = 4, row_table = true";
const char *kGroups = "rows = 16, keys = 128, groups = 4, pack = 4, row_table = true";
const char *kRows = "rows = 64, keys = 32, pack = 4";
const char *kPlain = "rows = 32, keys = 32";

KernelCase example(const std::string &variant, const char *config) {
  KernelCase setup;
  setup.variant = variant;
  setup.config = config;
  if (variant == "rope")
    setup.dimQk = setup.dimVo = 128; // its hooks take vectors of 128
  auto &p = setup.params;
  auto buffer = [](std::vector<double> values, std::vector<int64_t> shape = {}) {
    Param param;
    param.values = std::move(values);
    param.shape = std::move(shape);
    return param;
  };
  auto number = [](double f32, int64_t index) {
    Param param;
    param.f32 = f32;
    param.index = index;
    return param;
  };
  p["cap"] = number(2.5, 0);
  p["left"] = number(0, 20);
  p["right"] = number(0, 3);
  p["sinks"] = number(0, 4);
  p["window"] = number(0, 17);
  if (variant != "streaming_llm")
    p["sinks"] = buffer({0.5, -1, 0, 2, 1, -3, 0.25, 4});
  p["slopes"] = buffer({0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015, 0.0078, 0.0039});
  p["value_scale"] = buffer({0.5, 2});
  std::vector<double> gate;
  for (size_t i = 0; i < 8 * setup.qoLens.size(); ++i)
    gate.push_back(0.1 * i - 1);
  p["gate"] = buffer(gate, {int64_t(setup.qoLens.size()), 8});
  std::vector<double> documents, offsets, prefix, bytes, byteOffsets;
  for (size_t r = 0; r < setup.kvLens.size(); ++r) {
    offsets.push_back(documents.size());
    byteOffsets.push_back(bytes.size());
    for (int64_t i = 0; i < setup.kvLens[r]; ++i)
      documents.push_back(i / 13);
    prefix.push_back(7 * r);
    for (int64_t i = 0; i < (setup.qoLens[r] * setup.kvLens[r] + 7) / 8; ++i)
      bytes.push_back((37 * i + 11 * r + 90) % 256);
  }
  p["doc"] = buffer(documents);
  p["prefix"] = buffer(prefix);
  p["bits"] = buffer(bytes);
  p["offset"] = buffer(variant == "tree_mask" ? byteOffsets : offsets);
  return setup;
}
} // namespace

/// The host's config and one of the others for each variant; all of them for the two that matter most.
TEST(AttnToTile, EveryVariant) {
  const char *others[] = {kGroups, kRows, kPlain};
  int turn = 0;
  for (std::string variant : {"causal", "softcap", "sliding_window", "alibi", "sink_window", "streaming_llm",
                              "prefix_lm", "document", "tree_mask", "sigmoid", "all_hooks"}) {
    std::vector<const char *> configs = {kHost, others[turn++ % 3]};
    if (variant == "causal" || variant == "all_hooks")
      configs = {kHost, kGroups, kRows, kPlain};
    for (const char *config : configs) {
      KernelCase setup = example(variant, config);
      setup.lse = variant != "sigmoid";
      Runner(setup).run();
    }
  }
}

TEST(AttnToTile, Rope) {
  KernelCase setup = example("rope", kHost);
  setup.qoLens = {1, 5, 3};
  setup.kvLens = {70, 5, 20};
  Runner(setup).run();
}

TEST(AttnToTile, SplitAndMerge) {
  for (const char *variant : {"causal", "sink_window", "sigmoid", "all_hooks"})
    for (const char *config : {kHost, kGroups, kPlain}) {
      KernelCase setup = example(variant, config);
      setup.lse = setup.variant != "sigmoid";
      setup.chunk = 128;
      setup.kvLens = {300, 5, 150, 9, 2};
      Runner(setup).run();
      if (testing::Test::HasFailure())
        return;
    }
}

TEST(AttnToTile, NoVariant) {
  for (double scale : {0.3, 0.0, -0.7}) {
    for (int64_t pageSize : {0, 1, 5}) {
      KernelCase setup;
      setup.config = kHost;
      setup.scale = scale;
      setup.pageSize = pageSize;
      Runner(setup).run();
    }
  }
}

TEST(AttnToTile, Shapes) {
  struct Shape {
    int64_t headsQo, headsKv, dimQk, dimVo;
    const char *config;
  };
  for (Shape shape : {Shape{5, 1, 128, 128, "rows = 16, keys = 64, pack = 5, row_table = true"},
                      Shape{6, 2, 192, 128, "rows = 16, keys = 32, pack = 3, row_table = true"},
                      Shape{32, 1, 56, 56, "rows = 64, keys = 64, pack = 32"}, Shape{3, 3, 80, 80, kPlain},
                      Shape{24, 2, 96, 96, "rows = 16, keys = 64, pack = 12, groups = 2"}}) {
    KernelCase setup;
    setup.config = shape.config;
    setup.headsQo = shape.headsQo;
    setup.headsKv = shape.headsKv;
    setup.dimQk = shape.dimQk;
    setup.dimVo = shape.dimVo;
    setup.chunk = 64;
    Runner(setup).run();
  }
}

TEST(AttnToTile, StorageTypes) {
  using S = ref::Storage;
  struct Types {
    S q, kv, o;
  };
  for (Types types : {Types{S::F16, S::F16, S::F16}, Types{S::BF16, S::BF16, S::BF16}, Types{S::F16, S::E4M3, S::F16},
                      Types{S::BF16, S::E5M2, S::BF16}}) {
    KernelCase setup = example("causal", kHost);
    setup.type = types.q;
    setup.kvType = types.kv;
    setup.typeO = types.o;
    Runner(setup).run();
  }
}

TEST(AttnToTile, SharedPrefixWithRowsOfManyRequests) {
  for (const char *variant : {"causal", "sliding_window", "alibi", "sink_window"})
    for (const char *config : {kHost, kGroups}) {
      KernelCase setup = example(variant, config);
      setup.prefix = 37;
      setup.params["left"].index = 60;
      Runner(setup).run();
    }
}
