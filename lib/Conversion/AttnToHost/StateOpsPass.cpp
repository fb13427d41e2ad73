//===- StateOpsPass.cpp - convert-attn-to-loops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTATTNTOLOOPSPASS
#include "attn/Conversion/AttnToHost/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
struct ConvertAttnToLoopsPass : attn::impl::ConvertAttnToLoopsPassBase<ConvertAttnToLoopsPass> {
  using ConvertAttnToLoopsPassBase::ConvertAttnToLoopsPassBase;
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<attn::MergeOp, attn::AppendOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      LogicalResult result = isa<attn::MergeOp>(op) ? attn::convertToLoops(cast<attn::MergeOp>(op), target)
                                                    : attn::convertToLoops(cast<attn::AppendOp>(op), target);
      if (failed(result))
        return signalPassFailure();
      ++numOps;
    }
  }
};
} // namespace
