//===- TileVerify.h - shared by the verifiers of the tile dialect -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every message of a verifier starts with a label, `dot_c2` or `R4`, that ties
// it to its test.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_IR_TILEVERIFY_H
#define ATTN_LIB_DIALECT_TILE_IR_TILEVERIFY_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace mlir::tile::rules {

inline InFlightDiagnostic fail(Operation *op, StringRef label) { return op->emitOpError() << label << ": "; }

/// Shape, element type and layout of a reg or smem.
struct Shaped {
  ArrayRef<int64_t> shape;
  Type element;
  Attribute layout;
};
inline Shaped getShaped(Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    type = pending.getReg();
  if (auto reg = dyn_cast<RegType>(type))
    return {reg.getShape(), reg.getElementType(), reg.getLayout()};
  auto smem = cast<SmemType>(type);
  return {smem.getShape(), smem.getElementType(), smem.getLayout()};
}

/// Rules of the kernel as a whole: levels, R1 to R5 (TileVerifyKernel.cpp, TileVerifyAsync.cpp).
LogicalResult verifyLevels(KernelOp kernel);
LogicalResult verifyLayouts(KernelOp kernel);
LogicalResult verifyPending(KernelOp kernel);
LogicalResult verifySlots(KernelOp kernel);
LogicalResult verifyBalance(KernelOp kernel);
LogicalResult verifyCarriedOperands(KernelOp kernel);

} // namespace mlir::tile::rules

#endif
