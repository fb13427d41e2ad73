//===- Host.h - machine code for the host -----------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From tile kernels of level L to an object file, a shared object or a pointer
// to a function of this process. The same module gives the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_HOST_H
#define ATTN_TARGET_HOST_H

#include "attn/ABI/ABI.h"
#include "attn/Conversion/TileToCPU/TileToCPU.h"
#include "attn/Target/Isolate.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace attn {

/// The machine that code is made for. Empty strings: this machine.
struct HostTarget {
  std::string triple;
  std::string cpu;
  std::string features; // LLVM's spelling: "+avx2,+fma"
  unsigned optLevel = 2;

  /// This machine, with its features.
  static HostTarget native();
  /// Vector width and conversions that these features allow.
  mlir::tile::TileToCPUOptions conversionOptions() const;
};

/// The dialect translations that code generation needs.
void registerHostTranslations(mlir::DialectRegistry &registry);

/// Level-L kernels to the LLVM dialect: convert-tile-to-cpu, math without libm, then upstream's conversions.
void buildHostPipeline(mlir::OpPassManager &pm, const mlir::tile::TileToCPUOptions &options);

/// The part after convert-tile-to-cpu.
void buildHostLoweringPipeline(mlir::OpPassManager &pm, bool fma = true);

/// Object file of a module of the LLVM dialect, made by a child process where `isolation` is given. Errors:
/// translation, an unknown triple or CPU, or the child dies.
llvm::Expected<std::string> compileToObject(mlir::ModuleOp module, const HostTarget &target,
                                            const Isolation *isolation = nullptr);

/// The child's part.
llvm::Expected<std::string> objectFromBitcode(llvm::StringRef bitcode, const HostTarget &target);

/// Text of the optimised LLVM IR, or of the assembly, of the same compilation.
llvm::Expected<std::string> compileToLLVMText(mlir::ModuleOp module, const HostTarget &target);
llvm::Expected<std::string> compileToAssembly(mlir::ModuleOp module, const HostTarget &target);

/// Shared object from an object file. `linker` is a path or a name; empty: the first of ld.lld, lld, cc on PATH.
llvm::Expected<std::string> linkSharedObject(llvm::StringRef object, llvm::StringRef linker = {});

/// An object file loaded into this process.
class HostJIT {
public:
  static llvm::Expected<std::unique_ptr<HostJIT>> create(llvm::StringRef object);
  ~HostJIT();
  llvm::Expected<AttnHostKernel> lookup(llvm::StringRef symbol);

private:
  struct Impl;
  explicit HostJIT(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Registers the pipelines `attn-host-pipeline` and `attn-host-lowering-pipeline`.
void registerHostPipelines();

} // namespace attn

#endif
