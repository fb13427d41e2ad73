//===- TileToGPU.cpp - the pass, and which code a machine gets ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/TileToGPU/TileToGPU.h"
#include "Emitter.h"
#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::tile {
#define GEN_PASS_DEF_CONVERTTILETOGPUPASS
#include "attn/Conversion/TileToGPU/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

FailureOr<LLVM::LLVMFuncOp> tile::convertKernel(KernelOp kernel, const ::attn::TargetInfo &target, OpBuilder builder) {
  Emitter emitter(kernel, target, builder);
  populateControlFlow(emitter);
  populateScalar(emitter);
  populateElementwise(emitter);
  populateScan(emitter);
  populateMemory(emitter);
  populateTransform(emitter);
  if (kernel.getLevel() == Level::Specialized) {
    if (!target.tma || !target.wgmma)
      return kernel.emitOpError() << "is specialised for tensor copies and wgmma, which " << target.chip
                                  << " does not have";
    populateSm90Pipeline(emitter);
    populateSm90Tma(emitter);
    populateSm90Wgmma(emitter);
  } else {
    populateSm80(emitter);
  }
  return emitter.run();
}

namespace {
struct ConvertTileToGPUPass : public tile::impl::ConvertTileToGPUPassBase<ConvertTileToGPUPass> {
  using ConvertTileToGPUPassBase::ConvertTileToGPUPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
    if (kernels.empty())
      return;
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(module.getBody());
    auto device = gpu::GPUModuleOp::create(builder, module.getLoc(), "attn_kernels");
    builder.setInsertionPointToStart(device.getBody());
    std::string common;
    for (KernelOp kernel : kernels) {
      std::string name = chip;
      if (auto attr = kernel->getAttrOfType<mlir::attn::TargetAttr>("target"))
        name = attr.getChip().str();
      if (name.empty()) {
        kernel.emitOpError()
            << "has no target and the pass no 'chip'; name a machine in one of them, for example sm_80";
        return signalPassFailure();
      }
      const ::attn::TargetInfo *target = ::attn::findTarget(name);
      if (!target || !target->isGpu()) {
        kernel.emitOpError() << "has target '" << name << "', expected a GPU out of " << ::attn::knownTargetNames();
        return signalPassFailure();
      }
      if (!common.empty() && common != name) {
        kernel.emitOpError() << "has target '" << name << "', other kernels of the module have '" << common << "'";
        return signalPassFailure();
      }
      common = name;
      if (failed(convertKernel(kernel, *target, builder)))
        return signalPassFailure();
    }
    device->setAttr("attn.chip", builder.getStringAttr(common));
    for (KernelOp kernel : kernels)
      kernel.erase();
  }
};
} // namespace
