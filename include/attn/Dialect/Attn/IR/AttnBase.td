//===- AttnBase.td - the attn dialect ----------------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ATTN_BASE
#define ATTN_ATTN_BASE

include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::mlir::attn";
  let summary = "what to attend to and how: KV formats and variants";
  let description = [{
    Formats (ragged, paged, block-sparse rows, several levels of them) and
    variants (hooks on query, key, value, logits, mask, sink, output) as IR,
    without tile sizes or targets. docs/Spec.md gives the meaning.
  }];
  let dependentDialects = [
    "arith::ArithDialect", "math::MathDialect", "memref::MemRefDialect", "scf::SCFDialect", "vector::VectorDialect"
  ];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif
