//===- Plan.cpp - the public face of planning -----------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Order of the steps, ownership of the workspace and of the staging buffers.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <climits>

using namespace attnrt;

Plan::Plan() : impl(std::make_unique<PlanImpl>()) {}

Plan::~Plan() {
  if (!impl->executable)
    return;
  // Errors of a device that is going away have nobody to tell.
  Device &device = impl->device();
  Status status;
  if (impl->ownsWorkspace)
    status = device.free(impl->workspace);
  for (PlanImpl::Staging &staging : impl->staging) {
    if (staging.event) {
      if (staging.busy)
        status = device.waitEvent(staging.event);
      status = device.destroyEvent(staging.event);
    }
    status = device.freeHost(staging.data);
  }
}

Status Plan::create(std::shared_ptr<Executable> executable, const PlanOptions &options, std::shared_ptr<Plan> &plan) {
  if (!executable)
    return invalid("plan: argument 'executable' is null");
  if (options.policy < SplitPolicy::Auto || options.policy > SplitPolicy::BatchInvariant)
    return invalid("plan: option 'policy': expected 0..3, got " + std::to_string(static_cast<int>(options.policy)));
  if (options.causal < Hint::FromBundle || options.causal > Hint::Off)
    return invalid("plan: option 'causal': expected 0..2, got " + std::to_string(static_cast<int>(options.causal)));
  if (options.chunk < 0 || options.chunk > INT_MAX / 2)
    return invalid("plan: option 'chunk': expected 0.." + std::to_string(INT_MAX / 2) + " keys, got " +
                   std::to_string(options.chunk));
  if (options.ctas < 0 || options.ctas > 1 << 20)
    return invalid("plan: option 'ctas': expected 0..1048576, got " + std::to_string(options.ctas));
  if (options.units < 0 || options.units > 1 << 14)
    return invalid("plan: option 'units': expected 0..16384, got " + std::to_string(options.units));
  const bool chunked = options.policy == SplitPolicy::Chunk || options.policy == SplitPolicy::BatchInvariant;
  const Manifest &m = executable->manifest();
  if (options.policy == SplitPolicy::Chunk && !m.merge)
    return invalid("plan: option 'policy': this bundle has no merge kernel, so nothing can be split; use auto or none");
  const Maxima &max = options.maxima;
  const bool fixed = max.requests || max.tokens || max.kvLen || max.levels;
  if (fixed && chunked && m.merge && max.kvLen == 0)
    return invalid("plan: maxima.kv_len: the chunked policies need the length of the longest request, got 0");
  if (options.fixedGrid && !fixed)
    return invalid("plan: option 'fixed_grid' needs declared maxima, so that addresses never change; set maxima");

  std::shared_ptr<Plan> result(new Plan());
  PlanImpl &p = *result->impl;
  p.executable = std::move(executable);
  p.options = options;
  p.units_ = options.units ? options.units : p.device().computeUnits();
  p.fixed = fixed;
  if (fixed) {
    p.maxima = max;
    ATTNRT_TRY(p.computeLayout(max, p.layout));
  }
  plan = std::move(result);
  return Status();
}

Status Plan::planSize(const Maxima &maxima, int64_t &bytes) const {
  Layout layout;
  ATTNRT_TRY(impl->computeLayout(maxima, layout));
  bytes = layout.planBytes;
  return Status();
}

Status Plan::workspaceSize(const Maxima &maxima, int64_t &bytes) const {
  Layout layout;
  ATTNRT_TRY(impl->computeLayout(maxima, layout));
  bytes = layout.totalBytes;
  return Status();
}

Status Plan::workspaceSize(const PlanInput &input, int64_t &bytes) {
  impl->planned = false; // validate() overwrites what a plan keeps
  ATTNRT_TRY(impl->validate(input));
  impl->input = nullptr;
  if (impl->fixed) {
    bytes = impl->layout.totalBytes;
    return Status();
  }
  return workspaceSize(impl->tightMaxima(), bytes);
}

Status Plan::setWorkspace(void *pointer, int64_t bytes) {
  if (!pointer || reinterpret_cast<uintptr_t>(pointer) % 256)
    return invalid("set workspace: argument 'pointer': expected device memory aligned to 256 bytes");
  if (impl->fixed && bytes < impl->layout.totalBytes)
    return Status(Code::WorkspaceTooSmall, "set workspace: the workspace has " + std::to_string(bytes) +
                                               " bytes, but " + std::to_string(impl->layout.totalBytes) +
                                               " are needed");
  if (bytes <= 0)
    return Status(Code::WorkspaceTooSmall, "set workspace: the workspace has " + std::to_string(bytes) +
                                               " bytes; workspaceSize tells how many are needed");
  if (impl->ownsWorkspace)
    ATTNRT_TRY(impl->device().free(impl->workspace));
  impl->ownsWorkspace = false;
  impl->workspace = static_cast<char *>(pointer);
  impl->workspaceBytes = bytes;
  impl->planned = false;
  ++impl->layoutGeneration;
  return Status();
}

/// Points `host` at memory for the host copy: the workspace itself on the CPU, else the next staging buffer.
static Status chooseHostCopy(PlanImpl &p) {
  if (p.device().kind() == DeviceKind::CPU) {
    p.host = p.workspace;
    return Status();
  }
  // Two buffers take turns, so that planning need not wait for the last copy but only for the one before.
  p.turn ^= 1;
  PlanImpl::Staging &staging = p.staging[p.turn];
  if (!staging.event)
    ATTNRT_TRY(p.device().createEvent(staging.event));
  if (staging.busy)
    ATTNRT_TRY(p.device().waitEvent(staging.event));
  staging.busy = false;
  if (staging.bytes < p.layout.planBytes) {
    ATTNRT_TRY(p.device().freeHost(staging.data));
    staging.data = nullptr;
    staging.bytes = 0;
    int64_t bytes = p.layout.planBytes + (p.fixed ? 0 : p.layout.planBytes / 4);
    ATTNRT_TRY(p.device().allocHost(bytes, staging.data));
    staging.bytes = bytes;
  }
  p.host = static_cast<char *>(staging.data);
  return Status();
}

Status Plan::plan(const PlanInput &input, void *stream) {
  PlanImpl &p = *impl;
  p.planned = false;
  ATTNRT_TRY(p.validate(input));
  if (!p.fixed) {
    p.maxima = p.tightMaxima();
    ATTNRT_TRY(p.computeLayout(p.maxima, p.layout));
    ++p.layoutGeneration;
  }
  ATTNRT_TRY(p.ensureWorkspace());
  ATTNRT_TRY(chooseHostCopy(p));
  p.usesTokens = false;
  p.buildUnits();
  p.balance();
  Status status = p.emit();
  p.input = nullptr; // the caller's arrays may go
  ATTNRT_TRY(status);
  ATTNRT_TRY(p.upload(stream));
  if (p.device().kind() != DeviceKind::CPU) {
    ATTNRT_TRY(p.device().recordEvent(p.staging[p.turn].event, stream));
    p.staging[p.turn].busy = true;
  }
  p.planned = true;
  return Status();
}

Status Plan::items(int index, const AttnWorkItem *&data, int64_t &count, const int32_t *&ctaIndptr,
                   int32_t &ctas) const {
  const PlanImpl &p = *impl;
  if (!p.planned)
    return invalid("items: there is no plan; call plan first");
  const int kernels = static_cast<int>(p.kernelState.size());
  if (index < -1 || index >= kernels || (index == -1 && !p.canSplit()))
    return invalid("items: argument 'index': expected a kernel 0.." + std::to_string(kernels - 1) +
                   " or -1 for the merge kernel, got " + std::to_string(index));
  const Layout::Kernel &place = index < 0 ? p.layout.merge : p.layout.kernels[index];
  data = reinterpret_cast<const AttnWorkItem *>(p.host + place.items);
  ctaIndptr = reinterpret_cast<const int32_t *>(p.host + place.indptr);
  ctas = place.ctas;
  count = index < 0 ? p.numMergeItems : p.kernelState[index].items;
  return Status();
}

Status Plan::pieces(const AttnMergePiece *&data, int64_t &count) const {
  if (!impl->planned)
    return invalid("pieces: there is no plan; call plan first");
  data = reinterpret_cast<const AttnMergePiece *>(impl->host + impl->layout.pieces);
  count = impl->numPieces;
  return Status();
}

Status Plan::array(int index, const std::string &name, void *&data, int64_t &count) const {
  const PlanImpl &p = *impl;
  const AttnWorkItem *items;
  const int32_t *indptr;
  int32_t ctas;
  ATTNRT_TRY(this->items(index, items, count, indptr, ctas));
  const Layout &layout = p.layout;
  const Layout::Kernel &place = index < 0 ? layout.merge : layout.kernels[index];
  auto give = [&](int64_t offset, int64_t number) {
    data = p.workspace + offset;
    count = number;
    return Status();
  };
  if (name == "items")
    return give(place.items, count);
  if (name == "cta_indptr")
    return give(place.indptr, place.ctas + 1);
  if (name == "counter")
    return give(place.counter, 1);
  if (name == "tokens")
    return give(layout.tokens, layout.tokenCapacity ? p.totalTokens : 0);
  if (name == "pieces")
    return give(layout.pieces, p.numPieces);
  if (name == "part_o")
    return give(layout.partO, layout.partRows);
  if (name == "part_lse")
    return give(layout.partLse, layout.partRows);
  return invalid("array: unknown name '" + name +
                 "'; expected items, cta_indptr, counter, tokens, pieces, part_o or part_lse");
}
