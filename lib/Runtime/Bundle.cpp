//===- Bundle.cpp - reading a bundle --------------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing of the file is believed before its sizes agree with the header.
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Bundle.h"

#include "attn/ABI/BundleFormat.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace attnrt;

static Status bad(const std::string &what) { return Status(Code::InvalidBundle, "bundle: " + what); }

Status Bundle::fromMemory(const void *data, size_t size, std::shared_ptr<const Bundle> &bundle) {
  if (!data)
    return invalid("bundle: argument 'data' is null");
  AttnBundleHeader header;
  if (size < sizeof(header))
    return bad("expected at least " + std::to_string(sizeof(header)) + " bytes, got " + std::to_string(size));
  std::memcpy(&header, data, sizeof(header));
  if (std::memcmp(header.magic, ATTN_BUNDLE_MAGIC, sizeof(header.magic)) != 0)
    return bad("wrong magic; this is not a bundle");
  if (header.abi_version != ATTN_ABI_VERSION)
    return bad("this runtime reads ABI version " + std::to_string(ATTN_ABI_VERSION) + ", got " +
               std::to_string(header.abi_version) + "; compile the variant again");
  if (header.reserved != 0)
    return bad("expected 0 in the header's reserved field, got " + std::to_string(header.reserved));
  uint64_t rest = size - sizeof(header);
  if (header.manifest_bytes > rest)
    return bad("the manifest reaches past the end; the file is cut short");
  uint64_t start = attnabi::blobStart(header.manifest_bytes);
  if (start > size)
    start = header.blob_bytes == 0 ? size : start;
  if (start > size || header.blob_bytes != size - start)
    return bad("expected " + std::to_string(header.blob_bytes) + " blob bytes, got " +
               std::to_string(start > size ? 0 : size - start) + "; the file is cut short or has bytes too many");
  const char *bytes = static_cast<const char *>(data);
  auto result = std::make_shared<Bundle>();
  result->text.assign(bytes + sizeof(header), header.manifest_bytes);
  ATTNRT_TRY(parseManifest(result->text, header.blob_bytes, result->contents));
  result->blobs.assign(bytes + start, bytes + size);
  // The driver takes PTX as a string: a zero after the last blob makes every blob safe to scan.
  result->blobs.push_back('\0');
  bundle = std::move(result);
  return Status();
}

Status Bundle::fromFile(const std::string &path, std::shared_ptr<const Bundle> &bundle) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return Status(Code::IoError, "bundle: cannot open '" + path + "': " + std::strerror(errno));
  std::vector<char> bytes;
  char buffer[1 << 16];
  size_t got;
  while ((got = std::fread(buffer, 1, sizeof(buffer), file)) > 0)
    bytes.insert(bytes.end(), buffer, buffer + got);
  bool failed = std::ferror(file);
  std::fclose(file);
  if (failed)
    return Status(Code::IoError, "bundle: cannot read '" + path + "'");
  if (bytes.empty())
    return bad("'" + path + "' is empty");
  return fromMemory(bytes.data(), bytes.size(), bundle);
}
