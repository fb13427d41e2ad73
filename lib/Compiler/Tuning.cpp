//===- Tuning.cpp - configs that were measured -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Tuning.h"
#include "attn/Analysis/LogitBounds.h"
#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Compiler/Manifest.h"
#include "attn/Target/TunedTables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::attn;
namespace json = llvm::json;

namespace attn {

//===----------------------------------------------------------------------===//
// Classes of shapes
//===----------------------------------------------------------------------===//

static std::string describeFormat(AttentionOp op) {
  FormatKind kind = op.getFormat().getKind();
  if (kind == FormatKind::Ragged)
    return "ragged";
  // Pages that fall into boxes of 8, 16, 32 or 64 rows and more; others are gathered.
  int64_t page = op.getPageSize();
  std::string text =
      stringifyFormatKind(kind).str() + (page % 8 ? "-gathered" : std::to_string(std::min<int64_t>(page & -page, 64)));
  if (kind == FormatKind::Bsr)
    text += "x" + std::to_string(op.getFormat().getRowBlock());
  return text;
}

/// How the mask cuts the keys of a query in the middle of its request.
static std::string describeMask(AttentionOp op) {
  VariantOp variant = op.lookupVariant();
  if (!variant || !variant.getHook(HookKind::Mask))
    return "none";
  RangeProgram program = analyzeMask(variant);
  bool loads = llvm::any_of(program.code, [](const RangeProgram::Inst &i) { return i.op == RangeProgram::Op::Load; });
  if (program.hasNoInterior())
    return loads ? "opaque-loads" : "opaque";
  int64_t at = 1 << 20, length = 2 * at;
  SmallVector<int64_t> inputs{at, 1, length, length, 0};
  inputs.append(program.numParams, 1024);
  std::array<int64_t, 4> range = evaluateRange(program, inputs, at / 2);
  std::string text = range[0] > 0 || range[1] > 0 ? "window" : range[3] <= at + 1 ? "causal" : "wide";
  return loads ? text + "-loads" : text;
}

/// The ops of a hook on scores, in order: they decide what it costs. Of hooks on heads only that they are there.
static std::string describeHook(HookOp hook, HookKind kind) {
  std::string text = stringifyHookKind(kind).str();
  if (kind != HookKind::Logits)
    return text;
  text += "=";
  bool first = true;
  hook.getBody().walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::ConstantLike>() || op->hasTrait<OpTrait::IsTerminator>())
      return;
    text += (first ? "" : ",") + op->getName().stripDialect().str();
    first = false;
    if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
      if (arith::FastMathFlagsAttr flags = fast.getFastMathFlagsAttr())
        if (bitEnumContainsAny(flags.getValue(), arith::FastMathFlags::afn))
          text += ".afn";
  });
  return text;
}

std::string describeShape(AttentionOp op) {
  auto element = [](Value value) { return getElementName(cast<ShapedType>(value.getType()).getElementType()); };
  std::string text = llvm::formatv("qk{0} vo{1} {2}/{3} {4} mask={5}", op.getHeadDimQk(), op.getHeadDimVo(),
                                   element(op.getQ()), element(op.getK()), describeFormat(op), describeMask(op));
  VariantOp variant = op.lookupVariant();
  if (!variant)
    return text;
  for (HookKind kind : {HookKind::Query, HookKind::Key, HookKind::Value, HookKind::Logits, HookKind::Output})
    if (HookOp hook = variant.getHook(kind))
      text += " " + describeHook(hook, kind);
  if (hasBoundedLogits(op))
    text += " bounded";
  if (variant.getNormalizer() == Normalizer::None)
    text += " unnormalized";
  return text;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

json::Object configToJson(ConfigAttr config) {
  return json::Object{{"rows", config.getRows()},
                      {"keys", config.getKeys()},
                      {"stages", config.getStages()},
                      {"warps", config.getWarps()},
                      {"groups", config.getGroups()},
                      {"consumers", config.getConsumers()},
                      {"q_in_registers", config.getQInRegisters()},
                      {"turns", config.getTurns()}};
}

bool TunedConfig::matches(ConfigAttr config) const {
  return config.getRows() == rows && config.getKeys() == keys && config.getStages() == stages &&
         config.getWarps() == warps && config.getGroups() == groups && config.getConsumers() == consumers &&
         config.getQInRegisters() == qInRegisters && config.getTurns() == turns;
}

static bool fromJSON(const json::Value &value, TunedConfig &entry, json::Path path) {
  json::ObjectMapper map(value, path);
  bool ok = map && map.map("shape", entry.shape) && map.map("class", entry.tileClass) && map.map("rows", entry.rows) &&
            map.map("keys", entry.keys) && map.map("stages", entry.stages) && map.map("warps", entry.warps) &&
            map.map("groups", entry.groups) && map.map("consumers", entry.consumers) &&
            map.map("q_in_registers", entry.qInRegisters) && map.mapOptional("turns", entry.turns) &&
            map.mapOptional("gain", entry.gain) && map.mapOptional("batch", entry.batch);
  if (ok && llvm::none_of(kTileClasses, [&](TileClass c) { return mlir::attn::getName(c) == entry.tileClass; })) {
    path.field("class").report("expected small, medium or large");
    return false;
  }
  return ok;
}

llvm::Expected<TuningTable> TuningTable::parse(llvm::StringRef text, llvm::StringRef name) {
  auto fail = [&](llvm::Error error) {
    return llvm::createStringError("table '" + name + "': " + llvm::toString(std::move(error)));
  };
  auto value = json::parse(text);
  if (!value)
    return fail(value.takeError());
  TuningTable table;
  table.name = name.str();
  json::Path::Root root("table");
  json::ObjectMapper map(*value, root);
  if (!map || !map.map("target", table.target) || !map.mapOptional("device", table.device) ||
      !map.map("entries", table.entries))
    return fail(root.getError());
  if (!findTarget(table.target))
    return fail(
        llvm::createStringError("target '" + table.target + "' is not known; expected one of " + knownTargetNames()));
  return table;
}

llvm::Expected<TuningTable> TuningTable::read(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError("cannot read '" + path + "': " + file.getError().message());
  return parse((*file)->getBuffer(), path);
}

const TuningTable *TuningTable::builtin(llvm::StringRef chip) {
  static const std::vector<TuningTable> tables = [] {
    std::vector<TuningTable> made;
    for (const TunedTable &source : tunedTables()) {
      auto table = parse(source.text, source.name);
      // A test reads each of them; one that does not parse is as good as none.
      if (table)
        made.push_back(std::move(*table));
      else
        llvm::consumeError(table.takeError());
    }
    return made;
  }();
  auto it = llvm::find_if(tables, [&](const TuningTable &table) { return table.target == chip; });
  return it == tables.end() ? nullptr : &*it;
}

std::string TuningTable::print() const {
  // One entry a line, for readers and for version control.
  std::string text =
      llvm::formatv("{{\n\"target\": {0},\n\"device\": {1},\n\"entries\": [", json::Value(target), json::Value(device));
  bool first = true;
  for (const TunedConfig &entry : entries) {
    json::Object object{{"shape", entry.shape},
                        {"class", entry.tileClass},
                        {"rows", entry.rows},
                        {"keys", entry.keys},
                        {"stages", entry.stages},
                        {"warps", entry.warps},
                        {"groups", entry.groups},
                        {"consumers", entry.consumers},
                        {"q_in_registers", entry.qInRegisters},
                        {"turns", entry.turns},
                        {"gain", std::round(entry.gain * 1000) / 1000},
                        {"batch", entry.batch}};
    text += llvm::formatv("{0}\n{1}", first ? "" : ",", json::Value(std::move(object)));
    first = false;
  }
  return text + "\n]\n}\n";
}

void TuningTable::add(TunedConfig entry) {
  for (TunedConfig &other : entries)
    if (other.shape == entry.shape && other.tileClass == entry.tileClass) {
      other = std::move(entry);
      return;
    }
  entries.push_back(std::move(entry));
  llvm::sort(entries, [](const TunedConfig &a, const TunedConfig &b) {
    return std::tie(a.shape, a.tileClass) < std::tie(b.shape, b.tileClass);
  });
}

const TunedConfig *TuningTable::find(llvm::StringRef shape, TileClass tileClass) const {
  for (const TunedConfig &entry : entries)
    if (entry.shape == shape && entry.tileClass == mlir::attn::getName(tileClass))
      return &entry;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

llvm::SmallVector<ConfigChoice> chooseConfigs(AttentionOp op, const TargetInfo &target, const TuningTable *table,
                                              const RefusedConfigs &refused) {
  llvm::SmallVector<ConfigChoice> choices;
  std::string shape = table ? describeShape(op) : std::string();
  for (TileClass tileClass : kTileClasses) {
    SmallVector<ConfigAttr> candidates = listCandidates(op, tileClass, target, refused);
    if (candidates.empty())
      continue;
    ConfigChoice choice{candidates.front(), "model"};
    if (const TunedConfig *entry = table ? table->find(shape, tileClass) : nullptr)
      if (auto *it = llvm::find_if(candidates, [&](ConfigAttr config) { return entry->matches(config); });
          it != candidates.end())
        choice = {*it, table->name};
    choices.push_back(std::move(choice));
  }
  return choices;
}

} // namespace attn
