//===- attn-opt.cpp - runs passes and pipelines on IR ---------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/InitAll.h"
#include "attn/Target/NVPTX.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  attn::registerAllDialects(registry);
  attn::registerNVPTXTranslations(registry);
  attn::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "attention compiler driver\n", registry));
}
