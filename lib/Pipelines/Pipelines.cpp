//===- Pipelines.cpp - the arrows between the layers, by name -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Conversion/Passes.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace attn {

void buildFrontPipeline(OpPassManager &pm) {
  pm.addPass(mlir::attn::createAttnToTilePass());
}

void buildGpuPipeline(OpPassManager &pm, llvm::StringRef chip) {
}

void registerPipelines() {
  PassPipelineRegistration<>("attn-front-pipeline", "attn.attention to level-L tile kernels for the op's target",
                             [](OpPassManager &pm) { buildFrontPipeline(pm); });
}

} // namespace attn
