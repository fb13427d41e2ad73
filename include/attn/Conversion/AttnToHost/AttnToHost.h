//===- AttnToHost.h - what stays in the caller's function ------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For compilers that keep attn ops in functions of their own: merges and
// appends as loops or kernels, attention as launches, modules as binaries.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOHOST_ATTNTOHOST_H
#define ATTN_CONVERSION_ATTNTOHOST_ATTNTOHOST_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Pass/Pass.h"

namespace mlir::attn {

/// Host: scf.parallel. Gpu: gpu.launch, ready for gpu-kernel-outlining.
enum class LoopTarget { Host, Gpu };

/// Replaces `op` by loops.
LogicalResult convertToLoops(MergeOp op, LoopTarget target);
LogicalResult convertToLoops(AppendOp op, LoopTarget target);

/// Replaces `op`, whose kernels stand in a gpu.module, by their launches; the plan's arrays become arguments of the
/// function around it. Returns the number of launches, or reports why it cannot.
FailureOr<int64_t> convertToLaunches(AttentionOp op);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/AttnToHost/Passes.h.inc"

} // namespace mlir::attn

#endif
