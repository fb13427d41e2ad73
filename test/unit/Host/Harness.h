//===- Harness.h - runs tile kernels on this machine ------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a module of level-L kernels through the JIT and calls them with
// words found by name, as the manifest describes them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_HOST_HARNESS_H
#define ATTN_TEST_UNIT_HOST_HARNESS_H

#include "attn/ABI/ABI.h"
#include "attn/Reference/Rounding.h"
#include "attn/Target/Host.h"
#include "mlir/IR/MLIRContext.h"
#include <map>
#include <string>
#include <vector>

namespace attn {

/// An operand of a kernel by its name in the ABI.
struct Operand {
  void *pointer = nullptr;
  std::vector<int64_t> sizes, strides;
};

/// What the words of a kernel may name.
struct Arguments {
  std::map<std::string, Operand> operands;
  std::map<std::string, AttnWord> params;
  float scale = 1;
};

class Kernels {
public:
  /// Parses and compiles; the text of the failure, or "".
  std::string compile(const std::string &text, const mlir::tile::TileToCPUOptions &options, unsigned optLevel = 2);
  /// Runs CTAs 0 .. ctas of kernel `name`; "" or what went wrong (a word without an operand, scratch overrun).
  std::string run(const std::string &name, const Arguments &arguments, int ctas);

private:
  struct Word {
    std::string kind, operand;
    int64_t dim;
  };
  struct Kernel {
    std::vector<Word> words;
    int64_t scratch;
  };
  std::map<std::string, Kernel> kernels;
  std::unique_ptr<HostJIT> jit;
};

/// test/Kernels/NAME.
std::string readKernel(const std::string &name);
/// A file of several kernels with only that one.
std::string onlyKernel(const std::string &text, const std::string &name);
/// Every `from` replaced.
std::string replaceAll(std::string text, const std::string &from, const std::string &to);

} // namespace attn

#endif
