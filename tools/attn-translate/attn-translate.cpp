//===- attn-translate.cpp - kernels to LLVM IR, PTX, machine code ---------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes what convert-tile-to-gpu leaves. --kernels-to-report runs ptxas and
// prints registers and spills of each kernel; it and --kernels-to-cubin fail on
// spills and on serialised wgmma.
//
//===----------------------------------------------------------------------===//

#include "attn/InitAll.h"
#include "attn/Target/NVPTX.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;

enum class Kind { LLVM, PTX, Cubin, Report };

static LogicalResult emit(Operation *op, llvm::raw_ostream &os, Kind kind) {
  gpu::GPUModuleOp module;
  op->walk([&](gpu::GPUModuleOp found) { module = found; });
  if (!module)
    return op->emitError() << "has no gpu.module, run convert-tile-to-gpu first";
  auto chip = module->getAttrOfType<StringAttr>("attn.chip");
  const ::attn::TargetInfo *target = chip ? ::attn::findTarget(chip.getValue()) : nullptr;
  if (!target || !target->isGpu())
    return module.emitError() << "has no attribute 'attn.chip' that names a GPU out of " << ::attn::knownTargetNames();
  auto fail = [&](llvm::Error error) { return module.emitError() << llvm::toString(std::move(error)); };
  auto text = kind == Kind::LLVM ? ::attn::emitLLVM(module, *target) : ::attn::emitPtx(module, *target);
  if (!text)
    return fail(text.takeError());
  if (kind == Kind::LLVM || kind == Kind::PTX) {
    os << *text;
    return success();
  }
  auto assembly = ::attn::assemble(*text, *target, "");
  if (!assembly)
    return fail(assembly.takeError());
  if (llvm::Error error = ::attn::checkAssembly(*assembly))
    return fail(std::move(error));
  if (kind == Kind::Cubin) {
    os << assembly->cubin;
    return success();
  }
  for (const ::attn::KernelReport &kernel : assembly->kernels)
    os << kernel.name << ": " << kernel.registers << " registers, " << kernel.spillStores + kernel.spillLoads
       << " bytes spilled, " << kernel.stackBytes << " bytes of stack\n";
  return success();
}

static void dialects(DialectRegistry &registry) {
  ::attn::registerAllDialects(registry);
  ::attn::registerNVPTXTranslations(registry);
  registry.insert<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect, arith::ArithDialect, func::FuncDialect,
                  scf::SCFDialect, memref::MemRefDialect, math::MathDialect>();
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration llvmIR(
      "kernels-to-llvm", "LLVM IR of the gpu.module",
      [](Operation *op, raw_ostream &os) { return emit(op, os, Kind::LLVM); }, dialects);
  TranslateFromMLIRRegistration ptx(
      "kernels-to-ptx", "PTX of the gpu.module", [](Operation *op, raw_ostream &os) { return emit(op, os, Kind::PTX); },
      dialects);
  TranslateFromMLIRRegistration cubin(
      "kernels-to-cubin", "machine code, by ptxas",
      [](Operation *op, raw_ostream &os) { return emit(op, os, Kind::Cubin); }, dialects);
  TranslateFromMLIRRegistration report(
      "kernels-to-report", "registers and spills of each kernel",
      [](Operation *op, raw_ostream &os) { return emit(op, os, Kind::Report); }, dialects);
  return failed(mlirTranslateMain(argc, argv, "attention kernels to GPU code"));
}
