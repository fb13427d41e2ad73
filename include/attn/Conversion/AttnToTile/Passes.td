//===- Passes.td - attn-to-tile as a pass ------------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOTILE_PASSES
#define ATTN_CONVERSION_ATTNTOTILE_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// attn to tile
//===----------------------------------------------------------------------===//

def AttnToTilePass : Pass<"attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "makes level-L tile kernels from attn.attention";
  let description = [{
    Before: `attn.attention` on memrefs with `configs` (attn-select-config).
    After: the op still stands, as the statement that the manifest is made from,
    with the attributes `attn.kernels` (symbols in the order of `configs`),
    `attn.merge` and `attn.range`; the module has those kernels at level L and
    the range function. The hooks are inside the kernels; kernels call nothing.

    ```
    attn.attention @causal() scale %s q(...) ... {configs = [#attn.config<rows = 16, keys = 128, groups = 4>, ...]}
    // becomes, besides
    tile.kernel @causal_r16(%q: memref<?x32x128xbf16, strided<[?, ?, 1]>> {tile.arg = "q"}, ...)
    tile.kernel @causal_merge(...)
    func.func @causal_range(%qpos0: index, %tokens: index, ...) -> (index, index, index, index) attributes {attn.range = {...}}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tile::TileDialect"];
  let statistics = [Statistic<"numKernels", "num-kernels", "kernels made, merge kernels included">];
}

def AttnKeepKernelsPass : Pass<"attn-keep-kernels", "::mlir::ModuleOp"> {
  let summary = "drops the statement once its kernels are made";
  let description = [{
    Before: a module after attn-to-tile, or one with tile kernels of its own.
    After: variants and functions are gone, but for the functions that kernels
    call, directly or by way of others. The pipelines to machine code begin with
    it: what states the problem has no code.
  }];
}

#endif
