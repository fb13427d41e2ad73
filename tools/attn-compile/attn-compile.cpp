//===- attn-compile.cpp - IR to machine code -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-compile FILE.mlir --target=host|sm_80|sm_86|sm_89|sm_90a|sm_100a
//   --emit=tile|llvm|ptx|cubin|obj|bundle -o OUT [--kernel=NAME] [--tuned=off|FILE] [--isolate] [--configs]
//   [--timing]
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Cache.h"
#include "attn/Compiler/Compiler.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attn-compile") << message << '\n';
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::OptionCategory category("attn-compile options");
  cl::opt<std::string> input(cl::Positional, cl::desc("<IR file>"), cl::init("-"), cl::cat(category));
  cl::opt<std::string> output("o", cl::desc("output file"), cl::init("-"), cl::cat(category));
  cl::opt<std::string> target("target", cl::desc("host, sm_80, sm_86, sm_89, sm_90a or sm_100a"), cl::init("host"),
                              cl::cat(category));
  cl::opt<std::string> emit("emit", cl::desc("tile, llvm, ptx, cubin, obj or bundle"), cl::init("bundle"),
                            cl::cat(category));
  cl::opt<std::string> kernel("kernel", cl::desc("only this kernel"), cl::cat(category));
  cl::opt<std::string> ptxas("ptxas", cl::desc("the ptxas to use"), cl::cat(category));
  cl::opt<bool> timing("timing", cl::desc("print the time of each stage to standard error"), cl::cat(category));
  cl::opt<bool> useCache("cache", cl::desc("use the cache of bundles ($ATTN_CACHE_DIR)"), cl::init(false),
                         cl::cat(category));
  cl::opt<std::string> tuned("tuned", cl::desc("measured configs: off, or a file of attn-tune (default: built in)"),
                             cl::cat(category));
  cl::opt<bool> isolate("isolate", cl::desc("generate code in a child process, whose death is an error"),
                        cl::cat(category));
  cl::opt<unsigned> isolateSeconds("isolate-seconds", cl::desc("seconds that such a child may take"), cl::init(120),
                                   cl::cat(category));
  cl::opt<bool> verifyPasses("verify-passes", cl::desc("verify the IR after each pass"), cl::cat(category));
  cl::opt<bool> configs("configs", cl::desc("print each kernel's config and its source to standard error"),
                        cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "compiles the attention op of an IR file\n");

  ::attn::CompileOptions options;
  options.target = target;
  options.kernel = kernel;
  options.ptxas = ptxas;
  options.tuned = tuned;
  options.isolate = isolate;
  options.isolateSeconds = isolateSeconds;
  options.verifyPasses = verifyPasses;
  auto kind = ::attn::parseEmit(emit);
  if (!kind)
    return fail("unknown --emit '" + emit + "'; expected tile, llvm, ptx, cubin, obj or bundle");
  options.emit = *kind;
  if (useCache)
    options.cacheDir = ::attn::getDefaultCacheDir();

  auto file = llvm::MemoryBuffer::getFileOrSTDIN(input);
  if (!file)
    return fail("cannot read '" + input + "': " + file.getError().message());

  mlir::DialectRegistry registry;
  ::attn::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = ::attn::parseModule((*file)->getBuffer(), input, context);
  if (!module)
    return fail(llvm::toString(module.takeError()));
  auto result = ::attn::compile(**module, options);
  if (!result)
    return fail(llvm::toString(result.takeError()));

  if (configs)
    for (const ::attn::KernelConfig &kernel : result->configs)
      llvm::errs() << kernel.kernel << ": " << kernel.config << " (" << kernel.source << ")\n";
  if (timing) {
    double total = 0;
    for (const ::attn::StageTime &time : result->times) {
      llvm::errs() << llvm::formatv("{0,-24} {1,9:f1} ms", time.stage, time.milliseconds);
      if (time.runs > 1)
        llvm::errs() << " in " << time.runs << " attempts";
      llvm::errs() << '\n';
      total += time.milliseconds;
    }
    llvm::errs() << llvm::formatv("{0,-24} {1,9:f1} ms\n", "total", total);
  }
  std::error_code code;
  llvm::ToolOutputFile out(output, code, llvm::sys::fs::OF_None);
  if (code)
    return fail("cannot write '" + output + "': " + code.message());
  out.os() << result->output;
  out.keep();
  return 0;
}
