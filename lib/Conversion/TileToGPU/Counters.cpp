//===- Counters.cpp - counters of stages and items through control flow ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;

static void countersOf(Operation *op, SmallVectorImpl<CounterKey> &out) {
  if (auto acquire = dyn_cast<ProducerAcquireOp>(op))
    out.push_back({acquire.getPipeline(), Counter::Acquire});
  else if (auto wait = dyn_cast<ConsumerWaitOp>(op))
    out.push_back({wait.getPipeline(), Counter::Wait});
  else if (auto next = dyn_cast<NextItemOp>(op))
    out.push_back({next.getItems(), Counter::Item});
  else if (auto commit = dyn_cast<CommitOp>(op)) {
    // Stages of a chained pipeline are not acquired: its commits count them.
    if (auto made = commit.getPipeline().getDefiningOp<PipelineOp>(); made && made.getChain())
      out.push_back({commit.getPipeline(), Counter::Acquire});
  }
}

/// True when both counters advance alike in every block under `region`.
static bool advanceAlike(Region &region, CounterKey a, CounterKey c) {
  for (Block &block : region) {
    int64_t balance = 0;
    for (Operation &op : block) {
      SmallVector<CounterKey> keys;
      countersOf(&op, keys);
      for (CounterKey key : keys)
        balance += (key == a) - (key == c);
      for (Region &inner : op.getRegions())
        if (!advanceAlike(inner, a, c))
          return false;
    }
    if (balance != 0)
      return false;
  }
  return true;
}

Emitter::CounterPlan Emitter::planCounters(Operation *op) {
  SmallVector<CounterKey> keys;
  llvm::SmallSetVector<CounterKey, 8> changed;
  op->walk([&](Operation *inner) {
    keys.clear();
    countersOf(inner, keys);
    changed.insert(keys.begin(), keys.end());
  });
  CounterPlan plan;
  for (CounterKey key : changed) {
    Index now = counters[key];
    bool found = false;
    for (CounterKey other : plan.carried) {
      Index there = counters[other];
      bool alike = there.base == now.base;
      for (Region &region : op->getRegions())
        alike = alike && advanceAlike(region, key, other);
      if (!alike)
        continue;
      plan.derived.push_back({key, other, now.offset - there.offset});
      found = true;
      break;
    }
    if (!found)
      plan.carried.push_back(key);
  }
  return plan;
}
void Emitter::carryOut(const CounterPlan &plan, Regs &out) {
  for (CounterKey key : plan.carried)
    out.push_back(materialize(counters[key]));
}
void Emitter::carryIn(const CounterPlan &plan, ArrayRef<Value> in) {
  for (auto [key, value] : llvm::zip_equal(plan.carried, in))
    counters[key] = {value, 0};
  for (auto &[key, other, distance] : plan.derived) {
    Index there = counters[other];
    counters[key] = {there.base, there.offset + distance};
  }
}
