//===- Pipelines.h - the arrows between the layers, by name -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_PIPELINES_PIPELINES_H
#define ATTN_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"

namespace attn {

/// attn.attention to level-L kernels for the op's target.
void buildFrontPipeline(mlir::OpPassManager &pm);

/// Passes on one kernel whose warps load for themselves (cp.async, mma.sync): level L to P.
void buildGatherPasses(mlir::OpPassManager &kernel);

/// Passes on one kernel with a producer and groups of consumers (tensor copies, warpgroup products): level L to S.
void buildRolePasses(mlir::OpPassManager &kernel);

/// Level-L kernels to the level that their configs ask for, with layouts, shared memory and the target's math.
void buildSchedulePipeline(mlir::OpPassManager &pm);

/// Such kernels to a gpu.module of llvm and nvvm functions for `chip`. The chip is of the target table.
void buildCodePipeline(mlir::OpPassManager &pm, llvm::StringRef chip);

/// Both: level-L kernels to a gpu.module.
void buildGpuPipeline(mlir::OpPassManager &pm, llvm::StringRef chip);

/// A module with attn ops in functions of its own becomes one with a gpu.binary for each set of kernels and
/// gpu.launch_func in those functions. `ptxas` and `format` as attn-gpu-to-binary takes them.
void buildGpuBinaryPipeline(mlir::OpPassManager &pm, llvm::StringRef chip, llvm::StringRef ptxas = "",
                            llvm::StringRef format = "auto");

/// The same for the host: kernels are func.func of the host ABI, launches and merges scf.parallel in the caller's
/// functions. What is left is in arith, func, llvm, math, memref, scf and vector.
void buildHostProgramPipeline(mlir::OpPassManager &pm);

/// `attn-front-pipeline`, `attn-gpu-pipeline{chip=…}`, `attn-to-gpu-binary{chip=… ptxas=… format=…}`,
/// `attn-to-host-program`; the host's are in
/// attn/Target/Host.h.
void registerPipelines();

} // namespace attn

#endif
