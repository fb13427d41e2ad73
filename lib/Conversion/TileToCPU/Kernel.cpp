//===- Kernel.cpp - the function of a kernel, its arguments and its structured control flow ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile that a loop carries has one buffer for the whole loop. The value that
// is yielded is built in that buffer when nothing live is in it (the usual
// acc = dot(p, v) + scale(acc)), and copied there otherwise.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

DictionaryAttr Emitter::makeWord(StringRef kind, StringRef operand, int64_t dim) {
  SmallVector<NamedAttribute> fields;
  fields.push_back(b.getNamedAttr("kind", b.getStringAttr(kind)));
  if (kind == "param")
    fields.push_back(b.getNamedAttr("name", b.getStringAttr(operand)));
  else if (!operand.empty())
    fields.push_back(b.getNamedAttr("operand", b.getStringAttr(operand)));
  if (dim >= 0)
    fields.push_back(b.getNamedAttr("dim", b.getI64IntegerAttr(dim)));
  return b.getDictionaryAttr(fields);
}

Value Emitter::getWord(DictionaryAttr word, Type type) {
  Value &value = wordValues[word];
  if (value)
    return value;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entryEnd);
  auto at = LLVM::GEPOp::create(b, loc, ptr(), b.getI64Type(), wordsArg,
                                ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(words.size())});
  words.push_back(word);
  Type stored = type.isIndex() ? Type(b.getI64Type()) : type;
  value = LLVM::LoadOp::create(b, loc, stored, at, 8, /*isVolatile=*/false, /*isNonTemporal=*/false,
                               /*isInvariant=*/true);
  if (type.isIndex())
    value = arith::IndexCastOp::create(b, loc, type, value);
  return value;
}

FailureOr<Value> Emitter::getSize(const BufferRef &buffer, int64_t dim) {
  if (!buffer.type.isDynamicDim(dim)) {
    return index(buffer.type.getDimSize(dim));
  }
  return getWord(makeWord("size", kernel.getArgRole(buffer.argument), dim), b.getIndexType());
}

bool Emitter::isSupported(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.isSignless() && llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return element.isIndex() || element.isF32() || element.isF64() || isNarrowFloat(element);
}

LogicalResult Emitter::checkTypes() {
  WalkResult result = kernel.walk([&](Operation *op) {
    auto check = [&](Type type) {
      Type element;
      if (auto reg = dyn_cast<RegType>(type))
        element = reg.getElementType();
      else if (auto smem = dyn_cast<SmemType>(type))
        element = smem.getElementType();
      if (!element || isSupported(element))
        return true;
      error(op, "has a tile of element type ")
          << element << ", expected i1, i8, i16, i32, i64, index, bf16, f16, f8E4M3FN, f8E5M2 or f32 on the host path";
      return false;
    };
    for (Type type : op->getResultTypes())
      if (!check(type))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Emitter::checkCarried(Operation *op, ValueRange values) {
  for (Value value : values)
    if (!isTile(value.getType()) && !isSupported(value.getType()))
      return error(op, "cannot carry a value of type ")
             << value.getType() << " on the host path; carry tiles and scalars";
  return success();
}

LogicalResult Emitter::bindArguments() {
  for (auto [i, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    StringRef role = kernel.getArgRole(i);
    Type type = argument.getType();
    if (role.empty())
      return error(kernel, "argument ") << i << " has no role in the ABI; give it the attribute tile.arg";
    if (auto memref = dyn_cast<MemRefType>(type)) {
      BufferRef buffer;
      buffer.type = memref;
      buffer.argument = i;
      SmallVector<int64_t> strides;
      int64_t offset;
      Type element = memref.getElementType();
      if (failed(memref.getStridesAndOffset(strides, offset)) || !isSupported(element))
        return error(kernel, "argument ")
               << i << " has type " << memref << ", expected a strided buffer of numbers that the host path has";
      buffer.pointer = getWord(makeWord("pointer", role), ptr());
      for (auto [dim, stride] : llvm::enumerate(strides))
        buffer.strides.push_back(
            ShapedType::isDynamic(stride) ? getWord(makeWord("stride", role, dim), b.getIndexType()) : index(stride));
      memrefs[argument] = buffer;
      continue;
    }
    if (isa<ItemsType>(type))
      continue;
    if (role == "scale" && type.isF32())
      scalars[argument] = getWord(makeWord("scale"), type);
    else if (role.consume_front("param:") &&
             (type.isF32() || type.isIndex() || type.isInteger(64) || type.isInteger(32)))
      scalars[argument] = getWord(makeWord("param", role), type);
    else
      return error(kernel, "argument ") << i << " of role '" << kernel.getArgRole(i) << "' cannot have type " << type
                                        << "; scalars are f32, index, i32 or i64";
  }
  return success();
}

FailureOr<func::FuncOp> Emitter::run() {
  if (kernel.getLevel() != Level::Logical) {
    error(kernel, "expected a kernel of level logical; the host runs kernels before asynchrony is introduced");
    return failure();
  }
  kernel.walk([&](Operation *op) { hasLocalStores |= isa<LocalStoreOp, FillRowsOp>(op); });

  b.setInsertionPoint(kernel);
  auto type = b.getFunctionType({ptr(), b.getI32Type(), ptr()}, {});
  function = func::FuncOp::create(b, loc, kernel.getSymName(), type);
  function.setArgAttr(0, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  function.setArgAttr(0, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  function.setArgAttr(2, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  function.setArgAttr(2, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
  Block *entry = function.addEntryBlock();
  wordsArg = entry->getArgument(0);
  ctaArg = entry->getArgument(1);
  scratchArg = entry->getArgument(2);
  b.setInsertionPointToEnd(entry);
  // Words that turn out to be needed later are loaded before this constant.
  entryEnd = arith::ConstantIndexOp::create(b, loc, 0);
  b.setInsertionPoint(entryEnd);
  LogicalResult result = checkTypes();
  if (succeeded(result))
    result = bindArguments();
  b.setInsertionPointToEnd(entry);
  if (succeeded(result))
    result = emitBlock(kernel.getBody().front());
  if (failed(result)) {
    function.erase();
    return failure();
  }
  func::ReturnOp::create(b, loc);
  entryEnd->erase();
  function->setAttr("attn.words", b.getArrayAttr(words));
  if (kernel->hasAttr(kScans))
    function->setAttr(kScans, b.getUnitAttr());
  function->setAttr("attn.smem", b.getI64IntegerAttr(scratchBytes));
  return function;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult Emitter::emitForEach(ForEachOp op) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  Value items = getWord(makeWord("pointer", "items"), ptr());
  Value indptr = getWord(makeWord("pointer", "cta_indptr"), ptr());
  auto bound = [&](int32_t next) -> Value {
    Value cta = arith::IndexCastOp::create(b, loc, b.getIndexType(), ctaArg);
    Value at = gep(indptr, i32, next ? arith::AddIOp::create(b, loc, cta, index(next)).getResult() : cta);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), LLVM::LoadOp::create(b, loc, i32, at, 4));
  };
  Value begin = bound(0), end = bound(1);
  auto forOp = scf::ForOp::create(b, loc, begin, end, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  Value bytes = arith::MulIOp::create(b, loc, forOp.getInductionVar(), index(64));
  Value item = gep(items, b.getI8Type(), bytes);
  for (auto [field, argument] : llvm::zip_equal(op.getFields(), op.getBody().getArguments())) {
    StringRef name = cast<StringAttr>(field).getValue();
    Type type = name == "table" ? i64 : i32;
    Value at = LLVM::GEPOp::create(b, loc, ptr(), b.getI8Type(), item,
                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(getItemFieldOffset(name))});
    Value value = LLVM::LoadOp::create(b, loc, type, at, name == "table" ? 8 : 4);
    scalars[argument] = arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }
  return emitBlock(op.getBody().front());
}

/// True when `op` neither takes, captures nor gives tiles, so that it may run before the maps that wait in a run.
static bool isScalarOp(Operation *op) {
  auto isTile = [](Type type) { return isa<RegType, SmemType>(type); };
  if (isa<TileDialect>(op->getDialect()))
    return false;
  WalkResult result = op->walk([&](Operation *inner) {
    if (llvm::any_of(inner->getOperandTypes(), isTile) || llvm::any_of(inner->getResultTypes(), isTile) ||
        isa<TileDialect>(inner->getDialect()))
      return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

LogicalResult Emitter::emitBlock(Block &block) {
  SmallVector<Operation *> run;
  for (Operation &op : block.without_terminator()) {
    loc = op.getLoc();
    auto reduce = dyn_cast<ReduceOp>(op);
    if (isa<MapOp, MaskOp>(op) || (reduce && reduce.getScope() != ReduceScope::Lanes)) {
      run.push_back(&op);
      continue;
    }
    if (isScalarOp(&op)) {
      if (failed(emitScalar(&op, 0)))
        return failure();
      emitted.insert(&op);
      continue;
    }
    if (!isa<ViewOp, SplatOp>(op) && failed(emitRun(run)))
      return failure();
    if (failed(emitStructural(&op)))
      return failure();
    finish(&op);
  }
  return emitRun(run);
}

LogicalResult Emitter::emitStructural(Operation *op) {
  loc = op->getLoc();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ForEachOp o) { return emitForEach(o); })
      .Case([&](scf::ForOp o) { return emitFor(o); })
      .Case([&](scf::WhileOp o) { return emitWhile(o); })
      .Case([&](scf::IfOp o) { return emitIf(o); })
      .Case([&](ViewOp o) { return emitView(o); })
      .Case([&](LoadOp o) { return emitLoad(o); })
      .Case([&](StoreOp o) { return emitStore(o); })
      .Case([&](DotOp o) { return emitDot(o); })
      .Case([&](ConcatOp o) { return emitConcat(o); })
      .Case([&](SwapPairsOp o) { return emitSwapPairs(o); })
      .Case([&](SplatOp o) {
        TileRef tile;
        auto type = o.getResult().getType();
        tile.shape = llvm::to_vector(type.getShape());
        tile.strides.assign(tile.shape.size(), 0);
        tile.element = type.getElementType();
        tile.splat = lookup(o.getValue());
        bind(o.getResult(), tile);
        return success();
      })
      .Case([&](LocalLoadOp o) {
        TileRef source = tiles.find(o.getSource())->second;
        if (!hasLocalStores) {
          bind(o.getResult(), source);
          return success();
        }
        TileRef tile = makeDestination(o.getResult(), op, [](Operation *, Value) { return false; });
        copyTile(source, tile);
        bind(o.getResult(), tile);
        return success();
      })
      .Case<ConvertLayoutOp, ReduceOp>([&](Operation *o) {
        // Layouts mean nothing here, and a sum is whole as soon as it is taken: `scope lanes` has nothing to add.
        bind(o->getResult(0), tiles.find(o->getOperand(0))->second);
        return success();
      })
      .Case([&](LocalStoreOp o) {
        copyTile(tiles.find(o.getValue())->second, tiles.find(o.getDest())->second);
        return success();
      })
      .Case([&](SliceOp o) {
        TileRef tile = tiles.find(o.getSource())->second;
        tile.shape = llvm::to_vector(o.getResult().getType().getShape());
        if (!tile.isSplat()) {
          int64_t offset = 0;
          for (auto [at, stride] : llvm::zip_equal(o.getOffsets(), tile.strides))
            offset += at * stride;
          tile.base = gep(tile.base, computeType(tile.element), index(offset));
        }
        bind(o.getResult(), tile);
        return success();
      })
      .Case([&](SubviewOp o) {
        TileRef tile = tiles.find(o.getSource())->second;
        SmallVector<Value> offsets;
        unsigned next = 0;
        for (int64_t at : o.getStaticOffsets())
          offsets.push_back(ShapedType::isDynamic(at) ? lookup(o.getOffsets()[next++]) : index(at));
        tile.base = elementPointer(tile, offsets);
        tile.shape = llvm::to_vector(o.getResult().getType().getShape());
        tile.strides.erase(tile.strides.begin(), tile.strides.end() - tile.shape.size());
        bind(o.getResult(), tile);
        return success();
      })
      .Default([&](Operation *o) {
        return error(o, "is not supported by the host path; kernels of level logical have views, loads, stores, dots, "
                        "maps, masks, reductions, slices, concatenations and scf.for, scf.while and scf.if");
      });
}

LogicalResult Emitter::emitConcat(ConcatOp op) {
  TileRef tile = makeDestination(op.getResult(), op.getOperation(), [](Operation *, Value) { return false; });
  int64_t offset = 0, dim = op.getDim();
  for (Value input : op.getInputs()) {
    const TileRef source = tiles.find(input)->second;
    TileRef part = tile;
    part.shape = source.shape;
    part.base = gep(tile.base, computeType(tile.element), index(offset * tile.strides[dim]));
    copyTile(source, part);
    offset += source.shape[dim];
  }
  bind(op.getResult(), tile);
  return success();
}

LogicalResult Emitter::emitSwapPairs(SwapPairsOp op) {
  TileRef to = makeDestination(op.getResult(), op.getOperation(), [](Operation *, Value) { return false; });
  const TileRef from = tiles.find(op.getSource())->second;
  // Two lanes at a time at least: a pair never crosses a vector.
  int64_t w = std::max<int64_t>(widthFor(to.shape.back()), 2);
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < w; ++i)
    lanes.push_back(i ^ 1);
  SmallVector<Value> position;
  std::function<void(size_t)> nest = [&](size_t dim) {
    bool last = dim + 1 == to.shape.size();
    loop(to.shape[dim], last ? w : 1, [&](Value at) {
      position.push_back(at);
      if (last) {
        Value pairs = loadTile(from, position, w);
        storeTile(vector::ShuffleOp::create(b, loc, pairs, pairs, lanes), to, position);
      } else {
        nest(dim + 1);
      }
      position.pop_back();
    });
  };
  nest(0);
  bind(op.getResult(), to);
  return success();
}

void Emitter::propagateWant(Value value, Buffer *buffer, Block *block) {
  while (Operation *def = value.getDefiningOp()) {
    if (def->getBlock() != block || want.lookup(value))
      return;
    want[value] = buffer;
    Value next;
    if (auto dot = dyn_cast<DotOp>(def)) {
      next = dot.getAcc();
    } else if (auto map = dyn_cast<MapOp>(def)) {
      for (auto [i, input] : llvm::enumerate(map.getInputs()))
        if (input.getType() == value.getType() && input.getDefiningOp() && !next &&
            isa<MapOp, DotOp>(input.getDefiningOp()))
          next = input;
    }
    if (!next || next.getType() != value.getType())
      return;
    value = next;
  }
}

LogicalResult Emitter::emitFor(scf::ForOp op) {
  if (failed(checkCarried(op, op.getInitArgs())))
    return failure();
  // Scalars are carried as scalars, tiles in buffers.
  SmallVector<Value> inits;
  SmallVector<TileRef> carried(op.getInitArgs().size());
  for (auto [i, init] : llvm::enumerate(op.getInitArgs())) {
    if (!isTile(init.getType())) {
      inits.push_back(lookup(init));
      continue;
    }
    if (isa<SmemType>(init.getType()) && hasLocalStores)
      return error(op, "cannot carry shared memory through a loop beside tile.local_store; carry registers");
    carried[i] = makeTile(init.getType(), nullptr);
    carried[i].buffer->pinned = true;
    copyTile(tiles.find(init)->second, carried[i]);
  }
  auto forOp =
      scf::ForOp::create(b, loc, lookup(op.getLowerBound()), lookup(op.getUpperBound()), lookup(op.getStep()), inits);
  Block &body = *op.getBody();
  auto yield = cast<scf::YieldOp>(body.getTerminator());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    scalars[op.getInductionVar()] = forOp.getInductionVar();
    unsigned next = 0;
    for (auto [i, argument] : llvm::enumerate(op.getRegionIterArgs())) {
      if (carried[i].buffer)
        bind(argument, carried[i]);
      else
        scalars[argument] = forOp.getRegionIterArg(next++);
    }
    for (auto [i, value] : llvm::enumerate(yield.getOperands()))
      if (carried[i].buffer)
        propagateWant(value, carried[i].buffer, &body);
    if (failed(emitBlock(body)))
      return failure();
    loc = op.getLoc();
    SmallVector<Value> results;
    SmallVector<TileRef> sources(carried.size());
    for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
      if (!carried[i].buffer) {
        results.push_back(lookup(value));
        continue;
      }
      // What another carried buffer holds is saved first: that buffer is about to be written too.
      sources[i] = tiles.find(value)->second;
      const Buffer *from = sources[i].buffer, *into = carried[i].buffer;
      bool other = llvm::any_of(
          carried, [&](const TileRef &tile) { return tile.buffer && tile.buffer == from && tile.buffer != into; });
      if (other) {
        TileRef saved = makeTile(value.getType(), nullptr);
        copyTile(sources[i], saved);
        sources[i] = saved;
      }
    }
    for (auto [i, source] : llvm::enumerate(sources))
      if (carried[i].buffer && source.buffer != carried[i].buffer)
        copyTile(source, carried[i]);
    if (!results.empty())
      scf::YieldOp::create(b, loc, results);
    emitted.insert(yield);
  }
  unsigned next = 0;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (carried[i].buffer) {
      bind(result, carried[i]);
      carried[i].buffer->pinned = false;
    } else {
      scalars[result] = forOp.getResult(next++);
    }
  }
  return success();
}

LogicalResult Emitter::emitWhile(scf::WhileOp op) {
  if (failed(checkCarried(op, op.getInits())) || failed(checkCarried(op, op.getResults())))
    return failure();
  SmallVector<Value> inits;
  SmallVector<TileRef> before(op.getInits().size()), after(op.getNumResults());
  SmallVector<Type> scalarTypes;
  if (hasLocalStores)
    return error(op, "cannot stand beside tile.local_store on the host path; use scf.for");
  for (auto [i, init] : llvm::enumerate(op.getInits())) {
    if (!isTile(init.getType())) {
      inits.push_back(lookup(init));
      continue;
    }
    before[i] = makeTile(init.getType(), nullptr);
    before[i].buffer->pinned = true;
    copyTile(tiles.find(init)->second, before[i]);
  }
  for (auto [i, type] : llvm::enumerate(op.getResultTypes())) {
    if (!isTile(type)) {
      scalarTypes.push_back(computeType(type));
      continue;
    }
    after[i] = makeTile(type, nullptr);
    after[i].buffer->pinned = true;
  }
  auto whileOp = scf::WhileOp::create(b, loc, scalarTypes, inits);
  OpBuilder::InsertionGuard guard(b);
  auto enter = [&](Region &region, ArrayRef<TileRef> buffers, Region &from) {
    SmallVector<Type> types;
    for (auto [i, argument] : llvm::enumerate(from.getArguments()))
      if (!buffers[i].buffer)
        types.push_back(computeType(argument.getType()));
    Block *block = b.createBlock(&region, {}, types, SmallVector<Location>(types.size(), loc));
    unsigned next = 0;
    for (auto [i, argument] : llvm::enumerate(from.getArguments())) {
      if (buffers[i].buffer)
        bind(argument, buffers[i]);
      else
        scalars[argument] = block->getArgument(next++);
    }
  };
  auto leave = [&](ValueRange values, ArrayRef<TileRef> buffers) {
    SmallVector<Value> results;
    for (auto [i, value] : llvm::enumerate(values)) {
      if (!buffers[i].buffer)
        results.push_back(lookup(value));
      else
        copyTile(tiles.find(value)->second, buffers[i]);
    }
    return results;
  };
  enter(whileOp.getBefore(), before, op.getBefore());
  if (failed(emitBlock(op.getBefore().front())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  SmallVector<Value> forwarded = leave(condition.getArgs(), after);
  scf::ConditionOp::create(b, loc, lookup(condition.getCondition()), forwarded);
  emitted.insert(condition);
  enter(whileOp.getAfter(), after, op.getAfter());
  if (failed(emitBlock(op.getAfter().front())))
    return failure();
  scf::YieldOp yield = op.getYieldOp();
  SmallVector<Value> again = leave(yield.getOperands(), before);
  scf::YieldOp::create(b, loc, again);
  emitted.insert(yield);
  unsigned next = 0;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (after[i].buffer) {
      bind(result, after[i]);
      after[i].buffer->pinned = false;
    } else {
      scalars[result] = whileOp.getResult(next++);
    }
  }
  for (TileRef &tile : before)
    if (tile.buffer)
      tile.buffer->pinned = false;
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp op) {
  if (failed(checkCarried(op, op.getResults())))
    return failure();
  SmallVector<Type> types;
  SmallVector<TileRef> targets(op.getNumResults());
  for (auto [i, type] : llvm::enumerate(op.getResultTypes())) {
    if (!isTile(type)) {
      types.push_back(computeType(type));
      continue;
    }
    if (isa<SmemType>(type) && hasLocalStores)
      return error(op, "cannot yield shared memory beside tile.local_store; yield registers");
    targets[i] = makeTile(type, nullptr);
    targets[i].buffer->pinned = true;
  }
  auto ifOp = scf::IfOp::create(b, loc, types, lookup(op.getCondition()), /*addThenBlock=*/true,
                                /*addElseBlock=*/!op.getElseRegion().empty());
  for (auto [from, to] : llvm::zip(op->getRegions(), ifOp->getRegions())) {
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&to.front());
    if (!to.front().empty())
      to.front().getTerminator()->erase();
    if (failed(emitBlock(from.front())))
      return failure();
    auto yield = cast<scf::YieldOp>(from.front().getTerminator());
    SmallVector<Value> results;
    for (auto [i, value] : llvm::enumerate(yield.getOperands())) {
      if (targets[i].buffer)
        copyTile(tiles.find(value)->second, targets[i]);
      else
        results.push_back(lookup(value));
    }
    scf::YieldOp::create(b, loc, results);
    emitted.insert(yield);
  }
  unsigned next = 0;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (targets[i].buffer) {
      bind(result, targets[i]);
      targets[i].buffer->pinned = false;
    } else {
      scalars[result] = ifOp.getResult(next++);
    }
  }
  return success();
}
