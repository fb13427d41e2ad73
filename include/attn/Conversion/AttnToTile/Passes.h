//===- Passes.h - attn-to-tile as a pass ----------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOTILE_PASSES_H
#define ATTN_CONVERSION_ATTNTOTILE_PASSES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Pass/Pass.h"

namespace mlir::attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/AttnToTile/Passes.h.inc"
} // namespace mlir::attn

#endif
