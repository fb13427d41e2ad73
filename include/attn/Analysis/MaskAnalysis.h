//===- MaskAnalysis.h - from a mask hook to a range program ----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the region of a mask hook (causal, windows, sinks, prefix-LM, chunks,
// ranges loaded from memory, documents, and/or/not of these) as bounds on the key's
// position. What it cannot read counts as "may be visible, may be hidden".
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MASKANALYSIS_H
#define ATTN_ANALYSIS_MASKANALYSIS_H

#include "attn/Analysis/RangeProgram.h"
#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// The range program of a variant's mask; all keys visible when it has none (or `variant` is null). The parameters of
/// the program are the variant's. A program with `perToken` set is exact only with one token a call. Without `scans`
/// nothing is known of entries of tables at the keys' positions.
RangeProgram analyzeMask(VariantOp variant, bool scans = true);

/// The values whose conjunction a mask hook yields.
llvm::SmallVector<Value> getMaskTerms(HookOp mask);
/// Whether the value depends on what memory holds at a place that depends on the key.
bool looksUpKey(Value value);

} // namespace mlir::attn

#endif
