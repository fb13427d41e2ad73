//===- Bundle.h - writes the file that the runtime loads -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Format and manifest are described in attn/ABI/ABI.h.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_BUNDLE_H
#define ATTN_TARGET_BUNDLE_H

#include "mlir/IR/Attributes.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace attn {

/// Machine code of one or more kernels: "cubin", "ptx" or "so".
struct BundleBlob {
  std::string kind;
  std::string bytes;
};

/// Header, manifest and blobs as one string; fills in the manifest's "abi" and "blobs".
std::string writeBundle(llvm::json::Object manifest, const std::vector<BundleBlob> &blobs);

/// Attributes made of strings, integers, floats, booleans, arrays and dictionaries as JSON.
llvm::json::Value attributeToJson(mlir::Attribute attribute);

} // namespace attn

#endif
