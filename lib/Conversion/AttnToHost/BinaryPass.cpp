//===- BinaryPass.cpp - attn-gpu-to-binary ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's gpu-module-to-binary would run an optimisation pipeline on the
// kernels and needs its own copy of the toolkit; this is the way that
// attn-compile goes.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "attn/Target/NVPTX.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNGPUTOBINARYPASS
#include "attn/Conversion/AttnToHost/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
struct AttnGpuToBinaryPass : mlir::attn::impl::AttnGpuToBinaryPassBase<AttnGpuToBinaryPass> {
  using AttnGpuToBinaryPassBase::AttnGpuToBinaryPassBase;

  LogicalResult convert(gpu::GPUModuleOp module) {
    std::string name = chip;
    if (auto attr = module->getAttrOfType<StringAttr>("attn.chip"))
      name = attr.getValue().str();
    const ::attn::TargetInfo *target = ::attn::findTarget(name);
    if (!target || !target->isGpu())
      return module.emitOpError() << "is for chip '" << name << "', expected a GPU out of "
                                  << ::attn::knownTargetNames() << "; give the pass a chip";
    auto fail = [&](llvm::Error error) { return module.emitOpError() << llvm::toString(std::move(error)); };
    auto ptx = ::attn::emitPtx(module, *target);
    if (!ptx)
      return fail(ptx.takeError());
    OpBuilder b(module);
    auto kind = gpu::CompilationTarget::Assembly;
    std::string object = std::move(*ptx);
    if (format == "bin" || (format == "auto" && !::attn::findPtxas(ptxas).empty())) {
      auto assembly = ::attn::assemble(object, *target, ptxas);
      if (!assembly)
        return fail(assembly.takeError());
      if (llvm::Error error = ::attn::checkAssembly(*assembly))
        return fail(std::move(error));
      kind = gpu::CompilationTarget::Binary;
      object = std::move(assembly->cubin);
    }
    auto machine = NVVM::NVVMTargetAttr::get(b.getContext(), /*optLevel=*/3, "nvptx64-nvidia-cuda", target->chip,
                                             target->ptxFeatures);
    auto attr = gpu::ObjectAttr::get(b.getContext(), machine, kind, b.getStringAttr(object), DictionaryAttr(),
                                     gpu::KernelTableAttr());
    gpu::BinaryOp::create(b, module.getLoc(), module.getName(), Attribute(), ArrayRef<Attribute>{attr});
    module.erase();
    return success();
  }

  void runOnOperation() override {
    if (format != "auto" && format != "bin" && format != "ptx") {
      getOperation().emitError() << "unknown format '" << format << "'; expected auto, bin or ptx";
      return signalPassFailure();
    }
    for (auto module : llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(convert(module)))
        return signalPassFailure();
  }
};
} // namespace
