//===- Dependence.cpp - what a value of a hook follows from ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Dependence.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::attn;

Dependence mlir::attn::findDependence(Value value) {
  Dependence found;
  SmallVector<Value> work = {value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op) // an argument: of an op within the hook, of the hook or of the variant
      op = next.getParentBlock()->getParentOp();
    if (!op->getParentOfType<HookOp>() || !seen.insert(op).second)
      continue;
    op->walk([&](Operation *inner) {
      found.key |= isa<KVPosOp>(inner);
      found.row |= isa<QPosOp, RowOp>(inner);
      llvm::append_range(work, inner->getOperands());
    });
  }
  return found;
}
