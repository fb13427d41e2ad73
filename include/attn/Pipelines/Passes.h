//===- Passes.h - passes that choose between pipelines -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_PASSES_H
#define ATTN_PIPELINES_PASSES_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Pass/Pass.h"

namespace mlir::attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Pipelines/Passes.h.inc"
} // namespace mlir::attn

#endif
