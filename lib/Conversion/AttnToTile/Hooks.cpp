//===- Hooks.cpp - hooks in the bodies of tile ops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalar hooks (logits, mask, sink) are cloned whole into one tile.map or
// tile.mask. Head-vector hooks are lifted: each vector of the hook is a tile
// whose last dimension is the vector's; an expression of elementwise ops is one
// tile.map, rope is slices, a map of two results, and a concat.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Dialect/Attn/Transforms/Dependence.h"
#include "attn/Dialect/Attn/Transforms/LegalizeMath.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// HookBody
//===----------------------------------------------------------------------===//

/// Whether the hook may go wrong at positions (of keys, or of rows) that do not exist: it reads memory by position, or
/// divides them.
static bool needsClamp(HookOp hook, bool ofKeys) {
  return hook.getBody()
      .walk([&](Operation *op) {
        if (isa<arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp, arith::FloorDivSIOp, arith::RemSIOp, arith::RemUIOp,
                memref::LoadOp>(op) &&
            llvm::any_of(op->getOperands(), [&](Value v) {
              Dependence on = findDependence(v);
              return ofKeys ? on.key : on.row;
            }))
          return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

HookBody::HookBody(KernelBuilder &kb, HookOp hook, const CoordFrame &frame, SmallVectorImpl<MapInput> &inputs)
    : kb(kb), hook(hook), frame(frame), clampRows(needsClamp(hook, /*ofKeys=*/false)),
      clampKeys(needsClamp(hook, /*ofKeys=*/true)), firstInput(inputs.size()) {
  hook.getBody().walk([&](Operation *op) {
    auto kind = getCoordKind(op);
    if (!kind || inputOf.count(static_cast<int>(*kind)))
      return;
    MapInput input;
    if (*kind == CoordKind::KVPos) {
      if (!frame.keys || !frame.keys->positions)
        return;
      input = {frame.keys->positions, SmallVector<int64_t>(frame.keyDims)};
    } else {
      if (!frame.rows || !frame.rows->get(*kind).reg)
        return;
      input = {frame.rows->get(*kind).reg, {frame.rowDim}};
    }
    inputOf[static_cast<int>(*kind)] = inputs.size();
    inputs.push_back(input);
  });
}

void HookBody::begin(OpBuilder &builder, Location location, ValueRange in, ValueRange idx) {
  b = &builder;
  loc = location;
  inputs = in;
  indices = idx;
  mapping = kb.variantMap;
  coordCache.clear();
}

Value HookBody::coord(CoordKind kind) {
  Value &cached = coordCache[static_cast<int>(kind)];
  if (cached)
    return cached;
  auto found = inputOf.find(static_cast<int>(kind));
  if (found != inputOf.end())
    return cached = inputs[found->second];
  if (kind == CoordKind::KVPos) {
    Value key = buildKey(*b, *loc, kb, frame, indices);
    if (clampKeys)
      key = arith::MinSIOp::create(*b, *loc, key, buildLastKey(*b, *loc, kb));
    ArrayRef<Value> shifts = frame.keys->shifts;
    Value shift = shifts.empty() ? kb.item.kpos0 : shifts[0];
    if (shifts.size() > 1) {
      Value block = arith::DivUIOp::create(*b, *loc, indices[frame.keyDims.back()], kb.index(kb.spec.page));
      for (auto [i, other] : llvm::enumerate(shifts.drop_front())) {
        Value mine = arith::CmpIOp::create(*b, *loc, arith::CmpIPredicate::eq, block, kb.index(i + 1));
        shift = arith::SelectOp::create(*b, *loc, mine, other, shift);
      }
    }
    return cached = arith::AddIOp::create(*b, *loc, shift, key);
  }
  if (!frame.rows) { // key side: the item's own values
    const ItemFields &item = kb.item;
    switch (kind) {
    case CoordKind::Request:
      return cached = item.request;
    case CoordKind::QoLen:
      return cached = item.qoLen;
    case CoordKind::KVLen:
      return cached = item.kvTotal;
    default:
      return cached = arith::DivUIOp::create(*b, *loc, item.head, kb.index(kb.spec.group));
    }
  }
  const RowCoords::Source &source = frame.rows->get(kind);
  if (source.uniform)
    return cached = source.uniform;
  Value row = indices[frame.rowDim];
  if (clampRows) {
    Value last = arith::SubIOp::create(*b, *loc, kb.item.rows, kb.index(1));
    row = arith::MinSIOp::create(*b, *loc, row, last);
  }
  return cached = arith::AddIOp::create(*b, *loc, source.base, row);
}

void HookBody::replaceCoords(Operation *op) {
  // Coordinates inside the regions of a cloned op: their values were made in front of it.
  SmallVector<Operation *> dead;
  op->walk([&](Operation *inner) {
    if (auto kind = getCoordKind(inner)) {
      inner->getResult(0).replaceAllUsesWith(coordCache.lookup(static_cast<int>(*kind)));
      dead.push_back(inner);
    }
  });
  for (Operation *inner : dead)
    inner->erase();
}

/// Clones `op` with what its regions need of coordinates in front of it.
static void collectNestedCoords(Operation *op, llvm::function_ref<void(CoordKind)> found) {
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      if (auto kind = getCoordKind(inner))
        found(*kind);
    });
}

Value HookBody::clone(OpBuilder &builder, Location location, ValueRange in, ValueRange idx, Value x) {
  begin(builder, location, in, idx);
  if (x)
    mapping.map(hook.getBody().getArgument(0), x);
  for (Operation &op : hook.getBody().front().without_terminator()) {
    if (auto kind = getCoordKind(&op)) {
      mapping.map(op.getResult(0), coord(*kind));
      continue;
    }
    collectNestedCoords(&op, [&](CoordKind kind) { coord(kind); });
    replaceCoords(builder.clone(op, mapping));
  }
  if (hook.getKind() == HookKind::Mask)
    compareUnclamped();
  return mapping.lookupOrDefault(hook.getYield().getValue());
}

std::pair<Value, Value> HookBody::cloneMask(OpBuilder &builder, Location location, ValueRange in, ValueRange idx,
                                            Value looksUp) {
  Operation *before = builder.getInsertionBlock()->empty() ? nullptr : &builder.getInsertionBlock()->back();
  Value whole = clone(builder, location, in, idx);
  if (!looksUp)
    return {whole, Value()};
  Value places, entries;
  for (Value term : getMaskTerms(hook)) {
    Value value = mapping.lookupOrDefault(term);
    Value &to = looksUpKey(term) ? entries : places;
    to = to ? arith::AndIOp::create(builder, location, to, value).getResult() : value;
  }
  if (!entries)
    return {places, Value()};
  // What only the lookups use moves into the branch; the conjunction of all the terms, which nobody uses, goes.
  auto branch = scf::IfOp::create(builder, location, builder.getI1Type(), looksUp, /*withElseRegion=*/true);
  OpBuilder then = branch.getThenBodyBuilder(), other = branch.getElseBodyBuilder();
  auto yield = scf::YieldOp::create(then, location, entries);
  Value yes = arith::ConstantIntOp::create(other, location, 1, 1);
  scf::YieldOp::create(other, location, yes);
  for (Operation *op = branch->getPrevNode(); op != before;) {
    Operation *previous = op->getPrevNode();
    if (places && op == places.getDefiningOp()) {
      op = previous;
      continue;
    }
    bool inside = llvm::all_of(op->getUsers(), [&](Operation *user) { return branch->isProperAncestor(user); });
    if (op->use_empty())
      op->erase();
    else if (inside)
      op->moveBefore(&yield->getBlock()->front());
    op = previous;
  }
  return {places, branch.getResult(0)};
}

/// A mask drops keys that do not exist whatever it says of them, so only lookups need a key that does: what compares
/// positions takes them as they are, a register and a constant, which merge with the comparison that drops those keys.
void HookBody::compareUnclamped() {
  Value clamped = coordCache.lookup(static_cast<int>(CoordKind::KVPos));
  if (!clampKeys || !clamped || frame.keys->shifts.size() > 1)
    return;
  auto add = clamped.getDefiningOp<arith::AddIOp>();
  auto key = add ? add.getRhs().getDefiningOp<arith::MinSIOp>() : arith::MinSIOp();
  if (!key)
    return;
  OpBuilder::InsertionGuard guard(*b);
  b->setInsertionPointAfter(add);
  Value position = arith::AddIOp::create(*b, *loc, add.getLhs(), key.getLhs());
  clamped.replaceUsesWithIf(position, [](OpOperand &use) { return isa<arith::CmpIOp>(use.getOwner()); });
}

Value HookBody::scalar(Value value) {
  if (Value done = mapping.lookupOrNull(value))
    return done;
  Operation *op = value.getDefiningOp();
  if (auto kind = getCoordKind(op)) {
    Value made = coord(*kind);
    mapping.map(value, made);
    return made;
  }
  // Operands first, those used in regions too.
  llvm::SetVector<Value> needed;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!isa<CoordType>(operand.getType()) && operand.getParentRegion() == &hook.getBody() &&
          !isa<BlockArgument>(operand))
        needed.insert(operand);
  });
  for (Value operand : needed)
    scalar(operand);
  collectNestedCoords(op, [&](CoordKind kind) { coord(kind); });
  replaceCoords(b->clone(*op, mapping));
  return mapping.lookup(value);
}

//===----------------------------------------------------------------------===//
// Head-vector hooks
//===----------------------------------------------------------------------===//

namespace {
class VectorLift {
public:
  VectorLift(KernelBuilder &kb, HookOp hook, const CoordFrame &frame, Value x) : kb(kb), hook(hook), frame(frame) {
    tiles[hook.getBody().getArgument(0)] = x;
    auto shape = cast<tile::RegType>(x.getType()).getShape();
    prefix.assign(shape.begin(), shape.end() - 1);
    columns = shape.back();
  }

  /// The vector `value` as a tile of type `element`.
  FailureOr<Value> materialise(Value value, Type element);

private:
  FailureOr<Value> rope(RopeOp op, Type element);
  Value interleaved(RopeOp op, const RopeSpec &spec, Value x, Type element);
  LogicalResult prepare(Value value, llvm::SetVector<Value> &leaves);
  Value scalarOf(HookBody &body, OpBuilder &b, Location loc, Value value, IRMapping &done);
  tile::RegType type(int64_t extent, Type element) const {
    SmallVector<int64_t> shape(prefix);
    shape.push_back(extent);
    return KernelBuilder::reg(shape, element);
  }
  Value slice(Value tile, int64_t offset, int64_t extent) {
    SmallVector<int64_t> offsets(prefix.size(), 0);
    offsets.push_back(offset);
    Type element = cast<tile::RegType>(tile.getType()).getElementType();
    return tile::SliceOp::create(kb.b, kb.loc, type(extent, element), tile, kb.b.getDenseI64ArrayAttr(offsets));
  }

  KernelBuilder &kb;
  HookOp hook;
  const CoordFrame &frame;
  SmallVector<int64_t> prefix;
  int64_t columns; // of every tile: the head dim, or more (columns behind it are thrown away, see liftVectorHook)
  llvm::DenseMap<Value, Value> tiles; // vectors of the hook that are tiles already
};
} // namespace

/// Makes tiles of what `value`'s expression cannot compute in a map body (rope), and collects the tiles it reads.
LogicalResult VectorLift::prepare(Value value, llvm::SetVector<Value> &leaves) {
  if (!isa<VectorType>(value.getType()))
    return success();
  if (tiles.count(value)) {
    leaves.insert(value);
    return success();
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &hook.getBody().front())
    return success(); // a constant of the variant
  if (auto ropeOp = dyn_cast<RopeOp>(op)) {
    FailureOr<Value> tile = rope(ropeOp, kb.b.getF32Type());
    if (failed(tile))
      return failure();
    tiles[value] = *tile;
    leaves.insert(value);
    return success();
  }
  auto constant = dyn_cast<arith::ConstantOp>(op);
  bool splat = constant && isa<SplatElementsAttr>(constant.getValue());
  if (!splat && !isa<vector::BroadcastOp>(op) && !OpTrait::hasElementwiseMappableTraits(op))
    return op->emitOpError() << "cannot be lifted from head vectors to tiles; a head-vector hook is made of "
                                "elementwise arith and math ops, vector.broadcast and attn.rope";
  for (Value operand : op->getOperands())
    if (failed(prepare(operand, leaves)))
      return failure();
  return success();
}

/// One element of the vector `value` in the map body that `body` has begun.
Value VectorLift::scalarOf(HookBody &body, OpBuilder &b, Location loc, Value value, IRMapping &done) {
  if (Value made = done.lookupOrNull(value))
    return made;
  if (!isa<VectorType>(value.getType()))
    return body.scalar(value);
  Operation *op = value.getDefiningOp();
  Value made;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    made = arith::ConstantOp::create(b, loc, cast<TypedAttr>(splat.getSplatValue<Attribute>()));
  } else if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
    made = scalarOf(body, b, loc, broadcast.getSource(), done);
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(scalarOf(body, b, loc, operand, done));
    OperationState state(op->getLoc(), op->getName(), operands, {getElementTypeOrSelf(value.getType())},
                         op->getAttrs());
    made = b.create(state)->getResult(0);
  }
  done.map(value, made);
  return made;
}

FailureOr<Value> VectorLift::materialise(Value value, Type element) {
  if (auto ropeOp = value.getDefiningOp<RopeOp>(); ropeOp && !tiles.count(value))
    return rope(ropeOp, element);
  llvm::SetVector<Value> leaves;
  if (failed(prepare(value, leaves)))
    return failure();
  if (tiles.count(value))
    return kb.convert(tiles[value], element);
  SmallVector<MapInput> inputs;
  for (Value leaf : leaves)
    inputs.push_back({tiles[leaf], {}});
  HookBody body(kb, hook, frame, inputs);
  return kb.map(
      type(columns, element), inputs,
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) {
        body.begin(b, loc, in, idx);
        IRMapping done;
        for (auto [leaf, arg] : llvm::zip(leaves, in))
          done.map(leaf, convertFloat(b, loc, arg, b.getF32Type()));
        return convertFloat(b, loc, scalarOf(body, b, loc, value, done), element);
      },
      /*at=*/true);
}

FailureOr<Value> VectorLift::rope(RopeOp op, Type element) {
  RopeSpec spec = RopeSpec::get(op);
  int64_t dim = columns, half = spec.rotary / 2;
  int64_t unit = spec.interleaved ? 8 : 16; // tiles are cut at multiples of 8
  if (spec.rotary % unit != 0)
    return op.emitOpError() << "has rotary = " << spec.rotary
                            << ", which cannot be lifted to tiles; expected a multiple of " << unit;
  Value source = op.getValue();
  Value x;
  auto known = tiles.find(source);
  if (known != tiles.end()) {
    x = known->second;
  } else {
    FailureOr<Value> made = materialise(source, kb.b.getF32Type());
    if (failed(made))
      return failure();
    x = *made;
  }
  int64_t lastDim = prefix.size();
  auto join = [&](SmallVector<Value> parts) -> Value {
    if (spec.rotary < dim)
      parts.push_back(kb.convert(slice(x, spec.rotary, dim - spec.rotary), element));
    if (parts.size() == 1)
      return parts[0];
    return tile::ConcatOp::create(kb.b, kb.loc, type(dim, element), parts, lastDim);
  };
  if (spec.interleaved)
    return join({interleaved(op, spec, spec.rotary < dim ? slice(x, 0, spec.rotary) : x, element)});
  SmallVector<MapInput> inputs = {{slice(x, 0, half), {}}, {slice(x, half, half), {}}};
  HookBody body(kb, hook, frame, inputs);
  auto rotated = kb.mapMany(
      {type(half, element), type(half, element)}, inputs, /*at=*/true,
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) {
        body.begin(b, loc, in, idx);
        Value position = body.scalar(op.getPosition());
        auto [cosine, sine] = buildRopeAngle(b, loc, position, idx[lastDim], spec);
        Value lower = convertFloat(b, loc, in[0], b.getF32Type()), upper = convertFloat(b, loc, in[1], b.getF32Type());
        Value lc = arith::MulFOp::create(b, loc, lower, cosine), us = arith::MulFOp::create(b, loc, upper, sine);
        Value uc = arith::MulFOp::create(b, loc, upper, cosine), ls = arith::MulFOp::create(b, loc, lower, sine);
        Value r0 = arith::SubFOp::create(b, loc, lc, us), r1 = arith::AddFOp::create(b, loc, uc, ls);
        return SmallVector<Value>{convertFloat(b, loc, r0, element), convertFloat(b, loc, r1, element)};
      });
  return join(rotated);
}

/// Pairs (2t, 2t + 1): x cos -+ partner sin, minus for the first of a pair.
Value VectorLift::interleaved(RopeOp op, const RopeSpec &spec, Value x, Type element) {
  Value partner = tile::SwapPairsOp::create(kb.b, kb.loc, x.getType(), x);
  SmallVector<MapInput> inputs = {{x, {}}, {partner, {}}};
  HookBody body(kb, hook, frame, inputs);
  int64_t lastDim = prefix.size();
  Value one = kb.index(1), zero = kb.index(0);
  return kb.map(
      type(spec.rotary, element), inputs,
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
        body.begin(b, loc, in, idx);
        Value position = body.scalar(op.getPosition());
        Value pair = arith::ShRUIOp::create(b, loc, idx[lastDim], one);
        auto [cosine, sine] = buildRopeAngle(b, loc, position, pair, spec);
        Value own = convertFloat(b, loc, in[0], b.getF32Type()), other = convertFloat(b, loc, in[1], b.getF32Type());
        Value odd = arith::AndIOp::create(b, loc, idx[lastDim], one);
        Value first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, odd, zero);
        Value negated = arith::NegFOp::create(b, loc, sine);
        Value signedSine = arith::SelectOp::create(b, loc, first, negated, sine);
        Value a = arith::MulFOp::create(b, loc, own, cosine), c = arith::MulFOp::create(b, loc, other, signedSine);
        return convertFloat(b, loc, arith::AddFOp::create(b, loc, a, c), element);
      },
      /*at=*/true);
}

FailureOr<Value> attn::liftVectorHook(KernelBuilder &kb, HookOp hook, const CoordFrame &frame, Value x, Type element) {
  VectorLift lift(kb, hook, frame, x);
  FailureOr<Value> made = lift.materialise(hook.getYield().getValue(), element);
  int64_t dim = cast<VectorType>(hook.getYield().getValue().getType()).getDimSize(0);
  if (failed(made) || cast<tile::RegType>(x.getType()).getShape().back() == dim)
    return made;
  // Whatever the hook made of the columns behind the head vector, products see zeros there.
  auto type = cast<tile::RegType>((*made).getType());
  Value columns = kb.index(dim);
  return kb.map(
      type, {{*made, {}}},
      [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) -> Value {
        Value there = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, idx.back(), columns);
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(in[0].getType()));
        return arith::SelectOp::create(b, loc, there, in[0], zero);
      },
      /*at=*/true);
}
