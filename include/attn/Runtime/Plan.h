//===- Plan.h - from a batch to work items, and running them ----*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Plan turns the lengths of a batch into lists of work items for a fixed
// grid, keeps them in a workspace whose size is known beforehand, and runs
// them. Its layout depends on the declared maxima only, so a captured graph
// replays right after a new plan() with other lengths.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_PLAN_H
#define ATTN_RUNTIME_PLAN_H

#include "attn/Runtime/Device.h"

#include <memory>
#include <string>
#include <vector>

namespace attnrt {

/// The largest batch that a plan with fixed sizes accepts. All zero: sizes follow each batch.
struct Maxima {
  int64_t requests = 0;
  int64_t tokens = 0; ///< query tokens of the batch
  int64_t kvLen = 0;  ///< keys of one request, over all levels (needed by the chunked policies only)
  int32_t levels = 0; ///< 0: the bundle's
};

enum class SplitPolicy : int {
  Auto = 0,           ///< split when it shortens the schedule
  None = 1,           ///< never split
  Chunk = 2,          ///< split every request in chunks of `chunk` keys
  BatchInvariant = 3, ///< as Chunk, deciding from the request alone; same bits alone and in any batch
};

enum class Hint : int { FromBundle = 0, On = 1, Off = 2 };

struct PlanOptions {
  Maxima maxima;
  SplitPolicy policy = SplitPolicy::Auto;
  int64_t chunk = 0;  ///< keys, rounded up to a multiple of the kernel's tile; 0: 4096
  int32_t ctas = 0;   ///< CTAs of each kernel; 0: compute units x ctas_per_sm
  int32_t units = 0;  ///< compute units to use; 0: the device's
  int64_t cache = -1; ///< bytes of the cache that units share; -1: the device's, 0: not planned for
  Hint causal = Hint::FromBundle;
  bool fixedGrid = false; ///< launch every kernel always, so that a captured graph stays valid
};

/// Host array of int32 or int64.
struct IndexArray {
  const void *data = nullptr;
  int64_t size = 0;
  int bits = 32;
  int64_t operator[](int64_t i) const {
    return bits == 64 ? static_cast<const int64_t *>(data)[i] : static_cast<const int32_t *>(data)[i];
  }
};

struct LevelInput {
  IndexArray kvIndptr;         ///< entries + 1: pages (paged, bsr) or tokens (ragged)
  IndexArray kvLast;           ///< entries: keys of the last page (paged, bsr)
  IndexArray rowIndptr;        ///< entries + 1: runs of requests that share an entry; empty: one request each
  const void *pages = nullptr; ///< device array of page indices (paged, bsr), index_bits of the manifest
};

/// Value of a parameter, for the mask analysis: the host copy of a buffer may be null.
struct ParamValue {
  double f32 = 0;
  int64_t index = 0;
  const void *host = nullptr;
  int64_t hostSize = 0; ///< elements
};

struct PlanInput {
  IndexArray qoIndptr; ///< requests + 1
  std::vector<LevelInput> levels;
  IndexArray
      kvTotal; ///< bsr only, optional: keys of each sequence, for hooks; default: the longest list of its row blocks
  std::vector<ParamValue> params; ///< in the manifest's order; empty: whole ranges are assumed visible
};

struct TensorArg {
  void *data = nullptr;
  Element element = Element::F32;
  int rank = 0;
  int64_t sizes[8] = {};
  int64_t strides[8] = {}; ///< elements
};

struct ParamArg {
  float f32 = 0;
  int64_t index = 0;
  TensorArg buffer;
};

struct Operands {
  TensorArg q, k, v, o, lse; ///< lse.data null: not given
  const ParamArg *params = nullptr;
  int numParams = 0;
  bool hasScale = false; ///< false: 1 / sqrt(head_dim_qk)
  float scale = 0;
};

struct PlanImpl;

class ATTNRT_API Plan {
public:
  static Status create(std::shared_ptr<Executable> executable, const PlanOptions &options, std::shared_ptr<Plan> &plan);
  ~Plan();

  /// Bytes for those maxima: the items and tables that plan() writes, and, with the partial results, all of the
  /// workspace.
  Status planSize(const Maxima &maxima, int64_t &bytes) const;
  Status workspaceSize(const Maxima &maxima, int64_t &bytes) const;
  /// The same for a batch: what this batch needs when no maxima are declared.
  Status workspaceSize(const PlanInput &input, int64_t &bytes);

  /// Uses the caller's device memory (aligned to 256). Without this call the plan allocates its own.
  Status setWorkspace(void *pointer, int64_t bytes);

  /// Replaces the schedule. Asynchronous on `stream`, where the following runs must go as well.
  Status plan(const PlanInput &input, void *stream);
  /// Launches the kernels of the last plan.
  Status run(const Operands &operands, void *stream);

  /// Checks page indices against the number of pages: `pages` are host copies, one a level.
  Status validatePages(const PlanInput &input, const std::vector<IndexArray> &pages, int64_t pageCount);

  /// The last plan for people: JSON, or an SVG picture.
  Status describe(std::string &json) const;
  Status svg(std::string &text) const;

  /// The items of kernel `index` (or of the merge kernel: -1) and the start of each CTA's list, host copies.
  Status items(int index, const AttnWorkItem *&data, int64_t &count, const int32_t *&ctaIndptr, int32_t &ctas) const;
  Status pieces(const AttnMergePiece *&data, int64_t &count) const;
  /// An array of the last plan in device memory, for launches that are not ours: "items", "cta_indptr" or "counter" of
  /// kernel `index` (the merge kernel: -1), or "tokens", "pieces", "part_o" or "part_lse" of the plan. `count` is in
  /// records (words for indptr and counter, rows for partial results).
  Status array(int index, const std::string &name, void *&data, int64_t &count) const;

private:
  Plan();
  std::unique_ptr<PlanImpl> impl;
};

} // namespace attnrt

#endif // ATTN_RUNTIME_PLAN_H
