//===- Translate.cpp - from a gpu.module to LLVM IR and PTX -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/NVPTX.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;

void attn::registerNVPTXTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const attn::TargetInfo &target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return llvm::createStringError("this LLVM has no NVPTX back end: " + error);
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.chip, target.ptxFeatures, options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("the NVPTX back end refuses chip '" + target.chip + "'");
  return std::move(machine);
}

/// Inline asm is not convergent unless it says so, and ours (barriers, wgmma, shuffles) is.
static void markConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (call->isInlineAsm())
          call->setConvergent();
}

namespace {
/// Leaves out two of the back end's passes. Straight-line strength reduction compares each product with all before it,
/// which took up to 90 % of the time to PTX in kernels whose hooks work on positions (docs/Performance.md, Compile
/// time). Sinking moves the rounding of weights behind a branch, past the exponentials that would hide it
/// (tile-rescale-rarely).
class PassGate final : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override {
    return pass != "slsr" && pass != "machine-sink";
  }
};
} // namespace

static llvm::Expected<std::unique_ptr<llvm::Module>> translate(gpu::GPUModuleOp module, llvm::TargetMachine &machine,
                                                               llvm::LLVMContext &context) {
  std::string message;
  std::unique_ptr<llvm::Module> result;
  {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      message += diagnostic.str() + "\n";
      return success();
    });
    // Some nvvm ops are inline asm in disguise; the caller's module stays as it is. They stand in no other's way, so
    // one walk does, and folding is LLVM's affair.
    OwningOpRef<gpu::GPUModuleOp> copy(module.clone());
    RewritePatternSet patterns(module.getContext());
    populateNVVMToLLVMConversionPatterns(patterns);
    walkAndApplyPatterns(*copy, std::move(patterns));
    result = translateModuleToLLVMIR(*copy, context, module.getName());
  }
  if (!result)
    return llvm::createStringError("translation to LLVM IR failed: " + message);
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  markConvergent(*result);
  return std::move(result);
}

llvm::Expected<std::string> attn::emitLLVM(gpu::GPUModuleOp module, const TargetInfo &target) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto translated = translate(module, **machine, context);
  if (!translated)
    return translated.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  (*translated)->print(os, nullptr);
  return text;
}

static llvm::Expected<std::string> generate(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("the NVPTX back end cannot print PTX");
  passes.run(module);
  return text.str().str();
}

llvm::Expected<std::string> attn::emitPtx(gpu::GPUModuleOp module, const TargetInfo &target,
                                          const Isolation *isolation) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  PassGate gate;
  llvm::LLVMContext context;
  context.setOptPassGate(gate);
  auto translated = translate(module, **machine, context);
  if (!translated)
    return translated.takeError();
  if (isolation)
    return generateInChild(**translated, {"--chip=" + target.chip.str()}, *isolation);
  return generate(**translated, **machine);
}

llvm::Expected<std::string> attn::ptxFromBitcode(llvm::StringRef bitcode, const TargetInfo &target) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  PassGate gate;
  llvm::LLVMContext context;
  context.setOptPassGate(gate);
  auto module = llvm::parseBitcodeFile({bitcode, "module"}, context);
  if (!module)
    return module.takeError();
  return generate(**module, **machine);
}
