//===- HookEval.cpp - a variant's hooks as callbacks ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/HookEval/HookEval.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

namespace attn {

static ref::VecHook vectorHook(Program program) {
  return [program = std::move(program)](ref::Vec x, const ref::Coord &at) {
    const double *y = program.runFloat(&at, {x.data()});
    return ref::Vec(y, y + program.resultLanes());
  };
}

/// A parameter's value against its type.
static LogicalResult checkParam(VariantOp variant, unsigned i, const HookParam &param) {
  auto type = dyn_cast<MemRefType>(variant.getParams()[i].getType());
  if (!type)
    return success();
  const HostBuffer &buffer = param.buffer;
  if (int64_t(buffer.shape.size()) != type.getRank() ||
      !(buffer.strides.empty() || buffer.strides.size() == buffer.shape.size()))
    return variant.emitError() << "parameter " << i << " is " << type << ", got a buffer of rank "
                               << buffer.shape.size();
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (!type.isDynamicDim(d) && type.getDimSize(d) != buffer.shape[d])
      return variant.emitError() << "parameter " << i << " is " << type << ", got extent " << buffer.shape[d]
                                 << " in dimension " << d;
  return success();
}

FailureOr<HookEvaluator> HookEvaluator::create(VariantOp variant, ArrayRef<HookParam> params) {
  auto declared = variant.getParams();
  if (params.size() != declared.size())
    return variant.emitError() << "@" << variant.getSymName() << " has " << declared.size() << " parameters, got "
                               << params.size() << " values";
  DenseMap<Value, HookParam> values;
  for (unsigned i = 0; i < params.size(); ++i) {
    if (failed(checkParam(variant, i, params[i])))
      return failure();
    values[declared[i]] = params[i];
  }
  HookEvaluator result;
  result.errors = std::make_shared<EvalErrors>();
  result.kind = variant.getNormalizer() == Normalizer::None ? ref::Normalizer::None : ref::Normalizer::Softmax;
  for (auto hook : variant.getBody().getOps<HookOp>()) {
    FailureOr<Program> program = Program::compile(hook.getBody().front(), values, EvalPrecision::Double, result.errors);
    if (failed(program))
      return failure();
    hook.walk([&](Operation *op) {
      if (auto flags = dyn_cast<arith::ArithFastMathInterface>(op))
        if (arith::FastMathFlagsAttr attr = flags.getFastMathFlagsAttr())
          result.approximate |= arith::bitEnumContainsAny(attr.getValue(), arith::FastMathFlags::afn);
    });
    ref::Hooks &hooks = result.callbacks;
    switch (hook.getKind()) {
    case HookKind::Query:
      hooks.query = vectorHook(std::move(*program));
      break;
    case HookKind::Key:
      hooks.key = vectorHook(std::move(*program));
      break;
    case HookKind::Value:
      hooks.value = vectorHook(std::move(*program));
      break;
    case HookKind::Output:
      hooks.output = vectorHook(std::move(*program));
      break;
    case HookKind::Logits:
      hooks.logits = [code = std::move(*program)](double x, const ref::Coord &at) { return *code.runFloat(&at, {&x}); };
      break;
    case HookKind::Mask:
      hooks.mask = [code = std::move(*program)](const ref::Coord &at) { return code.runBool(&at); };
      break;
    case HookKind::Sink:
      hooks.sink = [code = std::move(*program)](const ref::Coord &at) { return *code.runFloat(&at, {}); };
      break;
    }
  }
  return result;
}

} // namespace attn
