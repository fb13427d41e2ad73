//===- Groups.cpp - maps, masks and reductions of one shape in one loop nest ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run is what stands between two other tile ops; its ops are pure, so those
// of one shape may move together as long as none overtakes what it needs:
//
//     for r:                          x = map(s); y = mask x; m = reduce max y
//       v = -inf                      becomes
//       for c step W: x = ..s[r, c..]..; y = select(keep(r, c..), x, -inf); v = max(v, y)
//       m[r] = max(lanes of v, init[r])
//
// Only what is used elsewhere is stored. Masks with an interval give the nest
// twice: without them for blocks inside the interval.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

/// Shape of the loop nest that computes `op`; empty for a reduction of an outer dimension, which has its own nest.
static SmallVector<int64_t> nestShape(Operation *op) {
  if (auto map = dyn_cast<MapOp>(op))
    return llvm::to_vector(map.getShape());
  if (auto mask = dyn_cast<MaskOp>(op))
    return llvm::to_vector(mask.getResult().getType().getShape());
  auto type = cast<ReduceOp>(op).getValue().getType();
  if (cast<ReduceOp>(op).getDim() != static_cast<uint64_t>(type.getRank() - 1))
    return {};
  return llvm::to_vector(type.getShape());
}

/// The inputs that `op` reads element by element, each with the dimensions of the nest that it spans.
static void forEachInput(Operation *op, llvm::function_ref<void(Value input, ArrayRef<int64_t> dims)> body) {
  auto all = [&](Value value) {
    return llvm::to_vector(llvm::seq<int64_t>(0, cast<RegType>(value.getType()).getRank()));
  };
  if (auto map = dyn_cast<MapOp>(op)) {
    for (auto [i, input] : llvm::enumerate(map.getInputs()))
      body(input, map.getInputDims(i));
  } else if (auto mask = dyn_cast<MaskOp>(op)) {
    body(mask.getValue(), all(mask.getValue()));
    for (auto [i, input] : llvm::enumerate(mask.getInputs()))
      body(input, mask.getInputDims(i));
  } else {
    auto reduce = cast<ReduceOp>(op);
    body(reduce.getValue(), all(reduce.getValue()));
    if (reduce.getInit())
      body(reduce.getInit(), all(reduce.getInit()));
  }
}

static bool isIdentity(ArrayRef<int64_t> dims, size_t rank) {
  if (dims.size() != rank)
    return false;
  for (size_t i = 0; i < rank; ++i)
    if (dims[i] != static_cast<int64_t>(i))
      return false;
  return true;
}

LogicalResult Emitter::emitRun(SmallVectorImpl<Operation *> &run) {
  while (!run.empty()) {
    SmallVector<Operation *> group, rest;
    llvm::SmallPtrSet<Operation *, 8> waiting;
    SmallVector<int64_t> shape = nestShape(run.front());
    for (Operation *op : run) {
      bool joins = group.empty() || (!shape.empty() && nestShape(op) == shape);
      forEachInput(op, [&](Value input, ArrayRef<int64_t> dims) {
        Operation *def = input.getDefiningOp();
        if (!def)
          return;
        if (waiting.contains(def))
          joins = false;
        // A value of this nest is at hand where it is computed, and nowhere else.
        if (llvm::is_contained(group, def) && (isa<ReduceOp>(def) || !isIdentity(dims, shape.size())))
          joins = false;
      });
      // A body may capture scalars only, so operands are all that orders ops.
      if (joins) {
        group.push_back(op);
      } else {
        rest.push_back(op);
        waiting.insert(op);
      }
    }
    loc = group.front()->getLoc();
    bool outer = isa<ReduceOp>(group.front()) && shape.empty();
    if (failed(outer ? emitOuterReduce(cast<ReduceOp>(group.front())) : emitGroup(group)))
      return failure();
    finish(group);
    run.assign(rest.begin(), rest.end());
  }
  return success();
}

Value Emitter::combine(Value x, Value y, ReduceKind kind) {
  if (kind == ReduceKind::AddF)
    return arith::AddFOp::create(b, loc, x, y);
  // The sign of a zero maximum is of no use; without it the maximum is one comparison cheaper.
  return arith::MaximumFOp::create(b, loc, x, y, arith::FastMathFlags::nsz);
}

Value Emitter::reduceLanes(Value vector, ReduceKind kind) {
  int64_t w = cast<VectorType>(vector.getType()).getNumElements();
  for (; w > 1; w /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < w / 2; ++i) {
      low.push_back(i);
      high.push_back(i + w / 2);
    }
    vector = combine(vector::ShuffleOp::create(b, loc, vector, vector, low),
                     vector::ShuffleOp::create(b, loc, vector, vector, high), kind);
  }
  return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{0});
}

LogicalResult Emitter::emitGroup(ArrayRef<Operation *> ops) {
  SmallVector<int64_t> shape = nestShape(ops.front());
  destinations.clear();
  Value inside;
  for (Operation *op : ops) {
    // Everything that two ops of the nest may touch at different positions stays apart.
    auto inPlace = [&](Operation *user, Value value) {
      bool same = true;
      forEachInput(user, [&](Value input, ArrayRef<int64_t> dims) {
        if (input != value)
          return;
        bool isInit = isa<ReduceOp>(user) && cast<ReduceOp>(user).getInit() == value;
        same &= isInit || isIdentity(dims, shape.size());
      });
      return same;
    };
    for (Value result : op->getResults()) {
      bool elsewhere = isa<ReduceOp>(op) ||
                       llvm::any_of(result.getUsers(), [&](Operation *user) { return !llvm::is_contained(ops, user); });
      if (elsewhere) {
        TileRef tile = makeDestination(result, ops, inPlace);
        destinations[result] = tile;
        bind(result, tile);
      }
    }
    auto mask = dyn_cast<MaskOp>(op);
    if (mask && mask.getKey()) {
      // lo <= key and key + keys <= hi
      Value key = lookup(mask.getKey());
      Value keys = arith::AddIOp::create(b, loc, key, index(mask.getKeys()));
      Value low = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, lookup(mask.getLo()), key);
      Value high = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, keys, lookup(mask.getHi()));
      Value both = arith::AndIOp::create(b, loc, low, high);
      inside = inside ? arith::AndIOp::create(b, loc, inside, both).getResult() : both;
    }
  }
  if (!inside)
    return emitNest(ops, shape, /*skipMasks=*/false);
  auto ifOp = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/true);
  for (bool skip : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(skip ? ifOp.thenBlock() : ifOp.elseBlock());
    if (failed(emitNest(ops, shape, skip)))
      return failure();
  }
  return success();
}

LogicalResult Emitter::emitNest(ArrayRef<Operation *> ops, ArrayRef<int64_t> shape, bool skipMasks) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> position;
  for (int64_t extent : shape.drop_back()) {
    if (extent == 1) {
      position.push_back(index(0));
      continue;
    }
    auto forOp = scf::ForOp::create(b, loc, index(0), index(extent), index(1));
    b.setInsertionPointToStart(forOp.getBody());
    position.push_back(forOp.getInductionVar());
  }
  int64_t extent = shape.back(), w = widthFor(extent);
  int64_t last = shape.size() - 1;
  auto select = [&](ArrayRef<int64_t> dims) {
    SmallVector<Value> at;
    for (int64_t dim : dims)
      at.push_back(position[dim]);
    return at;
  };

  // What does not change along the row: read once. Accumulators of the reductions.
  llvm::DenseMap<Value, Value> atHand;
  SmallVector<ReduceOp> reductions;
  SmallVector<Value> starts;
  for (Operation *op : ops) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (reduce) {
      reductions.push_back(reduce);
      double identity = reduce.getKind() == ReduceKind::AddF ? 0.0 : -INFINITY;
      starts.push_back(constant(vec(computeType(reduce.getResult().getType().getElementType()), w), identity));
    }
  }
  llvm::DenseMap<std::pair<Operation *, unsigned>, Value> inputs;
  for (Operation *op : ops) {
    unsigned number = 0;
    forEachInput(op, [&](Value input, ArrayRef<int64_t> dims) {
      unsigned i = number++;
      bool isInit = isa<ReduceOp>(op) && i == 1;
      if (isInit || llvm::is_contained(dims, last))
        return;
      inputs[{op, i}] = loadTile(tiles.find(input)->second, select(dims), 0);
    });
  }
  for (ReduceOp reduce : reductions)
    if (reduce.getInit())
      atHand[reduce.getInit()] = loadTile(tiles.find(reduce.getInit())->second, position, 0);

  scf::ForOp inner;
  if (extent > w) {
    inner = scf::ForOp::create(b, loc, index(0), index(extent), index(w), starts);
    b.setInsertionPointToStart(inner.getBody());
    position.push_back(inner.getInductionVar());
    starts.assign(inner.getRegionIterArgs().begin(), inner.getRegionIterArgs().end());
  } else {
    position.push_back(index(0));
  }

  // Everything from memory is read before anything is written: a result may share its buffer with an input.
  llvm::DenseMap<Value, Value> local;
  for (Operation *op : ops) {
    unsigned number = 0;
    forEachInput(op, [&](Value input, ArrayRef<int64_t> dims) {
      unsigned i = number++;
      if (!llvm::is_contained(dims, last) || (input.getDefiningOp() && llvm::is_contained(ops, input.getDefiningOp())))
        return;
      const TileRef &tile = tiles.find(input)->second;
      bool identity = isIdentity(dims, shape.size());
      if (identity && local.contains(input))
        return;
      Value value;
      if (tile.isSplat() || dims.back() == last) {
        value = loadTile(tile, select(dims), tile.isSplat() ? 0 : w);
      } else { // the last dimension of the nest is not contiguous in the input
        value = widen(zeroOf(computeType(tile.element)), w);
        for (int64_t lane = 0; lane < w; ++lane) {
          SmallVector<Value> at = select(dims);
          for (auto [k, dim] : llvm::enumerate(dims))
            if (dim == last)
              at[k] = arith::AddIOp::create(b, loc, at[k], index(lane));
          value = vector::InsertOp::create(b, loc, loadTile(tile, at, 0), value, ArrayRef<int64_t>{lane});
        }
      }
      if (identity)
        local[input] = value;
      else
        inputs[{op, i}] = value;
    });
  }

  SmallVector<Value> indices(position.begin(), position.end() - 1), sums;
  indices.push_back(iota(position.back(), w));
  for (Operation *op : ops) {
    loc = op->getLoc();
    auto input = [&](unsigned i, Value value) {
      auto it = inputs.find({op, i});
      return it != inputs.end() ? it->second : local.lookup(value);
    };
    auto result = [&](Value of, Value value) {
      value = widen(value, w);
      local[of] = value;
      auto it = destinations.find(of);
      if (it != destinations.end())
        storeTile(value, it->second, position);
    };
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      sums.push_back(combine(starts[sums.size()], widen(input(0, reduce.getValue()), w), reduce.getKind()));
      continue;
    }
    if (auto mask = dyn_cast<MaskOp>(op)) {
      Value value = widen(input(0, mask.getValue()), w);
      if (!(skipMasks && mask.getKey())) {
        for (auto [i, argument] : llvm::enumerate(mask.getInputArgs()))
          scalars[argument] = input(i + 1, mask.getInputs()[i]);
        for (auto [argument, at] : llvm::zip(mask.getIndexArgs(), indices))
          scalars[argument] = at;
        if (failed(emitBody(mask.getBody().front(), w)))
          return failure();
        Value keep = lookup(mask.getYield().getOperand(0));
        Value other = constant(value.getType(), mask.getZero() ? 0.0 : -INFINITY);
        value = arith::SelectOp::create(b, loc, keep, value, other);
      }
      result(mask.getResult(), value);
      continue;
    }
    auto map = cast<MapOp>(op);
    for (auto [i, argument] : llvm::enumerate(map.getInputArgs()))
      scalars[argument] = input(i, map.getInputs()[i]);
    for (auto [argument, at] : llvm::zip(map.getIndexArgs(), indices))
      scalars[argument] = at;
    if (failed(emitBody(map.getBody().front(), w)))
      return failure();
    for (auto [i, of] : llvm::enumerate(map.getResults()))
      result(of, lookup(map.getYield().getOperand(i)));
  }
  loc = ops.front()->getLoc();
  if (inner) {
    if (!sums.empty())
      scf::YieldOp::create(b, loc, sums);
    b.setInsertionPointAfter(inner);
    sums.assign(inner.getResults().begin(), inner.getResults().end());
  }
  position.pop_back();
  for (auto [reduce, sum] : llvm::zip(reductions, sums)) {
    Value value = reduceLanes(sum, reduce.getKind());
    if (reduce.getInit())
      value = combine(atHand[reduce.getInit()], value, reduce.getKind());
    Type element = reduce.getResult().getType().getElementType();
    if (isNarrowFloat(element))
      value = roundTo(value, cast<FloatType>(element));
    storeTile(value, destinations.find(reduce.getResult())->second, position);
  }
  return success();
}

LogicalResult Emitter::emitOuterReduce(ReduceOp op) {
  auto type = op.getResult().getType();
  TileRef source = tiles.find(op.getValue())->second;
  TileRef target = makeDestination(op.getResult(), op.getOperation(), [&](Operation *, Value value) {
    return value == op.getInit() && value != op.getValue();
  });
  int64_t dim = *op.getDim(), w = widthFor(type.getShape().back());
  SmallVector<Value> position;
  std::function<void(int64_t)> nest = [&](int64_t d) {
    bool last = d + 1 == type.getRank();
    loop(type.getShape()[d], last ? w : 1, [&](Value at) {
      position.push_back(at);
      if (!last) {
        nest(d + 1);
        position.pop_back();
        return;
      }
      double identity = op.getKind() == ReduceKind::AddF ? 0.0 : -INFINITY;
      Value start = op.getInit() ? loadTile(tiles.find(op.getInit())->second, position, w)
                                 : constant(vec(computeType(type.getElementType()), w), identity);
      auto forOp = scf::ForOp::create(b, loc, index(0), index(source.shape[dim]), index(1), ValueRange(start));
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(forOp.getBody());
        SmallVector<Value> from = position;
        from.insert(from.begin() + dim, forOp.getInductionVar());
        Value next = combine(forOp.getRegionIterArg(0), loadTile(source, from, w), op.getKind());
        scf::YieldOp::create(b, loc, next);
      }
      Value value = forOp.getResult(0);
      if (isNarrowFloat(type.getElementType()))
        value = roundTo(value, cast<FloatType>(type.getElementType()));
      storeTile(value, target, position);
      position.pop_back();
    });
  };
  nest(0);
  bind(op.getResult(), target);
  return success();
}
