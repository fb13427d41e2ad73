//===- Isolate.cpp - code generation in a child process -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Isolate.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <dlfcn.h>

static constexpr llvm::StringLiteral kTool = "attn-codegen";

/// Any address of this library or program.
static int anchor;

static std::string findTool(const attn::Isolation &isolation) {
  if (!isolation.tool.empty())
    return isolation.tool;
  if (const char *path = std::getenv("ATTN_CODEGEN"))
    return path;
  llvm::SmallVector<std::string> places;
  Dl_info info;
  if (dladdr(&anchor, &info) && info.dli_fname)
    places.push_back(info.dli_fname);
  places.push_back(llvm::sys::fs::getMainExecutable("attn", &anchor));
  for (const std::string &place : places) {
    llvm::SmallString<128> folder(llvm::sys::path::parent_path(place));
    for (const char *beside : {"", "../bin"}) {
      llvm::SmallString<128> path(folder);
      llvm::sys::path::append(path, beside, kTool);
      if (llvm::sys::fs::can_execute(path))
        return path.str().str();
    }
  }
  return {};
}

llvm::Expected<std::string> attn::generateInChild(const llvm::Module &module, llvm::ArrayRef<std::string> arguments,
                                                  const Isolation &isolation) {
  std::string program = findTool(isolation);
  if (program.empty())
    return llvm::createStringError("found no " + kTool +
                                   " beside this program; name it in ATTN_CODEGEN, or generate "
                                   "code in this process (isolate = false)");
  llvm::SmallString<64> input, output, report;
  for (auto [suffix, path] :
       {std::pair<llvm::StringRef, llvm::SmallString<64> *>{"bc", &input}, {"out", &output}, {"txt", &report}})
    if (std::error_code code = llvm::sys::fs::createTemporaryFile("attn", suffix, *path))
      return llvm::createStringError(code, "cannot create a temporary file: " + code.message());
  llvm::FileRemover removeInput(input), removeOutput(output), removeReport(report);
  {
    std::error_code code;
    llvm::raw_fd_ostream os(input, code);
    if (code)
      return llvm::createStringError(code, "cannot write " + input.str() + ": " + code.message());
    llvm::WriteBitcodeToFile(module, os, /*ShouldPreserveUseListOrder=*/true); // the same code as in this process
  }
  llvm::SmallVector<llvm::StringRef> words{program, input, "-o", output};
  words.append(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), report.str(), report.str()};
  std::string error;
  bool failedToRun = false;
  int status =
      llvm::sys::ExecuteAndWait(program, words, std::nullopt, redirects, isolation.seconds, 0, &error, &failedToRun);
  if (failedToRun || status == -1)
    return llvm::createStringError("cannot run " + program + ": " + error);
  if (status == -2)
    return llvm::createStringError(llvm::StringRef(error).contains("timed out")
                                       ? "code generation was ended after " + std::to_string(isolation.seconds) + " s"
                                       : "code generation crashed: " + error);
  auto said = llvm::MemoryBuffer::getFile(report);
  if (status != 0)
    return llvm::createStringError("code generation failed: " +
                                   (said ? (*said)->getBuffer().rtrim().str() : std::to_string(status)));
  auto made = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!made || (*made)->getBufferSize() == 0)
    return llvm::createStringError("code generation left no output");
  return (*made)->getBuffer().str();
}
