//===- attn-run.cpp - compiles, plans, runs, checks -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-run FILE.mlir --batch=BATCH.json --device=cpu|cuda [--check] [--json] [--iters=N] [--target=CHIP]
// [--bundle=FILE]
//   [--plan-svg=FILE] [--cache]. Exit status: 0, 1 when --check finds an error above tolerance, 2 for everything else.
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "attn/Compiler/Cache.h"
#include "attn/Compiler/Compiler.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"
#include <chrono>

namespace cl = llvm::cl;

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attn-run") << message << '\n';
  return 2;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::OptionCategory category("attn-run options");
  cl::opt<std::string> input(cl::Positional, cl::desc("<IR file>"), cl::Required, cl::cat(category));
  cl::opt<std::string> batch("batch", cl::desc("batch file (docs/Batch.md)"), cl::Required, cl::cat(category));
  cl::opt<std::string> deviceName("device", cl::desc("cpu or cuda"), cl::init("cpu"), cl::cat(category));
  cl::opt<int> ordinal("device-number", cl::desc("which device of that kind"), cl::init(0), cl::cat(category));
  cl::opt<std::string> target("target", cl::desc("chip to compile for (default: the device's)"), cl::cat(category));
  cl::opt<std::string> ptxas("ptxas", cl::desc("the ptxas to use"), cl::cat(category));
  cl::opt<std::string> bundleFile("bundle", cl::desc("run this compiled bundle of the IR"), cl::cat(category));
  cl::opt<std::string> svgFile("plan-svg", cl::desc("write the plan as a picture"), cl::cat(category));
  cl::opt<bool> check("check", cl::desc("compare with the reference"), cl::cat(category));
  cl::opt<bool> asJson("json", cl::desc("print a JSON object"), cl::cat(category));
  cl::opt<bool> useCache("cache", cl::desc("use the cache of bundles ($ATTN_CACHE_DIR)"), cl::cat(category));
  cl::opt<int> iterations("iters", cl::desc("timed runs"), cl::init(0), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "runs the attention op of an IR file on a batch\n");

  if (deviceName != "cpu" && deviceName != "cuda")
    return fail("unknown --device '" + deviceName + "'; expected cpu or cuda");
  if (iterations < 0)
    return fail("--iters is negative; expected 0 or more");
  auto file = llvm::MemoryBuffer::getFile(input);
  if (!file)
    return fail("cannot read '" + input + "': " + file.getError().message());
  mlir::DialectRegistry registry;
  attn::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = attn::parseModule((*file)->getBuffer(), input, context);
  if (!module)
    return fail(llvm::toString(module.takeError()));
  auto op = attn::findAttention(**module);
  if (!op)
    return fail(llvm::toString(op.takeError()));
  auto problem = attnrun::makeProblem(*op, batch);
  if (!problem)
    return fail(llvm::toString(problem.takeError()));
  std::optional<attnrun::Expectation> expectation;
  if (check) {
    auto expected = attnrun::expect(*op, *problem);
    if (!expected)
      return fail(llvm::toString(expected.takeError()));
    expectation = std::move(*expected);
  } else if (llvm::Error error = attnrun::probeLoads(*op, *problem)) {
    return fail(llvm::toString(std::move(error)));
  }

  std::shared_ptr<attnrt::Device> device;
  auto kind = deviceName == "cpu" ? attnrt::DeviceKind::CPU : attnrt::DeviceKind::CUDA;
  if (attnrt::Status status = attnrt::Device::open(kind, ordinal, device); !status.ok())
    return fail(status.text());
  std::string bundle;
  auto start = std::chrono::steady_clock::now();
  if (!bundleFile.empty()) {
    auto bytes = llvm::MemoryBuffer::getFile(bundleFile, false, false);
    if (!bytes)
      return fail("cannot read '" + bundleFile + "': " + bytes.getError().message());
    bundle = (*bytes)->getBuffer().str();
  } else {
    attn::CompileOptions options;
    options.target = target.empty() ? attnrun::defaultTarget(*device) : target;
    options.ptxas = ptxas;
    if (useCache)
      options.cacheDir = attn::getDefaultCacheDir();
    auto compiled = attn::compile(**module, options);
    if (!compiled)
      return fail(llvm::toString(compiled.takeError()));
    bundle = std::move(compiled->output);
  }
  double compileMs = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();

  auto session = attnrun::Session::create(bundle, device, *problem);
  if (!session)
    return fail(llvm::toString(session.takeError()));
  attnrun::Timing timing;
  if (llvm::Error error = (*session)->run(iterations, timing))
    return fail(llvm::toString(std::move(error)));
  if (!svgFile.empty()) {
    auto svg = (*session)->planSvg();
    if (!svg)
      return fail(llvm::toString(svg.takeError()));
    std::error_code code;
    llvm::ToolOutputFile out(svgFile, code, llvm::sys::fs::OF_Text);
    if (code)
      return fail("cannot write '" + svgFile + "': " + code.message());
    out.os() << *svg;
    out.keep();
  }
  attnrun::CheckResult result;
  if (expectation)
    result = attnrun::compare(*expectation, *problem);
  int64_t keys = 0;
  for (const attn::batch::Request &request : problem->built.requests)
    keys += request.kv;
  if (asJson) {
    llvm::json::Object object{{"device", device->name()},
                              {"requests", problem->built.requests.size()},
                              {"tokens", problem->built.qoIndptr.back()},
                              {"keys", keys},
                              {"items", timing.items},
                              {"compile_ms", compileMs},
                              {"plan_us", timing.planMicroseconds},
                              {"run_ms", timing.runMilliseconds}};
    if (check) {
      object["ok"] = result.ok;
      object["max_error"] = result.maxError;
      object["allowed"] = result.allowed;
      object["checked"] = result.checked;
      object["text"] = result.text;
    }
    llvm::outs() << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
  } else {
    llvm::outs() << llvm::formatv(
        "{0}: {1} requests, {2} tokens, {3} keys, {4} items; compile {5:f1} ms, plan {6:f1} us", device->name(),
        problem->built.requests.size(), problem->built.qoIndptr.back(), keys, timing.items, compileMs,
        timing.planMicroseconds);
    if (iterations)
      llvm::outs() << llvm::formatv(", run {0:f4} ms", timing.runMilliseconds);
    llvm::outs() << '\n';
    if (check)
      llvm::outs() << (result.ok ? "check passed\n" : "check FAILED\n") << result.text << '\n';
  }
  return check && !result.ok ? 1 : 0;
}
