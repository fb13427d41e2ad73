//===- Ptxas.cpp - runs ptxas and reads its report -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/NVPTX.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

std::string attn::findPtxas(llvm::StringRef hint) {
  if (!hint.empty())
    return hint.str();
  if (const char *path = std::getenv("ATTN_PTXAS"))
    return path;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  llvm::SmallVector<std::string> folders;
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (auto found = llvm::sys::findProgramByName("ptxas", {folder}))
      return *found;
  return {};
}

/// Reads the lines that -v prints:
///   Compiling entry function 'NAME' for 'sm_90a'
///   8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
///   Used 168 registers, used 1 barriers, 8 bytes smem
static void readReport(llvm::StringRef text, attn::Assembly &assembly) {
  llvm::Regex entry("Compiling entry function '([^']+)'");
  llvm::Regex stack("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads");
  llvm::Regex used("Used ([0-9]+) registers");
  llvm::Regex shared("([0-9]+) bytes smem");
  llvm::StringSet<> seen;
  llvm::SmallVector<llvm::StringRef> match;
  auto number = [&](unsigned i) {
    int64_t value = 0;
    match[i].getAsInteger(10, value);
    return value;
  };
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines) {
    if (entry.match(line, &match)) {
      assembly.kernels.push_back({match[1].str()});
    } else if (!assembly.kernels.empty() && stack.match(line, &match)) {
      assembly.kernels.back().stackBytes = number(1);
      assembly.kernels.back().spillStores = number(2);
      assembly.kernels.back().spillLoads = number(3);
    } else if (!assembly.kernels.empty() && used.match(line, &match)) {
      assembly.kernels.back().registers = number(1);
      if (shared.match(line, &match))
        assembly.kernels.back().sharedBytes = number(1);
    }
    if ((line.contains("(C7") || line.contains("warning")) && seen.insert(line).second)
      assembly.warnings.push_back(line.str());
  }
}

llvm::Expected<attn::Assembly> attn::assemble(llvm::StringRef ptx, const TargetInfo &target, llvm::StringRef ptxas) {
  std::string program = findPtxas(ptxas);
  if (program.empty())
    return llvm::createStringError(
        "no ptxas found; install the CUDA toolkit, set CUDA_HOME or --ptxas, or emit PTX for the driver to compile");
  llvm::SmallString<64> input, output, report;
  for (auto [suffix, path] :
       {std::pair<llvm::StringRef, llvm::SmallString<64> *>{"ptx", &input}, {"cubin", &output}, {"txt", &report}})
    if (std::error_code code = llvm::sys::fs::createTemporaryFile("attn", suffix, *path))
      return llvm::createStringError(code, "cannot create a temporary file: " + code.message());
  llvm::FileRemover removeInput(input), removeOutput(output), removeReport(report);
  {
    std::error_code code;
    llvm::raw_fd_ostream os(input, code);
    os << ptx;
    if (code)
      return llvm::createStringError(code, "cannot write " + input.str() + ": " + code.message());
  }
  // Kernels are compiled side by side; ptxas of CUDA 12.0 and before does not know how.
  std::string arch = ("-arch=" + target.chip).str();
  llvm::SmallVector<llvm::StringRef> arguments{program, arch, "-v", "-O3", input, "-o", output, "--split-compile=0"};
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), report.str(), report.str()};
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> said;
  auto run = [&] {
    int status = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, redirects, 0, 0, &error);
    auto text = llvm::MemoryBuffer::getFile(report);
    said = text ? std::move(*text) : llvm::MemoryBuffer::getMemBuffer("");
    return status;
  };
  int status = run();
  if (status != 0 && said->getBuffer().contains("split-compile")) {
    arguments.pop_back();
    status = run();
  }
  if (status != 0 && llvm::Regex("\\(C7602\\)").match(said->getBuffer())) { // no cubin, but a config's affair
    Assembly assembly;
    readReport(said->getBuffer(), assembly);
    return assembly;
  }
  if (status != 0)
    return llvm::createStringError("ptxas failed for " + target.chip + ": " +
                                   (error.empty() ? said->getBuffer().str() : error));
  auto cubin = llvm::MemoryBuffer::getFile(output, false, false);
  if (!cubin || (*cubin)->getBufferSize() == 0)
    return llvm::createStringError("ptxas left no output");
  Assembly assembly;
  assembly.cubin = (*cubin)->getBuffer().str();
  readReport(said->getBuffer(), assembly);
  return assembly;
}

static bool isSerialised(llvm::StringRef warning) { return llvm::Regex("\\(C751[0-8]\\)").match(warning); }
static bool lacksRegisters(llvm::StringRef warning) { return warning.contains("(C7602)"); }

bool attn::fits(const Assembly &assembly, llvm::StringRef kernel) {
  return llvm::none_of(assembly.kernels,
                       [&](const KernelReport &report) { return report.name == kernel && spills(report); }) &&
         llvm::none_of(assembly.warnings, [&](llvm::StringRef warning) {
           return (isSerialised(warning) && warning.contains(("'" + kernel + "'").str())) ||
                  (lacksRegisters(warning) && warning.contains(("function " + kernel + ".").str()));
         });
}

llvm::Error attn::checkAssembly(const Assembly &assembly) {
  for (const KernelReport &kernel : assembly.kernels)
    if (spills(kernel))
      return llvm::createStringError(std::string(llvm::formatv(
          "kernel '{0}' spills registers ({1} bytes stored, {2} loaded, {3} of stack, {4} registers); choose a config "
          "with fewer rows or keys, or more warps",
          kernel.name, kernel.spillStores, kernel.spillLoads, kernel.stackBytes, kernel.registers)));
  for (const std::string &warning : assembly.warnings)
    if (lacksRegisters(warning))
      return llvm::createStringError("ptxas has too few registers for a matrix product: " + warning +
                                     "; choose a config with fewer rows or keys");
    else if (isSerialised(warning))
      return llvm::createStringError("ptxas serialises a matrix product in flight: " + warning +
                                     "; choose a config with fewer keys");
  return llvm::Error::success();
}
