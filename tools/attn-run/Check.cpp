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

llvm::Expected<attn::HookEvaluator> attnrun::makeEvaluator(mlir::attn::VariantOp variant, const Problem &problem) {
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
  return std::move(*made);
}

llvm::Expected<Expectation> attnrun::expect(mlir::attn::AttentionOp op, const Problem &problem) {
  ref::Hooks hooks;
  Expectation result;
  std::optional<attn::HookEvaluator> evaluator;
  if (mlir::attn::VariantOp variant = op.lookupVariant()) {
    auto made = makeEvaluator(variant, problem);
    if (!made)
      return made.takeError();
    evaluator = std::move(*made);
    hooks = evaluator->hooks();
    result.approximate = evaluator->isApproximate();
  }
  result.problem = problem.built.problem();
  if (problem.hasScale)
    result.problem.scale = problem.scale;
  std::string invalid = ref::validate(result.problem, hooks);
  if (!invalid.empty())
    return llvm::createStringError("the reference refuses the batch: " + invalid);

  result.exact = ref::run(result.problem, hooks);
  if (evaluator) {
    std::string error = evaluator->takeError();
    if (!error.empty())
      return llvm::createStringError("a hook failed in the reference: " + error);
  }
  const attn::batch::Geometry &geometry = problem.built.geometry;
  result.baseline = ref::fp32Baseline(result.problem, hooks, geometry.typeQ, geometry.typeO);
  return std::move(result);
}

CheckResult attnrun::compare(const Expectation &expectation, const Problem &problem) {
  const attn::batch::Built &built = problem.built;
  auto viewOf = [](const attn::batch::Tensor &tensor) {
    return ref::OutputView{tensor.data(), tensor.type, tensor.strides[0], tensor.strides[1]};
  };
  ref::Tolerance tolerance = ref::Tolerance::output(built.geometry.typeO, expectation.approximate);
  ref::Comparison output =
      ref::compareOutput(expectation.problem, expectation.exact, viewOf(built.o), tolerance, &expectation.baseline);
  CheckResult result;
  result.ok = output.ok;
  result.maxError = output.maxError;
  result.allowed = tolerance.abs;
  result.checked = output.checked;
  result.text = "o: " + output.text();
  if (problem.wantsLse) {
    ref::Comparison lse = ref::compareLse(expectation.problem, expectation.exact, viewOf(built.lse),
                                          ref::Tolerance::lse(expectation.approximate), &expectation.baseline);
    result.ok &= lse.ok;
    result.checked += lse.checked;
    result.text += "\nlse: " + lse.text();
  }
  return result;
}
