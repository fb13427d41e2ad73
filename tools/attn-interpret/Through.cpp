//===- Through.cpp - a kernel through its passes, checked after each ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Through.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace {
/// Compares a kernel with the one it was after every pass that ran on it.
struct CheckAfterPass : PassInstrumentation {
  CheckAfterPass(tile::KernelOp before, tile::CheckOptions &options, int64_t runs, tile::CheckResult &result,
                 int64_t &checks, bool &wrong)
      : before(before), options(options), runs(runs), result(result), checks(checks), wrong(wrong) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    auto kernel = dyn_cast<tile::KernelOp>(op);
    if (!kernel || wrong || failed(verify(kernel)))
      return;
    for (int64_t i = 0; i < runs && !wrong; ++i) {
      tile::CheckOptions run = options;
      run.seed += i;
      wrong = failed(tile::checkKernel(kernel, before, run, result));
      if (wrong)
        llvm::errs() << "attn-interpret: @" << kernel.getSymName() << " means something else after "
                     << pass->getArgument() << ", seed " << run.seed << "\n";
    }
    ++checks;
  }

  tile::KernelOp before;
  tile::CheckOptions &options;
  int64_t runs;
  tile::CheckResult &result;
  int64_t &checks;
  bool &wrong;
};
} // namespace

int runThrough(ModuleOp module, ArrayRef<tile::KernelOp> kernels, tile::CheckOptions options, int64_t runs) {
  OwningOpRef<ModuleOp> before = module.clone();
  module.getContext()->disableMultithreading();
  for (tile::KernelOp kernel : kernels) {
    auto config = kernel->getAttrOfType<mlir::attn::ConfigAttr>("config");
    if (!config)
      continue;
    PassManager passes(module.getContext(), tile::KernelOp::getOperationName());
    tile::CheckResult result;
    int64_t checks = 0;
    bool wrong = false;
    auto original = before->lookupSymbol<tile::KernelOp>(kernel.getSymName());
    passes.addInstrumentation(std::make_unique<CheckAfterPass>(original, options, runs, result, checks, wrong));
    if (config.getConsumers() > 0)
      ::attn::buildRolePasses(passes);
    else
      ::attn::buildGatherPasses(passes);
    LogicalResult ran = passes.run(kernel);
    if (wrong)
      return 1;
    if (failed(ran)) {
      llvm::errs() << "attn-interpret: @" << kernel.getSymName() << " is refused by its passes\n";
      return 3;
    }
    llvm::outs() << llvm::formatv("@{0}: right after {1} passes, largest error of o {2:E1}, of lse {3:E1}\n",
                                  kernel.getSymName(), checks, result.outputError, result.lseError);
  }
  return 0;
}
