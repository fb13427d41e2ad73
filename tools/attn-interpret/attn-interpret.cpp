//===- attn-interpret.cpp - runs tile kernels on random batches and checks them ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `attn-interpret FILE --kernel=x [--against=y | --against-file=F]`: without
// another kernel the outputs are compared with a plain softmax in double.
// `attn-interpret FILE --through` runs the passes of the kernel's config and
// compares after each of them with the kernel before the first.
//
//===----------------------------------------------------------------------===//

#include "Through.h"
#include "attn/InitAll.h"
#include "attn/Interpreter/Check.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace llvm;

static cl::opt<std::string> file(cl::Positional, cl::init("-"), cl::desc("FILE"));
static cl::list<std::string> names("kernel", cl::desc("kernels to run (default: all)"), cl::CommaSeparated);
static cl::opt<std::string> against("against", cl::desc("kernel to compare with, instead of the reference"));
static cl::opt<std::string> againstFile("against-file",
                                        cl::desc("file of the kernel of the same name to compare with"));
static cl::list<std::string> requests("batch", cl::desc("QUERIES:KEYS of each request (default: random)"),
                                      cl::CommaSeparated);
static cl::opt<uint64_t> seed("seed", cl::init(0), cl::desc("seed of batch, data and schedule"));
static cl::opt<int64_t> runs("runs", cl::init(1), cl::desc("number of runs, with seeds from `seed` on"));
static cl::opt<int64_t> ctas("ctas", cl::init(2), cl::desc("number of CTAs"));
static cl::opt<int64_t> heads("heads", cl::init(2), cl::desc("query heads where the types leave them open"));
static cl::opt<int64_t> headsKv("heads-kv", cl::init(2), cl::desc("KV heads where the types leave them open"));
static cl::opt<int64_t> rows("rows", cl::init(128), cl::desc("query rows of a tile, without a config"));
static cl::opt<int64_t> keys("keys", cl::init(128), cl::desc("keys of a tile, without a config"));
static cl::opt<int64_t> chunks("split", cl::init(1), cl::desc("chunks of keys an item is cut into"));
static cl::opt<int64_t> longest("longest", cl::init(3), cl::desc("length limit of random requests, in tiles"));
static cl::opt<bool> whole("whole", cl::desc("whole query and key tiles only"));
static cl::opt<bool> noCausal("no-causal", cl::desc("all keys are visible"));
static cl::opt<int64_t> window("window", cl::init(-1), cl::desc("keys to the left that a row sees"));
static cl::opt<double> softcap("softcap", cl::init(0), cl::desc("soft cap of the logits"));
static cl::list<std::string> params("param", cl::desc("NAME=VALUE of a scalar parameter"), cl::CommaSeparated);
static cl::opt<bool> through("through", cl::desc("run the passes of each kernel's config, check after each"));
static cl::opt<int64_t> maxSteps("max-steps", cl::init(int64_t(1) << 28), cl::desc("ops that one CTA may run"));

static int usage(const Twine &message) {
  errs() << "attn-interpret: " << message << "\n";
  return 2;
}

static OwningOpRef<ModuleOp> parse(StringRef name, MLIRContext &context, SourceMgr &sources) {
  std::string error;
  auto buffer = openInputFile(name, &error);
  if (!buffer) {
    errs() << "attn-interpret: " << error << "\n";
    return {};
  }
  sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "runs tile kernels on random batches and checks them\n");
  DialectRegistry registry;
  registerAllDialects(registry);
  ::attn::registerAllDialects(registry);
  MLIRContext context(registry);
  SourceMgr sources, otherSources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parse(file, context, sources), otherModule;
  if (!module)
    return 2;
  if (!againstFile.empty() && !(otherModule = parse(againstFile, context, otherSources)))
    return 2;

  tile::CheckOptions options;
  for (StringRef request : requests) {
    auto [queries, keys] = request.split(':');
    std::pair<int64_t, int64_t> lengths;
    if (queries.getAsInteger(10, lengths.first) || keys.getAsInteger(10, lengths.second) || lengths.first < 0 ||
        lengths.second < 0)
      return usage("--batch has '" + request + "', expected QUERIES:KEYS");
    options.batch.push_back(lengths);
  }
  for (StringRef param : params) {
    auto [name, text] = param.split('=');
    double value;
    if (text.getAsDouble(value))
      return usage("--param has '" + param + "', expected NAME=VALUE");
    options.params[name] = value;
  }
  options.ctas = std::max<int64_t>(1, ctas);
  options.heads = heads;
  options.headsKv = headsKv;
  options.rows = std::max<int64_t>(1, rows);
  options.keys = std::max<int64_t>(1, keys);
  options.split = std::max<int64_t>(1, chunks);
  options.longest = std::max<int64_t>(1, longest);
  options.whole = whole;
  options.causal = !noCausal;
  options.window = window;
  options.softcap = softcap;
  options.maxSteps = maxSteps;

  SmallVector<tile::KernelOp> kernels;
  module->walk([&](tile::KernelOp kernel) {
    if (names.empty() || is_contained(names, kernel.getSymName()))
      kernels.push_back(kernel);
  });
  if (kernels.empty() || (!names.empty() && kernels.size() != names.size()))
    return usage("found " + Twine(kernels.size()) + " kernels of the given names");
  if (through) {
    options.seed = seed;
    return runThrough(*module, kernels, options, runs);
  }
  for (tile::KernelOp kernel : kernels) {
    tile::KernelOp other;
    if (!against.empty())
      other = module->lookupSymbol<tile::KernelOp>(against);
    else if (otherModule)
      other = otherModule->lookupSymbol<tile::KernelOp>(kernel.getSymName());
    if (!other && (!against.empty() || otherModule))
      return usage("no kernel to compare @" + kernel.getSymName() + " with");
    tile::CheckResult result;
    for (int64_t i = 0; i < runs; ++i) {
      options.seed = seed + i;
      if (failed(tile::checkKernel(kernel, other, options, result)))
        return usage("@" + kernel.getSymName() + " failed, seed " + Twine(options.seed)) - 1;
    }
    outs() << formatv("@{0}: {1} rows, largest error of o {2:E1}, of lse {3:E1}\n", kernel.getSymName(), result.rows,
                      result.outputError, result.lseError);
  }
  return 0;
}
