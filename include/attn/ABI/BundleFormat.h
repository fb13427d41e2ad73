//===- BundleFormat.h - putting a bundle together ---------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The byte layout of AttnBundleHeader, manifest and blobs in one place, for
// the compiler, the tests and tools; standard headers only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ABI_BUNDLEFORMAT_H
#define ATTN_ABI_BUNDLEFORMAT_H

#include "attn/ABI/ABI.h"

#include <cstring>
#include <string>
#include <string_view>

namespace attnabi {

/// Where the first blob starts, for a manifest of that many bytes.
inline uint64_t blobStart(uint64_t manifestBytes) { return (sizeof(AttnBundleHeader) + manifestBytes + 63) / 64 * 64; }

/// Appends a blob to `blobs`, aligned to 64, and returns its offset: the
/// "offset" of its manifest entry.
inline uint64_t appendBlob(std::string &blobs, std::string_view blob) {
  blobs.resize((blobs.size() + 63) / 64 * 64, '\0');
  uint64_t offset = blobs.size();
  blobs.append(blob);
  return offset;
}

/// The bundle file for that manifest and those blobs.
inline std::string makeBundle(std::string_view manifest, std::string_view blobs) {
  AttnBundleHeader header;
  std::memset(&header, 0, sizeof(header));
  std::memcpy(header.magic, ATTN_BUNDLE_MAGIC, sizeof(header.magic));
  header.abi_version = ATTN_ABI_VERSION;
  header.manifest_bytes = manifest.size();
  header.blob_bytes = blobs.size();
  std::string out(reinterpret_cast<const char *>(&header), sizeof(header));
  out.append(manifest);
  out.resize(blobStart(manifest.size()), '\0');
  out.append(blobs);
  return out;
}

} // namespace attnabi

#endif // ATTN_ABI_BUNDLEFORMAT_H
