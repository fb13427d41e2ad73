//===- TileToCPU.h - level-L tile kernels as host functions -----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOCPU_TILETOCPU_H
#define ATTN_CONVERSION_TILETOCPU_TILETOCPU_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::tile {

/// What the generated code may assume of the machine.
struct TileToCPUOptions {
  /// f32 lanes of a vector register: 4, 8 or 16.
  int64_t width = 8;
  /// Conversions between f16 and f32 exist (F16C, AVX-512, AArch64); bit arithmetic otherwise.
  bool f16c = true;
  /// Fused multiply-add exists; a product and a sum otherwise (the host pipeline's business, not this pass's).
  bool fma = true;
};

/// Turns every level-L kernel of the module into a func.func of the host ABI (attn/ABI/ABI.h) with the manifest data
/// `attn.words` and `attn.smem`. Emits an error and fails when a kernel has something that this path does not do.
LogicalResult convertTileToCPU(ModuleOp module, const TileToCPUOptions &options);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/TileToCPU/Passes.h.inc"

} // namespace mlir::tile

#endif
