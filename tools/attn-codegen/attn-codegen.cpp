//===- attn-codegen.cpp - code generation as a process -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-codegen IN.bc -o OUT --chip=sm_90a                              PTX
// attn-codegen IN.bc -o OUT --triple=T --cpu=C --features=F --opt=2    an object file
// What the compiler runs when it isolates code generation (Target/Isolate.h).
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Host.h"
#include "attn/Target/NVPTX.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/WithColor.h"
#include <cstdlib>
#include <thread>

namespace cl = llvm::cl;

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attn-codegen") << message << '\n';
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::OptionCategory category("attn-codegen options");
  cl::opt<std::string> input(cl::Positional, cl::desc("<bitcode>"), cl::Required, cl::cat(category));
  cl::opt<std::string> output("o", cl::desc("output file"), cl::Required, cl::cat(category));
  cl::opt<std::string> chip("chip", cl::desc("GPU to make PTX for"), cl::cat(category));
  cl::opt<std::string> triple("triple", cl::desc("host to make an object for"), cl::cat(category));
  cl::opt<std::string> cpu("cpu", cl::desc("CPU of that host"), cl::cat(category));
  cl::opt<std::string> features("features", cl::desc("its features"), cl::cat(category));
  cl::opt<unsigned> optLevel("opt", cl::desc("0 to 3"), cl::init(2), cl::cat(category));
  cl::opt<std::string> dieBy("die-by", cl::desc("for tests: abort or hang"), cl::Hidden, cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "generates code for a module\n");

  auto file = llvm::MemoryBuffer::getFile(input, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return fail("cannot read '" + input + "': " + file.getError().message());
  // Tests reach it through the compiler by an environment variable.
  const char *how = std::getenv("ATTN_CODEGEN_DIE_BY");
  llvm::StringRef death = dieBy.empty() && how ? llvm::StringRef(how) : llvm::StringRef(dieBy);
  if (death == "abort")
    std::abort();
  if (death == "hang")
    for (;;)
      std::this_thread::sleep_for(std::chrono::seconds(1));
  llvm::Expected<std::string> made = std::string();
  if (!chip.empty()) {
    const attn::TargetInfo *target = attn::findTarget(chip);
    if (!target || !target->isGpu())
      return fail("unknown chip '" + chip + "'; expected a GPU out of " + attn::knownTargetNames());
    made = attn::ptxFromBitcode((*file)->getBuffer(), *target);
  } else {
    attn::HostTarget host;
    host.triple = triple;
    host.cpu = cpu;
    host.features = features;
    host.optLevel = optLevel;
    made = attn::objectFromBitcode((*file)->getBuffer(), host);
  }
  if (!made)
    return fail(llvm::toString(made.takeError()));
  if (llvm::Error error = llvm::writeToOutput(output, [&](llvm::raw_ostream &os) {
        os << *made;
        return llvm::Error::success();
      }))
    return fail(llvm::toString(std::move(error)));
  return 0;
}
