//===- Passes.td - tile kernels to GPU code ----------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILETOGPU_PASSES
#define ATTN_TILETOGPU_PASSES

include "mlir/Pass/PassBase.td"

def ConvertTileToGPUPass : Pass<"convert-tile-to-gpu", "::mlir::ModuleOp"> {
  let summary = "tile kernels become llvm.func in a gpu.module";
  let description = [{
    Before: kernels with layouts and with places in shared memory
    (`tile-assign-layouts`, `tile-allocate-shared`). After: a `gpu.module
    @attn_kernels` with one `llvm.func` per kernel in the llvm and nvvm
    dialects, ready for translation. The function's attributes describe how to
    launch it (ABI.h): `attn.words`, `attn.maps`, `attn.smem`, `attn.threads`.
    The chip is the kernel's `target`, or `chip` when it has none.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"", "machine of kernels without a target, for example sm_90a">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif
