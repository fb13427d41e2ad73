//===- Passes.td - passes on tile kernels ------------------*- tablegen -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_PASSES
#define ATTN_TILE_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

def TileAssignLayoutsPass : Pass<"tile-assign-layouts", "::mlir::tile::KernelOp"> {
  let summary = "gives every register and shared-memory tile a layout";
  let description = [{
    Before: a kernel of level L without layouts, with a `config`. After: the
    same kernel, every `!tile.reg` and `!tile.smem` with a layout.

    Anchors are the dots. Accumulators have `#tile.mma<warps = [w, 1]>`, the
    warps side by side along the rows, or `#tile.mma<warps = [groups, w, 1]>`
    when the tiles have a leading dimension of key groups. A operands in
    registers share the accumulator's registers (`#tile.operand<a>` for 16-bit
    types), B operands in registers are `#tile.operand<b>` ([k, n]) or
    `#tile.operand<bt>` ([n, k], `transpose_b`). Everything else follows by
    data flow, rows as `#tile.slice`. Shared memory is swizzled by the widest
    of 128, 64 and 32 bytes that divides a row.
    Where two uses disagree, a `tile.convert_layout` is made (splats and
    coordinate maps are duplicated instead).
  }];
  let options = [
    Option<"forbidLoopConversions", "forbid-loop-conversions", "bool", "false",
           "a conversion inside a loop over keys is an error">
  ];
  let statistics = [
    Statistic<"numConversions", "num-conversions", "convert_layout ops made">
  ];
}

#endif
