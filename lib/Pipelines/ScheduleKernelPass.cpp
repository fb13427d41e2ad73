//===- ScheduleKernelPass.cpp - attn-schedule-kernel ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNSCHEDULEKERNELPASS
#include "attn/Pipelines/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;

namespace {
struct AttnScheduleKernelPass : mlir::attn::impl::AttnScheduleKernelPassBase<AttnScheduleKernelPass> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    auto config = kernel->getAttrOfType<mlir::attn::ConfigAttr>("config");
    if (!config) {
      kernel.emitOpError() << "has no config, expected an attribute 'config' of kind #attn.config";
      return signalPassFailure();
    }
    bool roles = config.getConsumers() > 0;
    if (!roles && config.getLoad() == mlir::attn::LoadPath::Tma) {
      kernel.emitOpError() << "asks for tensor copies without consumers, expected consumers > 0 or load = gather";
      return signalPassFailure();
    }
    OpPassManager passes(tile::KernelOp::getOperationName());
    if (roles)
      ::attn::buildRolePasses(passes);
    else
      ::attn::buildGatherPasses(passes);
    if (failed(runPipeline(passes, kernel)))
      return signalPassFailure();
    if (roles)
      ++numRoles;
    else
      ++numGather;
  }
};
} // namespace
