//===- AttnToTile.h - from attn.attention to level-L tile kernels -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H
#define ATTN_CONVERSION_ATTNTOTILE_ATTNTOTILE_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::attn {

/// The kernels of one attention op.
struct AttentionKernels {
  SmallVector<tile::KernelOp> kernels; // one per config, in their order
  tile::KernelOp merge;
  func::FuncOp range;
};

/// Builds at the end of the op's module: one tile.kernel @NAME_r<rows> per config, @NAME_merge, and @NAME_range (the
/// mask analysis as a function, with the serialised program as `attn.range`), NAME being the variant's name or
/// "attention". The op keeps its place and gets the attributes `attn.kernels` (symbols, in the order of `configs`),
/// `attn.merge` and `attn.range`. Reports an error and leaves the module as it was when something cannot be expressed.
FailureOr<AttentionKernels> convertAttentionToTile(AttentionOp op);

/// Erases variants and functions that no kernel calls, directly or by way of others.
void keepKernels(ModuleOp module);

} // namespace mlir::attn

#endif
