//===- CodegenTest.cpp - objects, shared objects, targets ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace attn;

namespace {
llvm::Expected<std::string> compileMerge(const HostTarget &target, bool assembly = false) {
  mlir::DialectRegistry registry;
  registry
      .insert<mlir::attn::AttnDialect, mlir::tile::TileDialect, mlir::LLVM::LLVMDialect, mlir::vector::VectorDialect>();
  registerHostTranslations(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(readKernel("merge-l.mlir"), &context);
  mlir::PassManager pm(&context);
  buildHostPipeline(pm, target.conversionOptions());
  if (!module || mlir::failed(pm.run(*module)))
    return llvm::createStringError("lowering failed");
  return assembly ? compileToAssembly(*module, target) : compileToObject(*module, target);
}
} // namespace

TEST(HostCodegen, SameModuleSameBytes) {
  auto first = compileMerge({}), second = compileMerge({});
  ASSERT_TRUE(bool(first) && bool(second));
  EXPECT_EQ(*first, *second);
  auto a = linkSharedObject(*first), b = linkSharedObject(*second);
  ASSERT_TRUE(bool(a)) << llvm::toString(a.takeError());
  ASSERT_TRUE(bool(b)) << llvm::toString(b.takeError());
  EXPECT_EQ(*a, *b);
}

TEST(HostCodegen, SharedObjectLoads) {
  auto object = compileMerge({});
  ASSERT_TRUE(bool(object));
  auto shared = linkSharedObject(*object);
  ASSERT_TRUE(bool(shared)) << llvm::toString(shared.takeError());
  char path[] = "/tmp/attn-host-test-XXXXXX";
  int file = mkstemp(path);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, shared->data(), shared->size()), static_cast<ssize_t>(shared->size()));
  close(file);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(handle) << dlerror();
  if (handle)
    EXPECT_TRUE(dlsym(handle, "merge"));
  unlink(path);
}

TEST(HostCodegen, NoLibraryCalls) {
  // Nothing but the C library's memory functions may be left for the linker.
  for (const char *features : {"", "+sse4.2", "+avx2,+fma,+f16c"}) {
    HostTarget target;
    if (*features) {
      target.cpu = "x86-64";
      target.features = features;
    }
    auto text = compileMerge(target, /*assembly=*/true);
    ASSERT_TRUE(bool(text));
    for (const char *name : {"exp2f", "log2f", "fmaf", "__truncsfbf2", "__truncsfhf2", "__extendhfsf2"})
      EXPECT_EQ(text->find(name), std::string::npos) << name;
  }
}

TEST(HostCodegen, Errors) {
  auto missing = linkSharedObject("", "no-such-linker");
  ASSERT_FALSE(bool(missing));
  EXPECT_EQ(llvm::toString(missing.takeError()), "found no linker (no-such-linker); put one on PATH or name it");
  auto broken = linkSharedObject("not an object");
  ASSERT_FALSE(bool(broken));
  EXPECT_NE(llvm::toString(broken.takeError()).find("failed: "), std::string::npos);
  auto load = HostJIT::create("not an object");
  if (load) {
    auto symbol = (*load)->lookup("merge");
    EXPECT_FALSE(bool(symbol));
    llvm::consumeError(symbol.takeError());
  } else {
    llvm::consumeError(load.takeError());
  }
  HostTarget target;
  target.triple = "nowhere-none-none";
  auto object = compileMerge(target);
  ASSERT_FALSE(bool(object));
  EXPECT_NE(llvm::toString(object.takeError()).find("cannot generate code for target 'nowhere-none-none': "),
            std::string::npos);
}

TEST(HostCodegen, WidthFollowsFeatures) {
  HostTarget target;
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64";
  EXPECT_EQ(target.conversionOptions().width, 4);
  EXPECT_FALSE(target.conversionOptions().f16c);
  target.features = "+avx2,+f16c,+fma";
  EXPECT_EQ(target.conversionOptions().width, 8);
  EXPECT_TRUE(target.conversionOptions().f16c);
  target.features = "+avx2,+avx512f,+f16c,+fma";
  EXPECT_EQ(target.conversionOptions().width, 16);
}
