//===- Finalise.cpp - the end of a row, and the merge kernel ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sink, output hook, rounding and the base of lse happen once a row: in the
// attention kernel when the item is whole (slot < 0), else in the merge kernel.
// The merge kernel folds the partial states of one token in order; its form is
// test/Kernels/merge-l.mlir.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::attn;
using tile::RegType;

static constexpr float kLog2E = 1.44269504088896340736f;
static constexpr float kLn2 = 0.693147180559945309417f;
/// Heads of one merge item.
static constexpr int64_t kMergeRows = 16;

/// The sink is one more logit without a value: (o, lse) -> (o w, lse') with w the weight that is left to the keys.
static void addSink(KernelBuilder &kb, HookOp hook, RowCoords &rows, Value &o, Value &lse2) {
  auto row = cast<RegType>(lse2.getType());
  CoordFrame frame;
  frame.rows = &rows;
  frame.rowDim = 0;
  SmallVector<MapInput> inputs;
  HookBody body(kb, hook, frame, inputs);
  Value log2e = kb.f32(kLog2E), zero = kb.f32(0), one = kb.f32(1);
  Value sink = kb.map(
      row, inputs,
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
        return arith::MulFOp::create(b, loc, body.clone(b, loc, in, idx), log2e);
      },
      /*at=*/true);
  Value max = buildZeroIfEmpty(kb, kb.mapOp<arith::MaximumFOp>(row, {{lse2, {}}, {sink, {}}}));
  Value keys = buildExp2Diff(kb, lse2, max), none = buildExp2Diff(kb, sink, max);
  Value sum = kb.mapOp<arith::AddFOp>(row, {{keys, {}}, {none, {}}});
  Value weight =
      kb.map(row, {{keys, {}}, {sum, {}}}, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
        Value some = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, in[1], zero);
        Value divisor = arith::SelectOp::create(b, loc, some, in[1], one);
        return arith::DivFOp::create(b, loc, in[0], divisor);
      });
  o = kb.mapOp<arith::MulFOp>(cast<RegType>(o.getType()), {{o, {}}, {weight, {0}}});
  lse2 = kb.map(row, {{max, {}}, {sum, {}}}, [](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
    Value log = math::Log2Op::create(b, loc, in[1], arith::FastMathFlags::afn);
    return arith::AddFOp::create(b, loc, in[0], log);
  });
}

LogicalResult attn::buildFinalise(KernelBuilder &kb, Value o, Value lse2, int64_t pack, bool heads) {
  const KernelSpec &spec = kb.spec;
  AttentionOp op = spec.op;
  OpBuilder &b = kb.b;
  Location loc = kb.loc;
  RowCoords rows(kb, heads);
  HookOp sink = spec.getHook(HookKind::Sink), output = spec.getHook(HookKind::Output);
  if (sink && lse2) {
    rows.require(sink);
    addSink(kb, sink, rows, o, lse2);
  }
  if (output) {
    rows.require(output);
    CoordFrame frame;
    frame.rows = &rows;
    frame.rowDim = 0;
    FailureOr<Value> hooked = liftVectorHook(kb, output, frame, o, spec.oType);
    if (failed(hooked))
      return failure();
    o = *hooked;
  }
  o = kb.convert(o, spec.oType);
  int64_t dyn = ShapedType::kDynamic, packed = pack > 1 ? pack : 0;
  auto store = [&](Value value, StringRef role, ArrayRef<int64_t> shape, Type element) {
    Value view = tile::ViewOp::create(b, loc, tile::ViewType::get(shape, element, 0, packed), kb.arg(role),
                                      ValueRange{kb.item.token0, kb.item.head}, kb.item.rows, Value(), Value());
    tile::StoreOp::create(b, loc, value, view, kb.index(0));
  };
  store(o, "o", {dyn, spec.dvo}, spec.oType);
  if (!lse2 || !kb.arg("lse"))
    return success();
  if (op.getLseBase() == LseBase::Natural) {
    Value ln2 = kb.f32(kLn2);
    lse2 = kb.map(cast<RegType>(lse2.getType()), {{lse2, {}}},
                  [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
                    return arith::MulFOp::create(b, loc, in[0], ln2);
                  });
  }
  store(lse2, "lse", {dyn}, b.getF32Type());
  return success();
}

FailureOr<tile::KernelOp> attn::buildMergeKernel(OpBuilder &builder, const KernelSpec &spec, StringRef name) {
  AttentionOp op = spec.op;
  // The rows are the heads of one token: nothing is packed.
  auto config = ConfigAttr::get(builder.getContext(), kMergeRows, /*keys=*/1, /*stages=*/1, /*warps=*/4, /*groups=*/1,
                                /*pack=*/1, /*row_table=*/false, /*consumers=*/0, /*q_in_registers=*/false,
                                LoadPath::Gather, ItemOrder::List, /*turns=*/false, /*peel=*/true);
  SmallVector<StringRef> roles = {"o"};
  if (spec.softmax && op.getLse())
    roles.push_back("lse");
  roles.push_back("part_o");
  if (spec.softmax)
    roles.push_back("part_lse");
  roles.append({"items", "pieces"});
  KernelBuilder kb(builder, spec, name, config, roles);
  OpBuilder &b = kb.b;
  Location loc = kb.loc;
  const ItemFields &item = kb.item;
  Type f32 = b.getF32Type(), index = b.getIndexType();
  RegType row = KernelBuilder::reg({kMergeRows}, f32), rowIndex = KernelBuilder::reg({kMergeRows}, index);
  RegType oType = KernelBuilder::reg({kMergeRows, spec.dvo}, f32);
  Value lastRow = arith::SubIOp::create(b, loc, item.rows, kb.index(1));
  SmallVector<Value> init;
  if (spec.softmax) {
    init.push_back(kb.splat(-std::numeric_limits<float>::infinity(), {kMergeRows}));
    init.push_back(kb.splat(0, {kMergeRows}));
  }
  init.push_back(kb.splat(0, {kMergeRows, spec.dvo}));
  // [merge: `table` is the first piece, `khi` their number]
  auto loop = scf::ForOp::create(b, loc, kb.index(0), item.khi, kb.index(1), init);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value piece = arith::AddIOp::create(b, loc, item.table, loop.getInductionVar());
    auto column = [&](int64_t c) -> Value {
      Value value = memref::LoadOp::create(b, loc, kb.arg("pieces"), ValueRange{piece, kb.index(c)});
      return arith::IndexCastOp::create(b, loc, index, value);
    };
    Value base = column(0), stride = column(1), pack = column(2);
    Value at = kb.map(
        rowIndex, {},
        [&](OpBuilder &b, Location loc, ValueRange, ValueRange idx) -> Value {
          Value r = arith::MinSIOp::create(b, loc, idx[0], lastRow);
          Value head = arith::AddIOp::create(b, loc, item.head, r);
          Value block = arith::DivUIOp::create(b, loc, head, pack), inner = arith::RemUIOp::create(b, loc, head, pack);
          Value offset = arith::MulIOp::create(b, loc, block, stride);
          Value first = arith::AddIOp::create(b, loc, base, offset);
          return arith::AddIOp::create(b, loc, first, inner);
        },
        /*at=*/true);
    ValueRange state = loop.getRegionIterArgs();
    Value partO = kb.arg("part_o");
    if (spec.softmax) {
      Value partLse = kb.arg("part_lse");
      Value lse = kb.map(row, {{at, {}}}, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
        return memref::LoadOp::create(b, loc, partLse, ValueRange{in[0]});
      });
      Value max = kb.mapOp<arith::MaximumFOp>(row, {{state[0], {}}, {lse, {}}});
      Value shift = buildZeroIfEmpty(kb, max);
      Value alpha = buildExp2Diff(kb, state[0], shift), weight = buildExp2Diff(kb, lse, shift);
      Value sum = kb.mapOp<math::FmaOp>(row, {{state[1], {}}, {alpha, {}}, {weight, {}}});
      Value o = kb.map(
          oType, {{state[2], {}}, {alpha, {0}}, {weight, {0}}, {at, {0}}},
          [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
            Value part = memref::LoadOp::create(b, loc, partO, ValueRange{in[3], idx[1]});
            Value weighted = arith::MulFOp::create(b, loc, part, in[2]);
            return math::FmaOp::create(b, loc, in[0], in[1], weighted);
          },
          /*at=*/true);
      scf::YieldOp::create(b, loc, ValueRange{max, sum, o});
    } else {
      Value o = kb.map(
          oType, {{state[0], {}}, {at, {0}}},
          [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
            Value part = memref::LoadOp::create(b, loc, partO, ValueRange{in[1], idx[1]});
            return arith::AddFOp::create(b, loc, in[0], part);
          },
          /*at=*/true);
      scf::YieldOp::create(b, loc, ValueRange{o});
    }
  }
  Value o = loop.getResults().back(), lse2;
  if (spec.softmax)
    std::tie(o, lse2) = buildNormalise(kb, loop.getResult(0), loop.getResult(1), o);
  if (failed(buildFinalise(kb, o, lse2, kMergeRows, /*heads=*/true))) {
    kb.kernel.erase();
    return failure();
  }
  kb.finish();
  return kb.kernel;
}
