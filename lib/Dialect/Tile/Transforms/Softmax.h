//===- Softmax.h - what the steps of a softmax look like in tiles -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_SOFTMAX_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_SOFTMAX_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Matchers.h"

namespace mlir::tile {

/// `map` yields 0 where its input is -inf, the input elsewhere: it commutes with positive factors.
inline bool isZeroIfEmpty(MapOp map) {
  if (map.getInputs().size() != 1 || map.getNumResults() != 1)
    return false;
  Value in = map.getBody().getArgument(0);
  auto select = map.getYield().getOperand(0).getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  return compare && compare.getPredicate() == arith::CmpFPredicate::OEQ && compare.getLhs() == in &&
         matchPattern(compare.getRhs(), m_NegInfFloat()) && matchPattern(select.getTrueValue(), m_AnyZeroFloat()) &&
         select.getFalseValue() == in;
}

} // namespace mlir::tile

#endif
