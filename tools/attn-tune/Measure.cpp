//===- Measure.cpp - the candidates of a case, measured -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "Tune.h"
#include "attn/Compiler/Compiler.h"
#include "attn/Reference/Rounding.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace attntune;
namespace json = llvm::json;

/// A config takes the place of the model's choice when it is faster by this and in every round.
static constexpr double kLeastGain = 1.005;
/// Largest relative error between two candidates: that of rounding P to 16 bits in tiles of different sizes.
static constexpr double kAgreement = 1e-2;

namespace {
struct Candidate {
  attn::TunedConfig config;
  std::string bundle;
};
bool fromJSON(const json::Value &value, Candidate &candidate, json::Path path) {
  json::ObjectMapper map(value, path);
  attn::TunedConfig &c = candidate.config;
  return map && map.map("rows", c.rows) && map.map("keys", c.keys) && map.map("stages", c.stages) &&
         map.map("warps", c.warps) && map.map("groups", c.groups) && map.map("consumers", c.consumers) &&
         map.map("q_in_registers", c.qInRegisters) && map.map("turns", c.turns) && map.map("bundle", candidate.bundle);
}

struct Case {
  std::string shape, tileClass, target;
  std::vector<Candidate> candidates;
};
} // namespace

static std::string inFolder(llvm::StringRef folder, llvm::StringRef name) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

static llvm::Expected<Case> readCase(llvm::StringRef folder) {
  std::string path = inFolder(folder, "case.json");
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("cannot read '" + path + "': " + file.getError().message());
  auto value = json::parse((*file)->getBuffer());
  if (!value)
    return llvm::createStringError(path + ": " + llvm::toString(value.takeError()));
  Case result;
  json::Path::Root root("case");
  json::ObjectMapper map(*value, root);
  if (!map || !map.map("shape", result.shape) || !map.map("class", result.tileClass) ||
      !map.map("target", result.target) || !map.map("candidates", result.candidates))
    return llvm::createStringError(path + ": " + llvm::toString(root.getError()));
  if (result.candidates.empty())
    return llvm::createStringError(path + ": no candidates");
  return result;
}

llvm::Expected<std::vector<std::string>> attntune::listCases(llvm::StringRef folder, std::string &target) {
  std::vector<std::string> cases;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code))
    if (llvm::sys::fs::exists(inFolder(it->path(), "case.json")))
      cases.push_back(it->path());
  if (code)
    return llvm::createStringError(code, "cannot read '" + folder + "': " + code.message());
  if (cases.empty())
    return llvm::createStringError("'" + folder + "' has no cases; make some with --compile-only");
  llvm::sort(cases);
  for (const std::string &path : cases) {
    auto read = readCase(path);
    if (!read)
      return read.takeError();
    if (!target.empty() && target != read->target)
      return llvm::createStringError(path + " is for " + read->target + ", others for " + target +
                                     "; measure one chip at a time");
    target = read->target;
  }
  return cases;
}

static std::vector<float> readTensor(const attn::batch::Tensor &tensor) {
  std::vector<float> values(tensor.bufferElements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = attn::ref::loadElement(tensor.type, tensor.bytes->data(), i);
  return values;
}

/// |a - b| / |b|; infinite when one is a number where the other is none. Both keep what nobody writes.
static double relativeError(const std::vector<float> &a, const std::vector<float> &b) {
  double difference = 0, size = 0;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    if (!std::isfinite(x) || !std::isfinite(y))
      return INFINITY;
    difference += (double(x) - y) * (double(x) - y);
    size += double(y) * y;
  }
  return size > 0 ? std::sqrt(difference / size) : difference > 0 ? INFINITY : 0;
}

static double medianOf(std::vector<double> values) {
  llvm::sort(values);
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

static std::string describe(const attn::TunedConfig &c) {
  return llvm::formatv("{0} x {1}, {2} stages, {3}{4}{5}", c.rows, c.keys, c.stages,
                       c.consumers ? std::to_string(c.consumers) + " consumers" : std::to_string(c.warps) + " warps",
                       c.qInRegisters ? ", Q in registers" : "", c.turns ? ", turns" : "");
}

llvm::Expected<attn::TunedConfig> attntune::measureCase(const Options &options, llvm::StringRef folder,
                                                        std::shared_ptr<attnrt::Device> device,
                                                        llvm::raw_ostream &log) {
  auto read = readCase(folder);
  if (!read)
    return read.takeError();
  Case &what = *read;
  std::string statement = inFolder(folder, "statement.mlir");
  auto text = llvm::MemoryBuffer::getFile(statement);
  if (!text)
    return llvm::createStringError("cannot read '" + statement + "': " + text.getError().message());
  mlir::DialectRegistry registry;
  attn::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = attn::parseModule((*text)->getBuffer(), statement, context);
  if (!module)
    return module.takeError();
  auto op = attn::findAttention(**module);
  if (!op)
    return op.takeError();
  auto problem = attnrun::makeProblem(*op, inFolder(folder, "batch.json"));
  if (!problem)
    return problem.takeError();

  log << llvm::sys::path::filename(folder) << ": " << what.shape << '\n';
  std::vector<std::unique_ptr<attnrun::Session>> sessions;
  std::vector<size_t> numbers; // of the candidates that run
  std::vector<float> o, lse;
  for (auto [i, candidate] : llvm::enumerate(what.candidates)) {
    std::string path = inFolder(folder, candidate.bundle);
    auto bundle = llvm::MemoryBuffer::getFile(path, false, false);
    if (!bundle)
      return llvm::createStringError("cannot read '" + path + "': " + bundle.getError().message());
    auto session = attnrun::Session::create((*bundle)->getBuffer().str(), device, *problem);
    if (!session)
      return session.takeError();
    attnrun::Timing timing;
    if (llvm::Error error = (*session)->run(0, timing))
      return std::move(error);
    std::vector<float> newO = readTensor(problem->built.o);
    std::vector<float> newLse = problem->wantsLse ? readTensor(problem->built.lse) : std::vector<float>();
    if (numbers.empty()) {
      o = std::move(newO);
      lse = std::move(newLse);
    } else if (double error = std::max(relativeError(newO, o), relativeError(newLse, lse)); !(error < kAgreement)) {
      log << llvm::formatv("  {0,-44} WRONG: relative error {1:e} beside the first\n", describe(candidate.config),
                           error);
      continue;
    }
    numbers.push_back(i);
    sessions.push_back(std::move(*session));
  }

  // In turn, in an order that is shifted from round to round and turned round in every other.
  std::vector<std::vector<double>> times(sessions.size());
  for (unsigned round = 0; round < options.rounds; ++round)
    for (size_t step = 0; step < sessions.size(); ++step) {
      size_t at = (round % 2 ? sessions.size() - 1 - step : step) + round / 2;
      size_t i = at % sessions.size();
      double milliseconds = 0;
      if (llvm::Error error = sessions[i]->burst(milliseconds))
        return std::move(error);
      times[i].push_back(milliseconds);
    }
  size_t winner = 0;
  double best = kLeastGain;
  for (size_t i = 0; i < sessions.size(); ++i) {
    std::vector<double> gains;
    for (auto [mine, first] : llvm::zip_equal(times[i], times[0]))
      gains.push_back(first / mine);
    double gain = medianOf(gains);
    auto [low, high] = std::minmax_element(gains.begin(), gains.end());
    log << llvm::formatv("  {0,-44} {1,9:f1} us  {2:f3} ({3:f3}-{4:f3})\n",
                         describe(what.candidates[numbers[i]].config), 1000 * medianOf(times[i]), gain, *low, *high);
    if (gain > best && *low > 1) {
      best = gain;
      winner = i;
    }
  }
  attn::TunedConfig result = what.candidates[numbers[winner]].config;
  result.shape = what.shape;
  result.tileClass = what.tileClass;
  result.gain = winner ? best : 1;
  result.batch = llvm::sys::path::filename(folder).str();
  log << "  taken: " << describe(result) << '\n';
  return result;
}
