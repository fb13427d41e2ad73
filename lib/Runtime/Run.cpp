//===- Run.cpp - checking operands, packing words, launching --------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments are packed once and reused as long as operands and workspace stay
// the same; then a run is a comparison and one launch a kernel.
//
//===----------------------------------------------------------------------===//

#include "PlanImpl.h"

#include <climits>
#include <cmath>
#include <cstring>

using namespace attnrt;

static std::string num(int64_t value) { return std::to_string(value); }

/// Kernels add index parameters to positions in 32 bits.
static constexpr int64_t kMaxIndexParam = int64_t(1) << 30;

/// A named tensor operand and what is expected of it; -1: any extent.
struct Expected {
  const char *name;
  const TensorArg &tensor;
  Element element;
  int rank;
  int64_t sizes[4];
  const char *shape;
};

/// The widest vector access that a row of `bytes` bytes allows.
static int64_t rowAlignment(int64_t bytes) {
  int64_t alignment = 16;
  while (bytes % alignment)
    alignment /= 2;
  return alignment;
}

static Status checkTensor(const Expected &e, bool vectors) {
  const TensorArg &t = e.tensor;
  auto bad = [&](const std::string &what) { return invalid(std::string("run: operand '") + e.name + "': " + what); };
  if (t.element != e.element)
    return bad(std::string("expected element type ") + elementName(e.element) + ", got " + elementName(t.element) +
               "; convert it or compile the variant for that type");
  if (t.rank != e.rank)
    return bad("expected rank " + num(e.rank) + " (" + e.shape + "), got " + num(t.rank));
  bool empty = false;
  for (int i = 0; i < e.rank; ++i) {
    if (t.sizes[i] < 0 || (e.sizes[i] >= 0 && t.sizes[i] != e.sizes[i]))
      return bad("dimension " + num(i) + ": expected " + (e.sizes[i] < 0 ? "a size of at least 0" : num(e.sizes[i])) +
                 ", got " + num(t.sizes[i]) + " (" + e.shape + ")");
    empty |= t.sizes[i] == 0;
  }
  if (empty)
    return Status();
  const int bytes = elementBytes(e.element);
  const int64_t vector = e.rank > 2 && vectors ? rowAlignment(t.sizes[e.rank - 1] * bytes) : bytes;
  if (!t.data)
    return bad("the data pointer is null");
  if (reinterpret_cast<uintptr_t>(t.data) % vector)
    return bad("expected an address that is a multiple of " + num(vector) + " bytes; copy it to aligned memory");
  if (e.rank > 2 && t.strides[e.rank - 1] != 1)
    return bad("expected a contiguous last dimension (stride 1), got stride " + num(t.strides[e.rank - 1]) +
               "; make it contiguous");
  for (int i = 0; i + 1 < e.rank; ++i)
    if (t.sizes[i] > 1 && t.strides[i] * bytes % vector)
      return bad("dimension " + num(i) + ": expected a stride that is a multiple of " + num(vector) + " bytes, got " +
                 num(t.strides[i]) + " elements; pad it");
  return Status();
}

/// Whether the attention op has a scale operand (that matters).
static bool readsScale(const Manifest &m) {
  for (const KernelDesc &kernel : m.kernels)
    for (const WordDesc &word : kernel.words)
      if (word.kind == WordDesc::Scale)
        return true;
  return false;
}

Status PlanImpl::checkOperands(const Operands &ops) const {
  const Manifest &m = manifest();
  const bool vectors = device().kind() == DeviceKind::CUDA, ragged = m.format == Format::Ragged;
  const char *kv = ragged ? "[tokens, heads, head_dim]" : "[pages, page size, heads, head_dim]";
  const char *qo = "[tokens, heads, head_dim]";
  auto kvCheck = [&](const char *name, const TensorArg &tensor, int dim) {
    if (ragged)
      return checkTensor({name, tensor, m.typeKv, 3, {-1, m.headsKv, dim, -1}, kv}, vectors);
    return checkTensor({name, tensor, m.typeKv, 4, {-1, m.pageSize, m.headsKv, dim}, kv}, vectors);
  };
  ATTNRT_TRY(checkTensor({"q", ops.q, m.typeQ, 3, {-1, m.headsQo, m.headDimQk, -1}, qo}, vectors));
  ATTNRT_TRY(kvCheck("k", ops.k, m.headDimQk));
  ATTNRT_TRY(kvCheck("v", ops.v, m.headDimVo));
  ATTNRT_TRY(checkTensor({"o", ops.o, m.typeO, 3, {-1, m.headsQo, m.headDimVo, -1}, qo}, vectors));
  if (m.lse != Lse::None) {
    if (!ops.lse.data && totalTokens > 0)
      return invalid("run: operand 'lse' is missing; this bundle writes it: pass a [tokens, heads] f32 tensor");
    if (ops.lse.data)
      ATTNRT_TRY(checkTensor({"lse", ops.lse, Element::F32, 2, {-1, m.headsQo, -1, -1}, "[tokens, heads]"}, vectors));
  } else if (ops.lse.data) {
    return invalid(
        "run: operand 'lse' was given, but this bundle does not write it; leave it out or compile it with lse");
  }
  // A value that no kernel reads must not vanish; the default one changes nothing.
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(m.headDimQk)));
  if (ops.hasScale && !readsScale(m) && std::fabs(ops.scale - scale) > 1e-6f * scale)
    return invalid("run: scale: this bundle's attention has no scale operand and uses 1 / sqrt(head_dim_qk), got " +
                   std::to_string(ops.scale) + "; leave it out or give the op a scale operand");
  if (ops.numParams != static_cast<int>(m.params.size()) || (ops.numParams && !ops.params))
    return invalid("run: params: expected " + num(m.params.size()) + ", got " + num(ops.numParams));
  for (size_t i = 0; i < m.params.size(); ++i) {
    const ParamDesc &desc = m.params[i];
    auto bad = [&](const std::string &what) { return invalid("run: parameter '" + desc.name + "': " + what); };
    if (desc.kind == ParamDesc::Index &&
        (ops.params[i].index > kMaxIndexParam || ops.params[i].index < -kMaxIndexParam))
      return bad("expected at most 2^30 in magnitude, got " + num(ops.params[i].index) +
                 "; a bound beyond every length can be 2^30");
    if (desc.kind != ParamDesc::Buffer)
      continue;
    const TensorArg &t = ops.params[i].buffer;
    if (t.element != desc.element)
      return bad(std::string("expected element type ") + elementName(desc.element) + ", got " + elementName(t.element));
    if (t.rank != desc.rank)
      return bad("expected rank " + num(desc.rank) + ", got " + num(t.rank));
    bool empty = false;
    for (int d = 0; d < t.rank; ++d) {
      if (t.sizes[d] < 0)
        return bad("dimension " + num(d) + ": expected a size of at least 0, got " + num(t.sizes[d]));
      empty |= t.sizes[d] == 0;
    }
    if (!t.data && !empty)
      return bad("the data pointer is null");
    if (reinterpret_cast<uintptr_t>(t.data) % elementBytes(desc.element))
      return bad("expected an address that is a multiple of " + num(elementBytes(desc.element)) + " bytes");
  }
  return Status();
}

/// What depends on the plan as well: are the tensors long enough? Cheap enough for every run.
static Status checkLengths(const PlanImpl &p, const Operands &ops) {
  auto shortOf = [](const char *name, const char *what, int64_t need, int64_t got) {
    return invalid(std::string("run: operand '") + name + "': the plan has " + num(need) + " " + what +
                   ", but the tensor only " + num(got) + "; plan again or pass the planned batch's tensors");
  };
  if (ops.q.sizes[0] < p.totalTokens)
    return shortOf("q", "query tokens", p.totalTokens, ops.q.sizes[0]);
  if (ops.o.sizes[0] < p.totalTokens)
    return shortOf("o", "query tokens", p.totalTokens, ops.o.sizes[0]);
  if (ops.lse.data && ops.lse.sizes[0] < p.totalTokens)
    return shortOf("lse", "query tokens", p.totalTokens, ops.lse.sizes[0]);
  if (ops.k.sizes[0] < p.kvEnd)
    return shortOf("k", "key tokens", p.kvEnd, ops.k.sizes[0]);
  if (ops.v.sizes[0] < p.kvEnd)
    return shortOf("v", "key tokens", p.kvEnd, ops.v.sizes[0]);
  return Status();
}

namespace {
/// Turns operand references into tensors of this run.
struct Resolver {
  PlanImpl &p;
  const Operands &ops;
  const Layout::Kernel &place;

  TensorArg get(OperandRef ref) const {
    const Manifest &m = p.manifest();
    const Layout &lay = p.layout;
    auto raw = [&](int64_t offset, Element element, int64_t size) {
      TensorArg t;
      t.data = p.workspace + offset;
      t.element = element;
      t.rank = 1;
      t.sizes[0] = size;
      t.strides[0] = 1;
      return t;
    };
    switch (ref.kind) {
    case OperandKind::Q:
      return ops.q;
    case OperandKind::K:
      return ops.k;
    case OperandKind::V:
      return ops.v;
    case OperandKind::O:
      return ops.o;
    case OperandKind::Lse:
      return ops.lse;
    case OperandKind::Param:
      return ops.params[ref.param].buffer;
    case OperandKind::Pages: {
      TensorArg t;
      t.data = const_cast<char *>(p.pagesBase);
      t.element = m.indexBits == 64 ? Element::I64 : Element::I32;
      t.rank = 1;
      t.sizes[0] = INT64_MAX; // levels have arrays of their own, all addressed from the first
      t.strides[0] = 1;
      return t;
    }
    case OperandKind::PartO: {
      TensorArg t = raw(lay.partO, Element::F32, lay.partRows);
      t.rank = 2;
      t.sizes[1] = m.headDimVo;
      t.strides[0] = m.headDimVo;
      t.strides[1] = 1;
      return t;
    }
    case OperandKind::PartLse:
      return raw(lay.partLse, Element::F32, lay.partRows);
    case OperandKind::Items:
      return raw(place.items, Element::I8, place.capacity);
    case OperandKind::CtaIndptr:
      return raw(place.indptr, Element::I32, place.ctas + 1);
    case OperandKind::Counter:
      return raw(place.counter, Element::I32, 1);
    case OperandKind::Tokens:
      return raw(lay.tokens, Element::I8, lay.tokenCapacity);
    case OperandKind::Pieces:
      return raw(lay.pieces, Element::I8, lay.pieceCapacity);
    }
    return TensorArg();
  }
};
} // namespace

static Status encodeMap(PlanImpl &p, const MapDesc &desc, const TensorArg &tensor, const std::string &kernel,
                        TensorMap &map) {
  TensorMapSpec spec;
  spec.element = desc.element;
  spec.rank = static_cast<uint32_t>(desc.dims.size());
  spec.base = tensor.data;
  spec.swizzle = desc.swizzle;
  spec.promotion = desc.promotion;
  bool empty = false;
  for (size_t i = 0; i < desc.dims.size(); ++i) {
    const MapDim &dim = desc.dims[i];
    spec.dims[i] = dim.sizeDim < 0 ? dim.extent : tensor.sizes[dim.sizeDim];
    spec.strides[i] =
        dim.strideDim < 0 ? dim.strideBytes : tensor.strides[dim.strideDim] * elementBytes(tensor.element);
    spec.box[i] = desc.box[i];
    empty |= spec.dims[i] == 0;
  }
  if (empty || !spec.base) {
    // The driver refuses empty tensors; nobody reads this one, so any memory does.
    spec.base = p.workspace;
    for (uint64_t &extent : spec.dims)
      extent = extent ? extent : 1;
  }
  // A dimension of one element is never stepped along, but its stride still has to be legal.
  for (uint32_t i = 1; i < spec.rank; ++i)
    if (spec.dims[i] == 1 && (spec.strides[i] == 0 || spec.strides[i] % 16))
      spec.strides[i] = 16;
  Status status = p.device().encodeTensorMap(spec, map);
  if (!status.ok())
    return Status(status.code(), "run: a tensor map of kernel '" + kernel + "': " + status.text());
  return status;
}

Status PlanImpl::pack(const Operands &ops) {
  const Manifest &m = manifest();
  const size_t kernels = m.kernels.size();
  launches.resize(kernels + (canSplit() ? 1 : 0));
  for (size_t k = 0; k < launches.size(); ++k) {
    const KernelDesc &desc = k < kernels ? m.kernels[k] : *m.merge;
    Resolver resolver{*this, ops, k < kernels ? layout.kernels[k] : layout.merge};
    Launch &launch = launches[k];
    launch.words.assign(desc.words.size(), AttnWord());
    launch.maps.resize(desc.maps.size());
    launch.params.clear();
    for (size_t i = 0; i < desc.words.size(); ++i) {
      const WordDesc &word = desc.words[i];
      AttnWord &out = launch.words[i];
      out.bits = 0;
      switch (word.kind) {
      case WordDesc::Pointer:
        out.pointer = resolver.get(word.operand).data;
        break;
      case WordDesc::Stride:
        out.integer = resolver.get(word.operand).strides[word.dim];
        break;
      case WordDesc::Size:
        out.integer = resolver.get(word.operand).sizes[word.dim];
        break;
      case WordDesc::Param:
        if (m.params[word.param].kind == ParamDesc::F32)
          out.f32 = ops.params[word.param].f32;
        else
          out.integer = ops.params[word.param].index;
        break;
      case WordDesc::Scale:
        out.f32 = ops.hasScale ? ops.scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(m.headDimQk)));
        break;
      }
      launch.params.push_back(&out);
    }
    for (size_t i = 0; i < desc.maps.size(); ++i) {
      ATTNRT_TRY(encodeMap(*this, desc.maps[i], resolver.get(desc.maps[i].operand), desc.symbol, launch.maps[i]));
      launch.params.push_back(&launch.maps[i]);
    }
  }
  return Status();
}

Status Plan::run(const Operands &ops, void *stream) {
  PlanImpl &p = *impl;
  if (!p.planned)
    return invalid("run: there is no plan; call plan first");
  // Byte comparison may see unused dimensions differ; then arguments are packed once more, no harm done.
  bool same = p.cacheValid && p.cacheGeneration == p.layoutGeneration && p.cachePages == p.pagesBase &&
              std::memcmp(&p.cachedOperands, &ops, sizeof(ops)) == 0 &&
              (ops.numParams == 0 ||
               std::memcmp(p.cachedParams.data(), ops.params, sizeof(ParamArg) * p.cachedParams.size()) == 0);
  if (!same) {
    p.cacheValid = false;
    ATTNRT_TRY(p.checkOperands(ops));
    ATTNRT_TRY(p.pack(ops));
    std::memcpy(static_cast<void *>(&p.cachedOperands), &ops, sizeof(ops));
    p.cachedParams.resize(ops.numParams);
    if (ops.numParams)
      std::memcpy(static_cast<void *>(p.cachedParams.data()), ops.params, sizeof(ParamArg) * ops.numParams);
    p.cacheGeneration = p.layoutGeneration;
    p.cachePages = p.pagesBase;
    p.cacheValid = true;
  }
  ATTNRT_TRY(checkLengths(p, ops));
  const size_t kernels = p.kernelState.size();
  for (size_t k = 0; k < p.launches.size(); ++k) {
    bool merge = k == kernels;
    int64_t items = merge ? p.numMergeItems : p.kernelState[k].items;
    // A captured graph replays with other lists, so each kernel has to be in it.
    if (items == 0 && !p.options.fixedGrid)
      continue;
    PlanImpl::Launch &launch = p.launches[k];
    ATTNRT_TRY(p.device().launch(merge ? p.executable->merge() : p.executable->kernel(static_cast<int>(k)),
                                 merge ? p.layout.merge.ctas : p.layout.kernels[k].ctas, launch.words.data(),
                                 launch.params.data(), stream));
  }
  return Status();
}
