//===- MaskAnalysis.cpp - from a mask hook to a range program ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/MaskAnalysis.h"
using namespace mlir;
using namespace mlir::attn;
RangeProgram attn::analyzeMask(VariantOp variant) {
  int64_t params = variant ? variant.getParams().size() : 0;
  return makeWholeRange(params, !variant || !variant.getHook(HookKind::Mask));
}
