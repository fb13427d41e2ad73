//===- StateOps.cpp - merges and appends as loops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// merge, for each token and head:         append, for each request r:
//   m = max lse_i (0 if all are -inf)       n = new tokens, first = kv_len - n
//   w_i = exp(lse_i - m), s = sum w_i       for i in 0..n: page, slot of first + i
//   o = sum (w_i / s) o_i, lse = m + log s    K[page, slot] = k_new[begin + i], V too
// On a GPU a block has one token and head of a merge, and one request and every
// sixteenth token of an append; its threads share the head dim.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::attn;

/// Threads of a block: enough for the usual head dims in one step.
static constexpr int64_t kThreads = 128;
/// Blocks that share the tokens of a request in an append.
static constexpr int64_t kTokenBlocks = 16;

namespace {
struct Loops {
  Loops(Operation *op) : b(op), loc(op->getLoc()) {}
  OpBuilder b;
  Location loc;

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value f32(float value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
  Value dim(Value memref, int64_t i) { return memref::DimOp::create(b, loc, memref, i); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value load(Value memref, ValueRange at) { return memref::LoadOp::create(b, loc, memref, at); }
  /// Element of a table, as an index.
  Value entry(Value table, Value at) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), load(table, at)); }
  Value less(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y); }

  /// Runs `body` with the builder inside scf.for lo to hi.
  void loop(Value lo, Value hi, Value step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, lo, hi, step);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }
  /// Runs `body` inside scf.if.
  void when(Value condition, llvm::function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }
  /// scf.parallel over the extents; the op.
  Operation *parallel(ValueRange extents, llvm::function_ref<void(ValueRange)> body) {
    SmallVector<Value> zeros(extents.size(), index(0)), ones(extents.size(), index(1));
    auto loop = scf::ParallelOp::create(b, loc, zeros, extents, ones);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVars());
    return loop;
  }
  /// gpu.launch of x * y blocks, none when there is nothing to do; the op.
  Operation *launch(Value x, Value y, llvm::function_ref<void(Value, Value, Value)> body) {
    Value one = index(1), threads = index(kThreads);
    // A grid of no block is an error of the driver.
    Value blocks = arith::MulIOp::create(b, loc, x, y);
    Operation *result = nullptr;
    when(less(index(0), blocks), [&] {
      auto op = gpu::LaunchOp::create(b, loc, x, y, one, threads, one, one);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(&op.getBody().front());
      gpu::TerminatorOp::create(b, loc);
      b.setInsertionPointToStart(&op.getBody().front());
      body(op.getBlockIds().x, op.getBlockIds().y, op.getThreadIds().x);
      result = op;
    });
    return result;
  }
};

/// One token and head of a merge.
class MergeRow {
public:
  MergeRow(Loops &l, MergeOp op, Value token, Value head);
  /// Element d of o, rounded.
  Value element(Value d);
  Value lse;

private:
  Loops &l;
  MergeOp op;
  Value token, head;
  SmallVector<Value> weights;
};
} // namespace

MergeRow::MergeRow(Loops &l, MergeOp op, Value token, Value head) : l(l), op(op), token(token), head(head) {
  OpBuilder &b = l.b;
  Location loc = l.loc;
  bool natural = op.getLseBase() == LseBase::Natural;
  SmallVector<Value> lses;
  Value ninf = l.f32(-std::numeric_limits<float>::infinity()), zero = l.f32(0), one = l.f32(1), max = ninf;
  for (Value state : op.getStateLse()) {
    lses.push_back(l.load(state, {token, head}));
    max = arith::MaximumFOp::create(b, loc, max, lses.back());
  }
  // -inf - -inf has no value; an empty row has weights exp(-inf - 0) = 0.
  Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, ninf);
  Value shift = arith::SelectOp::create(b, loc, empty, zero, max), sum = zero;
  for (Value value : lses) {
    Value d = arith::SubFOp::create(b, loc, value, shift);
    weights.push_back(natural ? Value(math::ExpOp::create(b, loc, d)) : Value(math::Exp2Op::create(b, loc, d)));
    sum = arith::AddFOp::create(b, loc, sum, weights.back());
  }
  Value divisor = arith::SelectOp::create(b, loc, empty, one, sum);
  for (Value &weight : weights)
    weight = arith::DivFOp::create(b, loc, weight, divisor);
  Value log = natural ? Value(math::LogOp::create(b, loc, sum)) : Value(math::Log2Op::create(b, loc, sum));
  lse = arith::AddFOp::create(b, loc, shift, log);
}

Value MergeRow::element(Value d) {
  OpBuilder &b = l.b;
  Location loc = l.loc;
  Value zero = l.f32(0), sum = zero;
  for (auto [state, weight] : llvm::zip_equal(op.getStates(), weights)) {
    Value x = arith::MulFOp::create(b, loc, l.load(state, {token, head, d}), weight);
    // What an empty state holds does not matter, even NaN.
    Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, weight, zero);
    x = arith::SelectOp::create(b, loc, none, zero, x);
    sum = arith::AddFOp::create(b, loc, sum, x);
  }
  Type type = cast<MemRefType>(op.getO().getType()).getElementType();
  return type.isF32() ? sum : Value(arith::TruncFOp::create(b, loc, type, sum));
}

/// The hardware's functions, as intrinsics: no device library is linked.
static void useIntrinsics(Operation *root) {
  root->walk([](Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value value;
    if (isa<math::Exp2Op, math::Log2Op>(op)) {
      auto name = b.getStringAttr(isa<math::Exp2Op>(op) ? "llvm.nvvm.ex2.approx" : "llvm.nvvm.lg2.approx.f");
      value = LLVM::CallIntrinsicOp::create(b, loc, b.getF32Type(), name, op->getOperands()).getResult(0);
    } else if (isa<math::FmaOp>(op)) {
      value = LLVM::FMAOp::create(b, loc, op->getOperand(0), op->getOperand(1), op->getOperand(2));
    } else if (isa<math::AbsFOp>(op)) {
      value = LLVM::FAbsOp::create(b, loc, op->getOperand(0));
    } else {
      return;
    }
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  });
}

static LogicalResult legalize(Operation *root, LoopTarget target) {
  if (failed(legalizeMath(root, target == LoopTarget::Gpu ? MathTarget::Gpu : MathTarget::Host)))
    return failure();
  if (target == LoopTarget::Gpu)
    useIntrinsics(root);
  return success();
}

LogicalResult attn::convertToLoops(MergeOp op, LoopTarget target) {
  Loops l(op);
  Value tokens = l.dim(op.getO(), 0), heads = l.dim(op.getO(), 1), dim = l.dim(op.getO(), 2);
  auto row = [&](Value token, Value head, Value first, Value step, Value writesLse) {
    MergeRow row(l, op, token, head);
    l.loop(first, dim, step, [&](Value d) {
      memref::StoreOp::create(l.b, l.loc, row.element(d), op.getO(), ValueRange{token, head, d});
    });
    if (!op.getLse())
      return;
    auto store = [&] { memref::StoreOp::create(l.b, l.loc, row.lse, op.getLse(), ValueRange{token, head}); };
    if (writesLse)
      l.when(writesLse, store);
    else
      store();
  };
  Operation *root;
  if (target == LoopTarget::Host) {
    root = l.parallel({tokens, heads}, [&](ValueRange at) { row(at[0], at[1], l.index(0), l.index(1), Value()); });
  } else {
    root = l.launch(tokens, heads, [&](Value token, Value head, Value thread) {
      Value first = arith::CmpIOp::create(l.b, l.loc, arith::CmpIPredicate::eq, thread, l.index(0));
      row(token, head, thread, l.index(kThreads), first);
    });
  }
  op.erase();
  return legalize(root, target);
}

LogicalResult attn::convertToLoops(AppendOp op, LoopTarget target) {
  Loops l(op);
  OpBuilder &b = l.b;
  Location loc = l.loc;
  auto pages = cast<MemRefType>(op.getK().getType());
  Value requests = l.sub(l.dim(op.getIndptr(), 0), l.index(1));
  // Tokens first, first + step, ... of a request; elements `thread`, thread + threads, ... of a token.
  auto request = [&](Value r, Value firstToken, Value step, Value thread, Value threads) {
    Value zero = l.index(0), one = l.index(1), size = l.index(pages.getDimSize(1)), next = l.add(r, one);
    Value begin = l.entry(op.getIndptr(), r), count = l.sub(l.entry(op.getIndptr(), next), begin);
    Value table = l.entry(op.getKvIndptr(), r), used = l.sub(l.entry(op.getKvIndptr(), next), table);
    Value full = arith::MulIOp::create(b, loc, l.sub(used, one), size);
    Value length = l.add(full, l.entry(op.getKvLast(), r));
    // Without pages there are no keys, whatever the last page's length says.
    Value some = l.less(zero, used);
    Value keys = arith::SelectOp::create(b, loc, some, length, zero), offset = l.sub(keys, count);
    l.loop(firstToken, count, step, [&](Value i) {
      Value position = l.add(offset, i);
      // A table that counts fewer keys than there are new ones has no place for the first of them.
      Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, position, zero);
      l.when(exists, [&] {
        Value page = l.entry(op.getKvIndices(), l.add(table, arith::DivUIOp::create(b, loc, position, size)));
        Value slot = arith::RemUIOp::create(b, loc, position, size), token = l.add(begin, i);
        for (auto [fresh, into] : {std::pair<Value, Value>{op.getKNew(), op.getK()}, {op.getVNew(), op.getV()}}) {
          auto type = cast<MemRefType>(into.getType());
          Value dim = l.index(type.getDimSize(3)), all = l.index(type.getDimSize(2) * type.getDimSize(3));
          l.loop(thread, all, threads, [&, fresh = fresh, into = into](Value e) {
            Value head = arith::DivUIOp::create(b, loc, e, dim), d = arith::RemUIOp::create(b, loc, e, dim);
            Value x = l.load(fresh, {token, head, d});
            memref::StoreOp::create(b, loc, x, into, ValueRange{page, slot, head, d});
          });
        }
      });
    });
  };
  if (target == LoopTarget::Host) {
    l.parallel(requests, [&](ValueRange at) { request(at[0], l.index(0), l.index(1), l.index(0), l.index(1)); });
  } else {
    l.launch(requests, l.index(kTokenBlocks), [&](Value r, Value block, Value thread) {
      request(r, block, l.index(kTokenBlocks), thread, l.index(kThreads));
    });
  }
  op.erase();
  return success();
}
