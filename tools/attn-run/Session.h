//===- Session.h - one batch through one bundle -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What attn-run does, step by step: geometry and parameters from the IR, data
// from the batch file, a plan and runs on a device, a comparison with the
// reference.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTNRUN_SESSION_H
#define ATTN_TOOLS_ATTNRUN_SESSION_H

#include "attn/Batch/Batch.h"
#include "attn/Batch/Build.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/HookEval/HookEval.h"
#include "attn/Runtime/Plan.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace attnrun {

/// The batch's data for one attention op.
struct Problem {
  attn::batch::Batch batch;
  attn::batch::Built built;
  std::vector<attn::batch::ParamDecl> decls;
  std::vector<attn::batch::ParamValue> params;
  bool hasScale = false;
  float scale = 0;
  bool wantsLse = false;
  int64_t indexBits = 32;
};

/// Reads the batch file and makes the data that `op` asks for.
llvm::Expected<Problem> makeProblem(mlir::attn::AttentionOp op, const std::string &batchFile);

struct Timing {
  double planMicroseconds = 0, runMilliseconds = 0;
  int64_t items = 0;
};

/// The chip of the target table that suits a device ("host" for the CPU).
std::string defaultTarget(const attnrt::Device &device);

/// Plans and runs; o and lse of the problem are written.
class Session {
public:
  static llvm::Expected<std::unique_ptr<Session>> create(const std::string &bundle,
                                                         std::shared_ptr<attnrt::Device> device, Problem &problem);
  ~Session();
  llvm::Error run(int iterations, Timing &timing);
  /// Time of a run in a burst: eight of them after 0.15 s of rest, of which the last four count. After `run`.
  llvm::Error burst(double &milliseconds);
  llvm::Expected<std::string> planSvg();

private:
  Session(std::shared_ptr<attnrt::Device> device, Problem &problem) : device(std::move(device)), problem(problem) {}
  llvm::Error prepare(const std::string &bundle);
  llvm::Error time(int iterations, double &milliseconds);
  llvm::Expected<void *> upload(const void *data, size_t bytes);
  llvm::Error uploadTensor(const attn::batch::Tensor &tensor, attnrt::TensorArg &arg);
  llvm::Error download(const attn::batch::Tensor &tensor, const attnrt::TensorArg &arg);

  std::shared_ptr<attnrt::Device> device;
  Problem &problem;
  std::shared_ptr<const attnrt::Bundle> bundle;
  std::shared_ptr<attnrt::Executable> executable;
  std::shared_ptr<attnrt::Plan> plan;
  std::vector<void *> allocations;
  std::vector<std::pair<const void *, void *>> uploaded; // buffers that tensors share
  std::vector<std::vector<uint8_t>> indexData;
  attnrt::PlanInput input;
  attnrt::Operands operands;
  std::vector<attnrt::ParamArg> paramArgs;
  void *stream = nullptr;
};

struct CheckResult {
  bool ok = false;
  double maxError = 0, allowed = 0;
  int64_t checked = 0;
  std::string text;
};

/// What the reference makes of the problem, hooks evaluated from the IR.
struct Expectation {
  attn::ref::Problem problem;
  attn::ref::Result exact, baseline;
  bool approximate = false;
};

/// The variant's hooks with the batch's parameters.
llvm::Expected<attn::HookEvaluator> makeEvaluator(mlir::attn::VariantOp variant, const Problem &problem);

/// An error when a hook would read outside of a parameter (of large batches a part is looked at).
llvm::Error probeLoads(mlir::attn::AttentionOp op, const Problem &problem);

/// Call it before a kernel runs: it finds out when hooks read outside their buffers, which kernels do not check.
llvm::Expected<Expectation> expect(mlir::attn::AttentionOp op, const Problem &problem);

/// Compares o and lse with what is expected.
CheckResult compare(const Expectation &expectation, const Problem &problem);

} // namespace attnrun

#endif
