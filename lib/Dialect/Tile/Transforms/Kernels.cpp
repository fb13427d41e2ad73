//===- Kernels.cpp - what several passes ask of a kernel ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::tile;

LogicalResult tile::checkLevel(KernelOp kernel, Level level, StringRef remedy) {
  if (kernel.getLevel() == level)
    return success();
  return kernel.emitOpError() << "is of level " << stringifyLevel(kernel.getLevel()) << ", expected level "
                              << stringifyLevel(level) << ": " << remedy;
}

attn::ConfigAttr tile::requireConfig(KernelOp kernel) {
  auto config = kernel->getAttrOfType<attn::ConfigAttr>("config");
  if (!config)
    kernel.emitOpError() << "has no config, expected an attribute 'config' of kind #attn.config";
  return config;
}

SmallVector<scf::ForOp> tile::getLoops(KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  return loops;
}

SmallVector<scf::ForOp> tile::getProductLoops(KernelOp kernel) {
  SmallVector<scf::ForOp> loops = getLoops(kernel);
  llvm::erase_if(loops, [](scf::ForOp loop) { return loop.getBody()->getOps<DotOp>().empty(); });
  return loops;
}

Value tile::createLastStep(OpBuilder &builder, Location loc, Value lo, Value hi, Value step) {
  Value distance = arith::SubIOp::create(builder, loc, hi, lo);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value less = arith::SubIOp::create(builder, loc, distance, one);
  Value steps = arith::DivUIOp::create(builder, loc, less, step);
  Value length = arith::MulIOp::create(builder, loc, steps, step);
  return arith::AddIOp::create(builder, loc, lo, length);
}
