//===- Codegen.cpp - LLVM dialect to objects, shared objects and functions ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The JIT loads the same object that the linker gets: one code generator.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Host.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

static llvm::Error makeError(const llvm::Twine &text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

static void initializeTargets() {
  static const bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)once;
}

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

attn::HostTarget attn::HostTarget::native() {
  HostTarget target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  // Sorted: the map's order is not fixed.
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(features, [](const std::string &x, const std::string &y) { return x.substr(1) < y.substr(1); });
  target.features = llvm::join(features, ",");
  return target;
}

static attn::HostTarget fill(attn::HostTarget target) {
  attn::HostTarget native = attn::HostTarget::native();
  if (target.triple.empty() && target.cpu.empty() && target.features.empty()) {
    native.optLevel = target.optLevel;
    return native;
  }
  if (target.triple.empty())
    target.triple = native.triple;
  return target;
}

tile::TileToCPUOptions attn::HostTarget::conversionOptions() const {
  HostTarget target = fill(*this);
  auto has = [&](StringRef feature) {
    return StringRef("," + target.features + ",").contains(("," + feature + ",").str());
  };
  tile::TileToCPUOptions options;
  options.width = has("+avx512f") ? 16 : has("+avx2") ? 8 : 4;
  bool isArm = llvm::Triple(target.triple).isAArch64();
  options.f16c = has("+f16c") || has("+avx512f") || isArm;
  options.fma = has("+fma") || has("+avx512f") || isArm;
  return options;
}

void attn::registerHostTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> makeMachine(const attn::HostTarget &target) {
  initializeTargets();
  std::string message;
  llvm::Triple triple(target.triple);
  const llvm::Target *code = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!code)
    return makeError("cannot generate code for target '" + target.triple + "': " + message);
  llvm::TargetOptions options;
  // A product and a sum of the program stay two roundings; fused ones are math.fma.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto level = target.optLevel >= 3   ? llvm::CodeGenOptLevel::Aggressive
               : target.optLevel == 0 ? llvm::CodeGenOptLevel::None
                                      : llvm::CodeGenOptLevel::Default;
  std::unique_ptr<llvm::TargetMachine> machine(
      code->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt, level));
  if (!machine)
    return makeError("cannot generate code for target '" + target.triple + "', CPU '" + target.cpu + "'");
  return machine;
}

//===----------------------------------------------------------------------===//
// Code generation
//===----------------------------------------------------------------------===//

namespace {
struct Translated {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
};
} // namespace

/// The module before optimisation.
static llvm::Expected<Translated> translate(ModuleOp module, const attn::HostTarget &target) {
  Translated result;
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  result.machine = std::move(*machine);
  result.context = std::make_unique<llvm::LLVMContext>();
  result.module = translateModuleToLLVMIR(module, *result.context, "attn");
  if (!result.module)
    return makeError("cannot translate the module to LLVM IR; it has to be in the LLVM dialect");
  result.module->setTargetTriple(result.machine->getTargetTriple());
  result.module->setDataLayout(result.machine->createDataLayout());
  for (llvm::Function &function : *result.module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // 512-bit registers where the code has been made for them.
    function.addFnAttr("prefer-vector-width", "512");
  }
  return result;
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  llvm::PipelineTuningOptions tuning;
  // The code is vectors already; what is left scalar is not worth the compile time.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  auto level = optLevel >= 3   ? llvm::OptimizationLevel::O3
               : optLevel == 2 ? llvm::OptimizationLevel::O2
               : optLevel == 1 ? llvm::OptimizationLevel::O1
                               : llvm::OptimizationLevel::O0;
  llvm::ModulePassManager pm =
      optLevel ? builder.buildPerModuleDefaultPipeline(level) : builder.buildO0DefaultPipeline(level);
  pm.run(module, modules);
}

static llvm::Expected<std::string> emit(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel,
                                        llvm::CodeGenFileType kind) {
  optimise(module, machine, optLevel);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager pm;
  if (machine.addPassesToEmitFile(pm, os, nullptr, kind))
    return makeError("target '" + module.getTargetTriple().str() + "' cannot write this kind of file");
  pm.run(module);
  return std::string(bytes.begin(), bytes.end());
}

llvm::Expected<std::string> attn::compileToObject(ModuleOp module, const HostTarget &wanted,
                                                  const Isolation *isolation) {
  HostTarget target = fill(wanted);
  auto translated = translate(module, target);
  if (!translated)
    return translated.takeError();
  if (isolation)
    return generateInChild(*translated->module,
                           {"--triple=" + target.triple, "--cpu=" + target.cpu, "--features=" + target.features,
                            "--opt=" + std::to_string(target.optLevel)},
                           *isolation);
  return emit(*translated->module, *translated->machine, target.optLevel, llvm::CodeGenFileType::ObjectFile);
}

llvm::Expected<std::string> attn::objectFromBitcode(llvm::StringRef bitcode, const HostTarget &target) {
  auto machine = makeMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto module = llvm::parseBitcodeFile({bitcode, "module"}, context);
  if (!module)
    return module.takeError();
  return emit(**module, **machine, target.optLevel, llvm::CodeGenFileType::ObjectFile);
}

llvm::Expected<std::string> attn::compileToAssembly(ModuleOp module, const HostTarget &wanted) {
  HostTarget target = fill(wanted);
  auto translated = translate(module, target);
  if (!translated)
    return translated.takeError();
  return emit(*translated->module, *translated->machine, target.optLevel, llvm::CodeGenFileType::AssemblyFile);
}

llvm::Expected<std::string> attn::compileToLLVMText(ModuleOp module, const HostTarget &wanted) {
  HostTarget target = fill(wanted);
  auto translated = translate(module, target);
  if (!translated)
    return translated.takeError();
  optimise(*translated->module, *translated->machine, target.optLevel);
  std::string text;
  llvm::raw_string_ostream os(text);
  translated->module->print(os, nullptr);
  return text;
}

//===----------------------------------------------------------------------===//
// Linking and loading
//===----------------------------------------------------------------------===//

llvm::Expected<std::string> attn::linkSharedObject(llvm::StringRef object, llvm::StringRef linker) {
  std::string program, names = linker.empty() ? "ld.lld, lld, cc" : linker.str();
  if (!linker.empty()) {
    if (auto found = llvm::sys::findProgramByName(linker))
      program = *found;
  } else {
    for (const char *name : {"ld.lld", "ld.lld-22", "lld", "cc"}) {
      if (auto found = llvm::sys::findProgramByName(name)) {
        program = *found;
        break;
      }
    }
  }
  if (program.empty())
    return makeError("found no linker (" + names + "); put one on PATH or name it");
  llvm::SmallString<128> input, output, log;
  if (std::error_code failure = llvm::sys::fs::createTemporaryFile("attn", "o", input))
    return makeError("cannot create a temporary file: " + failure.message());
  llvm::FileRemover removeInput(input);
  if (std::error_code failure = llvm::sys::fs::createTemporaryFile("attn", "so", output))
    return makeError("cannot create a temporary file: " + failure.message());
  llvm::FileRemover removeOutput(output);
  if (std::error_code failure = llvm::sys::fs::createTemporaryFile("attn", "log", log))
    return makeError("cannot create a temporary file: " + failure.message());
  llvm::FileRemover removeLog(log);
  {
    std::error_code failure;
    llvm::raw_fd_ostream os(input, failure);
    os << object;
    os.close();
    if (os.has_error() || failure)
      return makeError("cannot write '" + input + "'");
  }
  StringRef base = llvm::sys::path::filename(program);
  llvm::SmallVector<StringRef> arguments = {program};
  if (base.starts_with("lld"))
    arguments.append({"-flavor", "gnu"});
  bool driver = !base.starts_with("ld") && !base.starts_with("lld") && base != "mold";
  if (driver)
    arguments.push_back("-nostartfiles");
  // No build id, no paths: the same object gives the same bytes.
  arguments.append({"-shared", driver ? "-Wl,--build-id=none" : "--build-id=none", "-o", output, input});
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log), StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, redirects, 60, 0, &message);
  if (status != 0) {
    auto text = llvm::MemoryBuffer::getFile(log);
    return makeError("linker '" + program + "' failed: " + (text ? (*text)->getBuffer() : StringRef(message)));
  }
  auto bytes = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return makeError("cannot read '" + output + "': " + bytes.getError().message());
  return (*bytes)->getBuffer().str();
}

struct attn::HostJIT::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

attn::HostJIT::HostJIT(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
attn::HostJIT::~HostJIT() = default;

llvm::Expected<std::unique_ptr<attn::HostJIT>> attn::HostJIT::create(llvm::StringRef object) {
  initializeTargets();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  // memset and memcpy, which code generation may make of loops.
  auto generator =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!generator)
    return generator.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*generator));
  if (llvm::Error failure = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, "attn")))
    return std::move(failure);
  auto impl = std::make_unique<Impl>();
  impl->jit = std::move(*jit);
  return std::unique_ptr<HostJIT>(new HostJIT(std::move(impl)));
}

llvm::Expected<AttnHostKernel> attn::HostJIT::lookup(llvm::StringRef symbol) {
  auto address = impl->jit->lookup(symbol);
  if (!address)
    return address.takeError();
  return address->toPtr<AttnHostKernel>();
}
