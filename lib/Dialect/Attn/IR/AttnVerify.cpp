//===- AttnVerify.cpp - verifiers of the attn dialect ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult VariantOp::verifyRegions() { return success(); }
LogicalResult HookOp::verifyRegions() { return success(); }
LogicalResult RopeOp::verify() { return success(); }
LogicalResult AttentionOp::verify() { return success(); }
