//===- Program.h - straight-line IR as callable code -----------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates a block made of the ops that hooks may use into a list of steps
// over a frame of numbers. Evaluates in double precision, or rounding every
// float op to fp32 as a machine would; the second mode measures expansions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOOKEVAL_PROGRAM_H
#define ATTN_HOOKEVAL_PROGRAM_H

#include "attn/Reference/Reference.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace attn {

/// Memory that a buffer parameter stands for; the element type is the variant's. Read only.
struct HostBuffer {
  const void *data = nullptr;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; ///< in elements; empty: row-major
};

/// The value of a parameter, by the type of the parameter: f32 (rounded to fp32 here), index, or memref.
struct HookParam {
  double f32 = 0;
  int64_t index = 0;
  HostBuffer buffer;
};

enum class EvalPrecision { Double, Float };

/// What a frame holds: floats and integers apart, each value a run of lanes.
struct Frame {
  std::vector<double> f;
  std::vector<int64_t> i;
  const ref::Coord *at = nullptr;
};

/// First thing that went wrong while programs ran (a load out of bounds); shared by the programs of a variant.
class EvalErrors {
public:
  void report(std::string text);
  std::string take();

private:
  std::mutex lock;
  std::string first;
};

class Program {
public:
  using Step = std::function<void(Frame &)>;

  /// `params` binds values defined above the block to parameters. Emits an error on an op that is not on the list.
  static mlir::FailureOr<Program> compile(mlir::Block &block, const llvm::DenseMap<mlir::Value, HookParam> &params,
                                          EvalPrecision precision, std::shared_ptr<EvalErrors> errors);

  /// Runs with the block's float arguments (one run of lanes each, in order; coordinates are skipped) and returns the
  /// terminator's first operand. Thread safe.
  const double *runFloat(const ref::Coord *at, llvm::ArrayRef<const double *> args) const;
  bool runBool(const ref::Coord *at) const;
  int64_t resultLanes() const { return result.lanes; }

  /// Where a value lives.
  struct Slot {
    bool isFloat = true;
    unsigned width = 32;
    int64_t lanes = 1;
    int64_t offset = 0;
  };

private:
  friend class ProgramBuilder;
  Frame &enter(const ref::Coord *at, llvm::ArrayRef<const double *> args) const;

  Frame initial;
  std::vector<Step> steps;
  std::vector<Slot> arguments;
  Slot result;
};

} // namespace attn

#endif
