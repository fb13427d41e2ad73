//===- TileToCPU.cpp - the pass ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels become functions one by one; what they call has been emitted in
// place, so helper functions that nothing else uses go.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Analysis/RangeProgram.h"

namespace mlir::tile {
#define GEN_PASS_DEF_CONVERTTILETOCPU
#include "attn/Conversion/TileToCPU/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

/// Lookups of many entries become loops.
static void expandLookups(KernelOp kernel) {
  kernel.walk([](Operation *op) {
    OpBuilder b(op);
    SmallVector<Value> results;
    if (auto extent = dyn_cast<ExtentOp>(op))
      results = mlir::attn::emitExtentLoop(b, op->getLoc(), extent.getTable(), extent.getFrom(), extent.getTo());
    else if (auto scan = dyn_cast<ScanOp>(op))
      results = mlir::attn::emitScanLoop(b, op->getLoc(), scan.getTable(), scan.getBase(), scan.getFrom(), scan.getTo(),
                                         {scan.getSomeLo(), scan.getSomeHi(), scan.getAllLo(), scan.getAllHi()},
                                         (scan.getSomeOutside() ? mlir::attn::RangeProgram::SomeOutside : 0) |
                                             (scan.getAllOutside() ? mlir::attn::RangeProgram::AllOutside : 0));
    else
      return;
    op->replaceAllUsesWith(results);
    op->erase();
  });
}

LogicalResult mlir::tile::convertTileToCPU(ModuleOp module, const TileToCPUOptions &options) {
  if (options.width != 4 && options.width != 8 && options.width != 16)
    return module.emitError() << "option 'width' is " << options.width << ", expected 4, 8 or 16";
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> inlined;
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
    expandLookups(kernel);
    cpu::Emitter emitter(kernel, options, symbols);
    if (failed(emitter.run()))
      return failure();
    inlined.insert_range(emitter.getInlined());
    kernel.erase();
  }
  // Callers come after what they call in `inlined` in no particular order: repeat until nothing goes.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : inlined) {
      if (op && SymbolTable::symbolKnownUseEmpty(op, module)) {
        inlined.remove(op);
        op->erase();
        changed = true;
        break;
      }
    }
  }
  return success();
}

namespace {
struct ConvertTileToCPU : tile::impl::ConvertTileToCPUBase<ConvertTileToCPU> {
  using ConvertTileToCPUBase::ConvertTileToCPUBase;
  void runOnOperation() override {
    TileToCPUOptions target;
    target.width = width;
    target.f16c = f16c;
    if (failed(convertTileToCPU(getOperation(), target)))
      signalPassFailure();
  }
};
} // namespace
