//===- Passes.td - level-L tile kernels as host functions -*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOCPU_PASSES
#define ATTN_CONVERSION_TILETOCPU_PASSES

include "mlir/Pass/PassBase.td"

def ConvertTileToCPU : Pass<"convert-tile-to-cpu", "::mlir::ModuleOp"> {
  let summary = "level-L tile kernels as host functions: loops over vectors, tiles in scratch";
  let description = [{
    Each `tile.kernel` of level L becomes

    ```mlir
    func.func @name(%words: !llvm.ptr, %cta: i32, %scratch: !llvm.ptr)
        attributes {attn.words = [{kind = "pointer", operand = "q"}, ...], attn.smem = 12345 : i64}
    ```

    which runs all items of CTA `cta` (attn/ABI/ABI.h). Tiles are buffers in
    `scratch`, reused when the values in them are dead; maps, masks and
    reductions of one shape share a loop nest, vectorised along the last
    dimension with the scalar bodies cloned on vectors; dots are register-blocked
    loops. The result is arith, math, scf, vector and llvm, with no narrow floats
    and no calls: functions that kernels call are emitted in place.

    Before it: hooks are legal for the host; kernels are at level L.
  }];
  let options = [
    Option<"width", "width", "int64_t", "8", "f32 lanes of a vector register: 4, 8 or 16">,
    Option<"f16c", "f16c", "bool", "true", "the machine converts between f16 and f32">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

#endif
