//===- embed.cpp - an attention op built and compiled in C++ ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Builds an attention op with the C++ API inside a function of its own, then compiles it: what an ML compiler does that
// has found attention in its program. Without arguments: hands the op over, gets a bundle for the runtime, and prints
// its size. With --gpu-ptx: keeps the function, whose op becomes launches of kernels in a gpu.binary, and prints it.

#include "attn/Compiler/Compiler.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

static OwningOpRef<ModuleOp> buildProgram(MLIRContext &context) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());

  // 8 query heads over 2 KV heads of 64, ragged keys; every length is a run-time value.
  Type half = builder.getBF16Type();
  int64_t dyn = ShapedType::kDynamic;
  auto q = MemRefType::get({dyn, 8, 64}, half), kv = MemRefType::get({dyn, 2, 64}, half);
  auto indptr = MemRefType::get({dyn}, builder.getI32Type());
  auto type = builder.getFunctionType({q, indptr, kv, kv, indptr, q}, {});
  auto func = func::FuncOp::create(builder, loc, "attention", type);
  builder.setInsertionPointToStart(func.addEntryBlock());
  auto args = func.getArguments();
  mlir::attn::AttentionOp::create(
      builder, loc, /*results=*/TypeRange(), /*variant=*/FlatSymbolRefAttr(), /*params=*/ValueRange(),
      /*scale=*/Value(), args[0], args[1], args[2], args[3], /*kv_indptr=*/ValueRange(args[4]),
      /*kv_indices=*/ValueRange(), /*kv_last=*/ValueRange(), /*row_indptr=*/ValueRange(),
      /*o=*/args[5], /*lse=*/Value(), mlir::attn::FormatAttr::get(&context, mlir::attn::FormatKind::Ragged, 0),
      mlir::attn::LseBase::Natural, /*configs=*/ArrayAttr(), /*target=*/mlir::attn::TargetAttr());
  func::ReturnOp::create(builder, loc);
  return module;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  ::attn::registerCompilerDialects(registry);
  MLIRContext context(registry);
  context.loadDialect<::attn::AttnDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = buildProgram(context);
  if (argc > 1 && llvm::StringRef(argv[1]) == "--gpu-ptx") {
    PassManager pm(&context);
    ::attn::buildGpuBinaryPipeline(pm, "sm_80", /*ptxas=*/"", /*format=*/"ptx");
    if (failed(pm.run(*module)))
      return 1;
    llvm::outs() << *module << '\n';
    return 0;
  }

  ::attn::CompileOptions options;
  options.target = "host";
  auto result = ::attn::compile(*module, options);
  if (!result) {
    llvm::errs() << "embed: " << llvm::toString(result.takeError()) << '\n';
    return 1;
  }
  llvm::outs() << "bundle of " << result->output.size() << " bytes\n";
  return 0;
}
