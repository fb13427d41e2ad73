//===- TileToGPU.h - tile kernels to GPU code ------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOGPU_TILETOGPU_H
#define ATTN_CONVERSION_TILETOGPU_TILETOGPU_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Target/KnownTargets.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace mlir::tile {
/// Writes `kernel` as a function of the gpu.module that `builder` stands in. Reports why it cannot.
FailureOr<LLVM::LLVMFuncOp> convertKernel(KernelOp kernel, const ::attn::TargetInfo &target, OpBuilder builder);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/TileToGPU/Passes.h.inc"
} // namespace mlir::tile

#endif
