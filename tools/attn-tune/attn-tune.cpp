//===- attn-tune.cpp - measures configs, remembers the best -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attn-tune FILE.mlir... --batch=BATCH.json... -o TABLE.json     on a machine with a GPU
// attn-tune FILE.mlir... --batch=BATCH.json... --compile-only=DIR --target=CHIP    and, on another machine,
// attn-tune --measure=DIR -o TABLE.json
// The table is extended when it exists; attn-compile --tuned=TABLE.json reads it.
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "Tune.h"
#include "attn/Target/KnownTargets.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attn-tune") << message << '\n';
  return 1;
}

static int compile(const attntune::Options &options, llvm::ArrayRef<std::string> files,
                   llvm::ArrayRef<std::string> batches, llvm::StringRef folder) {
  for (auto [i, file] : llvm::enumerate(files)) {
    const std::string &batch = batches[batches.size() == 1 ? 0 : i];
    std::string name = llvm::sys::path::stem(file).str();
    if (llvm::StringRef stem = llvm::sys::path::stem(batch); stem != name)
      name += "-" + stem.str();
    llvm::outs() << name << '\n';
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    if (llvm::Error error = attntune::compileCase(options, file, batch, path, llvm::outs()))
      return fail(llvm::toString(std::move(error)));
    llvm::outs().flush();
  }
  return 0;
}

static int measure(const attntune::Options &options, llvm::StringRef folder, llvm::StringRef output,
                   std::shared_ptr<attnrt::Device> device) {
  attn::TuningTable table;
  auto cases = attntune::listCases(folder, table.target);
  if (!cases)
    return fail(llvm::toString(cases.takeError()));
  if (!output.empty() && llvm::sys::fs::exists(output)) {
    auto old = attn::TuningTable::read(output);
    if (!old)
      return fail(llvm::toString(old.takeError()));
    if (old->target != table.target)
      return fail("'" + output + "' is a table for " + old->target + ", not " + table.target + "; choose another -o");
    table = std::move(*old);
  }
  table.device = device->name();
  int status = 0;
  for (const std::string &path : *cases) {
    auto tuned = attntune::measureCase(options, path, device, llvm::outs());
    if (tuned) {
      table.add(std::move(*tuned));
    } else { // the others are worth having
      status = fail(path + ": " + llvm::toString(tuned.takeError()));
    }
    llvm::outs().flush();
  }
  if (output.empty()) {
    llvm::outs() << table.print();
    return status;
  }
  if (llvm::Error error = llvm::writeToOutput(output, [&](llvm::raw_ostream &os) {
        os << table.print();
        return llvm::Error::success();
      }))
    return fail(llvm::toString(std::move(error)));
  return status;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::OptionCategory category("attn-tune options");
  cl::list<std::string> files(cl::Positional, cl::desc("<IR files>"), cl::cat(category));
  cl::list<std::string> batches("batch", cl::desc("batch file (docs/Batch.md): one for all, or one a file"),
                                cl::cat(category));
  cl::opt<std::string> target("target", cl::desc("chip to compile for (default: the device's)"), cl::cat(category));
  cl::opt<std::string> compileOnly("compile-only", cl::desc("compile the candidates into this folder"),
                                   cl::cat(category));
  cl::opt<std::string> measureOnly("measure", cl::desc("measure the candidates of this folder"), cl::cat(category));
  cl::opt<std::string> output("o", cl::desc("table to write or to extend (default: print)"), cl::cat(category));
  cl::opt<std::string> tileClass("class", cl::desc("small, medium or large"), cl::init("large"), cl::cat(category));
  cl::opt<std::string> deviceName("device", cl::desc("cpu or cuda"), cl::init("cuda"), cl::cat(category));
  cl::opt<std::string> ptxas("ptxas", cl::desc("the ptxas to use"), cl::cat(category));
  cl::opt<unsigned> candidates("candidates", cl::desc("most candidates of a case"), cl::init(8), cl::cat(category));
  cl::opt<unsigned> jobs("jobs", cl::desc("compile so many at a time (0: all cores)"), cl::init(0), cl::cat(category));
  cl::opt<unsigned> rounds("rounds", cl::desc("measurements of each candidate"), cl::init(7), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "measures configs and remembers the best\n");

  attntune::Options options;
  options.ptxas = ptxas;
  options.candidates = std::max(1u, unsigned(candidates));
  options.jobs = jobs;
  options.rounds = std::max(1u, unsigned(rounds));
  auto *known = llvm::find_if(mlir::attn::kTileClasses,
                              [&](mlir::attn::TileClass c) { return mlir::attn::getName(c) == tileClass; });
  if (known == std::end(mlir::attn::kTileClasses))
    return fail("unknown --class '" + tileClass + "'; expected small, medium or large");
  options.tileClass = *known;
  if (deviceName != "cpu" && deviceName != "cuda")
    return fail("unknown --device '" + deviceName + "'; expected cpu or cuda");
  if (measureOnly.empty() == files.empty())
    return fail("expected IR files or --measure, one of the two");
  if (measureOnly.empty() && (batches.empty() || (batches.size() > 1 && batches.size() != files.size())))
    return fail("expected one --batch, or one for each IR file");

  std::shared_ptr<attnrt::Device> device;
  if (compileOnly.empty()) {
    auto kind = deviceName == "cpu" ? attnrt::DeviceKind::CPU : attnrt::DeviceKind::CUDA;
    if (attnrt::Status status = attnrt::Device::open(kind, 0, device); !status.ok())
      return fail(status.text());
  }
  if (!measureOnly.empty())
    return measure(options, measureOnly, output, device);
  if (target.empty() && !device)
    return fail("--compile-only needs --target");
  options.target = target.empty() ? attnrun::defaultTarget(*device) : target;
  if (!attn::findTarget(options.target))
    return fail("unknown target '" + options.target + "'; expected one of " + attn::knownTargetNames());
  if (!compileOnly.empty())
    return compile(options, files, batches, compileOnly);
  llvm::SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("attn-tune", folder))
    return fail("cannot create a temporary folder: " + code.message());
  int status = compile(options, files, batches, folder);
  if (!status)
    status = measure(options, folder, output, device);
  llvm::sys::fs::remove_directories(folder);
  return status;
}
