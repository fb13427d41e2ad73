//===- Tuning.h - configs that were measured --------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table from classes of shapes to the config that was fastest on a device, as
// attn-tune writes it. The compiler looks an op up before it asks the cost
// model. Tables of some devices are built in (lib/Target/Tuned).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_TUNING_H
#define ATTN_COMPILER_TUNING_H

#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace attn {

/// All of an op that decides which config is the best, as text: head dims, element types, format with its class of page
/// sizes, how the mask cuts, hooks. Lengths and numbers of heads are no part of it.
/// "qk128 vo128 bf16/bf16 ragged mask=causal logits=mulf,tanh.afn,mulf"
std::string describeShape(mlir::attn::AttentionOp op);

/// {"rows", "keys", "stages", "warps", "groups", "consumers", "q_in_registers", "turns"}: all that is not a matter of
/// the op.
llvm::json::Object configToJson(mlir::attn::ConfigAttr config);

/// What was measured for a tile class of a shape.
struct TunedConfig {
  std::string shape, tileClass;
  int64_t rows = 0, keys = 0, stages = 0, warps = 0, groups = 1, consumers = 0;
  bool qInRegisters = false, turns = false;
  /// Time of the cost model's choice over its own; how it was measured. For readers only.
  double gain = 1;
  std::string batch;
  bool matches(mlir::attn::ConfigAttr config) const;
};

/// The configs of one chip.
struct TuningTable {
  /// What messages call it: "h200", or a file.
  std::string name;
  std::string target, device;
  std::vector<TunedConfig> entries;

  /// Errors: what is not a table, naming `name` and the entry.
  static llvm::Expected<TuningTable> parse(llvm::StringRef text, llvm::StringRef name);
  static llvm::Expected<TuningTable> read(llvm::StringRef path);
  /// The built-in table of a chip, or null.
  static const TuningTable *builtin(llvm::StringRef chip);
  std::string print() const;

  /// Replaces the entry of the same shape and class.
  void add(TunedConfig entry);
  const TunedConfig *find(llvm::StringRef shape, mlir::attn::TileClass tileClass) const;
};

/// One config of a kernel, and where it comes from: "model", the table's name or "given".
struct ConfigChoice {
  mlir::attn::ConfigAttr config;
  std::string source;
};

/// The configs of an op by `table` (may be null) and, where that has none that fits, by the cost model.
llvm::SmallVector<ConfigChoice> chooseConfigs(mlir::attn::AttentionOp op, const TargetInfo &target,
                                              const TuningTable *table, const mlir::attn::RefusedConfigs &refused = {});

} // namespace attn

#endif
