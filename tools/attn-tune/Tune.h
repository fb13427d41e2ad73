//===- Tune.h - candidates of a case, compiled and measured ----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case is a folder: statement.mlir, batch.json, a bundle for each candidate
// and case.json, which says what they are. So compiling and measuring may be on
// two machines.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTNTUNE_TUNE_H
#define ATTN_TOOLS_ATTNTUNE_TUNE_H

#include "attn/Compiler/Tuning.h"
#include "attn/Runtime/Device.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace attntune {

struct Options {
  std::string target, ptxas;
  mlir::attn::TileClass tileClass = mlir::attn::TileClass::Large;
  unsigned candidates = 8, jobs = 1, rounds = 7;
};

/// Compiles the candidates of the statement in `file` into `folder`, one log line each to `log`.
llvm::Error compileCase(const Options &options, llvm::StringRef file, llvm::StringRef batch, llvm::StringRef folder,
                        llvm::raw_ostream &log);

/// Runs the candidates of a case against each other; their results must agree with those of the cost model's choice.
llvm::Expected<attn::TunedConfig> measureCase(const Options &options, llvm::StringRef folder,
                                              std::shared_ptr<attnrt::Device> device, llvm::raw_ostream &log);

/// The chip that the cases of a folder were compiled for; their names, sorted.
llvm::Expected<std::vector<std::string>> listCases(llvm::StringRef folder, std::string &target);

} // namespace attntune

#endif
