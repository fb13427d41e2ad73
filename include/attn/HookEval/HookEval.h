//===- HookEval.h - a variant's hooks as callbacks -------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns an attn.variant and values for its parameters into the callbacks that
// the reference takes, so that a compiled kernel is checked against the very IR
// it was compiled from.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOOKEVAL_HOOKEVAL_H
#define ATTN_HOOKEVAL_HOOKEVAL_H

#include "attn/HookEval/Program.h"

namespace mlir::attn {
class VariantOp;
} // namespace mlir::attn

namespace attn {

class HookEvaluator {
public:
  /// One value per parameter, in order. Fails, with an error at the variant, when a value does not fit.
  static mlir::FailureOr<HookEvaluator> create(mlir::attn::VariantOp variant, llvm::ArrayRef<HookParam> params);

  /// The variant's hooks; absent ones are empty. The callbacks keep what they need alive (the buffers' memory is the
  /// caller's) and may be called from several threads.
  const ref::Hooks &hooks() const { return callbacks; }
  /// softmax or none.
  ref::Normalizer normalizer() const { return kind; }
  /// Whether a hook uses an approximation (`afn`), which widens tolerances.
  bool isApproximate() const { return approximate; }
  /// What went wrong while hooks ran, once: a load outside its buffer (it gives 0). Empty: nothing.
  std::string takeError() { return errors->take(); }

private:
  ref::Hooks callbacks;
  ref::Normalizer kind = ref::Normalizer::Softmax;
  bool approximate = false;
  std::shared_ptr<EvalErrors> errors;
};

} // namespace attn

#endif
