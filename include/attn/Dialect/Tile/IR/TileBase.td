//===- TileBase.td - the tile dialect ----------------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_BASE
#define ATTN_TILE_BASE

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::mlir::tile";
  let summary = "one attention kernel at three levels: logical, pipelined, specialised";
  let description = [{
    A kernel is written synchronously and without layouts (level L) and lowered
    by passes to asynchronous, role-specialised form (levels P and S). Every
    level means the same; the tile interpreter checks that it does.
  }];
  let dependentDialects = [
    "arith::ArithDialect", "math::MathDialect", "scf::SCFDialect",
    "func::FuncDialect", "memref::MemRefDialect"
  ];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif
