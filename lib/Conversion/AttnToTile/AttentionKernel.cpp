//===- AttentionKernel.cpp - one attention kernel at level L ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel, for each item (G groups of keys only where the config has them):
//   range of keys: mask analysis, minus kpos0, cut with the chunk
//   q = query hook(load)
//   for j in range step keys:
//     s = q . key hook(load k[j..])       x = logits hook(scale s) (log2 e)
//     y = mask(x), m, p = exp2(y - m), l  o = alpha o + p . value hook(load v[j..])
//   one state from the groups' states, o / l, lse
//   (bounded logits: the constant 0 stands for m, so alpha is 1)
//   slot < 0: finalise, else: partial state to part_o, part_lse
// test/Kernels/{decode,prefill}-l.mlir are this, written by hand.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "attn/Analysis/LogitBounds.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "attn/Dialect/Attn/Transforms/SelectConfig.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::attn;
using tile::ReduceKind;
using tile::RegType;

static constexpr float kLog2E = 1.44269504088896340736f;

Value mlir::attn::buildZeroIfEmpty(KernelBuilder &kb, Value x) {
  Value ninf = kb.f32(-std::numeric_limits<float>::infinity()), zero = kb.f32(0);
  return kb.map(cast<RegType>(x.getType()), {{x, {}}},
                [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
                  Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, in[0], ninf);
                  return arith::SelectOp::create(b, loc, empty, zero, in[0]);
                });
}

Value mlir::attn::buildExp2Diff(KernelBuilder &kb, Value x, Value y, ArrayRef<int64_t> dims) {
  return kb.map(cast<RegType>(x.getType()), {{x, {}}, {y, SmallVector<int64_t>(dims)}},
                [](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
                  Value d = arith::SubFOp::create(b, loc, in[0], in[1]);
                  return math::Exp2Op::create(b, loc, d, arith::FastMathFlags::afn);
                });
}

std::pair<Value, Value> mlir::attn::buildNormalise(KernelBuilder &kb, Value max, Value sum, Value o) {
  Value zero = kb.f32(0), one = kb.f32(1);
  auto row = cast<RegType>(sum.getType());
  Value inverse = kb.map(row, {{sum, {}}}, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
    Value some = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, in[0], zero);
    Value divisor = arith::SelectOp::create(b, loc, some, in[0], one);
    // Good to the last bit but one: the row is rounded behind it.
    return arith::DivFOp::create(b, loc, one, divisor, arith::FastMathFlags::arcp | arith::FastMathFlags::afn);
  });
  Value normal = kb.mapOp<arith::MulFOp>(cast<RegType>(o.getType()), {{o, {}}, {inverse, {0}}});
  SmallVector<MapInput> inputs;
  if (max)
    inputs.push_back({max, {}});
  inputs.push_back({sum, {}});
  Value lse2 = kb.map(row, inputs, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
    Value log = math::Log2Op::create(b, loc, in.back(), arith::FastMathFlags::afn);
    return max ? arith::AddFOp::create(b, loc, in[0], log).getResult() : log;
  });
  return {normal, lse2};
}

namespace {
/// Keys that an item visits: whole blocks from lo, keys below `end` exist and belong to the chunk, blocks within
/// [fullLo, fullHi) need no mask (null: no such interval), those within [lookupLo, lookupHi) no lookups (null: not
/// known).
struct KeyRange {
  Value lo, hi, end, fullLo, fullHi, lookupLo, lookupHi;
};

class AttentionKernel {
public:
  AttentionKernel(OpBuilder &builder, const KernelSpec &spec, StringRef name)
      : spec(spec), kb(builder, spec, name, spec.config, getRoles(spec)), b(kb.b), loc(kb.loc), rows(kb, false),
        groups(spec.config.getGroups()), m(spec.config.getRows()), n(spec.keysPerGroup()) {}

  LogicalResult build();
  tile::KernelOp getKernel() { return kb.kernel; }

private:
  static SmallVector<StringRef> getRoles(const KernelSpec &spec);
  /// [groups,] dims
  SmallVector<int64_t> grouped(ArrayRef<int64_t> dims) const {
    SmallVector<int64_t> shape;
    if (groups > 1)
      shape.push_back(groups);
    shape.append(dims.begin(), dims.end());
    return shape;
  }
  RegType f32Reg(ArrayRef<int64_t> shape) const { return KernelBuilder::reg(shape, FloatType(b.getF32Type())); }
  int64_t lastDim() const { return groups > 1 ? 2 : 1; }
  SmallVector<int64_t> stateDims() const { return groups > 1 ? SmallVector<int64_t>{0, 1} : SmallVector<int64_t>{0}; }

  KeyRange buildRange();
  FailureOr<Value> buildQuery();
  Value buildView(Value buffer, int64_t dim);
  FailureOr<Value> buildKeySide(Value view, const KeyCoords &keys, int64_t dim, HookKind kind);
  FailureOr<Value> buildLogits(Value s, const CoordFrame &frame);
  Value buildMask(Value x, const CoordFrame &frame, const KeyRange &range);
  KeyCoords buildKeyCoords(Value j);
  FailureOr<SmallVector<Value>> buildStep(Value q, Value kView, Value vView, Value j, ValueRange state,
                                          const KeyRange &range);
  LogicalResult buildEnd(ValueRange state);

  const KernelSpec &spec;
  KernelBuilder kb;
  OpBuilder &b;
  Location loc;
  RowCoords rows;
  int64_t groups, m, n;
  Value scale;
};
} // namespace

SmallVector<StringRef> AttentionKernel::getRoles(const KernelSpec &spec) {
  AttentionOp op = spec.op;
  SmallVector<StringRef> roles = {"q", "k", "v", "o"};
  if (op.getLse() && spec.softmax)
    roles.push_back("lse");
  if (spec.format != FormatKind::Ragged)
    roles.push_back("pages");
  roles.push_back("part_o");
  if (spec.softmax)
    roles.push_back("part_lse");
  roles.push_back("items");
  if (spec.config.getRowTable())
    roles.push_back("tokens");
  if (op.getScale())
    roles.push_back("scale");
  return roles;
}

//===----------------------------------------------------------------------===//
// Prologue: range, views, query
//===----------------------------------------------------------------------===//

KeyRange AttentionKernel::buildRange() {
  const ItemFields &item = kb.item;
  const RangeProgram &program = spec.range;
  KeyRange range;
  range.end = arith::MinSIOp::create(b, loc, item.khi, item.kvLen);
  range.lo = range.fullLo = item.klo;
  range.hi = range.fullHi = range.end;
  if (!spec.getHook(HookKind::Mask))
    return range;
  bool interior = !program.hasNoInterior();
  // Positions in a block-sparse row are not in the order of its keys.
  if (spec.format == FormatKind::Bsr || (program.seesAll() && !interior)) {
    range.fullLo = range.fullHi = {};
    return range;
  }
  int64_t pack = spec.config.getPack();
  auto tokensOf = [&]() -> Value {
    if (pack == 1)
      return item.rows;
    Value up = arith::AddIOp::create(b, loc, item.rows, kb.index(pack - 1));
    return arith::DivUIOp::create(b, loc, up, kb.index(pack));
  };
  SmallVector<Value> params = kb.getParams();
  // Scans look at the chunk's keys only.
  auto lookUp = [&](OpBuilder &b, Location loc, const RangeProgram::Inst &inst, ValueRange in) -> SmallVector<Value> {
    if (inst.op == RangeProgram::Op::Extent)
      return tile::ExtentOp::create(b, loc, in[0], in[1], in[2]).getResults();
    Value low = arith::AddIOp::create(b, loc, item.kpos0, item.klo);
    Value high = arith::AddIOp::create(b, loc, item.kpos0, range.end);
    Value from = arith::MaxSIOp::create(b, loc, in[2], low), to = arith::MinSIOp::create(b, loc, in[3], high);
    return tile::ScanOp::create(b, loc, in[0], in[1], from, to, in[4], in[5], in[6], in[7],
                                inst.more[6] & RangeProgram::SomeOutside, inst.more[6] & RangeProgram::AllOutside)
        .getResults();
  };
  auto emit = [&](Value qpos, Value tokens, Value qoLen, Value kvTotal, Value request) {
    SmallVector<Value> inputs = {qpos, tokens, qoLen, kvTotal, request};
    llvm::append_range(inputs, params);
    return emitRange(b, loc, program, inputs, lookUp);
  };
  SmallVector<Value> seen(4); // lo, full_lo, full_hi, hi in positions, and the lookups' interval
  bool table = spec.config.getRowTable();
  if (!table && !program.perToken) {
    seen = emit(item.qpos0, tokensOf(), item.qoLen, item.kvTotal, item.request);
  } else {
    // The hull of what the tokens see, one by one: they may belong to several requests, or have bounds of their own.
    Value first = kb.index(std::numeric_limits<int32_t>::max()), last = kb.index(0);
    Value one = kb.index(1), zero = kb.index(0);
    auto loop = scf::ForOp::create(b, loc, zero, tokensOf(), one, ValueRange{first, zero, first, last});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value t = loop.getInductionVar();
    SmallVector<Value> own;
    if (table) {
      Value token = arith::AddIOp::create(b, loc, item.token0, t);
      auto column = [&](int64_t c) -> Value {
        Value value = memref::LoadOp::create(b, loc, kb.arg("tokens"), ValueRange{token, kb.index(c)});
        return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
      };
      // AttnTokenInfo: position, request, row, qo_len, kv_total.
      own = emit(column(0), one, column(3), column(4), column(1));
    } else {
      Value qpos = arith::AddIOp::create(b, loc, item.qpos0, t);
      own = emit(qpos, one, item.qoLen, item.kvTotal, item.request);
    }
    auto state = loop.getRegionIterArgs();
    SmallVector<Value> next = {
        arith::MinSIOp::create(b, loc, state[0], own[0]), arith::MaxSIOp::create(b, loc, state[1], own[1]),
        arith::MinSIOp::create(b, loc, state[2], own[2]), arith::MaxSIOp::create(b, loc, state[3], own[3])};
    scf::YieldOp::create(b, loc, next);
    for (int i = 0; i < 4; ++i)
      seen[i] = loop.getResult(i);
  }
  auto keyOf = [&](Value position) -> Value { return arith::SubIOp::create(b, loc, position, item.kpos0); };
  if (program.getConstant(program.result[0]) != 0) {
    Value keys = kb.index(spec.config.getKeys());
    Value lo = arith::MaxSIOp::create(b, loc, keyOf(seen[0]), item.klo);
    Value block = arith::DivUIOp::create(b, loc, lo, keys);
    range.lo = arith::MulIOp::create(b, loc, block, keys);
  }
  if (program.result[3] != RangeProgram::KVTotal)
    range.hi = arith::MinSIOp::create(b, loc, keyOf(seen[3]), range.end);
  if (seen.size() > 4) {
    range.lookupLo = keyOf(seen[4]);
    range.lookupHi = keyOf(seen[5]);
  }
  if (!interior) {
    range.fullLo = range.fullHi = {};
    return range;
  }
  if (program.getConstant(program.result[1]) != 0)
    range.fullLo = arith::MaxSIOp::create(b, loc, keyOf(seen[1]), item.klo);
  range.fullHi = arith::MinSIOp::create(b, loc, keyOf(seen[2]), range.end);
  return range;
}

Value AttentionKernel::buildView(Value buffer, int64_t dim) {
  const ItemFields &item = kb.item;
  Value head = arith::DivUIOp::create(b, loc, item.head, kb.index(spec.group));
  int64_t dyn = ShapedType::kDynamic;
  if (spec.format == FormatKind::Ragged)
    return tile::ViewOp::create(b, loc, tile::ViewType::get({dyn, dim}, spec.kvType), buffer,
                                ValueRange{item.table, head}, item.kvLen, Value(), Value());
  return tile::ViewOp::create(b, loc, tile::ViewType::get({dyn, dim}, spec.kvType, spec.page), buffer, ValueRange{head},
                              item.kvLen, kb.arg("pages"), item.table);
}

FailureOr<Value> AttentionKernel::buildQuery() {
  int64_t pack = spec.config.getPack();
  auto type = tile::ViewType::get({ShapedType::kDynamic, spec.dqk}, spec.qType, 0, pack > 1 ? pack : 0);
  Value view = tile::ViewOp::create(b, loc, type, kb.arg("q"), ValueRange{kb.item.token0, kb.item.head}, kb.item.rows,
                                    Value(), Value());
  // Few rows go to registers, many stay in shared memory; consumers take theirs from there. On a GPU a query hook
  // rewrites shared memory first, where the warps share the work.
  bool registers = spec.config.getConsumers() > 0 ? false
                   : spec.gpu                     ? keepsQInRegisters(spec.op, spec.config)
                                                  : m <= 16 || spec.config.getQInRegisters();
  HookOp hook = spec.getHook(HookKind::Query);
  bool direct = registers && !(spec.gpu && hook);
  auto reg = KernelBuilder::reg({m, spec.dqkTile}, spec.qType);
  Type loaded = direct ? Type(reg) : Type(tile::SmemType::get({m, spec.dqkTile}, spec.qType));
  Value q = tile::LoadOp::create(b, loc, loaded, view, kb.index(0));
  if (!hook)
    return q;
  rows.require(hook);
  CoordFrame frame;
  frame.rows = &rows;
  frame.rowDim = 0;
  Value raw = direct ? q : Value(tile::LocalLoadOp::create(b, loc, reg, q));
  FailureOr<Value> hooked = liftVectorHook(kb, hook, frame, raw, spec.qType);
  if (failed(hooked) || direct)
    return hooked;
  tile::LocalStoreOp::create(b, loc, *hooked, q);
  return registers ? Value(tile::LocalLoadOp::create(b, loc, reg, q)) : q;
}

//===----------------------------------------------------------------------===//
// One block of keys
//===----------------------------------------------------------------------===//

KeyCoords AttentionKernel::buildKeyCoords(Value j) {
  KeyCoords keys{j, {}, {}};
  auto reads = [](HookOp hook) {
    return hook && hook.getBody().walk([](KVPosOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  bool used = false;
  for (HookKind kind : {HookKind::Key, HookKind::Value, HookKind::Logits, HookKind::Mask})
    used |= reads(spec.getHook(kind));
  if (spec.format != FormatKind::Bsr || !used)
    return keys;
  // bsr: the position of a key is that of its column, block * Bc + offset.
  CoordFrame frame;
  frame.keys = &keys;
  frame.keyDims = groups > 1 ? SmallVector<int64_t>{0, 1} : SmallVector<int64_t>{0};
  Value page = kb.index(spec.page), last = buildLastKey(b, loc, kb);
  /// What is added to the numbers of keys in the column block of `key`.
  auto shiftOf = [&](OpBuilder &b, Location loc, Value key) -> Value {
    Value slot = arith::DivUIOp::create(b, loc, key, page);
    Value entry = arith::AddIOp::create(b, loc, kb.item.table, slot);
    Value block = memref::LoadOp::create(b, loc, kb.arg("pages"), ValueRange{entry});
    block = arith::IndexCastOp::create(b, loc, b.getIndexType(), block);
    Value distance = arith::SubIOp::create(b, loc, block, slot);
    return arith::MulIOp::create(b, loc, distance, page);
  };
  if (spec.config.getConsumers() > 0) {
    // One for each column block; the block of keys that nobody has, which they visit too, has no entries.
    int64_t blocks = std::max<int64_t>(1, spec.config.getKeys() / spec.page);
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, j, kb.item.kvLen);
    auto branch = scf::IfOp::create(
        b, loc, some,
        [&](OpBuilder &b, Location loc) {
          SmallVector<Value> shifts = {shiftOf(b, loc, j)};
          for (int64_t i = 1; i < blocks; ++i) {
            Value first = arith::AddIOp::create(b, loc, j, kb.index(i * spec.page));
            shifts.push_back(shiftOf(b, loc, arith::MinSIOp::create(b, loc, first, last)));
          }
          scf::YieldOp::create(b, loc, shifts);
        },
        [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, SmallVector<Value>(blocks, kb.index(0))); });
    keys.shifts.assign(branch.result_begin(), branch.result_end());
    return keys;
  }
  keys.positions = kb.map(
      KernelBuilder::reg(grouped({n}), b.getIndexType()), {},
      [&](OpBuilder &b, Location loc, ValueRange, ValueRange idx) -> Value {
        Value key = arith::MinSIOp::create(b, loc, buildKey(b, loc, kb, frame, idx), last);
        return arith::AddIOp::create(b, loc, shiftOf(b, loc, key), key);
      },
      /*at=*/true);
  return keys;
}

/// K or V of one block: in shared memory as loaded, or in registers after its hook or the conversion from 8 bits.
FailureOr<Value> AttentionKernel::buildKeySide(Value view, const KeyCoords &keys, int64_t dim, HookKind kind) {
  SmallVector<int64_t> shape = grouped({n, dim});
  Value smem = tile::LoadOp::create(b, loc, tile::SmemType::get(shape, spec.kvType), view, keys.j);
  HookOp hook = spec.getHook(kind);
  if (!hook && !spec.fp8)
    return smem;
  Value raw = tile::LocalLoadOp::create(b, loc, KernelBuilder::reg(shape, spec.kvType), smem);
  if (!hook)
    return kb.convert(raw, spec.qType);
  CoordFrame frame;
  frame.keys = &keys;
  frame.keyDims = groups > 1 ? SmallVector<int64_t>{0, 1} : SmallVector<int64_t>{0};
  FailureOr<Value> hooked = liftVectorHook(kb, hook, frame, raw, spec.qType);
  if (failed(hooked) || kind == HookKind::Key)
    return hooked;
  // What a value hook makes of rows that do not exist meets weights of 0, and 0 x inf is not 0.
  return kb.map(
      cast<RegType>((*hooked).getType()), {{*hooked, {}}},
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
        Value key = buildKey(b, loc, kb, frame, idx);
        Value there = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key, kb.item.kvLen);
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(in[0].getType()));
        return arith::SelectOp::create(b, loc, there, in[0], zero);
      },
      /*at=*/true);
}

FailureOr<Value> AttentionKernel::buildLogits(Value s, const CoordFrame &frame) {
  HookOp hook = spec.getHook(HookKind::Logits);
  auto type = cast<RegType>(s.getType());
  if (!hook) {
    // Base 2 from here on. The scale is applied before the maximum: it may be zero or negative.
    Value factor = scale;
    return kb.map(type, {{s, {}}}, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
      return arith::MulFOp::create(b, loc, in[0], factor);
    });
  }
  SmallVector<MapInput> inputs = {{s, {}}};
  HookBody body(kb, hook, frame, inputs);
  Value log2e = spec.softmax ? kb.f32(kLog2E) : Value();
  Value logits = kb.map(
      type, inputs,
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
        // Factors that no author wrote: tile-merge-factors may move them.
        auto own = arith::FastMathFlags::reassoc;
        Value logit = arith::MulFOp::create(b, loc, in[0], scale, own);
        logit = body.clone(b, loc, in, idx, logit);
        return log2e ? Value(arith::MulFOp::create(b, loc, logit, log2e, own)) : logit;
      },
      /*at=*/true);
  if (spec.bounded)
    logits.getDefiningOp()->walk([&](math::TanhOp op) {
      if (isScaledYield(op))
        op->setAttr(kAbsoluteError, b.getUnitAttr());
    });
  return logits;
}

Value AttentionKernel::buildMask(Value x, const CoordFrame &frame, const KeyRange &range) {
  HookOp hook = spec.getHook(HookKind::Mask);
  SmallVector<MapInput> inputs;
  std::optional<HookBody> body;
  if (hook)
    body.emplace(kb, hook, frame, inputs);
  SmallVector<Value> values;
  SmallVector<SmallVector<int64_t>> dims;
  for (const MapInput &input : inputs) {
    values.push_back(input.reg);
    dims.push_back(input.dims);
  }
  Value key = range.fullLo ? frame.keys->j : Value(), looksUp;
  if (range.lookupLo) {
    Value j = frame.keys->j, last = arith::AddIOp::create(b, loc, j, kb.index(spec.config.getKeys()));
    Value above = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, j, range.lookupLo);
    last = arith::MinSIOp::create(b, loc, last, range.end);
    looksUp = arith::OrIOp::create(b, loc, above,
                                   arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, last, range.lookupHi));
  }
  return tile::MaskOp::create(
      b, loc, x, values, dims, key, range.fullLo, range.fullHi, range.fullLo ? spec.config.getKeys() : 0,
      /*zero=*/!spec.softmax, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
        Value number = buildKey(b, loc, kb, frame, idx);
        Value there = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, range.end);
        if (!body)
          return there;
        auto [places, entries] = body->cloneMask(b, loc, in, idx, looksUp);
        Value visible = places ? arith::AndIOp::create(b, loc, there, places) : there;
        return entries ? arith::AndIOp::create(b, loc, visible, entries).getResult() : visible;
      });
}

FailureOr<SmallVector<Value>> AttentionKernel::buildStep(Value q, Value kView, Value vView, Value j, ValueRange state,
                                                         const KeyRange &range) {
  Type compute = spec.qType;
  KeyCoords keys = buildKeyCoords(j);
  FailureOr<Value> k = buildKeySide(kView, keys, spec.dqkTile, HookKind::Key);
  FailureOr<Value> v = failed(k) ? k : buildKeySide(vView, keys, spec.dvoTile, HookKind::Value);
  if (failed(v))
    return failure();
  RegType sType = f32Reg(grouped({m, n}));
  Value s = tile::DotOp::create(b, loc, sType, q, *k, Value(), /*transpose_b=*/true);
  CoordFrame frame;
  frame.rows = &rows;
  frame.rowDim = lastDim() - 1;
  frame.keys = &keys;
  frame.keyDims = groups > 1 ? SmallVector<int64_t>{0, 2} : SmallVector<int64_t>{1};
  FailureOr<Value> x = buildLogits(s, frame);
  if (failed(x))
    return failure();
  Value y = buildMask(*x, frame, range);
  RegType oType = f32Reg(grouped({m, spec.dvoTile}));
  if (!spec.softmax) {
    Value p = kb.convert(y, compute);
    Value o = tile::DotOp::create(b, loc, oType, p, *v, state[0], /*transpose_b=*/false);
    return SmallVector<Value>{o};
  }
  RegType stateType = f32Reg(grouped({m}));
  if (spec.bounded) {
    Value p = kb.map(sType, {{y, {}}}, [](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
      return math::Exp2Op::create(b, loc, in[0], arith::FastMathFlags::afn);
    });
    Value pSum = kb.reduce(ReduceKind::AddF, p, lastDim());
    Value sum = kb.mapOp<arith::AddFOp>(stateType, {{state[0], {}}, {pSum, {}}});
    Value o = tile::DotOp::create(b, loc, oType, kb.convert(p, compute), *v, state[1], /*transpose_b=*/false);
    return SmallVector<Value>{sum, o};
  }
  Value max = kb.reduce(ReduceKind::MaximumF, y, lastDim(), state[0]);
  Value shift = buildZeroIfEmpty(kb, max);
  Value alpha = buildExp2Diff(kb, state[0], shift);
  Value p = buildExp2Diff(kb, y, shift, stateDims());
  Value pSum = kb.reduce(ReduceKind::AddF, p, lastDim());
  Value sum = kb.mapOp<math::FmaOp>(stateType, {{state[1], {}}, {alpha, {}}, {pSum, {}}});
  Value pLow = kb.convert(p, compute);
  Value scaled = kb.mapOp<arith::MulFOp>(oType, {{state[2], {}}, {alpha, stateDims()}});
  Value o = tile::DotOp::create(b, loc, oType, pLow, *v, scaled, /*transpose_b=*/false);
  return SmallVector<Value>{max, sum, o};
}

//===----------------------------------------------------------------------===//
// End of an item
//===----------------------------------------------------------------------===//

LogicalResult AttentionKernel::buildEnd(ValueRange state) {
  Value o = state.back(), lse2;
  if (spec.bounded) {
    Value sum = state[0];
    if (groups > 1) {
      sum = kb.reduce(ReduceKind::AddF, sum, 0);
      o = kb.reduce(ReduceKind::AddF, o, 0);
    }
    std::tie(o, lse2) = buildNormalise(kb, Value(), sum, o);
  } else if (spec.softmax) {
    Value max = state[0], sum = state[1];
    if (groups > 1) {
      // One state from the groups' states.
      Value all = kb.reduce(ReduceKind::MaximumF, max, 0);
      Value shift = buildZeroIfEmpty(kb, all);
      Value weight = buildExp2Diff(kb, max, shift, {1});
      Value sums = kb.mapOp<arith::MulFOp>(cast<RegType>(sum.getType()), {{sum, {}}, {weight, {}}});
      Value os = kb.mapOp<arith::MulFOp>(cast<RegType>(o.getType()), {{o, {}}, {weight, stateDims()}});
      max = all;
      sum = kb.reduce(ReduceKind::AddF, sums, 0);
      o = kb.reduce(ReduceKind::AddF, os, 0);
    }
    std::tie(o, lse2) = buildNormalise(kb, max, sum, o);
  } else if (groups > 1) {
    o = kb.reduce(ReduceKind::AddF, o, 0);
  }
  const ItemFields &item = kb.item;
  Value whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, item.slot, kb.index(0));
  auto branch = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (failed(buildFinalise(kb, o, lse2, spec.config.getPack(), /*heads=*/false)))
    return failure();
  b.setInsertionPointToStart(branch.elseBlock());
  int64_t dyn = ShapedType::kDynamic;
  auto store = [&](Value value, StringRef role, ArrayRef<int64_t> shape) {
    Value view = tile::ViewOp::create(b, loc, tile::ViewType::get(shape, b.getF32Type()), kb.arg(role),
                                      ValueRange{item.slot}, item.rows, Value(), Value());
    tile::StoreOp::create(b, loc, value, view, kb.index(0));
  };
  store(o, "part_o", {dyn, spec.dvo});
  if (lse2)
    store(lse2, "part_lse", {dyn});
  return success();
}

LogicalResult AttentionKernel::build() {
  // The scale, times log2 e where nothing comes between it and exp2.
  bool base2 = spec.softmax && !spec.getHook(HookKind::Logits);
  if (Value given = kb.arg("scale")) {
    scale = given;
    if (base2) {
      Value log2e = kb.f32(kLog2E);
      OpBuilder at(kb.forEach);
      scale = arith::MulFOp::create(at, loc, given, log2e);
    }
  } else {
    double value = 1.0 / std::sqrt(static_cast<double>(spec.dqk));
    scale = kb.f32(base2 ? value * 1.44269504088896340736 : value);
  }
  KeyRange range = buildRange();
  Value kView = buildView(kb.arg("k"), spec.dqk), vView = buildView(kb.arg("v"), spec.dvo);
  FailureOr<Value> q = buildQuery();
  if (failed(q))
    return failure();
  rows.require(spec.getHook(HookKind::Logits));
  rows.require(spec.getHook(HookKind::Mask));
  SmallVector<Value> init;
  if (spec.softmax) {
    if (!spec.bounded)
      init.push_back(kb.splat(-std::numeric_limits<float>::infinity(), grouped({m})));
    init.push_back(kb.splat(0, grouped({m})));
  }
  init.push_back(kb.splat(0, grouped({m, spec.dvoTile})));
  auto loop = scf::ForOp::create(b, loc, range.lo, range.hi, kb.index(spec.config.getKeys()), init);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto next = buildStep(*q, kView, vView, loop.getInductionVar(), loop.getRegionIterArgs(), range);
    if (failed(next))
      return failure();
    scf::YieldOp::create(b, loc, *next);
  }
  if (failed(buildEnd(loop.getResults())))
    return failure();
  kb.finish();
  return success();
}

FailureOr<tile::KernelOp> mlir::attn::buildAttentionKernel(OpBuilder &builder, const KernelSpec &spec, StringRef name) {
  AttentionKernel kernel(builder, spec, name);
  if (failed(kernel.build())) {
    kernel.getKernel().erase();
    return failure();
  }
  return kernel.getKernel();
}
