//===- NVPTX.h - from a gpu.module to PTX and machine code -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In-process translation to LLVM IR and PTX; ptxas as a child process, its
// report read back. No optimisation pipeline runs on kernels: it would
// duplicate or move convergent inline asm.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_NVPTX_H
#define ATTN_TARGET_NVPTX_H

#include "attn/Target/Isolate.h"
#include "attn/Target/KnownTargets.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace attn {

/// Registers the translations that emitLLVM and emitPtx need.
void registerNVPTXTranslations(mlir::DialectRegistry &registry);

/// LLVM IR of a module of llvm and nvvm ops, as text. Every inline asm call is marked convergent. Here and in emitPtx,
/// nvvm ops that stand for inline asm become it in the module itself.
llvm::Expected<std::string> emitLLVM(mlir::gpu::GPUModuleOp module, const TargetInfo &target);

/// PTX of the module, made by a child process where `isolation` is given. Errors: translation fails, the back end has
/// no such chip, or the child dies.
llvm::Expected<std::string> emitPtx(mlir::gpu::GPUModuleOp module, const TargetInfo &target,
                                    const Isolation *isolation = nullptr);

/// The child's part.
llvm::Expected<std::string> ptxFromBitcode(llvm::StringRef bitcode, const TargetInfo &target);

/// What ptxas says of one kernel.
struct KernelReport {
  std::string name;
  int64_t registers = 0;
  int64_t stackBytes = 0;
  int64_t spillStores = 0, spillLoads = 0; // bytes
  int64_t sharedBytes = 0;                 // static
};

/// Whether the kernel uses local memory.
inline bool spills(const KernelReport &kernel) { return kernel.spillStores || kernel.spillLoads || kernel.stackBytes; }

struct Assembly {
  std::string cubin;
  std::vector<KernelReport> kernels;
  /// Lines with a warning or advisory, without duplicates.
  std::vector<std::string> warnings;
};

/// The ptxas to use: `hint` when not empty, else $ATTN_PTXAS, PATH, $CUDA_HOME/bin, /usr/local/cuda/bin; "" when there
/// is none.
std::string findPtxas(llvm::StringRef hint);

/// Runs ptxas -v. Errors: it cannot be run, or what it says.
llvm::Expected<Assembly> assemble(llvm::StringRef ptx, const TargetInfo &target, llvm::StringRef ptxas);

/// Whether the kernel has the registers that it needs: it neither spills nor has its wgmma serialised.
bool fits(const Assembly &assembly, llvm::StringRef kernel);

/// What would make a kernel slow without making it wrong is an error here: spills, local memory, wgmma that ptxas
/// serialises (C7510 to C7518). Names the kernel, the amount and the remedy.
llvm::Error checkAssembly(const Assembly &assembly);

} // namespace attn

#endif
