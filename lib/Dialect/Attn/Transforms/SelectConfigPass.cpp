//===- SelectConfigPass.cpp - attn-select-config ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/SelectConfig.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNSELECTCONFIGPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
class AttnSelectConfigPass : public mlir::attn::impl::AttnSelectConfigPassBase<AttnSelectConfigPass> {
public:
  using Base::Base;

private:
  LogicalResult select(mlir::attn::AttentionOp op) {
    MLIRContext *context = op.getContext();
    if (!op.getTargetAttr())
      op.setTargetAttr(mlir::attn::TargetAttr::get(context, target));
    StringRef chip = op.getTargetAttr().getChip();
    const ::attn::TargetInfo *limits = ::attn::findTarget(chip);
    if (!limits)
      return op.emitOpError() << "target '" << chip << "' is not known; expected one of " << ::attn::knownTargetNames();
    if (ArrayAttr given = op.getConfigsAttr(); given && !given.empty()) {
      for (Attribute config : given)
        if (failed(mlir::attn::verifyConfig(op, cast<mlir::attn::ConfigAttr>(config), limits)))
          return failure();
      return success();
    }
    ::attn::TargetInfo choice = *limits;
    if (!tensorCopies)
      choice.tma = choice.wgmma = false;
    SmallVector<mlir::attn::ConfigAttr> configs = mlir::attn::selectConfigs(op, choice);
    if (configs.empty())
      return op.emitOpError() << "no tile class fits head dims " << op.getHeadDimQk() << " and " << op.getHeadDimVo()
                              << " on " << chip << "; write 'configs' by hand to see by how much";
    op.setConfigsAttr(ArrayAttr::get(context, SmallVector<Attribute>(configs.begin(), configs.end())));
    numConfigs += configs.size();
    return success();
  }

  void runOnOperation() override {
    WalkResult walk = getOperation().walk([&](mlir::attn::AttentionOp op) {
      return failed(select(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
