//===- EmitElementwise.cpp - map, mask, reduce, slice, concat, splat ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread computes its own elements; the body of a map or mask is written
// once per element. Layouts of operands and results agree up to reduced
// dimensions (layout assignment sees to it), so nothing moves between threads
// except in reductions.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;

Value tile::pack16(Emitter &e, Value low, Value high, Type element) {
  Type pair = VectorType::get({2}, element);
  if (low.getType().isF32()) {
    auto round = NVVM::FPRoundingModeAttr::get(e.context, NVVM::FPRoundingMode::RN);
    Value v;
    if (element.isBF16())
      v = NVVM::ConvertF32x2ToBF16x2Op::create(e.b, e.loc, pair, high, low, Value(), round.getValue());
    else
      v = NVVM::ConvertF32x2ToF16x2Op::create(e.b, e.loc, pair, high, low, Value(), round.getValue());
    return LLVM::BitcastOp::create(e.b, e.loc, e.i32, v);
  }
  Value v = LLVM::UndefOp::create(e.b, e.loc, pair);
  v = LLVM::InsertElementOp::create(e.b, e.loc, v, low, e.c32(0));
  v = LLVM::InsertElementOp::create(e.b, e.loc, v, high, e.c32(1));
  return LLVM::BitcastOp::create(e.b, e.loc, e.i32, v);
}

std::pair<Value, Value> tile::unpack16(Emitter &e, Value packed, Type element) {
  Value v = LLVM::BitcastOp::create(e.b, e.loc, VectorType::get({2}, element), packed);
  return {LLVM::ExtractElementOp::create(e.b, e.loc, v, e.c32(0)),
          LLVM::ExtractElementOp::create(e.b, e.loc, v, e.c32(1))};
}

namespace {
/// Reads elements of an operand as scalars; a packed register is taken apart once.
struct Elements {
  Elements(Emitter &e, Value value) : e(e), fragment(e.fragment(value.getType())), regs(e.reg(value)) {
    element = cast<RegType>(value.getType()).getElementType();
    if (isEightBitFloat(element))
      element = e.b.getF16Type();
  }
  Value get(int64_t i) {
    if (fragment.getPack() == 1)
      return regs[i];
    auto &halves = open[i / 2];
    if (!halves.first)
      halves = unpack16(e, regs[i / 2], element);
    return i % 2 ? halves.second : halves.first;
  }
  Emitter &e;
  Fragment fragment;
  Regs regs;
  Type element;
  DenseMap<int64_t, std::pair<Value, Value>> open;
};
} // namespace

/// For each element of `result` the element of `input`, which spans `dims` of it.
static LogicalResult alignOperand(Emitter &e, Operation *op, const Fragment &result, const Fragment &input,
                                  ArrayRef<int64_t> dims, SmallVectorImpl<int64_t> &out) {
  DenseMap<SmallVector<int64_t, 3>, int64_t> at;
  for (int64_t i = 0, n = input.getNumElements(); i < n; ++i)
    at[SmallVector<int64_t, 3>(input.getOffsets(i))] = i;
  for (auto [i, d] : llvm::enumerate(dims))
    if (!(result.getLanePart(d) == input.getLanePart(i)))
      return op->emitError() << "has an operand whose layout disagrees with the result's in dimension " << d
                             << ", expected tile.convert_layout before it";
  for (int64_t i = 0, n = result.getNumElements(); i < n; ++i) {
    SmallVector<int64_t, 3> key;
    for (int64_t d : dims)
      key.push_back(result.getOffsets(i)[d]);
    auto found = at.find(key);
    if (found == at.end())
      return op->emitError() << "has an operand whose layout does not hold what the result's threads need";
    out.push_back(found->second);
  }
  return success();
}

static void bindElement(Emitter &e, Value arg, Value v) {
  if (arg.getType().isIndex())
    e.indices[arg] = {v, 0};
  else
    e.scalars[arg] = v;
}

/// Conversions that only feed packed results: pairs are rounded at once. From 8 bits to bf16 goes through f32, too.
static llvm::DenseSet<Operation *> roundedByPacking(YieldOp yield) {
  llvm::DenseSet<Operation *> skip;
  for (Value v : yield.getOperands()) {
    Operation *op = v.getDefiningOp();
    if (!op || !op->hasOneUse())
      continue;
    auto trunc = dyn_cast<arith::TruncFOp>(op);
    auto extend = dyn_cast<arith::ExtFOp>(op);
    if ((trunc && trunc.getIn().getType().isF32() && (v.getType().isBF16() || v.getType().isF16())) ||
        (extend && isEightBitFloat(extend.getIn().getType()) && v.getType().isBF16()))
      skip.insert(op);
  }
  return skip;
}

/// 8-bit floats to f16 and nothing else: registers hold them as f16 already.
static bool onlyWidensToHalf(MapOp op) {
  Block &body = op.getBody().front();
  if (op.getInputs().size() != 1 || op.getNumResults() != 1 || !llvm::hasSingleElement(body.without_terminator()))
    return false;
  auto extend = dyn_cast<arith::ExtFOp>(body.front());
  return extend && isEightBitFloat(extend.getIn().getType()) && extend.getType().isF16() &&
         op.getYield().getOperand(0) == extend.getResult();
}

/// Whether a warp may leave `op` out where its second input is one: a product, and no product of tiles is in flight,
/// over which there is no branch.
static bool canSkip(Emitter &e, MapOp op) {
  if (!op->hasAttr(kSkipsOnes) || op.getInputs().size() != 2 || op.getNumResults() != 1)
    return false;
  auto product = op.getYield().getOperand(0).getDefiningOp<arith::MulFOp>();
  ValueRange args = op.getInputArgs();
  return product && product.getType().isF32() && product.getLhs() == args[0] && product.getRhs() == args[1] &&
         op.getInputs()[0].getType() == op.getResult(0).getType() && e.inFlight.empty() && !e.guard;
}

/// Enters the block in which a warp multiplies, and returns the one behind it, where a warp without another factor than
/// one comes at once with its first input.
static Block *skipWhereOnes(Emitter &e, MapOp op) {
  Regs same = e.reg(op.getInputs()[0]);
  Value differs;
  for (Value factor : e.reg(op.getInputs()[1])) {
    Value other = LLVM::FCmpOp::create(e.b, e.loc, LLVM::FCmpPredicate::une, factor, e.cf32(1.0f));
    differs = differs ? e.bitOr(differs, other) : other;
  }
  Value any = e.intrinsic("llvm.nvvm.vote.any.sync", {e.c32(-1), differs}, e.i1);
  Block *multiply = e.newBlock(), *rest = e.newBlock(ValueRange(same).getTypes());
  LLVM::CondBrOp::create(e.b, e.loc, any, multiply, ValueRange(), rest, same);
  e.enter(multiply);
  return rest;
}

static LogicalResult emitMap(Emitter &e, MapOp op) {
  if (op.getNumResults() == 0)
    return success();
  for (Value result : op.getResults())
    if (isEightBitFloat(cast<RegType>(result.getType()).getElementType()))
      return op.emitError() << "makes 8-bit floats, which has no code: they are only read";
  const Fragment f = e.fragment(op.getResult(0).getType());
  if (onlyWidensToHalf(op) && e.reg(op.getInputs()[0]).size() == static_cast<size_t>(f.getNumRegisters())) {
    Regs copy = e.reg(op.getInputs()[0]);
    e.regs[op.getResult(0)] = copy;
    return success();
  }
  for (Value result : op.getResults()) {
    const Fragment &g = e.fragment(result.getType());
    bool same = g.getNumElements() == f.getNumElements();
    for (int64_t i = 0; same && i < f.getNumElements(); ++i)
      same = f.getOffsets(i) == g.getOffsets(i);
    if (!same)
      return op.emitError() << "has results of different layouts";
  }
  SmallVector<Elements, 0> inputs;
  SmallVector<SmallVector<int64_t>> from(op.getInputs().size());
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    inputs.emplace_back(e, input);
    if (failed(alignOperand(e, op, f, inputs[i].fragment, op.getInputDims(i), from[i])))
      return failure();
  }
  Block *rest = canSkip(e, op) ? skipWhereOnes(e, op) : nullptr;
  YieldOp yield = op.getYield();
  auto skip = roundedByPacking(yield);
  Block &body = op.getBody().front();
  // Coordinates that the back end cannot see through: what a hook computes of them alone (rope's frequencies) would be
  // kept in registers for the whole loop, one value or more for each column of the thread
  SmallVector<Value> lanes;
  // (a transform has hidden them already, once for all of its steps).
  bool hide = op->getParentOfType<scf::ForOp>() && !isa<TransformOp>(op->getParentOp()) &&
              llvm::any_of(body, [](Operation &inner) { return isa<math::MathDialect>(inner.getDialect()); });
  for (auto [d, arg] : llvm::enumerate(op.getIndexArgs())) {
    Value lane = arg.use_empty() ? Value() : e.lanePart(f.getLanePart(d));
    lanes.push_back(lane && hide ? e.hideLanePart(lane) : lane);
  }
  SmallVector<Regs> results(op.getNumResults());
  for (int64_t i = 0, n = f.getNumElements(); i < n; ++i) {
    for (auto [k, arg] : llvm::enumerate(op.getInputArgs()))
      bindElement(e, arg, inputs[k].get(from[k][i]));
    for (auto [d, arg] : llvm::enumerate(op.getIndexArgs()))
      e.indices[arg] = {lanes[d], f.getOffsets(i)[d]};
    for (Operation &inner : body) {
      if (&inner == yield.getOperation() || skip.contains(&inner))
        continue;
      if (failed(e.emitOp(&inner)))
        return failure();
    }
    for (auto [k, v] : llvm::enumerate(yield.getOperands())) {
      Operation *def = v.getDefiningOp();
      bool packed = e.fragment(op.getResult(k).getType()).getPack() == 2;
      if (def && skip.contains(def)) {
        Value wide = e.scalar(def->getOperand(0));
        if (!wide.getType().isF32())
          wide = LLVM::FPExtOp::create(e.b, e.loc, e.f32, wide);
        results[k].push_back(packed ? wide : Value(LLVM::FPTruncOp::create(e.b, e.loc, v.getType(), wide)));
      } else {
        results[k].push_back(v.getType().isIndex() ? e.narrow(e.index(v)) : e.scalar(v));
      }
    }
  }
  if (rest) {
    LLVM::BrOp::create(e.b, e.loc, results[0], rest);
    e.enter(rest);
    results[0].assign(rest->args_begin(), rest->args_end());
  }
  for (auto [k, result] : llvm::enumerate(op.getResults())) {
    if (e.fragment(result.getType()).getPack() == 1) {
      e.regs[result] = results[k];
      continue;
    }
    Regs packed;
    for (size_t i = 0; i < results[k].size(); i += 2)
      packed.push_back(pack16(e, results[k][i], results[k][i + 1], cast<RegType>(result.getType()).getElementType()));
    e.regs[result] = packed;
  }
  return success();
}

/// `value` where all terms of the condition hold. LLVM would select once for each term.
static Value keepWhere(Emitter &e, Value condition, Value value, Value dropped) {
  if (!condition.getDefiningOp<LLVM::AndOp>() || value.getType() != e.f32)
    return e.select(condition, value, dropped);
  return e.ptx("selp.f32 $0, $1, $2, $3;", "=f,f,f,b", {value, dropped, condition}, e.f32, /*effects=*/false)[0];
}

/// A condition of a branch in the body that all elements share.
static Value getUniformCondition(MaskOp op) {
  for (auto branch : op.getBody().front().getOps<scf::IfOp>())
    if (!op.getBody().isAncestor(branch.getCondition().getParentRegion()))
      return branch.getCondition();
  return {};
}

static LogicalResult emitMask(Emitter &e, MaskOp op) {
  const Fragment f = e.fragment(op.getResult().getType());
  Elements value(e, op.getValue());
  SmallVector<int64_t> same;
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, cast<RegType>(op.getValue().getType()).getRank()));
  if (failed(alignOperand(e, op, f, value.fragment, all, same)))
    return failure();
  SmallVector<Elements, 0> inputs;
  SmallVector<SmallVector<int64_t>> from(op.getInputs().size());
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    inputs.emplace_back(e, input);
    if (failed(alignOperand(e, op, f, inputs[i].fragment, op.getInputDims(i), from[i])))
      return failure();
  }
  // Beside the key loops, whose blocks are sorted by then, and in those that take all: most blocks of a long tile are
  // whole. Products in flight are no hindrance, the accumulators stay where they are.
  Block *rest = nullptr;
  if (op.getKey() && (!op->getParentOfType<scf::ForOp>() || op->hasAttr(kSkipsWhole))) {
    Regs whole = e.reg(op.getValue());
    Block *masked = e.newBlock();
    rest = e.newBlock(SmallVector<Type>(llvm::map_range(whole, [](Value v) { return v.getType(); })));
    Value key = e.narrow(e.index(op.getKey())), lo = e.narrow(e.index(op.getLo())), hi = e.narrow(e.index(op.getHi()));
    Value last = e.add(key, e.c32(op.getKeys()));
    Value inside =
        e.bitAnd(e.compare(LLVM::ICmpPredicate::sge, key, lo), e.compare(LLVM::ICmpPredicate::sle, last, hi));
    LLVM::CondBrOp::create(e.b, e.loc, inside, rest, whole, masked, ValueRange());
    e.enter(masked);
  }
  Type element = cast<RegType>(op.getResult().getType()).getElementType();
  if (!isa<FloatType>(element))
    return op.emitError() << "masks elements of type " << element << ", expected floats";
  llvm::APFloat other = op.getZero()
                            ? llvm::APFloat::getZero(cast<FloatType>(element).getFloatSemantics())
                            : llvm::APFloat::getInf(cast<FloatType>(element).getFloatSemantics(), /*Negative=*/true);
  Value dropped = LLVM::ConstantOp::create(e.b, e.loc, element, FloatAttr::get(element, other));
  auto emitElements = [&](Regs &out) -> LogicalResult {
    // A copy that the back end cannot see through: else the comparisons of several masks are shared and their
    // predicates, one per element, are kept in registers in between.
    SmallVector<Value> lanes;
    for (int64_t d = 0, n = all.size(); d < n; ++d) {
      Value lane = e.lanePart(f.getLanePart(d));
      lanes.push_back(lane ? e.hideLanePart(lane) : Value());
    }
    Block &body = op.getBody().front();
    for (int64_t i = 0, n = f.getNumElements(); i < n; ++i) {
      for (auto [k, arg] : llvm::enumerate(op.getInputArgs()))
        bindElement(e, arg, inputs[k].get(from[k][i]));
      for (auto [d, arg] : llvm::enumerate(op.getIndexArgs()))
        e.indices[arg] = {lanes[d], f.getOffsets(i)[d]};
      if (failed(e.emitBlock(body)))
        return failure();
      out.push_back(keepWhere(e, e.scalar(op.getYield().getOperand(0)), value.get(same[i]), dropped));
    }
    if (f.getPack() == 2) {
      Regs packed;
      for (size_t i = 0; i < out.size(); i += 2)
        packed.push_back(pack16(e, out[i], out[i + 1], element));
      out = packed;
    }
    return success();
  };
  Regs out;
  if (Value condition = getUniformCondition(op); condition && !e.settled.contains(condition)) {
    // A branch around the lookups of all the elements, not of each.
    Block *yes = e.newBlock(), *no = e.newBlock();
    if (!rest)
      rest = e.newBlock(SmallVector<Type>(llvm::map_range(e.reg(op.getValue()), [](Value v) { return v.getType(); })));
    LLVM::CondBrOp::create(e.b, e.loc, e.scalar(condition), yes, ValueRange(), no, ValueRange());
    for (bool value : {true, false}) {
      e.enter(value ? yes : no);
      e.settled[condition] = value;
      out.clear();
      LogicalResult done = emitElements(out);
      e.settled.erase(condition);
      if (failed(done))
        return failure();
      if (value)
        LLVM::BrOp::create(e.b, e.loc, out, rest);
    }
  } else if (failed(emitElements(out))) {
    return failure();
  }
  if (rest) {
    LLVM::BrOp::create(e.b, e.loc, out, rest);
    e.enter(rest);
    out.assign(rest->args_begin(), rest->args_end());
  }
  e.regs[op.getResult()] = out;
  return success();
}

static Value combine(Emitter &e, ReduceKind kind, Value a, Value c) {
  if (kind == ReduceKind::AddF)
    return LLVM::FAddOp::create(e.b, e.loc, a, c);
  return LLVM::MaxNumOp::create(e.b, e.loc, a, c); // NaN reaches the output through the exponentials
}

/// `chains` partial results, then a tree: short dependence chains without many registers.
static Value combineAll(Emitter &e, ReduceKind kind, ArrayRef<Value> values, int64_t chains, Regs *first = nullptr) {
  SmallVector<Value> parts(chains);
  for (auto [i, v] : llvm::enumerate(values)) {
    Value &part = parts[i % chains];
    part = part ? combine(e, kind, part, v) : v;
    if (first && i % chains == 0)
      first->push_back(part);
  }
  llvm::erase(parts, Value());
  while (parts.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < parts.size(); i += 2)
      next.push_back(i + 1 < parts.size() ? combine(e, kind, parts[i], parts[i + 1]) : parts[i]);
    parts = next;
  }
  return parts[0];
}

/// Parts of the warps side by side meet in shared memory: every warp leaves its part, all read all.
static LogicalResult reduceWarps(Emitter &e, ReduceOp op, const Fragment &f, const LanePart &part, Regs &values) {
  auto offset = op->getAttrOfType<IntegerAttr>(kSharedOffset);
  if (!offset)
    return op.emitError() << "needs shared memory to combine warps, run tile-allocate-shared first";
  int64_t warps = part.warpMod, n = values.size();
  // One slot per (warp, register, lane); lanes with the same elements share theirs.
  int64_t same = f.getSharedLaneMask(), slots = 32;
  Value lane = e.group.lane;
  if (same && llvm::isMask_64(same)) {
    lane = e.shr(lane, llvm::countr_one(static_cast<uint64_t>(same)));
    slots = 32 / (same + 1);
  } else if (same && llvm::isMask_64(31 & ~same)) {
    slots = 32 - same;
    lane = e.bitAnd(lane, e.c32(slots - 1));
  }
  int64_t line = 4 * slots, have = getScratchBytes(op);
  int64_t batch = std::min<int64_t>(n, have / (line * e.group.warps));
  if (batch < 1)
    return op.emitError() << "has " << have << " bytes of shared memory to combine " << e.group.warps
                          << " warps, expected at least " << line * e.group.warps;
  Value mine = e.add(e.mul(e.group.warp, e.c32(line * batch)), e.mul(lane, e.c32(4)));
  // This warp's number without its part along the reduced dimension.
  Value along = e.group.warp;
  if (part.warpDiv > 1)
    along = LLVM::UDivOp::create(e.b, e.loc, e.i32, along, e.c32(part.warpDiv));
  along = LLVM::URemOp::create(e.b, e.loc, e.i32, along, e.c32(warps));
  Value first = e.sub(e.group.warp, e.mul(along, e.c32(part.warpDiv)));
  Value theirs = e.add(e.mul(first, e.c32(line * batch)), e.mul(lane, e.c32(4)));
  for (int64_t start = 0; start < n; start += batch) {
    int64_t count = std::min(batch, n - start);
    e.sync();
    for (int64_t i = 0; i < count; ++i)
      LLVM::StoreOp::create(e.b, e.loc, values[start + i], e.smemPointer(mine, offset.getInt() + line * i), 4);
    e.sync();
    for (int64_t i = 0; i < count; ++i) {
      SmallVector<Value> parts;
      for (int64_t w = 0; w < warps; ++w)
        parts.push_back(
            LLVM::LoadOp::create(e.b, e.loc, values[start + i].getType(),
                                 e.smemPointer(theirs, offset.getInt() + line * (i + batch * w * part.warpDiv)), 4));
      values[start + i] = combineAll(e, op.getKind(), parts, 1);
    }
  }
  e.sync();
  return success();
}

static LogicalResult emitReduce(Emitter &e, ReduceOp op) {
  auto sourceType = cast<RegType>(op.getValue().getType());
  const Fragment source = e.fragment(sourceType), result = e.fragment(op.getResult().getType());
  if (!sourceType.getElementType().isF32())
    return op.emitError() << "reduces elements of type " << sourceType.getElementType() << ", expected f32";
  const Regs values = e.reg(op.getValue());
  const Regs init = op.getInit() ? e.reg(op.getInit()) : Regs();
  if (op.getInit() && init.size() != static_cast<size_t>(result.getNumRegisters()))
    return op.emitError() << "has an initial value whose layout is not the result's";
  int64_t chains = 2;
  if (auto attr = op->getAttrOfType<IntegerAttr>("chains"))
    chains = std::clamp<int64_t>(attr.getInt(), 1, 16);
  bool maximum = op.getKind() == ReduceKind::MaximumF;

  if (op.getScope() == ReduceScope::Lanes) {
    Regs out;
    int64_t mask = source.getSharedLaneMask();
    for (Value v : values) {
      for (int64_t bit = 1; bit < 32; bit *= 2)
        if (mask & bit)
          v = combine(e, op.getKind(), v, e.shuffleXor(v, bit));
      out.push_back(v);
    }
    for (auto [i, v] : llvm::enumerate(init))
      out[i] = combine(e, op.getKind(), v, out[i]);
    e.regs[op.getResult()] = out;
    return success();
  }

  if (!op.getDim())
    return op.emitError() << "has no dimension to reduce";
  int64_t dim = *op.getDim();
  const LanePart part = source.getLanePart(dim);
  SmallVector<SmallVector<Value>> terms(result.getNumElements());
  DenseMap<SmallVector<int64_t, 3>, int64_t> at;
  for (int64_t i = 0; i < result.getNumElements(); ++i)
    at[SmallVector<int64_t, 3>(result.getOffsets(i))] = i;
  for (int64_t i = 0; i < source.getNumElements(); ++i) {
    SmallVector<int64_t, 3> key(source.getOffsets(i));
    key.erase(key.begin() + dim);
    auto found = at.find(key);
    if (found == at.end())
      return op.emitError() << "has a result whose layout is not a slice of the operand's";
    terms[found->second].push_back(values[i]);
  }
  bool waits = llvm::any_of(op.getResult().getUsers(), [](Operation *user) { return isa<AwaitOp>(user); });
  Regs out;
  for (auto [i, list] : llvm::enumerate(terms)) {
    if (list.empty())
      return op.emitError() << "has a result whose layout is not a slice of the operand's";
    Value v = combineAll(e, op.getKind(), list, chains, waits ? &e.partials[op.getResult()].emplace_back() : nullptr);
    bool early = !init.empty() && (maximum || op.getScope() == ReduceScope::Thread);
    if (early)
      v = combine(e, op.getKind(), init[i], v);
    if (op.getScope() == ReduceScope::All && part.laneMul)
      for (int64_t bit = part.laneDiv; bit < part.laneDiv * part.laneMod; bit *= 2)
        v = combine(e, op.getKind(), v, e.shuffleXor(v, bit));
    out.push_back(v);
  }
  if (op.getScope() == ReduceScope::All && part.warpMul && part.warpMod > 1)
    if (failed(reduceWarps(e, op, result, part, out)))
      return failure();
  if (!init.empty() && !maximum && op.getScope() == ReduceScope::All)
    for (auto [i, v] : llvm::enumerate(init))
      out[i] = combine(e, op.getKind(), v, out[i]);
  e.regs[op.getResult()] = out;
  return success();
}

static LogicalResult emitSplat(Emitter &e, SplatOp op) {
  const Fragment &f = e.fragment(op.getResult().getType());
  Value v = op.getValue().getType().isIndex() ? e.narrow(e.index(op.getValue())) : e.scalar(op.getValue());
  if (f.getPack() == 2)
    v = pack16(e, v, v, op.getValue().getType());
  e.regs[op.getResult()] = Regs(f.getNumRegisters(), v);
  return success();
}

/// Register i of the result is register `from(i)` of a source; both hold whole pairs.
static LogicalResult emitSlice(Emitter &e, SliceOp op) {
  const Fragment source = e.fragment(op.getSource().getType()), result = e.fragment(op.getResult().getType());
  const Regs values = e.reg(op.getSource());
  Regs out;
  for (int64_t i = 0; i < result.getNumElements(); i += result.getPack()) {
    SmallVector<int64_t, 3> key(result.getOffsets(i));
    for (auto [k, shift] : llvm::zip_equal(key, op.getOffsets()))
      k += shift;
    int64_t j = source.find(key);
    if (j < 0 || source.getPack() != result.getPack() || j % source.getPack())
      return op.emitError() << "cuts where threads change, expected offsets that are multiples of what the warps cover";
    out.push_back(values[j / source.getPack()]);
  }
  e.regs[op.getResult()] = out;
  return success();
}

static LogicalResult emitConcat(Emitter &e, ConcatOp op) {
  const Fragment result = e.fragment(op.getResult().getType());
  int64_t dim = op.getDim();
  Regs out;
  for (int64_t i = 0; i < result.getNumElements(); i += result.getPack()) {
    SmallVector<int64_t, 3> key(result.getOffsets(i));
    Value found;
    for (Value input : op.getInputs()) {
      auto type = cast<RegType>(input.getType());
      if (key[dim] >= type.getShape()[dim]) {
        key[dim] -= type.getShape()[dim];
        continue;
      }
      const Fragment &f = e.fragment(type);
      int64_t j = f.find(key);
      if (j >= 0 && f.getPack() == result.getPack())
        found = e.reg(input)[j / f.getPack()];
      break;
    }
    if (!found)
      return op.emitError()
             << "joins where threads change, expected extents that are multiples of what the warps cover";
    out.push_back(found);
  }
  e.regs[op.getResult()] = out;
  return success();
}

/// The two columns of a pair are in one thread in layouts of accumulators and of operands along columns, and in threads
/// whose numbers differ in one bit in others (B operands that are not transposed).
static LogicalResult emitSwapPairs(Emitter &e, SwapPairsOp op) {
  auto type = cast<RegType>(op.getSource().getType());
  const Fragment &f = e.fragment(type);
  const Regs values = e.reg(op.getSource());
  int64_t last = type.getRank() - 1;
  for (int64_t i = 0; i < f.getNumElements(); i += 2) {
    bool pair = i + 1 < f.getNumElements() && f.getOffsets(i)[last] % 2 == 0 &&
                f.getOffsets(i + 1)[last] == f.getOffsets(i)[last] + 1 &&
                f.getOffsets(i).drop_back() == f.getOffsets(i + 1).drop_back();
    if (pair)
      continue;
    const LanePart &part = f.getLanePart(last);
    assert(part.laneMul == 1 && part.laneMod % 2 == 0 && "columns follow from registers or from lanes");
    Regs swapped;
    for (Value v : values)
      swapped.push_back(e.shuffleXor(v, part.laneDiv));
    e.regs[op.getResult()] = swapped;
    return success();
  }
  Regs out;
  if (f.getPack() == 2) { // both halves in one register
    for (Value v : values)
      out.push_back(e.intrinsic("llvm.fshl.i32", {v, v, e.c32(16)}, e.i32));
  } else {
    for (size_t i = 0; i < values.size(); i += 2)
      out.append({values[i + 1], values[i]});
  }
  e.regs[op.getResult()] = out;
  return success();
}

/// Layouts with the same registers (accumulator and A operand of 16-bit type) need no code.
static LogicalResult emitConvert(Emitter &e, ConvertLayoutOp op) {
  const Fragment source = e.fragment(op.getSource().getType()), result = e.fragment(op.getResult().getType());
  bool same = source.getNumElements() == result.getNumElements() && source.getPack() == result.getPack();
  auto type = cast<RegType>(op.getSource().getType());
  for (int64_t d = 0; same && d < type.getRank(); ++d)
    same = source.getLanePart(d) == result.getLanePart(d);
  for (int64_t i = 0; same && i < source.getNumElements(); ++i)
    same = source.getOffsets(i) == result.getOffsets(i);
  if (!same)
    return op.emitError() << "from " << op.getSource().getType() << " to " << op.getResult().getType()
                          << " moves elements between threads, which has no code yet";
  Regs copy = e.reg(op.getSource());
  e.regs[op.getResult()] = copy;
  return success();
}

void tile::populateElementwise(Emitter &e) {
  e.on<MapOp>(emitMap);
  e.on<MaskOp>(emitMask);
  e.on<ReduceOp>(emitReduce);
  e.on<SplatOp>(emitSplat);
  e.on<SliceOp>(emitSlice);
  e.on<ConcatOp>(emitConcat);
  e.on<SwapPairsOp>(emitSwapPairs);
  e.on<ConvertLayoutOp>(emitConvert);
}
