//===- MaskRangePass.cpp - attn-mask-range ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNMASKRANGEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
class AttnMaskRangePass : public attn::impl::AttnMaskRangePassBase<AttnMaskRangePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    SmallVector<attn::VariantOp> variants(module.getOps<attn::VariantOp>());
    for (attn::VariantOp variant : variants) {
      std::string name = (variant.getSymName() + "_range").str();
      if (symbols.lookup(name))
        continue;
      SmallVector<Type> params;
      for (BlockArgument param : variant.getParams())
        params.push_back(param.getType());
      attn::buildRangeFunction(builder, variant.getLoc(), name, attn::analyzeMask(variant), params);
    }
  }
};
} // namespace
