//===- Cache.cpp - compiled bundles on disk -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Cache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

static std::string digest(llvm::StringRef text) {
  auto hash = llvm::SHA256::hash(llvm::ArrayRef<uint8_t>(text.bytes_begin(), text.bytes_end()));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

std::string attn::getDefaultCacheDir() {
  if (const char *dir = std::getenv("ATTN_CACHE_DIR"))
    return dir;
  llvm::SmallString<128> path;
  if (const char *xdg = std::getenv("XDG_CACHE_HOME"))
    path = xdg;
  else if (const char *home = std::getenv("HOME"))
    (path = home) += "/.cache";
  if (path.empty())
    return {};
  llvm::sys::path::append(path, "attn-mlir");
  return path.str().str();
}

std::string attn::BundleCache::pathFor(llvm::StringRef key) const {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, digest(key) + ".attn");
  return path.str().str();
}

std::optional<std::string> attn::BundleCache::lookup(llvm::StringRef key) const {
  if (directory.empty())
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(pathFor(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  // 64 hexadecimal digits of the bundle's SHA-256, then the bundle.
  llvm::StringRef text = (*file)->getBuffer();
  if (text.size() < 64 || digest(text.drop_front(64)) != text.take_front(64))
    return std::nullopt;
  return text.drop_front(64).str();
}

llvm::Error attn::BundleCache::store(llvm::StringRef key, llvm::StringRef bundle) const {
  if (directory.empty())
    return llvm::Error::success();
  if (std::error_code code = llvm::sys::fs::create_directories(directory))
    return llvm::createStringError(code, "cache directory '" + directory + "' cannot be created: " + code.message());
  std::string path = pathFor(key);
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    os << digest(bundle) << bundle;
    return llvm::Error::success();
  });
  return error;
}
