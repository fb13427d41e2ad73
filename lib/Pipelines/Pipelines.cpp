//===- Pipelines.cpp - the arrows between the layers, by name -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "attn/Conversion/AttnToTile/Passes.h"
#include "attn/Conversion/TileToGPU/TileToGPU.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Passes.h"
#include "attn/Target/Host.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace attn {

void buildFrontPipeline(OpPassManager &pm) {
  pm.addPass(mlir::attn::createAttnSelectConfigPass());
  pm.addPass(mlir::attn::createAttnToTilePass());
}

void buildGatherPasses(OpPassManager &kernel) {
  kernel.addPass(mlir::tile::createTileTransformStagesPass());
  kernel.addPass(mlir::tile::createTileAssignLayoutsPass());
  kernel.addPass(mlir::tile::createTileDeferSumsPass());
  kernel.addPass(mlir::tile::createTileMultibufferPass());
  kernel.addPass(mlir::tile::createTilePeelMasksPass());
  kernel.addPass(mlir::tile::createTileAllocateSharedPass());
}

void buildRolePasses(OpPassManager &kernel) {
  kernel.addPass(mlir::tile::createTileTransformStagesPass());
  kernel.addPass(mlir::tile::createTileMergeFactorsPass());
  kernel.addPass(mlir::tile::createTileFoldScalePass());
  kernel.addPass(mlir::tile::createTileAssignLayoutsPass({/*forbidLoopConversions=*/true}));
  kernel.addPass(mlir::tile::createTileDeferSumsPass());
  kernel.addPass(mlir::tile::createTileReverseKeysPass());
  kernel.addPass(mlir::tile::createTileSkewDotsPass());
  kernel.addPass(mlir::tile::createTilePeelMasksPass());
  kernel.addPass(mlir::createCanonicalizerPass());
  kernel.addPass(mlir::createCSEPass());
  kernel.addPass(mlir::tile::createTileWarpSpecializePass());
  kernel.addPass(mlir::tile::createTileStoreRolePass());
  kernel.addPass(mlir::tile::createTileStreamItemsPass());
  kernel.addPass(mlir::tile::createTileHoldWaitsPass());
  kernel.addPass(mlir::tile::createTileTakeTurnsPass());
  kernel.addPass(mlir::tile::createTileRescaleRarelyPass());
  kernel.addPass(mlir::createCanonicalizerPass());
  kernel.addPass(mlir::createCSEPass());
  kernel.addPass(mlir::tile::createTileAllocateSharedPass());
}

static void addGpuLowering(OpPassManager &pm, llvm::StringRef chip) {
  OpPassManager &kernel = pm.nest<mlir::tile::KernelOp>();
  kernel.addPass(mlir::createCanonicalizerPass());
  kernel.addPass(mlir::createCSEPass());
  kernel.addPass(mlir::attn::createAttnScheduleKernelPass());
  pm.addPass(mlir::tile::createConvertTileToGPUPass({chip.str()}));
}

void buildGpuPipeline(OpPassManager &pm, llvm::StringRef chip) {
  pm.addPass(mlir::attn::createAttnKeepKernelsPass());
  pm.addPass(mlir::attn::createLegalizeMathPass({mlir::attn::MathTarget::Gpu}));
  addGpuLowering(pm, chip);
}

void buildGpuBinaryPipeline(OpPassManager &pm, llvm::StringRef chip, llvm::StringRef ptxas, llvm::StringRef format) {
  // Merges and appends first: their modules are lowered by upstream's passes, those of attention are not.
  pm.addPass(mlir::attn::createConvertAttnToLoopsPass({mlir::attn::LoopTarget::Gpu}));
  pm.addPass(mlir::createGpuKernelOutliningPass());
  OpPassManager &outlined = pm.nest<gpu::GPUModuleOp>();
  outlined.addPass(mlir::createSCFToControlFlowPass());
  outlined.addPass(mlir::createConvertGpuOpsToNVVMOps());
  outlined.addPass(mlir::createCanonicalizerPass());
  outlined.addPass(mlir::createCSEPass());
  pm.addPass(mlir::attn::createAttnSelectConfigPass({chip.str(), /*tensorCopies=*/false}));
  pm.addPass(mlir::attn::createAttnToTilePass());
  // In kernels only: the math of a caller's own functions is not ours to change.
  pm.nest<mlir::tile::KernelOp>().addPass(mlir::attn::createLegalizeMathPass({mlir::attn::MathTarget::Gpu}));
  addGpuLowering(pm, chip);
  pm.addPass(mlir::attn::createAttnToLaunchPass());
  pm.addPass(mlir::attn::createAttnGpuToBinaryPass({chip.str(), ptxas.str(), format.str()}));
}

void buildHostProgramPipeline(OpPassManager &pm) {
  pm.addPass(mlir::attn::createConvertAttnToLoopsPass({mlir::attn::LoopTarget::Host}));
  pm.addPass(mlir::attn::createAttnSelectConfigPass({"host"}));
  pm.addPass(mlir::attn::createAttnToTilePass());
  mlir::tile::TileToCPUOptions machine = HostTarget::native().conversionOptions();
  mlir::tile::ConvertTileToCPUOptions options;
  options.width = machine.width;
  options.f16c = machine.f16c;
  pm.addPass(mlir::tile::createConvertTileToCPU(options));
  pm.addPass(mlir::attn::createAttnLegalizeHostKernelsPass());
  pm.addPass(mlir::attn::createAttnToLaunchPass());
}

namespace {
struct GpuBinaryOptions : PassPipelineOptions<GpuBinaryOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("machine, for example sm_80"), llvm::cl::init("sm_80")};
  Option<std::string> ptxas{*this, "ptxas", llvm::cl::desc("the ptxas to use"), llvm::cl::init("")};
  Option<std::string> format{*this, "format", llvm::cl::desc("auto, bin or ptx"), llvm::cl::init("auto")};
};
struct GpuPipelineOptions : PassPipelineOptions<GpuPipelineOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("machine, for example sm_80"), llvm::cl::init("sm_80")};
};
} // namespace

void registerPipelines() {
  mlir::attn::registerPipelinesPasses();
  PassPipelineRegistration<>("attn-front-pipeline", "attn.attention to level-L tile kernels for the op's target",
                             [](OpPassManager &pm) { buildFrontPipeline(pm); });
  PassPipelineRegistration<GpuPipelineOptions>(
      "attn-gpu-pipeline", "level-L tile kernels to a gpu.module of llvm and nvvm functions",
      [](OpPassManager &pm, const GpuPipelineOptions &options) { buildGpuPipeline(pm, options.chip); });
  PassPipelineRegistration<>("attn-to-host-program", "attn ops in functions to loops and calls of host kernels",
                             [](OpPassManager &pm) { buildHostProgramPipeline(pm); });
  PassPipelineRegistration<GpuBinaryOptions>("attn-to-gpu-binary",
                                             "attn ops in functions to gpu.binary and gpu.launch_func",
                                             [](OpPassManager &pm, const GpuBinaryOptions &options) {
                                               buildGpuBinaryPipeline(pm, options.chip, options.ptxas, options.format);
                                             });
}

} // namespace attn
