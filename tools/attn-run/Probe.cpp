//===- Probe.cpp - hooks' loads before a kernel makes them -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel does not look whether a hook's index is inside its buffer. With
// --check the reference has run every hook where the kernel will; without it,
// this runs them alone: everywhere in small batches, at the first and last rows
// and keys of every request and head in others, where most indices are largest.
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "attn/HookEval/HookEval.h"

using namespace attnrun;
namespace ref = attn::ref;

/// Runs of a hook that take a fraction of a second.
static constexpr double kMostRuns = 200000;

namespace {
struct Prober {
  const ref::Problem &p;
  const ref::Hooks &hooks;
  bool ends; // first and last rows and keys only

  void runRequest(int64_t request) const;

private:
  void runRow(ref::Coord at, llvm::ArrayRef<ref::KeyPlace> keys) const;
};
} // namespace

void Prober::runRow(ref::Coord at, llvm::ArrayRef<ref::KeyPlace> keys) const {
  if (hooks.query)
    hooks.query(ref::Vec(p.headDimQk), at);
  if (hooks.sink)
    hooks.sink(at);
  if (hooks.output)
    hooks.output(ref::Vec(p.headDimVo), at);
  for (const ref::KeyPlace &key : keys) {
    at.kvPos = key.position;
    if ((!hooks.mask || hooks.mask(at)) && hooks.logits)
      hooks.logits(0, at);
  }
}

void Prober::runRequest(int64_t request) const {
  ref::Coord at;
  at.request = request;
  at.qoLen = p.qoLen(request);
  at.kvLen = ref::kvLen(p, request);
  int64_t before = -1; // first row of the block whose keys are `keys`
  std::vector<ref::KeyPlace> keys;
  for (int64_t row = 0; row < at.qoLen; row += ends ? std::max<int64_t>(1, at.qoLen - 1) : 1) {
    int64_t first = p.format == ref::Format::Bsr ? row / p.rowBlock * p.rowBlock : 0;
    bool fresh = first != before;
    if (fresh) {
      keys = ref::keysOf(p, request, first);
      before = first;
      if (ends && keys.size() > 2)
        keys = {keys.front(), keys.back()};
    }
    for (int64_t head = 0; head < p.headsQo; ++head) {
      ref::Coord here = at;
      here.kvHead = head / p.group();
      here.qHead = head;
      here.qPos = at.kvLen - at.qoLen;
      if (fresh && head % p.group() == 0)
        for (const ref::KeyPlace &key : keys) {
          here.kvPos = key.position;
          if (hooks.key)
            hooks.key(ref::Vec(p.headDimQk), here);
          if (hooks.value)
            hooks.value(ref::Vec(p.headDimVo), here);
        }
      here.kvPos = 0;
      here.row = row;
      here.qPos += row;
      runRow(here, keys);
    }
  }
}

llvm::Error attnrun::probeLoads(mlir::attn::AttentionOp op, const Problem &problem) {
  mlir::attn::VariantOp variant = op.lookupVariant();
  if (!variant || !variant.walk([](mlir::memref::LoadOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted())
    return llvm::Error::success();
  auto evaluator = makeEvaluator(variant, problem);
  if (!evaluator)
    return evaluator.takeError();
  ref::Problem p = problem.built.problem();
  std::string invalid = ref::validate(p, evaluator->hooks());
  if (!invalid.empty())
    return llvm::createStringError("the reference refuses the batch: " + invalid);
  double runs = 0;
  for (int64_t request = 0; request < p.requests(); ++request)
    runs += double(p.qoLen(request)) * double(p.headsQo) * double(1 + ref::kvLen(p, request));
  Prober prober{p, evaluator->hooks(), runs > kMostRuns};
  for (int64_t request = 0; request < p.requests(); ++request)
    prober.runRequest(request);
  std::string error = evaluator->takeError();
  if (!error.empty())
    return llvm::createStringError("a hook would read outside of a parameter: " + error);
  return llvm::Error::success();
}
