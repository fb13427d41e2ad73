//===- Check.cpp - comparison with the reference -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "attn/HookEval/HookEval.h"
#include "attn/Reference/Compare.h"

using namespace attnrun;
namespace ref = attn::ref;

llvm::Expected<CheckResult> attnrun::checkAgainstReference(mlir::attn::AttentionOp op, const Problem &problem) {
  ref::Hooks hooks;
  bool approximate = false;
  std::optional<attn::HookEvaluator> evaluator;
  if (mlir::attn::VariantOp variant = op.lookupVariant()) {
    std::vector<attn::HookParam> params;
    for (const attn::batch::ParamValue &value : problem.params) {
      attn::HookParam param;
      param.f32 = value.number;
      param.index = static_cast<int64_t>(value.number);
      param.buffer.data = value.bytes.data();
      param.buffer.shape = value.shape;
      params.push_back(std::move(param));
    }
    auto made = attn::HookEvaluator::create(variant, params);
    if (mlir::failed(made))
      return llvm::createStringError("the variant's hooks cannot be evaluated (see the error above)");
    evaluator = std::move(*made);
    hooks = evaluator->hooks();
    approximate = evaluator->isApproximate();
  }
  ref::Problem reference = problem.built.problem();
  if (problem.hasScale)
    reference.scale = problem.scale;
  std::string invalid = ref::validate(reference, hooks);
  if (!invalid.empty())
    return llvm::createStringError("the reference refuses the batch: " + invalid);

  ref::Result expected = ref::run(reference, hooks);
  if (evaluator) {
    std::string error = evaluator->takeError();
    if (!error.empty())
      return llvm::createStringError("a hook failed in the reference: " + error);
  }
  const attn::batch::Built &built = problem.built;
  ref::Result baseline = ref::fp32Baseline(reference, hooks, built.geometry.typeQ, built.geometry.typeO);
  auto viewOf = [](const attn::batch::Tensor &tensor) {
    return ref::OutputView{tensor.data(), tensor.type, tensor.strides[0], tensor.strides[1]};
  };
  ref::Tolerance tolerance = ref::Tolerance::output(built.geometry.typeO, approximate);
  ref::Comparison output = ref::compareOutput(reference, expected, viewOf(built.o), tolerance, &baseline);
  CheckResult result;
  result.ok = output.ok;
  result.maxError = output.maxError;
  result.allowed = tolerance.abs;
  result.checked = output.checked;
  result.text = "o: " + output.text();
  if (problem.wantsLse) {
    ref::Comparison lse =
        ref::compareLse(reference, expected, viewOf(built.lse), ref::Tolerance::lse(approximate), &baseline);
    result.ok &= lse.ok;
    result.checked += lse.checked;
    result.text += "\nlse: " + lse.text();
  }
  return result;
}
