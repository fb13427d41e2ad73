//===- Bundle.h - compiled kernels and their manifest -----------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bundle in memory: checked manifest and blobs. It belongs to no device;
// several devices may load the same one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_BUNDLE_H
#define ATTN_RUNTIME_BUNDLE_H

#include "attn/Runtime/Manifest.h"

#include <memory>
#include <string>
#include <vector>

namespace attnrt {

class ATTNRT_API Bundle {
public:
  /// Reads and checks the bundle in `path`.
  static Status fromFile(const std::string &path, std::shared_ptr<const Bundle> &bundle);
  /// Copies and checks `size` bytes.
  static Status fromMemory(const void *data, size_t size, std::shared_ptr<const Bundle> &bundle);

  const Manifest &manifest() const { return contents; }
  const std::string &manifestText() const { return text; }
  const char *blob(int index) const { return blobs.data() + contents.blobs[index].offset; }

private:
  Manifest contents;
  std::string text;
  std::vector<char> blobs;
};

} // namespace attnrt

#endif // ATTN_RUNTIME_BUNDLE_H
