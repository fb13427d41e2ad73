//===- Through.h - a kernel through its passes, checked after each -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTN_INTERPRET_THROUGH_H
#define ATTN_TOOLS_ATTN_INTERPRET_THROUGH_H

#include "attn/Interpreter/Check.h"

/// Runs the passes that the config of each kernel asks for, one by one; after each of them the interpreter compares
/// `runs` random batches with what the kernel meant before the first pass. Prints a line for each kernel. Kernels
/// without a config stay. Failure is 1 with an error that names the pass; 3 when a pass refuses the kernel.
int runThrough(mlir::ModuleOp module, llvm::ArrayRef<mlir::tile::KernelOp> kernels, mlir::tile::CheckOptions options,
               int64_t runs);

#endif
