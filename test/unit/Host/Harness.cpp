//===- Harness.cpp - runs tile kernels on this machine ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <cstring>
#include <fstream>
#include <sstream>

using namespace attn;

std::string attn::readKernel(const std::string &name) {
  std::ifstream in(std::string(ATTN_SOURCE_ROOT) + "/test/Kernels/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string attn::replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string attn::onlyKernel(const std::string &text, const std::string &name) {
  const std::string start = "\ntile.kernel @";
  std::string result = text.substr(0, text.find(start)) + "\n";
  size_t from = text.find(start + name + "(");
  return from == std::string::npos ? "" : result + text.substr(from, text.find(start, from + 1) - from);
}

std::string Kernels::compile(const std::string &text, const mlir::tile::TileToCPUOptions &options, unsigned optLevel) {
  mlir::DialectRegistry registry;
  registry
      .insert<mlir::attn::AttnDialect, mlir::tile::TileDialect, mlir::LLVM::LLVMDialect, mlir::vector::VectorDialect>();
  // A helper function may stand before the first tile op, which loads these.
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect>();
  registerHostTranslations(registry);
  mlir::MLIRContext context(registry);
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(messages);
    os << diagnostic.getLocation() << ": " << diagnostic << "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return "parsing: " + messages;
  mlir::PassManager pm(&context);
  buildHostPipeline(pm, options);
  if (mlir::failed(pm.run(*module)))
    return "lowering: " + messages;
  for (auto function : module->getOps<mlir::LLVM::LLVMFuncOp>()) {
    auto words = function->getAttrOfType<mlir::ArrayAttr>("attn.words");
    if (!words)
      continue;
    Kernel &kernel = kernels[function.getName().str()];
    kernel.scratch = function->getAttrOfType<mlir::IntegerAttr>("attn.smem").getInt();
    for (auto word : words.getAsRange<mlir::DictionaryAttr>()) {
      auto text = [&](const char *key) {
        auto attr = word.getAs<mlir::StringAttr>(key);
        return attr ? attr.str() : std::string();
      };
      auto dim = word.getAs<mlir::IntegerAttr>("dim");
      std::string kind = text("kind");
      kernel.words.push_back({kind, kind == "param" ? text("name") : text("operand"), dim ? dim.getInt() : -1});
    }
  }
  HostTarget target;
  target.optLevel = optLevel;
  auto object = compileToObject(*module, target);
  if (!object)
    return "code generation: " + llvm::toString(object.takeError());
  auto loaded = HostJIT::create(*object);
  if (!loaded)
    return "loading: " + llvm::toString(loaded.takeError());
  jit = std::move(*loaded);
  return "";
}

std::string Kernels::run(const std::string &name, const Arguments &arguments, int ctas) {
  auto it = kernels.find(name);
  if (it == kernels.end())
    return "no kernel " + name;
  std::vector<AttnWord> words;
  for (const Word &word : it->second.words) {
    AttnWord value;
    value.bits = 0;
    if (word.kind == "scale") {
      value.f32 = arguments.scale;
    } else if (word.kind == "param") {
      auto param = arguments.params.find(word.operand);
      if (param == arguments.params.end())
        return "no parameter " + word.operand;
      value = param->second;
    } else {
      auto operand = arguments.operands.find(word.operand);
      if (operand == arguments.operands.end())
        return "no operand " + word.operand;
      if (word.kind == "pointer")
        value.pointer = operand->second.pointer;
      else
        value.integer = (word.kind == "stride" ? operand->second.strides : operand->second.sizes).at(word.dim);
    }
    words.push_back(value);
  }
  auto function = jit->lookup(name);
  if (!function)
    return llvm::toString(function.takeError());
  // Scratch starts as NaN and ends in a fence.
  const size_t fence = 256;
  size_t bytes = it->second.scratch;
  std::vector<char> memory(bytes + fence + 64);
  char *scratch = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  std::memset(scratch, 0xff, bytes + fence);
  for (int cta = 0; cta < ctas; ++cta)
    (*function)(words.data(), cta, scratch);
  for (size_t i = 0; i < fence; ++i)
    if (static_cast<unsigned char>(scratch[bytes + i]) != 0xff)
      return "wrote behind its scratch";
  return "";
}
