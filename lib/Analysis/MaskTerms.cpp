//===- MaskTerms.cpp - the terms of a mask's conjunction ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/MaskAnalysis.h"

using namespace mlir;
using namespace mlir::attn;

SmallVector<Value> attn::getMaskTerms(HookOp mask) {
  SmallVector<Value> terms, work = {mask.getYield().getValue()};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto both = value.getDefiningOp<arith::AndIOp>())
      work.append({both.getRhs(), both.getLhs()});
    else
      terms.push_back(value);
  }
  return terms;
}

/// Whether `value` depends on the key's position, or with `lookup` on memory at a place that does.
static bool dependsOn(Value value, bool lookup, DenseMap<std::pair<Value, unsigned>, bool> &known) {
  auto [it, fresh] = known.try_emplace({value, lookup}, false);
  Operation *op = value.getDefiningOp();
  if (!fresh || !op)
    return it->second;
  bool result = !lookup && isa<KVPosOp>(op);
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      result |= dependsOn(operand, lookup && !isa<memref::LoadOp>(inner), known);
  });
  return known[{value, lookup}] = result;
}

bool attn::looksUpKey(Value value) {
  DenseMap<std::pair<Value, unsigned>, bool> known;
  return dependsOn(value, /*lookup=*/true, known);
}
