//===- KeepKernelsPass.cpp - attn-keep-kernels ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "attn/Conversion/AttnToTile/Passes.h"
#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNKEEPKERNELSPASS
#include "attn/Conversion/AttnToTile/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

void attn::keepKernels(ModuleOp module) {
  SymbolTable table(module);
  SmallVector<Operation *> work;
  for (auto kernel : module.getOps<tile::KernelOp>())
    work.push_back(kernel);
  llvm::SmallPtrSet<Operation *, 8> kept;
  while (!work.empty())
    work.pop_back_val()->walk([&](func::CallOp call) {
      Operation *callee = table.lookup(call.getCallee());
      if (callee && kept.insert(callee).second)
        work.push_back(callee);
    });
  for (Operation &op : llvm::make_early_inc_range(module.getBody()->getOperations()))
    if (isa<func::FuncOp, VariantOp>(op) && !kept.contains(&op))
      op.erase();
}

namespace {
struct AttnKeepKernelsPass : attn::impl::AttnKeepKernelsPassBase<AttnKeepKernelsPass> {
  void runOnOperation() override { attn::keepKernels(getOperation()); }
};
} // namespace
