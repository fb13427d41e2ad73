//===- Passes.td - passes that choose between pipelines -*- tablegen -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_PASSES
#define ATTN_PIPELINES_PASSES

include "mlir/Pass/PassBase.td"

def AttnScheduleKernelPass : Pass<"attn-schedule-kernel", "::mlir::tile::KernelOp"> {
  let summary = "level L to level P, or to S when the config has consumers";
  let description = [{
    Before: a kernel of level L with a `config`. After: the same kernel with
    layouts, asynchrony and places in shared memory, ready for
    convert-tile-to-gpu. Runs one of two lists of passes:

    | config | passes | level after |
    | --- | --- | --- |
    | `consumers = 0` | those of warps that load for themselves (cp.async, mma.sync) | P |
    | `consumers > 0` | those of roles (tensor copies, wgmma) | S |

    Example: with `config = #attn.config<rows = 64, keys = 64, consumers = 0>`
    ```
    tile.kernel @k(...) attributes {level = #tile.level<logical>, config = ...}
    ```
    becomes
    ```
    tile.kernel @k(...) attributes {level = #tile.level<pipelined>, config = ..., tile.shared_bytes = 49152 : i64}
    ```
    Tensor copies without consumers are an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tile::TileDialect"];
  let statistics = [
    Statistic<"numGather", "num-gather", "kernels whose warps load for themselves">,
    Statistic<"numRoles", "num-roles", "kernels with roles">
  ];
}

#endif
