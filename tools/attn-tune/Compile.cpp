//===- Compile.cpp - the candidates of a case, compiled -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tune.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Target/KnownTargets.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"

using namespace attntune;
namespace json = llvm::json;

namespace {
/// The statement in a context of its own, so that candidates are compiled side by side.
struct Statement {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::attn::AttentionOp op;
  /// Those worth measuring, the cost model's choice first.
  llvm::SmallVector<mlir::attn::ConfigAttr> candidates;

  llvm::Error read(llvm::StringRef text, llvm::StringRef name, const Options &options) {
    mlir::DialectRegistry registry;
    attn::registerCompilerDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    auto parsed = attn::parseModule(text, name, *context);
    if (!parsed)
      return parsed.takeError();
    module = std::move(*parsed);
    auto found = attn::findAttention(*module);
    if (!found)
      return found.takeError();
    op = *found;
    if (op.getConfigsAttr() && !op.getConfigsAttr().empty())
      return llvm::createStringError(name + ": the attention op has configs; remove them to have candidates tried");
    pick(options);
    return llvm::Error::success();
  }

private:
  /// The model's choice, the same tile with Q elsewhere, with another stage and without turns, then tiles of other
  /// sizes in the model's order. Two places are kept for other numbers of rows. Kernels of mma.sync only where there
  /// are no others.
  void pick(const Options &options) {
    llvm::SmallVector<mlir::attn::ConfigAttr> all =
        mlir::attn::listCandidates(op, options.tileClass, *attn::findTarget(options.target));
    if (all.empty())
      return;
    mlir::attn::ConfigAttr first = all.front();
    llvm::SmallVector<mlir::attn::ConfigAttr> others;
    size_t tall = 0; // of those with other rows
    for (mlir::attn::ConfigAttr config : all) {
      auto sameTile = [&](mlir::attn::ConfigAttr other) {
        return other.getRows() == config.getRows() && other.getKeys() == config.getKeys();
      };
      bool otherRows = config.getRows() != first.getRows();
      if ((config.getConsumers() > 0) != (first.getConsumers() > 0))
        continue;
      if (sameTile(first)
              ? (config.getStages() != first.getStages()) + (config.getQInRegisters() != first.getQInRegisters()) +
                        (config.getTurns() != first.getTurns()) >
                    1
              : llvm::any_of(others, sameTile) || (otherRows && tall == 2))
        continue;
      tall += otherRows;
      others.push_back(config);
    }
    size_t places = options.candidates - std::min<size_t>(options.candidates, tall);
    for (mlir::attn::ConfigAttr config : others) {
      bool otherRows = config.getRows() != first.getRows();
      if (candidates.size() < options.candidates && (otherRows || places > 0)) {
        places -= !otherRows;
        candidates.push_back(config);
      }
    }
  }
};

struct Outcome {
  std::string bundle, error;
};
} // namespace

static llvm::Error writeFile(llvm::StringRef folder, llvm::StringRef name, llvm::StringRef content) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << content;
    return llvm::Error::success();
  });
}

static Outcome compileOne(const Options &options, llvm::StringRef text, llvm::StringRef name, size_t number) {
  Statement statement;
  if (llvm::Error error = statement.read(text, name, options))
    return {"", llvm::toString(std::move(error))};
  mlir::Builder builder(statement.context.get());
  statement.op.setConfigsAttr(builder.getArrayAttr({statement.candidates[number]}));
  attn::CompileOptions compileOptions;
  compileOptions.target = options.target;
  compileOptions.ptxas = options.ptxas;
  auto result = attn::compile(*statement.module, compileOptions);
  if (!result)
    return {"", llvm::toString(result.takeError())};
  return {std::move(result->output), ""};
}

llvm::Error attntune::compileCase(const Options &options, llvm::StringRef file, llvm::StringRef batch,
                                  llvm::StringRef folder, llvm::raw_ostream &log) {
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text)
    return llvm::createStringError("cannot read '" + file + "': " + text.getError().message());
  auto batchText = llvm::MemoryBuffer::getFile(batch);
  if (!batchText)
    return llvm::createStringError("cannot read '" + batch + "': " + batchText.getError().message());
  Statement statement;
  if (llvm::Error error = statement.read((*text)->getBuffer(), file, options))
    return error;
  if (statement.candidates.empty())
    return llvm::createStringError(file + ": no config of the class '" + mlir::attn::getName(options.tileClass) +
                                   "' fits on " + options.target);
  std::vector<Outcome> outcomes(statement.candidates.size());
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(options.jobs));
  for (size_t i = 0; i < outcomes.size(); ++i)
    pool.async([&, i] { outcomes[i] = compileOne(options, (*text)->getBuffer(), file, i); });
  pool.wait();

  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return llvm::createStringError(code, "folder '" + folder + "' cannot be created: " + code.message());
  json::Array list;
  for (auto [i, outcome] : llvm::enumerate(outcomes)) {
    log << "  " << statement.candidates[i] << ": ";
    if (!outcome.error.empty()) {
      log << outcome.error << '\n';
      continue;
    }
    log << outcome.bundle.size() << " bytes\n";
    std::string name = std::to_string(i) + ".bundle";
    if (llvm::Error error = writeFile(folder, name, outcome.bundle))
      return error;
    json::Object object = attn::configToJson(statement.candidates[i]);
    object["bundle"] = name;
    list.push_back(std::move(object));
  }
  if (list.empty())
    return llvm::createStringError(file + ": none of its candidates could be compiled");
  json::Object object{{"shape", attn::describeShape(statement.op)},
                      {"class", mlir::attn::getName(options.tileClass)},
                      {"target", options.target},
                      {"candidates", std::move(list)}};
  std::string description;
  llvm::raw_string_ostream(description) << json::Value(std::move(object)) << '\n';
  for (auto [name, content] : {std::pair<llvm::StringRef, llvm::StringRef>{"statement.mlir", (*text)->getBuffer()},
                               {"batch.json", (*batchText)->getBuffer()},
                               {"case.json", description}})
    if (llvm::Error error = writeFile(folder, name, content))
      return error;
  return llvm::Error::success();
}
