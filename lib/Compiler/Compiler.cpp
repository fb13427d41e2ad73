//===- Compiler.cpp - the compiler as a library -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Compiler.h"
#include "attn/ABI/ABI.h"
#include "attn/Compiler/Cache.h"
#include "attn/Compiler/Manifest.h"
#include "attn/Compiler/Tuning.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/InitAll.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Target/Bundle.h"
#include "attn/Target/Host.h"
#include "attn/Target/KnownTargets.h"
#include "attn/Target/NVPTX.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace mlir;

namespace attn {
namespace json = llvm::json;

std::optional<::attn::Emit> parseEmit(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<Emit>>(name)
      .Case("tile", Emit::Tile)
      .Case("llvm", Emit::LLVM)
      .Case("ptx", Emit::PTX)
      .Case("cubin", Emit::Cubin)
      .Case("obj", Emit::Object)
      .Case("bundle", Emit::Bundle)
      .Default(std::nullopt);
}

void registerCompilerDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, gpu::GPUDialect, LLVM::LLVMDialect,
              math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect, vector::VectorDialect>();
  // The tensor form, and what a program makes its tensors with.
  registry.insert<bufferization::BufferizationDialect, tensor::TensorDialect>();
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  registerHostTranslations(registry);
  registerNVPTXTranslations(registry);
}

namespace {
/// Collects diagnostics as "file:line:column: error: text" lines.
class DiagnosticText {
public:
  explicit DiagnosticText(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          add(diagnostic);
          return success();
        }) {}
  std::string take() {
    if (text.empty())
      text = "failed without a message";
    else
      text.pop_back();
    return std::move(text);
  }

private:
  void add(Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(text);
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      os << place.getFilename().getValue() << ':' << place.getLine() << ':' << place.getColumn() << ": ";
    os << (diagnostic.getSeverity() == DiagnosticSeverity::Error     ? "error: "
           : diagnostic.getSeverity() == DiagnosticSeverity::Warning ? "warning: "
                                                                     : "note: ")
       << diagnostic << '\n';
    for (Diagnostic &note : diagnostic.getNotes())
      add(note);
  }
  std::string text;
  ScopedDiagnosticHandler handler;
};

/// Adds the time since its making to its stage in a list.
class Stopwatch {
public:
  Stopwatch(std::vector<::attn::StageTime> &times, std::string stage)
      : times(times), stage(std::move(stage)), start(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    std::chrono::duration<double, std::milli> span = std::chrono::steady_clock::now() - start;
    auto it = llvm::find_if(times, [&](const ::attn::StageTime &time) { return time.stage == stage; });
    if (it == times.end())
      it = times.insert(times.end(), {stage});
    it->milliseconds += span.count();
    ++it->runs;
  }

private:
  std::vector<::attn::StageTime> &times;
  std::string stage;
  std::chrono::steady_clock::time_point start;
};
} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> parseModule(llvm::StringRef text, llvm::StringRef name, MLIRContext &context) {
  DiagnosticText diagnostics(&context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, name, /*RequiresNullTerminator=*/false),
                             llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return llvm::createStringError(diagnostics.take());
  return std::move(module);
}

llvm::Expected<mlir::attn::AttentionOp> findAttention(ModuleOp module) {
  SmallVector<mlir::attn::AttentionOp> ops;
  module.walk([&](mlir::attn::AttentionOp op) { ops.push_back(op); });
  if (ops.empty())
    return llvm::createStringError("the module has no attn.attention op; one is needed to compile");
  if (ops.size() > 1)
    return llvm::createStringError("the module has " + std::to_string(ops.size()) +
                                   " attn.attention ops; compile one at a time");
  return ops.front();
}

template <typename OpT> static std::string printOps(ModuleOp module, llvm::StringRef only) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  if (only.empty()) {
    module->print(os, flags);
    os << '\n';
    return text;
  }
  module.walk([&](OpT op) {
    if (op.getName() == only)
      os << op << '\n';
  });
  return text;
}

namespace {
/// One compilation.
class Compilation {
public:
  Compilation(ModuleOp module, const ::attn::CompileOptions &options, const ::attn::TargetInfo &target,
              const ::attn::TuningTable *table, const mlir::attn::RefusedConfigs &refused)
      : module(module), options(options), target(target), table(table), refused(refused) {}

  /// Configs whose kernels spill or are serialised, when they were ours to choose.
  mlir::attn::RefusedConfigs tooLarge;

  llvm::Error run(::attn::CompileResult &result) {
    auto op = ::attn::findAttention(module);
    if (!op)
      return op.takeError();
    Operation *outside = nullptr;
    module.walk([&](Operation *other) {
      if (isa<mlir::attn::MergeOp, mlir::attn::AppendOp>(other))
        outside = other;
    });
    if (outside)
      return llvm::createStringError("the module has '" + outside->getName().getStringRef() +
                                     "', which is no part of a bundle; lower it in your own program with "
                                     "convert-attn-to-loops or attn-to-gpu-binary, and leave it out here");
    if (isa<RankedTensorType>((*op).getQ().getType())) {
      if (llvm::Error error = bufferise(result.times))
        return error;
      op = ::attn::findAttention(module);
      if (!op)
        return op.takeError();
    }
    (*op).setTargetAttr(mlir::attn::TargetAttr::get(module.getContext(), target.chip));
    chosen = !(*op).getConfigsAttr() || (*op).getConfigsAttr().empty();
    if (chosen)
      if (llvm::Error error = chooseConfigs(*op))
        return error;
    if (llvm::Error error = runPipeline(result.times, "attn to tile", ::attn::buildFrontPipeline))
      return error;
    auto lowered = ::attn::findAttention(module);
    if (!lowered)
      return lowered.takeError();
    attention = *lowered;
    if (llvm::Error error = collectKernels())
      return error;
    describeConfigs(result);
    if (options.emit == ::attn::Emit::Tile) {
      result.output = printOps<mlir::tile::KernelOp>(module, options.kernel);
      return llvm::Error::success();
    }
    return target.isGpu() ? lowerGpu(result) : lowerHost(result);
  }

private:
  struct Kernel {
    std::string symbol;
    mlir::attn::ConfigAttr config;
    bool merge;
  };

  ModuleOp module;
  const ::attn::CompileOptions &options;
  const ::attn::TargetInfo &target;
  const ::attn::TuningTable *table;
  const mlir::attn::RefusedConfigs &refused;
  llvm::SmallVector<::attn::ConfigChoice> choices; // when the op came without configs
  bool chosen = false;                             // the op came without configs
  mlir::attn::AttentionOp attention;
  SmallVector<Kernel> kernels;

  /// What the passes leave is verified once, unless `toLLVM`: LLVM has a verifier of its own.
  llvm::Error runPipeline(std::vector<::attn::StageTime> &times, llvm::StringRef stage,
                          llvm::function_ref<void(OpPassManager &)> build, bool toLLVM = false) {
    Stopwatch watch(times, stage.str());
    DiagnosticText diagnostics(module.getContext());
    PassManager pm(module.getContext(), ModuleOp::getOperationName());
    pm.enableVerifier(options.verifyPasses);
    build(pm);
    if (failed(pm.run(module)) || (!options.verifyPasses && !toLLVM && failed(verify(module))))
      return llvm::createStringError(diagnostics.take());
    return llvm::Error::success();
  }

  /// The tensor form. Its buffers come from the caller at run time, with any strides.
  llvm::Error bufferise(std::vector<::attn::StageTime> &times) {
    return runPipeline(times, "bufferise", [](OpPassManager &pm) {
      bufferization::OneShotBufferizePassOptions options;
      options.bufferizeFunctionBoundaries = true;
      options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
      options.unknownTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
      options.allowUnknownOps = true;
      pm.addPass(bufferization::createOneShotBufferizePass(options));
    });
  }

  /// Leaves an op that no class fits to attn-select-config, which says why.
  llvm::Error chooseConfigs(mlir::attn::AttentionOp op) {
    choices = ::attn::chooseConfigs(op, target, table, refused);
    if (choices.empty() && !refused.empty())
      return llvm::createStringError("no tile class fits the registers of " + target.chip +
                                     "; write 'configs' by hand to see by how much");
    SmallVector<Attribute> configs;
    for (const ::attn::ConfigChoice &choice : choices)
      configs.push_back(choice.config);
    if (!configs.empty())
      op.setConfigsAttr(Builder(module.getContext()).getArrayAttr(configs));
    return llvm::Error::success();
  }

  void describeConfigs(::attn::CompileResult &result) {
    result.configs.clear();
    for (const Kernel &kernel : kernels) {
      if (kernel.merge)
        continue;
      std::string text;
      llvm::raw_string_ostream(text) << kernel.config;
      auto *choice = llvm::find_if(choices, [&](const ::attn::ConfigChoice &c) { return c.config == kernel.config; });
      result.configs.push_back({kernel.symbol, text, choice == choices.end() ? "given" : choice->source});
    }
  }

  llvm::Error collectKernels() {
    SymbolTable table(module);
    auto add = [&](FlatSymbolRefAttr name, bool merge) -> llvm::Error {
      auto kernel = table.lookup<mlir::tile::KernelOp>(name.getValue());
      auto config = kernel ? kernel->getAttrOfType<mlir::attn::ConfigAttr>("config") : nullptr;
      if (!config)
        return llvm::createStringError("no kernel with a config for @" + name.getValue());
      kernels.push_back({name.getValue().str(), config, merge});
      return llvm::Error::success();
    };
    auto names = attention->getAttrOfType<ArrayAttr>("attn.kernels");
    if (!names)
      return llvm::createStringError("attn-to-tile left no list of kernels");
    for (auto name : names.getAsRange<FlatSymbolRefAttr>())
      if (llvm::Error error = add(name, false))
        return error;
    if (auto merge = attention->getAttrOfType<FlatSymbolRefAttr>("attn.merge"))
      if (llvm::Error error = add(merge, true))
        return error;
    if (!options.kernel.empty() &&
        llvm::none_of(kernels, [&](const Kernel &k) { return k.symbol == options.kernel; })) {
      std::string all;
      for (const Kernel &kernel : kernels)
        all += (all.empty() ? "" : ", ") + kernel.symbol;
      return llvm::createStringError("no kernel '" + options.kernel + "'; there are " + all);
    }
    return llvm::Error::success();
  }

  /// Kernels that were not asked for are not lowered.
  void dropOthers() {
    if (options.kernel.empty() || options.emit == ::attn::Emit::Bundle)
      return;
    for (auto kernel : llvm::make_early_inc_range(module.getOps<mlir::tile::KernelOp>()))
      if (kernel.getName() != options.kernel)
        kernel.erase();
  }

  llvm::Expected<std::string> makeBundle(json::Object manifest, const std::vector<::attn::BundleBlob> &blobs,
                                         llvm::function_ref<Operation *(llvm::StringRef)> lookup,
                                         llvm::function_ref<int64_t(llvm::StringRef, Operation *)> ctasPerSm) {
    json::Array list;
    for (const Kernel &kernel : kernels) {
      Operation *lowered = lookup(kernel.symbol);
      if (!lowered)
        return llvm::createStringError("kernel '" + kernel.symbol + "' was not lowered");
      auto entry = ::attn::describeKernel(kernel.symbol, kernel.config, lowered, 0, ctasPerSm(kernel.symbol, lowered));
      if (!entry)
        return entry.takeError();
      if (kernel.merge)
        manifest["merge"] = std::move(*entry);
      else
        list.push_back(std::move(*entry));
    }
    manifest["kernels"] = std::move(list);
    return ::attn::writeBundle(std::move(manifest), blobs);
  }

  llvm::Expected<json::Object> makeManifest() {
    auto manifest = ::attn::describeAttention(attention, target.chip);
    if (!manifest)
      return manifest.takeError();
    // The op names the range function; its program is an attribute of that.
    json::Value range(nullptr);
    if (auto name = attention->getAttrOfType<FlatSymbolRefAttr>("attn.range"))
      if (auto function = SymbolTable(module).lookup<func::FuncOp>(name.getValue()))
        if (auto program = function->getAttrOfType<DictionaryAttr>("attn.range"))
          range = ::attn::attributeToJson(program);
    (*manifest)["range"] = std::move(range);
    bool causal = false;
    if (auto attr = attention->getAttrOfType<BoolAttr>("attn.causal_rows"))
      causal = attr.getValue();
    (*manifest)["causal_rows"] = causal;
    return manifest;
  }

  ::attn::Isolation child;
  const ::attn::Isolation *isolation() {
    child.seconds = options.isolateSeconds;
    return options.isolate ? &child : nullptr;
  }

  /// What went wrong in code generation, with what it was generated for.
  llvm::Error blameKernels(llvm::Error error) {
    std::string text = "kernels";
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(kernels, os,
                          [&](const Kernel &kernel) { os << ' ' << kernel.symbol << " (" << kernel.config << ')'; });
    os << " for " << target.chip << ": " << llvm::toString(std::move(error));
    return llvm::createStringError(text);
  }

  llvm::Error lowerHost(::attn::CompileResult &result);
  llvm::Error lowerGpu(::attn::CompileResult &result);
};
} // namespace

llvm::Error Compilation::lowerHost(::attn::CompileResult &result) {
  if (options.emit == ::attn::Emit::PTX || options.emit == ::attn::Emit::Cubin)
    return llvm::createStringError("target 'host' has no PTX or cubin; use --emit=obj, llvm or bundle");
  auto manifest = makeManifest();
  if (!manifest)
    return manifest.takeError();
  dropOthers();
  ::attn::HostTarget host = ::attn::HostTarget::native();
  if (llvm::Error error = runPipeline(result.times, "tile to llvm", [&](OpPassManager &pm) {
        ::attn::buildHostPipeline(pm, host.conversionOptions());
      }))
    return error;
  if (options.emit == ::attn::Emit::LLVM) {
    auto text = ::attn::compileToLLVMText(module, host);
    if (!text)
      return text.takeError();
    result.output = std::move(*text);
    return llvm::Error::success();
  }
  std::string object;
  {
    Stopwatch watch(result.times, "llvm to object");
    auto compiled = ::attn::compileToObject(module, host, isolation());
    if (!compiled)
      return blameKernels(compiled.takeError());
    object = std::move(*compiled);
  }
  if (options.emit == ::attn::Emit::Object) {
    result.output = std::move(object);
    return llvm::Error::success();
  }
  Stopwatch watch(result.times, "link");
  auto shared = ::attn::linkSharedObject(object);
  if (!shared)
    return shared.takeError();
  SymbolTable table(module);
  auto bundle = makeBundle(
      std::move(*manifest), {{"so", std::move(*shared)}}, [&](llvm::StringRef name) { return table.lookup(name); },
      [](llvm::StringRef, Operation *) { return 1; });
  if (!bundle)
    return bundle.takeError();
  result.output = std::move(*bundle);
  return llvm::Error::success();
}

/// CTAs that one multiprocessor holds at a time, from what a CTA takes.
static int64_t residentCtas(const ::attn::TargetInfo &target, int64_t threads, int64_t registers, int64_t shared) {
  int64_t ctas = std::min<int64_t>(target.threadsPerSm / std::max<int64_t>(threads, 1), 16);
  ctas = std::min(ctas, target.sharedPerSm / (shared + 1024));
  if (registers) // allocated in units of 8 registers a thread
    ctas = std::min(ctas, target.registersPerSm / ((registers + 7) / 8 * 8 * threads));
  return std::max<int64_t>(ctas, 1);
}

llvm::Error Compilation::lowerGpu(::attn::CompileResult &result) {
  if (options.emit == ::attn::Emit::Object)
    return llvm::createStringError("target '" + target.chip + "' has no object file; use --emit=ptx, cubin or bundle");
  auto manifest = makeManifest();
  if (!manifest)
    return manifest.takeError();
  dropOthers();
  if (llvm::Error error = runPipeline(result.times, "tile passes", ::attn::buildSchedulePipeline))
    return error;
  auto toCode = [&](OpPassManager &pm) { ::attn::buildCodePipeline(pm, target.chip); };
  if (llvm::Error error = runPipeline(result.times, "tile to gpu", toCode, /*toLLVM=*/true))
    return error;
  gpu::GPUModuleOp gpuModule;
  for (auto op : module.getOps<gpu::GPUModuleOp>())
    gpuModule = op;
  if (!gpuModule)
    return llvm::createStringError("the pipeline left no gpu.module");
  if (options.emit == ::attn::Emit::LLVM) {
    auto text = ::attn::emitLLVM(gpuModule, target);
    if (!text)
      return text.takeError();
    result.output = std::move(*text);
    return llvm::Error::success();
  }
  std::string ptx;
  {
    Stopwatch watch(result.times, "gpu to ptx");
    auto text = ::attn::emitPtx(gpuModule, target, isolation());
    if (!text)
      return blameKernels(text.takeError());
    ptx = std::move(*text);
  }
  if (options.emit == ::attn::Emit::PTX) {
    result.output = std::move(ptx);
    return llvm::Error::success();
  }
  ::attn::Assembly assembly;
  bool haveCubin =
      options.emit == ::attn::Emit::Cubin || !options.allowPtx || !::attn::findPtxas(options.ptxas).empty();
  if (haveCubin) {
    Stopwatch watch(result.times, "ptx to cubin");
    auto assembled = ::attn::assemble(ptx, target, options.ptxas);
    if (!assembled)
      return assembled.takeError();
    for (const Kernel &kernel : kernels)
      if (chosen && !kernel.merge && !::attn::fits(*assembled, kernel.symbol))
        tooLarge.push_back(kernel.config);
    if (llvm::Error error = ::attn::checkAssembly(*assembled))
      return error;
    assembly = std::move(*assembled);
  }
  if (options.emit == ::attn::Emit::Cubin) {
    result.output = std::move(assembly.cubin);
    return llvm::Error::success();
  }
  auto ctasPerSm = [&](llvm::StringRef name, Operation *lowered) -> int64_t {
    int64_t registers = 0;
    for (const ::attn::KernelReport &report : assembly.kernels)
      if (report.name == name)
        registers = report.registers;
    auto number = [&](llvm::StringRef attr) {
      auto value = lowered->getAttrOfType<IntegerAttr>(attr);
      return value ? value.getInt() : int64_t(0);
    };
    return residentCtas(target, number("attn.threads"), registers, number("attn.smem"));
  };
  // PTX beside the machine code lets later machines run the bundle; code for sm_NNa runs on that machine alone.
  std::vector<::attn::BundleBlob> blobs;
  if (haveCubin)
    blobs.push_back({"cubin", assembly.cubin});
  if (!haveCubin || llvm::isDigit(target.chip.back()))
    blobs.push_back({"ptx", ptx});
  SymbolTable table(gpuModule);
  auto bundle =
      makeBundle(std::move(*manifest), blobs, [&](llvm::StringRef name) { return table.lookup(name); }, ctasPerSm);
  if (!bundle)
    return bundle.takeError();
  result.output = std::move(*bundle);
  return llvm::Error::success();
}

/// All that decides what a bundle holds: the canonical IR (callees included), the options, the tools' versions.
static std::string cacheKey(ModuleOp module, const ::attn::CompileOptions &options, const ::attn::TargetInfo &target,
                            const ::attn::TuningTable *table) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << "attn-mlir 0.1.0 abi " << ATTN_ABI_VERSION << " llvm " << LLVM_VERSION_STRING << " target " << target.chip
     << '\n';
  if (target.isGpu()) {
    std::string ptxas = ::attn::findPtxas(options.ptxas);
    llvm::sys::fs::file_status status;
    os << "ptxas " << ptxas;
    if (!ptxas.empty() && !llvm::sys::fs::status(ptxas, status))
      os << ' ' << status.getSize() << ' ' << status.getLastModificationTime().time_since_epoch().count();
  } else {
    ::attn::HostTarget host = ::attn::HostTarget::native();
    os << host.triple << ' ' << host.cpu << ' ' << host.features << ' ' << host.optLevel;
  }
  os << '\n';
  if (table)
    os << table->print();
  module->print(os, OpPrintingFlags().printGenericOpForm());
  return key;
}

llvm::Expected<::attn::CompileResult> compile(ModuleOp module, const CompileOptions &options) {
  const TargetInfo *target = findTarget(options.target);
  if (!target)
    return llvm::createStringError("unknown target '" + options.target + "'; expected one of " + knownTargetNames());
  const TuningTable *table = nullptr;
  std::optional<TuningTable> file;
  if (options.tuned.empty()) {
    table = TuningTable::builtin(target->chip);
  } else if (options.tuned != "off") {
    auto read = TuningTable::read(options.tuned);
    if (!read)
      return read.takeError();
    if (read->target != target->chip)
      return llvm::createStringError("table '" + read->name + "' is for " + read->target + ", not " + target->chip +
                                     "; use one for that target or tuned = off");
    table = &file.emplace(std::move(*read));
  }
  CompileResult result;
  BundleCache cache(options.emit == Emit::Bundle ? options.cacheDir : std::string());
  std::string key;
  if (options.emit == Emit::Bundle && !options.cacheDir.empty()) {
    Stopwatch watch(result.times, "cache");
    key = cacheKey(module, options, *target, table);
    if (auto entry = cache.lookup(key)) {
      result.output = std::move(*entry);
      result.fromCache = true;
      return std::move(result);
    }
  }
  // The chooser's estimate of registers is only that: a class that spills is chosen again without what needs as many.
  mlir::attn::RefusedConfigs refused;
  for (;;) {
    OwningOpRef<ModuleOp> copy = module.clone();
    Compilation compilation(*copy, options, *target, table, refused);
    llvm::Error error = compilation.run(result);
    if (!error)
      break;
    if (compilation.tooLarge.empty())
      return std::move(error);
    refused.append(compilation.tooLarge);
    llvm::consumeError(std::move(error));
  }
  if (!key.empty())
    if (llvm::Error error = cache.store(key, result.output))
      return std::move(error);
  return std::move(result);
}

} // namespace attn
