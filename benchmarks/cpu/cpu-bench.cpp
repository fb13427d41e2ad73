//===- cpu-bench.cpp - one core against a plain loop ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles kernel.mlir through the host path and plain.cpp with gcc, runs both
// in turn on the same data, compares the results and prints a table. Times are
// medians over the rounds, with the range of the ratio.
//
//   cpu-bench FOLDER [rounds]     FOLDER holds kernel.mlir and plain.cpp
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Target/Host.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <random>
#include <sstream>
#include <time.h>
#include <unistd.h>

using namespace attn;
using Plain = void (*)(const float *, const float *, const float *, float *, long, long, long, long, long, float, int);

namespace {
struct Case {
  const char *name;
  long qo, kv, heads, headsKv, dim, rows, keys;
  bool causal;
};

/// Time of this thread on a core: what other programs take is not in it on the machine take time, not the measure.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

[[noreturn]] void fail(const std::string &text) {
  std::fprintf(stderr, "cpu-bench: %s\n", text.c_str());
  std::exit(1);
}

std::string readFile(const std::string &path) {
  std::ifstream in(path);
  if (!in)
    fail("cannot read " + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Compiled {
  std::unique_ptr<HostJIT> jit;
  AttnHostKernel kernel;
  size_t scratch;
};

Compiled compile(const Case &c, const std::string &source) {
  std::string text = source;
  for (auto [from, to] : {std::pair<const char *, std::string>{"KVHEADS", std::to_string(c.headsKv)},
                          {"HEADS", std::to_string(c.heads)},
                          {"GROUP", std::to_string(c.heads / c.headsKv)},
                          {"ROWS", std::to_string(c.rows)},
                          {"KEYS", std::to_string(c.keys)},
                          {"DIM", std::to_string(c.dim)},
                          {"ROUND_OUT", "tile.yield %g : f32"},
                          {"ROUND", "tile.yield %e : f32"},
                          {"TYPE", "f32"}})
    text = replaceAll(text, from, to);
  mlir::DialectRegistry registry;
  registry
      .insert<mlir::attn::AttnDialect, mlir::tile::TileDialect, mlir::LLVM::LLVMDialect, mlir::vector::VectorDialect>();
  registerHostTranslations(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    fail("kernel.mlir does not parse");
  HostTarget target = HostTarget::native();
  mlir::PassManager pm(&context);
  buildHostPipeline(pm, target.conversionOptions());
  if (mlir::failed(pm.run(*module)))
    fail("lowering failed");
  auto function = module->lookupSymbol<mlir::LLVM::LLVMFuncOp>("attention");
  Compiled result;
  result.scratch = function->getAttrOfType<mlir::IntegerAttr>("attn.smem").getInt();
  auto object = compileToObject(*module, target);
  if (!object)
    fail(llvm::toString(object.takeError()));
  auto jit = HostJIT::create(*object);
  if (!jit)
    fail(llvm::toString(jit.takeError()));
  result.jit = std::move(*jit);
  auto kernel = result.jit->lookup("attention");
  if (!kernel)
    fail(llvm::toString(kernel.takeError()));
  result.kernel = *kernel;
  return result;
}
} // namespace

int main(int argc, char **argv) {
  std::string folder = argc > 1 ? argv[1] : "benchmarks/cpu";
  int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  std::string library = "/tmp/attn-plain-" + std::to_string(getpid()) + ".so";
  std::string command = "gcc -O3 -march=native -shared -fPIC -o " + library + " " + folder + "/plain.cpp -lm";
  if (std::system(command.c_str()))
    fail("cannot compile plain.cpp: " + command);
  void *handle = dlopen(library.c_str(), RTLD_NOW);
  std::remove(library.c_str());
  Plain plain = handle ? reinterpret_cast<Plain>(dlsym(handle, "plain_attention")) : nullptr;
  if (!plain)
    fail("cannot load the plain loop");
  std::string source = readFile(folder + "/kernel.mlir");
  std::printf("| case | plain loop, ms | ours, ms | GFLOP/s | ratio (range) | compile, ms | max error |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- |\n");
  const Case cases[] = {
      {"prefill 512 x 512, full", 512, 512, 2, 2, 128, 32, 32, false},
      {"prefill 512 x 512, causal", 512, 512, 2, 2, 128, 32, 32, true},
      {"prefill 1024 x 1024, causal", 1024, 1024, 1, 1, 128, 32, 32, true},
      {"prefill 512 x 512, full, D 64", 512, 512, 2, 2, 64, 32, 32, false},
      {"append 16 x 4096, causal", 16, 4096, 1, 1, 128, 16, 32, true},
  };
  for (const Case &c : cases) {
    double start = now();
    Compiled compiled = compile(c, source);
    double compileTime = now() - start;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> q(c.qo * c.heads * c.dim), k(c.kv * c.headsKv * c.dim), v(k.size()), o(q.size()),
        expected(q.size());
    for (std::vector<float> *data : {&q, &k, &v})
      for (float &x : *data)
        x = normal(random);
    float scale = 1 / std::sqrt(float(c.dim));
    std::vector<AttnWorkItem> items;
    for (long h = 0; h < c.heads; ++h)
      for (long row = 0; row < c.qo; row += c.rows) {
        AttnWorkItem item = {};
        item.token0 = item.row0 = row;
        item.rows = std::min(c.rows, c.qo - row);
        item.head = h;
        item.kv_len = item.khi = item.kv_total = c.kv;
        item.qpos0 = c.causal ? row + c.kv - c.qo : c.kv; // full: every row sees everything
        item.slot = -1;
        item.qo_len = c.qo;
        items.push_back(item);
      }
    int32_t indptr[] = {0, static_cast<int32_t>(items.size())};
    auto pointer = [](const void *p) {
      AttnWord w;
      w.pointer = const_cast<void *>(p);
      return w;
    };
    auto integer = [](int64_t n) {
      AttnWord w;
      w.integer = n;
      return w;
    };
    AttnWord scaleWord = integer(0);
    scaleWord.f32 = scale;
    const AttnWord words[] = {pointer(q.data()), integer(c.heads * c.dim),   integer(c.dim),
                              pointer(k.data()), integer(c.headsKv * c.dim), integer(c.dim),
                              pointer(v.data()), integer(c.headsKv * c.dim), integer(c.dim),
                              pointer(o.data()), integer(c.heads * c.dim),   integer(c.dim),
                              scaleWord,         pointer(items.data()),      pointer(indptr)};
    std::vector<char> memory(compiled.scratch + 64);
    void *scratch = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    std::vector<double> ours, theirs, ratios;
    for (int round = 0; round < rounds; ++round) {
      double t0 = now();
      plain(q.data(), k.data(), v.data(), expected.data(), c.qo, c.kv, c.heads, c.headsKv, c.dim, scale, c.causal);
      double t1 = now();
      const int repeats = 4;
      for (int i = 0; i < repeats; ++i)
        compiled.kernel(words, 0, scratch);
      double once = (now() - t1) / repeats;
      theirs.push_back(t1 - t0);
      ours.push_back(once);
      ratios.push_back((t1 - t0) / once);
    }
    double error = 0;
    for (size_t i = 0; i < o.size(); ++i)
      error = std::max<double>(error, std::fabs(o[i] - expected[i]));
    for (auto *times : {&ours, &theirs, &ratios})
      std::sort(times->begin(), times->end());
    double pairs = c.causal ? c.qo * (c.kv - (c.qo - 1) / 2.0) : double(c.qo) * c.kv;
    double flops = 4.0 * pairs * c.heads * c.dim;
    std::printf("| %s | %.2f | %.2f | %.1f | %.1f (%.1f–%.1f) | %.0f | %.1e |\n", c.name, theirs[rounds / 2] * 1e3,
                ours[rounds / 2] * 1e3, flops / ours[rounds / 2] * 1e-9, ratios[rounds / 2], ratios.front(),
                ratios.back(), compileTime * 1e3, error);
    std::fflush(stdout);
    if (!(error < 1e-4))
      fail("the results differ");
  }
  return 0;
}
