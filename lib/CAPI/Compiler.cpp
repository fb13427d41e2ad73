//===- Compiler.cpp - C API of the compiler -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn-c/Compiler.h"
#include "attn/Compiler/Compiler.h"
#include "llvm/Support/FormatVariadic.h"

struct AttnCompileResult {
  ::attn::CompileResult result;
  std::string times, configs;
};

static thread_local std::string lastError;

static AttnCompilerStatus fail(AttnCompilerStatus status, std::string text) {
  lastError = std::move(text);
  return status;
}

uint32_t attnCompilerApiVersion(void) { return ATTN_COMPILER_API_VERSION; }
const char *attnCompilerLastError(void) { return lastError.c_str(); }

AttnCompilerStatus attnCompile(const char *ir, size_t irBytes, const AttnCompileOptions *options,
                               AttnCompileResult **result) {
  if (!result)
    return fail(ATTN_COMPILER_INVALID_ARGUMENT, "result is null; pass the address of a handle");
  *result = nullptr;
  if (!ir)
    return fail(ATTN_COMPILER_INVALID_ARGUMENT, "ir is null; pass the text of a module");
  if (!options || options->size != sizeof(AttnCompileOptions))
    return fail(ATTN_COMPILER_INVALID_ARGUMENT,
                "options has an unknown size; set options.size to sizeof(AttnCompileOptions)");
  ::attn::CompileOptions compileOptions;
  if (options->target)
    compileOptions.target = options->target;
  if (options->emit) {
    auto kind = ::attn::parseEmit(options->emit);
    if (!kind)
      return fail(ATTN_COMPILER_INVALID_ARGUMENT,
                  "unknown emit '" + std::string(options->emit) + "'; expected tile, llvm, ptx, cubin, obj or bundle");
    compileOptions.emit = *kind;
  }
  if (options->kernel)
    compileOptions.kernel = options->kernel;
  if (options->ptxas)
    compileOptions.ptxas = options->ptxas;
  if (options->cache_dir)
    compileOptions.cacheDir = options->cache_dir;
  if (options->tuned)
    compileOptions.tuned = options->tuned;
  compileOptions.isolate = options->isolate != 0;
  if (options->isolate)
    compileOptions.isolateSeconds = options->isolate;

  mlir::DialectRegistry registry;
  ::attn::registerCompilerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  // The parser wants a terminating zero behind the text.
  std::string text(ir, irBytes);
  auto module = ::attn::parseModule(text, "ir", context);
  if (!module)
    return fail(ATTN_COMPILER_FAILED, llvm::toString(module.takeError()));
  auto compiled = ::attn::compile(**module, compileOptions);
  if (!compiled)
    return fail(ATTN_COMPILER_FAILED, llvm::toString(compiled.takeError()));
  auto *handle = new AttnCompileResult{std::move(*compiled), {}, {}};
  for (const ::attn::StageTime &time : handle->result.times)
    handle->times += llvm::formatv("{0}\t{1:f3}\n", time.stage, time.milliseconds);
  for (const ::attn::KernelConfig &kernel : handle->result.configs)
    handle->configs += kernel.kernel + '\t' + kernel.config + '\t' + kernel.source + '\n';
  *result = handle;
  return ATTN_COMPILER_OK;
}

const void *attnCompileResultData(const AttnCompileResult *result) { return result->result.output.data(); }
size_t attnCompileResultSize(const AttnCompileResult *result) { return result->result.output.size(); }
int attnCompileResultFromCache(const AttnCompileResult *result) { return result->result.fromCache; }
const char *attnCompileResultConfigs(const AttnCompileResult *result) { return result->configs.c_str(); }
const char *attnCompileResultTimes(const AttnCompileResult *result) { return result->times.c_str(); }
void attnCompileResultDestroy(AttnCompileResult *result) { delete result; }
