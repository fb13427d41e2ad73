//===- RangeBuilder.h - range programs under construction ------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folds constants and keeps one register for one expression.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_RANGEBUILDER_H
#define ATTN_LIB_ANALYSIS_RANGEBUILDER_H

#include "attn/Analysis/RangeProgram.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <map>
#include <tuple>
#include <vector>

namespace mlir::attn {

inline constexpr int64_t kBig = int64_t(1) << 40;
/// Programs do not grow beyond this; a mask that needs more is not analysed.
inline constexpr int64_t kMaxRegisters = 512;

class RangeBuilder {
public:
  using Op = RangeProgram::Op;
  explicit RangeBuilder(int64_t numParams) {
    program.numParams = numParams;
    program.registers = RangeProgram::FirstParam + numParams;
    for (int64_t input : {RangeProgram::Tokens, RangeProgram::QoLen, RangeProgram::KVTotal, RangeProgram::Request})
      nonNegative.insert(input);
  }

  RangeProgram program;

  int64_t constant(int64_t value) {
    auto [it, fresh] = constants.try_emplace(value, 0);
    if (fresh) {
      it->second = append(Op::Const, value, 0);
      valueOf[it->second] = value;
      if (value >= 0)
        nonNegative.insert(it->second);
    }
    return it->second;
  }
  std::optional<int64_t> getConstant(int64_t reg) const {
    auto it = valueOf.find(reg);
    return it == valueOf.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
  bool isConstant(int64_t reg, int64_t value) const { return getConstant(reg) == value; }
  bool isNonNegative(int64_t reg) const { return nonNegative.count(reg); }

  int64_t add(int64_t a, int64_t b) {
    if (isConstant(a, 0))
      return b;
    if (isConstant(b, 0))
      return a;
    return binary(Op::Add, a, b, isNonNegative(a) && isNonNegative(b));
  }
  int64_t sub(int64_t a, int64_t b) {
    if (isConstant(b, 0))
      return a;
    if (a == b)
      return constant(0);
    return binary(Op::Sub, a, b, false);
  }
  int64_t mul(int64_t a, int64_t b) {
    if (isConstant(a, 1) || isConstant(b, 0))
      return b;
    if (isConstant(b, 1) || isConstant(a, 0))
      return a;
    return binary(Op::Mul, a, b, false);
  }
  /// floor(a / b), b a positive constant.
  int64_t div(int64_t a, int64_t b) {
    if (b == 1)
      return a;
    return binary(Op::Div, a, constant(b), isNonNegative(a));
  }
  int64_t min(int64_t a, int64_t b) {
    if (a == b || (isConstant(a, 0) && isNonNegative(b)))
      return a;
    if (isConstant(b, 0) && isNonNegative(a))
      return b;
    return binary(Op::Min, a, b, isNonNegative(a) && isNonNegative(b));
  }
  int64_t max(int64_t a, int64_t b) {
    if (a == b || (isConstant(b, 0) && isNonNegative(a)))
      return a;
    if (isConstant(a, 0) && isNonNegative(b))
      return b;
    return binary(Op::Max, a, b, isNonNegative(a) || isNonNegative(b));
  }
  int64_t load(int64_t param, int64_t index) { return lookup(Op::Load, param, index, false); }
  /// Least and greatest entry of indices [from, to).
  std::pair<int64_t, int64_t> extent(int64_t param, int64_t from, int64_t to) {
    int64_t first = lookUpSeveral({Op::Extent, 0, param, from, {to}}, 2);
    return {first, first + 1};
  }
  /// The first of the four results.
  int64_t scan(int64_t param, int64_t base, ArrayRef<int64_t> more) {
    return lookUpSeveral({Op::Scan, 0, param, base, SmallVector<int64_t, 0>(more)}, 4);
  }
  int64_t clamp(int64_t reg, int64_t limit = kBig) {
    if (auto value = getConstant(reg))
      return constant(std::min(std::max(*value, -limit), limit));
    if (reg < RangeProgram::FirstParam)
      return reg;
    return min(max(reg, constant(-limit)), constant(limit));
  }
  /// 1 if reg >= 0, else 0.
  int64_t isGeZero(int64_t reg) {
    if (isNonNegative(reg))
      return constant(1);
    int64_t flag = min(max(add(reg, constant(1)), constant(0)), constant(1));
    return flag;
  }
  int64_t select(int64_t flag, int64_t a, int64_t b) { return add(b, mul(flag, sub(a, b))); }
  bool isTooLong() const { return program.registers > kMaxRegisters; }

private:
  int64_t append(Op op, int64_t a, int64_t b) {
    int64_t dst = program.registers++;
    program.code.push_back({op, dst, a, b});
    return dst;
  }
  int64_t lookup(Op op, int64_t a, int64_t b, bool isNonNegative) {
    auto [it, fresh] = known.try_emplace(std::make_tuple(static_cast<int>(op), a, b), 0);
    if (fresh) {
      it->second = append(op, a, b);
      if (isNonNegative)
        nonNegative.insert(it->second);
    }
    return it->second;
  }
  int64_t lookUpSeveral(RangeProgram::Inst inst, int64_t results) {
    SmallVector<int64_t> key = {static_cast<int64_t>(inst.op), inst.a, inst.b};
    llvm::append_range(key, inst.more);
    auto [it, fresh] = knownSeveral.try_emplace(std::vector<int64_t>(key.begin(), key.end()), program.registers);
    if (fresh) {
      inst.dst = program.registers;
      program.registers += results;
      program.code.push_back(std::move(inst));
    }
    return it->second;
  }
  int64_t binary(Op op, int64_t a, int64_t b, bool isNonNegative) {
    auto x = getConstant(a), y = getConstant(b);
    if (x && y) {
      RangeProgram one;
      one.registers = 3;
      one.code.push_back({op, 2, 0, 1});
      one.result = {2, 2, 2, 2};
      return constant(evaluateRange(one, {*x, *y}, nullptr)[0]);
    }
    return lookup(op, a, b, isNonNegative);
  }

  // Ordered maps: a constant may be any integer, and DenseMap keeps two of them for itself.
  std::map<std::tuple<int, int64_t, int64_t>, int64_t> known;
  std::map<std::vector<int64_t>, int64_t> knownSeveral;
  std::map<int64_t, int64_t> constants;
  DenseMap<int64_t, int64_t> valueOf;
  DenseSet<int64_t> nonNegative;
};

} // namespace mlir::attn

#endif
