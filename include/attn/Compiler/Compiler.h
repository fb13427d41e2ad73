//===- Compiler.h - the compiler as a library -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From IR with one attn.attention op to tile IR, LLVM IR, PTX, machine code or
// a bundle. Errors are values whose text names what is wrong and where.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_COMPILER_H
#define ATTN_COMPILER_COMPILER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace mlir::attn {
class AttentionOp;
}

namespace attn {

/// What a compilation produces.
enum class Emit { Tile, LLVM, PTX, Cubin, Object, Bundle };

/// The names that --emit takes. Empty when there is no such name.
std::optional<Emit> parseEmit(llvm::StringRef name);

struct CompileOptions {
  /// "host" or a chip of the target table (sm_80, sm_86, sm_89, sm_90a, sm_100a).
  std::string target = "host";
  Emit emit = Emit::Bundle;
  /// Only these kernels' text for Emit::Tile … Emit::Cubin; empty: all (PTX and cubin then need exactly one).
  std::string kernel;
  /// ptxas to use; empty: found on PATH or under CUDA_HOME.
  std::string ptxas;
  /// In a bundle for a GPU, PTX instead of a cubin when there is no ptxas.
  bool allowPtx = true;
  /// Directory of the cache of bundles; empty: no cache.
  std::string cacheDir;
  /// Measured configs: empty: the built-in table of the chip, if there is one; "off": the cost model alone; else a file
  /// that attn-tune wrote. Configs in the IR win over all of them.
  std::string tuned;
  /// LLVM's code generation in a child process (attn-codegen), whose crash or hang is an error of this compilation.
  bool isolate = false;
  /// Seconds that such a child may take.
  unsigned isolateSeconds = 120;
  /// Verifies the IR after each pass, which costs up to 6 % of the time to PTX; else once a stage, before code is made.
  bool verifyPasses = false;
};

/// Wall time of one stage, over all times that it ran: a class of tiles that spills is chosen and compiled again.
struct StageTime {
  std::string stage;
  double milliseconds = 0;
  int64_t runs = 0;
};

/// The config of one kernel and where it comes from: "given", "model", or the name of a table.
struct KernelConfig {
  std::string kernel, config, source;
};

struct CompileResult {
  /// Text or bytes, by Emit.
  std::string output;
  std::vector<StageTime> times;
  /// Of the tile classes; empty when the bundle came from the cache.
  std::vector<KernelConfig> configs;
  bool fromCache = false;
};

/// A registry with every dialect and translation that compilation needs.
void registerCompilerDialects(mlir::DialectRegistry &registry);

/// Reads IR (text or bytecode). Errors: what the parser or the verifier says.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseModule(llvm::StringRef text, llvm::StringRef name,
                                                              mlir::MLIRContext &context);

/// The module's one attn.attention. Errors: none, or more than one.
llvm::Expected<mlir::attn::AttentionOp> findAttention(mlir::ModuleOp module);

/// Compiles the module's attention op; the module is left as it was.
llvm::Expected<CompileResult> compile(mlir::ModuleOp module, const CompileOptions &options);

} // namespace attn

#endif
