//===- Isolate.h - code generation in a child process ----------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's code generation may abort or loop on IR that verifies. For a process
// that must not die, the tool attn-codegen does it: bitcode in, PTX or an object
// out, and a crash or a hang becomes an error.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_ISOLATE_H
#define ATTN_TARGET_ISOLATE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace attn {

struct Isolation {
  /// attn-codegen; empty: $ATTN_CODEGEN, else beside this program or library, or in ../bin of that.
  std::string tool;
  /// A child that takes longer is ended.
  unsigned seconds = 120;
};

/// Runs attn-codegen with `arguments` on a module. Errors: there is no such tool, what it says, or how it died.
llvm::Expected<std::string> generateInChild(const llvm::Module &module, llvm::ArrayRef<std::string> arguments,
                                            const Isolation &isolation);

} // namespace attn

#endif
