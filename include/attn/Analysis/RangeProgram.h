//===- RangeProgram.h - which keys a tile of queries can see ---*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of mask analysis: a straight-line program over integers (RANGE in
// attn/ABI/ABI.h). The kernel holds it as arith ops, the planner interprets it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_RANGEPROGRAM_H
#define ATTN_ANALYSIS_RANGEPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <optional>

namespace mlir::attn {

struct RangeProgram {
  enum class Op { Const, Add, Sub, Mul, Div, Min, Max, Load, Extent, Scan };
  /// Const: a is the value. Load: a is the parameter's number, b the register of the index. Else registers.
  /// Extent: the least (dst) and the greatest entry (dst + 1) of parameter a at indices [b, more[0]), 0 when there is
  /// none. Scan: of the i in [from, to) by the entries b + i of parameter a: from the least that meets `some` to behind
  /// the greatest (dst, dst + 1), and the same of `all` when all between meet it (dst + 2, dst + 3); else (to, from),
  /// the first no less than the second. A condition is to lie in an interval, ends included, or outside.
  struct Inst {
    Op op;
    int64_t dst, a, b;
    llvm::SmallVector<int64_t, 0> more = {}; // Scan: from, to, least, most of some, least, most of all, flags
  };
  enum ScanFlag : int64_t { SomeOutside = 1, AllOutside = 2 };
  /// Registers 0..4 on entry; the parameters follow.
  enum Input : int64_t { QPos0, Tokens, QoLen, KVTotal, Request, FirstParam };

  int64_t numParams = 0;
  int64_t registers = FirstParam;
  llvm::SmallVector<Inst> code;
  /// Registers of lo, full_lo, full_hi, hi: 0 <= lo <= hi <= kv_total and 0 <= full_lo <= full_hi <= kv_total. Keys
  /// outside [lo, hi) are invisible to every row, keys in [full_lo, full_hi) visible to all.
  std::array<int64_t, 4> result = {0, 0, 0, 0};
  /// Right for one token at a time only (a bound is loaded from memory by position); for more the hull of its values
  /// at the first and last token, which is good enough to balance and not to skip.
  bool perToken = false;
  /// Registers of [lo, hi): the terms of the mask that look up entries at the keys' positions hold for all rows and all
  /// keys between, where the other terms do.
  std::optional<std::array<int64_t, 2>> lookups;

  /// The constant in a register that a Const wrote, if one did.
  std::optional<int64_t> getConstant(int64_t reg) const;
  /// Nothing is cut away: lo = 0, hi = kv_total.
  bool seesAll() const;
  /// There is no interior: full_lo = full_hi, both constant.
  bool hasNoInterior() const;
  /// Entries of tables decide, not their place alone.
  bool hasScans() const;
  /// Instructions of the kernel, about.
  int64_t getLength() const;
};

/// What becomes of the lookups of several entries. `operands`: the buffer, its first index (Scan), from and to (index),
/// then the bounds (i64). Returns the registers that the instruction writes: i64 of Extent, index of Scan.
using EmitLookup = llvm::function_ref<llvm::SmallVector<Value>(OpBuilder &, Location, const RangeProgram::Inst &,
                                                               ValueRange operands)>;

/// The program of "every key, and nothing known of the interior" (or with `full` of "all keys visible").
RangeProgram makeWholeRange(int64_t numParams, bool full);

/// The program as arith ops (and memref.load, which the program's loads become). `inputs`: the five of Input, then the
/// parameters, of any type: index parameters and buffers are used. Returns lo, full_lo, full_hi, hi, and the ends of
/// `lookups` where the program has them.
llvm::SmallVector<Value> emitRange(OpBuilder &builder, Location loc, const RangeProgram &program, ValueRange inputs,
                                   EmitLookup emitLookup);
/// Extent and Scan as loops over the entries. `bounds` (i64): least, most of some, least, most of all.
llvm::SmallVector<Value> emitExtentLoop(OpBuilder &builder, Location loc, Value table, Value from, Value to);
llvm::SmallVector<Value> emitScanLoop(OpBuilder &builder, Location loc, Value table, Value base, Value from, Value to,
                                      ValueRange bounds, int64_t flags);

/// `func.func @name(qpos0, tokens, qo_len, kv_total, request, params...) -> (lo, full_lo, full_hi, hi)` with the
/// serialised program as attribute `attn.range`.
func::FuncOp buildRangeFunction(OpBuilder &builder, Location loc, StringRef name, const RangeProgram &program,
                                TypeRange params);

/// {registers = n, code = [["op", dst, a, b, more...], ...], result = [lo, full_lo, full_hi, hi]}, as in the manifest.
DictionaryAttr serializeRange(MLIRContext *context, const RangeProgram &program);

/// Runs the program; `load(param, index)` reads a buffer parameter. Divisions by zero give 0.
std::array<int64_t, 4> evaluateRange(const RangeProgram &program, ArrayRef<int64_t> inputs,
                                     llvm::function_ref<int64_t(int64_t, int64_t)> load);
/// The same where every entry of every buffer is `entry`.
std::array<int64_t, 4> evaluateRange(const RangeProgram &program, ArrayRef<int64_t> inputs, int64_t entry);

} // namespace mlir::attn

#endif
