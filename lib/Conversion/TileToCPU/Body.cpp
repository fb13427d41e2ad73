//===- Body.cpp - scalar code of kernels and hooks, on scalars or on lanes ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of a body is uniform (a scalar) as long as nothing that varies from
// lane to lane goes into it, and a vector of W lanes otherwise; elementwise ops
// are cloned on whatever their operands are. What has no vector form (control
// flow on a condition that varies, loads from anywhere) runs lane by lane.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::cpu;

Value Emitter::widen(Value value, int64_t w) {
  if (!w || isVarying(value))
    return value;
  return vector::BroadcastOp::create(b, loc, VectorType::get({w}, value.getType()), value);
}

LogicalResult Emitter::emitBody(Block &block, int64_t w) {
  for (Operation &op : block.without_terminator())
    if (failed(emitScalar(&op, w)))
      return failure();
  return success();
}

LogicalResult Emitter::emitScalar(Operation *op, int64_t w) {
  loc = op->getLoc();
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op)) {
    TypedAttr attr = constantOp.getValue();
    if (!isSupported(op->getResult(0).getType()))
      return error(op, "expected a scalar that the host path computes with, got ") << op->getResult(0).getType();
    if (isNarrowFloat(attr.getType()))
      attr = b.getF32FloatAttr(cast<FloatAttr>(attr).getValueAsDouble());
    scalars[op->getResult(0)] = arith::ConstantOp::create(b, loc, attr);
    return success();
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::LoadOp o) { return emitMemRefLoad(o, w); })
      .Case([&](memref::DimOp o) -> LogicalResult {
        auto buffer = memrefs.find(o.getSource());
        std::optional<int64_t> dim = o.getConstantIndex();
        if (buffer == memrefs.end() || !dim || *dim < 0 || *dim >= buffer->second.type.getRank())
          return error(o, "expected a constant dimension of an argument of the kernel");
        FailureOr<Value> size = getSize(buffer->second, *dim);
        if (succeeded(size))
          scalars[o.getResult()] = *size;
        return size;
      })
      .Case([&](func::CallOp o) { return emitCall(o, w); })
      .Case([&](scf::IfOp o) { return emitScalarIf(o, w); })
      .Case([&](scf::ForOp o) { return emitScalarFor(o, w); })
      .Case([&](scf::WhileOp o) { return w ? emitPerLane(o, w) : emitScalarWhile(o); })
      .Default([&](Operation *o) { return emitElementwise(o, w); });
}

LogicalResult Emitter::emitElementwise(Operation *op, int64_t w) {
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1 || op->getNumRegions())
    return error(op, "is not supported in scalar code on the host path; use arith, math, scf, func.call and "
                     "memref.load of the kernel's buffers");
  Type type = op->getResult(0).getType();
  bool varying = false;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value value = lookup(operand);
    if (!value)
      return error(op, "has an operand of type ") << operand.getType() << ", which the host path does not compute with";
    varying |= isVarying(value);
    operands.push_back(value);
  }
  if (!isSupported(type))
    return error(op, "has a result of type ") << type << ", which the host path does not compute with";
  auto narrow = [&](Type t) { return isNarrowFloat(t) ? cast<FloatType>(t) : FloatType(); };
  Value &result = scalars[op->getResult(0)];
  Type target = vec(computeType(type), varying ? w : 0);

  // Conversions from and to narrow floats: their values are f32 already.
  Type from = op->getOperand(0).getType();
  if (isa<arith::ExtFOp>(op) && narrow(from)) {
    result = computeType(type).isF64() ? arith::ExtFOp::create(b, loc, target, operands[0]).getResult() : operands[0];
    return success();
  }
  if (auto trunc = dyn_cast<arith::TruncFOp>(op)) {
    if (trunc.getRoundingmode() && trunc.getRoundingmode() != arith::RoundingMode::to_nearest_even && narrow(type))
      return error(op, "rounds to nearest even on the host path; drop the rounding mode");
    Value value = operands[0];
    if (from.isF64())
      value = arith::TruncFOp::create(b, loc, withElement(value.getType(), b.getF32Type()), value);
    result = narrow(type) ? roundTo(value, narrow(type)) : value;
    return success();
  }
  if (isa<arith::BitcastOp>(op) && (narrow(from) || narrow(type))) {
    Value value = operands[0];
    if (narrow(from))
      value = toBits(value, narrow(from));
    result = narrow(type) ? fromBits(value, narrow(type)) : value;
    return success();
  }
  if (varying) {
    // A condition that all lanes share may stay a scalar.
    bool isSelect = isa<arith::SelectOp>(op);
    for (auto [i, value] : llvm::enumerate(operands))
      if (!(isSelect && i == 0))
        value = widen(value, w);
  }
  OperationState state(loc, op->getName(), operands, target, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *clone = b.create(state);
  result = clone->getResult(0);
  if (narrow(type) && !isa<arith::SelectOp, arith::NegFOp, math::AbsFOp>(op))
    result = roundTo(result, narrow(type));
  if (varying && isa<arith::AddIOp>(op)) {
    // A row of consecutive numbers moved by a uniform number is one still.
    Value row = lookup(op->getOperand(0)), other = lookup(op->getOperand(1));
    if (!iotas.contains(row))
      std::swap(row, other);
    if (iotas.contains(row) && !isVarying(other))
      iotas[result] = arith::AddIOp::create(b, loc, iotas[row], other);
  }
  return success();
}

LogicalResult Emitter::emitMemRefLoad(memref::LoadOp op, int64_t w) {
  auto it = memrefs.find(op.getMemRef());
  if (it == memrefs.end())
    return error(op, "expected a buffer that is an argument of the kernel");
  const BufferRef buffer = it->second;
  Type element = buffer.type.getElementType();
  SmallVector<Value> indices;
  for (Value at : op.getIndices())
    indices.push_back(lookup(at));
  auto address = [&](ArrayRef<Value> position) {
    Value offset = index(0);
    for (auto [at, stride] : llvm::zip_equal(position, buffer.strides))
      offset = arith::AddIOp::create(b, loc, offset, arith::MulIOp::create(b, loc, at, stride));
    return gep(buffer.pointer, element, offset);
  };
  Value &result = scalars[op.getResult()];
  if (llvm::none_of(indices, isVarying)) {
    result = loadConverted(address(indices), element, 0);
    return success();
  }
  // Consecutive elements are one vector.
  Value base = iotas.lookup(indices.back());
  if (base && llvm::none_of(ArrayRef<Value>(indices).drop_back(), isVarying) &&
      matchPattern(buffer.strides.back(), m_One())) {
    indices.back() = base;
    result = loadConverted(address(indices), element, w);
    return success();
  }
  Value gathered = zeroOf(vec(computeType(element), w));
  for (int64_t lane = 0; lane < w; ++lane) {
    SmallVector<Value> position;
    for (Value at : indices)
      position.push_back(isVarying(at) ? vector::ExtractOp::create(b, loc, at, ArrayRef<int64_t>{lane}).getResult()
                                       : at);
    gathered = vector::InsertOp::create(b, loc, loadConverted(address(position), element, 0), gathered,
                                        ArrayRef<int64_t>{lane});
  }
  result = gathered;
  return success();
}

LogicalResult Emitter::emitCall(func::CallOp op, int64_t w) {
  auto callee = symbols.lookup<func::FuncOp>(op.getCallee());
  if (!callee || callee.isExternal())
    return error(op, "calls '") << op.getCallee() << "', which has no body in this module; define it";
  if (!llvm::hasSingleElement(callee.getBody()))
    return error(op, "calls '") << op.getCallee() << "', which has several blocks; use scf for control flow";
  if (llvm::is_contained(callStack, callee))
    return error(op, "calls '") << op.getCallee() << "', which calls itself; kernels cannot recurse";
  for (auto [operand, argument] : llvm::zip_equal(op.getOperands(), callee.getArguments())) {
    auto buffer = memrefs.find(operand);
    if (buffer != memrefs.end()) {
      BufferRef copy = buffer->second;
      memrefs[argument] = copy;
      continue;
    }
    if (!lookup(operand))
      return error(op, "passes a value of type ") << operand.getType() << ", expected scalars and the kernel's buffers";
    scalars[argument] = lookup(operand);
  }
  callStack.push_back(callee);
  inlined.insert(callee);
  LogicalResult result = emitBody(callee.getBody().front(), w);
  callStack.pop_back();
  if (failed(result))
    return failure();
  for (auto [value, from] : llvm::zip(op.getResults(), callee.getBody().front().getTerminator()->getOperands()))
    scalars[value] = lookup(from);
  return success();
}

bool Emitter::canSpeculate(Region &region) {
  WalkResult result = region.walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>())
      return WalkResult::advance();
    bool simple = isa<scf::IfOp>(op) || (op->getNumRegions() == 0 && isMemoryEffectFree(op) && isSpeculatable(op));
    return simple ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

LogicalResult Emitter::emitScalarIf(scf::IfOp op, int64_t w) {
  if (failed(checkCarried(op, op.getResults())))
    return failure();
  Value condition = lookup(op.getCondition());
  auto results = [&](Region &region) { return region.front().getTerminator()->getOperands(); };
  if (isVarying(condition)) {
    if (op.getNumResults() == 0)
      return success(); // scalar code has no effects
    if (!canSpeculate(op.getThenRegion()) || !canSpeculate(op.getElseRegion()))
      return emitPerLane(op, w);
    if (failed(emitBody(op.getThenRegion().front(), w)) || failed(emitBody(op.getElseRegion().front(), w)))
      return failure();
    for (auto [result, yes, no] : llvm::zip(op.getResults(), results(op.getThenRegion()), results(op.getElseRegion())))
      scalars[result] = arith::SelectOp::create(b, loc, condition, widen(lookup(yes), w), widen(lookup(no), w));
    return success();
  }
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(vec(computeType(type), w));
  auto ifOp = scf::IfOp::create(b, loc, types, condition, /*addThenBlock=*/true,
                                /*addElseBlock=*/!op.getElseRegion().empty());
  for (auto [from, to] : llvm::zip(op->getRegions(), ifOp->getRegions())) {
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    if (!to.front().empty())
      to.front().getTerminator()->erase();
    b.setInsertionPointToStart(&to.front());
    if (failed(emitBody(from.front(), w)))
      return failure();
    SmallVector<Value> values;
    for (Value value : results(from))
      values.push_back(widen(lookup(value), w));
    scf::YieldOp::create(b, loc, values);
  }
  for (auto [result, value] : llvm::zip(op.getResults(), ifOp.getResults()))
    scalars[result] = value;
  return success();
}

LogicalResult Emitter::emitScalarFor(scf::ForOp op, int64_t w) {
  Value lower = lookup(op.getLowerBound()), upper = lookup(op.getUpperBound()), step = lookup(op.getStep());
  if (isVarying(lower) || isVarying(upper) || isVarying(step))
    return emitPerLane(op, w);
  if (failed(checkCarried(op, op.getInitArgs())))
    return failure();
  SmallVector<Value> inits;
  for (Value init : op.getInitArgs())
    inits.push_back(widen(lookup(init), w));
  auto forOp = scf::ForOp::create(b, loc, lower, upper, step, inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    scalars[op.getInductionVar()] = forOp.getInductionVar();
    for (auto [from, to] : llvm::zip(op.getRegionIterArgs(), forOp.getRegionIterArgs()))
      scalars[from] = to;
    if (failed(emitBody(*op.getBody(), w)))
      return failure();
    SmallVector<Value> values;
    for (Value value : op.getBody()->getTerminator()->getOperands())
      values.push_back(widen(lookup(value), w));
    if (!values.empty())
      scf::YieldOp::create(b, loc, values);
  }
  for (auto [result, value] : llvm::zip(op.getResults(), forOp.getResults()))
    scalars[result] = value;
  return success();
}

LogicalResult Emitter::emitScalarWhile(scf::WhileOp op) {
  if (failed(checkCarried(op, op.getInits())) || failed(checkCarried(op, op.getResults())))
    return failure();
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (Value init : op.getInits())
    inits.push_back(lookup(init));
  for (Type type : op.getResultTypes())
    types.push_back(computeType(type));
  auto whileOp = scf::WhileOp::create(b, loc, types, inits);
  OpBuilder::InsertionGuard guard(b);
  auto enter = [&](Region &from, Region &to) {
    SmallVector<Type> argumentTypes;
    for (Value argument : from.getArguments())
      argumentTypes.push_back(computeType(argument.getType()));
    Block *block = b.createBlock(&to, {}, argumentTypes, SmallVector<Location>(argumentTypes.size(), loc));
    for (auto [old, argument] : llvm::zip(from.getArguments(), block->getArguments()))
      scalars[old] = argument;
    return emitBody(from.front(), 0);
  };
  auto values = [&](ValueRange range) {
    return llvm::map_to_vector(range, [&](Value value) { return lookup(value); });
  };
  if (failed(enter(op.getBefore(), whileOp.getBefore())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  scf::ConditionOp::create(b, loc, lookup(condition.getCondition()), values(condition.getArgs()));
  if (failed(enter(op.getAfter(), whileOp.getAfter())))
    return failure();
  scf::YieldOp::create(b, loc, values(op.getYieldOp().getOperands()));
  for (auto [result, value] : llvm::zip(op.getResults(), whileOp.getResults()))
    scalars[result] = value;
  return success();
}

LogicalResult Emitter::emitPerLane(Operation *op, int64_t w) {
  if (failed(checkCarried(op, op->getResults())))
    return failure();
  // for lane: results[lane] = op(operands[lane])
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  captured.insert_range(op->getOperands());
  SmallVector<Value> starts;
  for (Value result : op->getResults())
    starts.push_back(zeroOf(vec(computeType(result.getType()), w)));
  auto forOp = scf::ForOp::create(b, loc, index(0), index(w), index(1), starts);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    Value lane = forOp.getInductionVar();
    SmallVector<std::pair<Value, Value>> saved;
    for (Value value : captured) {
      Value varying = lookup(value);
      if (!varying || !isVarying(varying))
        continue;
      saved.push_back({value, varying});
      scalars[value] = vector::ExtractOp::create(b, loc, varying, OpFoldResult(lane));
    }
    if (failed(emitScalar(op, 0)))
      return failure();
    SmallVector<Value> results;
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      results.push_back(
          vector::InsertOp::create(b, loc, lookup(result), forOp.getRegionIterArg(i), OpFoldResult(lane)));
    if (!results.empty())
      scf::YieldOp::create(b, loc, results);
    for (auto [value, varying] : saved)
      scalars[value] = varying;
  }
  for (auto [result, value] : llvm::zip(op->getResults(), forOp.getResults()))
    scalars[result] = value;
  return success();
}
