//===- PlanLayout.cpp - sizes before allocation ---------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds on everything that a plan can hold, from the declared maxima. With B
// requests, T tokens, L levels and a kernel whose tiles hold t tokens:
//   tiles of a level    <= min(T, T / t + B)           (a request opens at most one tile that is not full)
//   extra pieces (auto) <= ceil(CTAs / head tiles)     (cuts fall between equal shares of the grid)
//   extra pieces (chunk) <= tiles * ((kv - 1) / chunk)
// and each merged token of a piece takes heads_qo rows of the partial buffers.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <algorithm>
#include <climits>

using namespace attnrt;

int64_t PlanImpl::chunkFor(const KernelDesc &kernel) const {
  int64_t chunk = options.chunk ? options.chunk : DefaultChunk;
  return (chunk + kernel.keys - 1) / kernel.keys * kernel.keys;
}

static int64_t alignUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

static Status tooLarge(const char *what, double value) {
  return Status(Code::ExceedsMaxima, std::string("plan: the maxima need ") +
                                         std::to_string(static_cast<long long>(value)) + " " + what +
                                         ", more than 2147483647; declare smaller maxima or a larger chunk");
}

Status PlanImpl::computeLayout(const Maxima &max, Layout &out) const {
  const Manifest &m = manifest();
  auto negative = [](const char *name, int64_t value) {
    return invalid(std::string("plan: maxima.") + name + ": expected 0.." + std::to_string(INT_MAX) + ", got " +
                   std::to_string(value));
  };
  if (max.requests < 0 || max.requests > INT_MAX)
    return negative("requests", max.requests);
  if (max.tokens < 0 || max.tokens > INT_MAX)
    return negative("tokens", max.tokens);
  if (max.kvLen < 0 || max.kvLen > INT_MAX)
    return negative("kv_len", max.kvLen);
  if (max.levels < 0 || max.levels > m.levels)
    return invalid("plan: maxima.levels: expected 0.." + std::to_string(m.levels) + " (the bundle's levels), got " +
                   std::to_string(max.levels));
  const int64_t T = max.tokens, L = max.levels ? max.levels : m.levels;
  const bool chunked = options.policy == SplitPolicy::Chunk || options.policy == SplitPolicy::BatchInvariant;
  const bool split = canSplit() && options.policy != SplitPolicy::None;
  // A row block of a bsr plays the part of a request.
  const int64_t B = m.format == Format::Bsr ? std::min(T, T / m.rowBlock + max.requests) : std::min(T, max.requests);

  out = Layout();
  int64_t maxTile = 1, minChunk = INT64_MAX;
  for (const KernelDesc &desc : m.kernels) {
    maxTile = std::max<int64_t>(maxTile, desc.tokensPerTile());
    minChunk = std::min(minChunk, chunkFor(desc));
  }
  const int64_t chunkExtra = chunked && split && max.kvLen > 0 ? (max.kvLen - 1) / minChunk : 0;
  // The batch-invariant policy splits requests of one tile only (shared levels: all).
  const bool oneTile = options.policy == SplitPolicy::BatchInvariant && L == 1;
  const int64_t splitTokens = oneTile ? std::min(T, B * maxTile) : T;

  int64_t offset = 0, mergePieces = L > 1 ? T * L : 0, mergeTokens = L > 1 ? T : 0;
  bool rowTable = false;
  for (const KernelDesc &desc : m.kernels) {
    Layout::Kernel kernel;
    kernel.ctas = options.ctas ? options.ctas : units_ * desc.ctasPerSm;
    kernel.headTiles = m.headsQo / desc.pack;
    int64_t tile = desc.tokensPerTile(), tiles = std::min(T, T / tile + B), extra = 0;
    if (split && !chunked && T > 0) {
      extra = (kernel.ctas + kernel.headTiles - 1) / kernel.headTiles;
      // Pieces of the units that are cut; with several levels their first piece is counted already.
      mergePieces += (L > 1 ? extra : 2 * extra) * std::min(T, tile);
      mergeTokens += extra * std::min(T, tile);
    }
    double items =
        (static_cast<double>(tiles) * L + extra + static_cast<double>(tiles) * chunkExtra) * kernel.headTiles;
    if (items > INT_MAX)
      return tooLarge("work items", items);
    kernel.capacity = static_cast<int64_t>(items);
    rowTable |= desc.rowTable;
    out.kernels.push_back(kernel);
  }
  if (chunkExtra > 0) {
    double pieces = static_cast<double>(splitTokens) * (L + chunkExtra);
    if (pieces > INT_MAX)
      return tooLarge("merge pieces", pieces);
    mergePieces = static_cast<int64_t>(pieces);
    mergeTokens = splitTokens;
  }
  mergeTokens = std::min(mergeTokens, T);
  double partRows = static_cast<double>(mergePieces) * m.headsQo;
  if (partRows > INT_MAX)
    return tooLarge("partial rows", partRows);
  out.partRows = canSplit() ? static_cast<int64_t>(partRows) : 0;
  out.pieceCapacity = canSplit() ? mergePieces : 0;
  out.tokenCapacity = rowTable ? T : 0;

  // Small parts first, so that one short copy covers a small batch.
  for (Layout::Kernel &kernel : out.kernels) {
    kernel.counter = offset;
    offset += 64;
  }
  auto place = [&](int64_t bytes) {
    int64_t at = offset;
    offset = alignUp(offset + bytes, 256);
    return at;
  };
  offset = alignUp(offset, 256);
  for (Layout::Kernel &kernel : out.kernels)
    kernel.indptr = place(4 * (kernel.ctas + 1));
  if (canSplit()) {
    const KernelDesc &desc = *m.merge;
    out.merge.ctas = options.ctas ? options.ctas : units_ * desc.ctasPerSm;
    out.merge.headTiles = (m.headsQo + desc.rows - 1) / desc.rows;
    double items = static_cast<double>(mergeTokens) * out.merge.headTiles;
    if (items > INT_MAX)
      return tooLarge("merge items", items);
    out.merge.capacity = static_cast<int64_t>(items);
    out.merge.counter = place(64);
    out.merge.indptr = place(4 * (out.merge.ctas + 1));
  }
  for (Layout::Kernel &kernel : out.kernels)
    kernel.items = place(kernel.capacity * sizeof(AttnWorkItem));
  out.tokens = place(out.tokenCapacity * sizeof(AttnTokenInfo));
  out.merge.items = place(out.merge.capacity * sizeof(AttnWorkItem));
  out.pieces = place(out.pieceCapacity * sizeof(AttnMergePiece));
  out.planBytes = offset;
  out.partO = place(out.partRows * m.headDimVo * 4);
  out.partLse = place(out.partRows * 4);
  out.totalBytes = offset;
  return Status();
}

Status PlanImpl::ensureWorkspace() {
  if (workspaceBytes < layout.totalBytes || !workspace) {
    if (!ownsWorkspace && workspace)
      return Status(Code::WorkspaceTooSmall, "plan: the workspace has " + std::to_string(workspaceBytes) +
                                                 " bytes, but " + std::to_string(layout.totalBytes) +
                                                 " are needed; pass a larger one to setWorkspace");
    // Work in flight may still read the old one; freeing device memory waits for it.
    if (workspace)
      ATTNRT_TRY(device().free(workspace));
    workspace = nullptr;
    workspaceBytes = 0;
    void *pointer = nullptr;
    int64_t bytes = fixed ? layout.totalBytes : layout.totalBytes + layout.totalBytes / 4;
    ATTNRT_TRY(device().alloc(bytes, pointer));
    workspace = static_cast<char *>(pointer);
    workspaceBytes = bytes;
    ownsWorkspace = true;
    ++layoutGeneration;
  }
  return Status();
}
