//===- Pipelines.cpp - the arrows between the layers, by name -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Conversion/AttnToTile/Passes.h"
#include "attn/Conversion/TileToGPU/TileToGPU.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace attn {

void buildFrontPipeline(OpPassManager &pm) {
  pm.addPass(mlir::attn::createAttnSelectConfigPass());
  pm.addPass(mlir::attn::createAttnToTilePass());
}

void buildGpuPipeline(OpPassManager &pm, llvm::StringRef chip) {
  pm.addPass(mlir::attn::createLegalizeMathPass({mlir::attn::MathTarget::Gpu}));
  OpPassManager &kernel = pm.nest<mlir::tile::KernelOp>();
  kernel.addPass(mlir::createCanonicalizerPass());
  kernel.addPass(mlir::createCSEPass());
  kernel.addPass(mlir::tile::createTileAssignLayoutsPass());
  kernel.addPass(mlir::tile::createTileDeferSumsPass());
  kernel.addPass(mlir::tile::createTileMultibufferPass());
  kernel.addPass(mlir::tile::createTilePeelMasksPass());
  kernel.addPass(mlir::tile::createTileAllocateSharedPass());
  pm.addPass(mlir::tile::createConvertTileToGPUPass({chip.str()}));
}

namespace {
struct GpuPipelineOptions : PassPipelineOptions<GpuPipelineOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("machine, for example sm_80"), llvm::cl::init("sm_80")};
};
} // namespace

void registerPipelines() {
  PassPipelineRegistration<>("attn-front-pipeline", "attn.attention to level-L tile kernels for the op's target",
                             [](OpPassManager &pm) { buildFrontPipeline(pm); });
  PassPipelineRegistration<GpuPipelineOptions>(
      "attn-gpu-pipeline", "level-L tile kernels to a gpu.module of llvm and nvvm functions",
      [](OpPassManager &pm, const GpuPipelineOptions &options) { buildGpuPipeline(pm, options.chip); });
}

} // namespace attn
