//===- Pipeline.cpp - level-L kernels to the LLVM dialect ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile/Passes.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/Host.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {
/// A machine without fused multiply-add would call fmaf: there math.fma is a product and a sum, rounded twice.
struct SplitFma : PassWrapper<SplitFma, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SplitFma)
  StringRef getArgument() const override { return "attn-split-fma"; }
  StringRef getDescription() const override { return "math.fma as a product and a sum"; }
  void runOnOperation() override {
    getOperation().walk([](math::FmaOp op) {
      OpBuilder b(op);
      Value product = arith::MulFOp::create(b, op.getLoc(), op.getA(), op.getB());
      Value sum = arith::AddFOp::create(b, op.getLoc(), product, op.getC());
      op.replaceAllUsesWith(sum);
      op.erase();
    });
  }
};
} // namespace

void ::attn::buildHostLoweringPipeline(OpPassManager &pm, bool fma) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  mlir::attn::LegalizeMathPassOptions math;
  math.target = mlir::attn::MathTarget::Host;
  pm.addPass(mlir::attn::createLegalizeMathPass(math));
  if (!fma)
    pm.addPass(std::make_unique<SplitFma>());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void ::attn::buildHostPipeline(OpPassManager &pm, const tile::TileToCPUOptions &options) {
  pm.addPass(mlir::attn::createAttnKeepKernelsPass());
  tile::ConvertTileToCPUOptions passOptions;
  passOptions.width = options.width;
  passOptions.f16c = options.f16c;
  pm.addPass(tile::createConvertTileToCPU(passOptions));
  buildHostLoweringPipeline(pm, options.fma);
}

namespace {
struct HostOptions : PassPipelineOptions<HostOptions> {
  Option<int64_t> width{*this, "width", llvm::cl::desc("f32 lanes of a vector register; 0: this machine's"),
                        llvm::cl::init(0)};
  Option<bool> f16c{*this, "f16c", llvm::cl::desc("the machine converts between f16 and f32"), llvm::cl::init(true)};
};
} // namespace

void ::attn::registerHostPipelines() {
  PassPipelineRegistration<HostOptions>("attn-host-pipeline", "level-L kernels to the LLVM dialect for the host",
                                        [](OpPassManager &pm, const HostOptions &options) {
                                          tile::TileToCPUOptions target = HostTarget::native().conversionOptions();
                                          if (options.width) {
                                            target.width = options.width;
                                            target.f16c = options.f16c;
                                          }
                                          buildHostPipeline(pm, target);
                                        });
  PassPipelineRegistration<>("attn-host-lowering-pipeline", "what follows convert-tile-to-cpu, to the LLVM dialect",
                             [](OpPassManager &pm) { buildHostLoweringPipeline(pm); });
}
