//===- Cache.h - compiled bundles on disk -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Entries are files named by the key's SHA-256, written beside and renamed, so
// that readers never see half of one; an entry that does not match its digest
// is taken as absent.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILER_CACHE_H
#define ATTN_COMPILER_CACHE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace attn {

/// $ATTN_CACHE_DIR, else $XDG_CACHE_HOME/attn-mlir, else ~/.cache/attn-mlir; empty when none of them can be told.
std::string getDefaultCacheDir();

class BundleCache {
public:
  /// An empty directory name makes a cache that holds nothing.
  explicit BundleCache(std::string directory) : directory(std::move(directory)) {}
  /// The entry for `key` (any text), or nothing when it is absent or damaged.
  std::optional<std::string> lookup(llvm::StringRef key) const;
  /// Stores an entry. Errors: the directory cannot be made or written.
  llvm::Error store(llvm::StringRef key, llvm::StringRef bundle) const;

private:
  std::string pathFor(llvm::StringRef key) const;
  std::string directory;
};

} // namespace attn

#endif
