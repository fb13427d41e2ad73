//===- Manifest.h - from IR to the bundle's manifest -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The half of the manifest that the attention op states, and the record of each
// kernel that the lowerings leave as attributes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_MANIFEST_H
#define ATTN_COMPILER_MANIFEST_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace attn {

/// The manifest's name in ABI.h of a storage or buffer element type, "" when it has none.
llvm::StringRef getElementName(mlir::Type type);

/// Everything of the manifest but "kernels", "merge", "range" and "blobs".
llvm::Expected<llvm::json::Object> describeAttention(mlir::attn::AttentionOp op, llvm::StringRef target);

/// One entry of "kernels" (or "merge"): `config` is the kernel's #attn.config, `lowered` the function that carries
/// attn.words, attn.maps, attn.smem and attn.threads.
llvm::Expected<llvm::json::Object> describeKernel(llvm::StringRef symbol, mlir::attn::ConfigAttr config,
                                                  mlir::Operation *lowered, int64_t blob, int64_t ctasPerSm);

} // namespace attn

#endif
