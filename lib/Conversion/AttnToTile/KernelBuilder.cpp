//===- KernelBuilder.cpp - kernels under construction ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "attn/Analysis/LogitBounds.h"
#include "attn/Dialect/Attn/Transforms/SelectConfig.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

KernelSpec::KernelSpec(AttentionOp op, VariantOp variant, ConfigAttr config, const RangeProgram &range)
    : op(op), variant(variant), config(config), range(range), format(op.getFormat().getKind()), dqk(op.getHeadDimQk()),
      dvo(op.getHeadDimVo()), page(op.getPageSize()), group(op.getGroup()), qType(elementOf(op.getQ())),
      kvType(elementOf(op.getK())), oType(elementOf(op.getO())),
      softmax(!variant || variant.getNormalizer() == Normalizer::Softmax),
      fp8(isa<Float8E4M3FNType, Float8E5M2Type>(kvType)), bounded(hasBoundedLogits(op)) {
  const ::attn::TargetInfo *target = op.getTargetAttr() ? ::attn::findTarget(op.getTargetAttr().getChip()) : nullptr;
  gpu = target && target->isGpu();
  int64_t unit = gpu ? getHeadDimUnit(op) : 1;
  dqkTile = llvm::alignTo(dqk, unit);
  dvoTile = llvm::alignTo(dvo, unit);
}

//===----------------------------------------------------------------------===//
// KernelBuilder
//===----------------------------------------------------------------------===//

/// The buffer's type in a kernel: any strides, contiguous rows of `vector` elements when there is a head vector.
static MemRefType stridedLike(Value value, bool vector) {
  auto type = cast<ShapedType>(value.getType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (vector)
    strides.back() = 1;
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = ShapedType::kDynamic;
  return MemRefType::get(shape, type.getElementType(), StridedLayoutAttr::get(type.getContext(), 0, strides));
}

static Type getRoleType(const KernelSpec &spec, StringRef role) {
  AttentionOp op = spec.op;
  Builder b(op.getContext());
  int64_t dyn = ShapedType::kDynamic;
  return llvm::StringSwitch<llvm::function_ref<Type()>>(role)
      .Case("q", [&]() -> Type { return stridedLike(op.getQ(), true); })
      .Case("k", [&]() -> Type { return stridedLike(op.getK(), true); })
      .Case("v", [&]() -> Type { return stridedLike(op.getV(), true); })
      .Case("o", [&]() -> Type { return stridedLike(op.getO(), true); })
      .Case("lse", [&]() -> Type { return stridedLike(op.getLse(), false); })
      .Case("pages", [&]() -> Type { return MemRefType::get({dyn}, elementOf(op.getKvIndices()[0])); })
      .Case("part_o", [&]() -> Type { return MemRefType::get({dyn, spec.dvo}, b.getF32Type()); })
      .Case("part_lse", [&]() -> Type { return MemRefType::get({dyn}, b.getF32Type()); })
      .Case("items", [&]() -> Type { return tile::ItemsType::get(b.getContext()); })
      .Case("tokens", [&]() -> Type { return MemRefType::get({dyn, 8}, b.getI32Type()); })
      .Case("pieces", [&]() -> Type { return MemRefType::get({dyn, 4}, b.getI32Type()); })
      .Default([&]() -> Type { return b.getF32Type(); })(); // scale
}

KernelBuilder::KernelBuilder(OpBuilder &builder, const KernelSpec &spec, StringRef name, ConfigAttr config,
                             ArrayRef<StringRef> roles)
    : spec(spec), b(builder.getContext()), loc(AttentionOp(spec.op).getLoc()) {
  AttentionOp op = spec.op;
  SmallVector<Type> types;
  SmallVector<std::string> names;
  for (StringRef role : roles) {
    types.push_back(getRoleType(spec, role));
    names.push_back(role.str());
  }
  for (auto [i, value] : llvm::enumerate(op.getParams())) {
    VariantOp variant = spec.variant;
    types.push_back(variant.getParams()[i].getType());
    names.push_back("param:" + variant.getParamName(i));
  }
  kernel = tile::KernelOp::create(builder, loc, name, builder.getFunctionType(types, {}), tile::Level::Logical);
  kernel->setAttr("config", config);
  if (config.getConsumers()) // the registers of its producers follow from it
    kernel->setAttr(tile::kRangeLength, builder.getI64IntegerAttr(spec.range.getLength()));
  if (spec.range.hasScans())
    kernel->setAttr(tile::kScans, builder.getUnitAttr());
  if (op.getTargetAttr())
    kernel->setAttr("target", op.getTargetAttr());
  for (auto [i, role] : llvm::enumerate(names)) {
    kernel.setArgAttr(i, "tile.arg", builder.getStringAttr(role));
    Value value = kernel.getBody().getArgument(i);
    args[role] = value;
    if (i >= roles.size())
      params.push_back(value);
  }
  b.setInsertionPointToStart(&kernel.getBody().front());
  if (spec.variant) {
    VariantOp variant = spec.variant;
    for (auto [param, value] : llvm::zip(variant.getParams(), params))
      variantMap.map(param, value);
    for (auto constant : variant.getBody().getOps<arith::ConstantOp>())
      lastTop = b.clone(*constant, variantMap);
  }
  forEach = tile::ForEachOp::create(b, loc, arg("items"), tile::getItemFields());
  tile::ReturnOp::create(b, loc);
  Block &body = forEach.getBody().front();
  Value *fields[] = {&item.token0, &item.rows, &item.head, &item.request, &item.table, &item.kvLen, &item.kpos0,
                     &item.qpos0,  &item.klo,  &item.khi,  &item.slot,    &item.qoLen, &item.row0,  &item.kvTotal};
  for (auto [field, value] : llvm::zip_equal(fields, body.getArguments()))
    *field = value;
  b.setInsertionPoint(body.getTerminator());
}

OpBuilder KernelBuilder::top() {
  OpBuilder at(kernel.getContext());
  if (lastTop)
    at.setInsertionPointAfter(lastTop);
  else
    at.setInsertionPointToStart(&kernel.getBody().front());
  return at;
}

Value KernelBuilder::index(int64_t value) {
  Value &constant = indexConstants[value];
  if (!constant) {
    OpBuilder at = top();
    constant = arith::ConstantIndexOp::create(at, loc, value);
    lastTop = constant.getDefiningOp();
  }
  return constant;
}

Value KernelBuilder::f32(float value) {
  Value &constant = floatConstants[llvm::bit_cast<uint32_t>(value)];
  if (!constant) {
    OpBuilder at = top();
    constant = arith::ConstantOp::create(at, loc, at.getF32FloatAttr(value));
    lastTop = constant.getDefiningOp();
  }
  return constant;
}

Value KernelBuilder::splat(float value, ArrayRef<int64_t> shape) {
  return tile::SplatOp::create(b, loc, reg(shape, b.getF32Type()), f32(value));
}

SmallVector<Value>
KernelBuilder::mapMany(ArrayRef<tile::RegType> results, ArrayRef<MapInput> inputs, bool at,
                       llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange, ValueRange)> body) {
  SmallVector<Value> values;
  SmallVector<SmallVector<int64_t>> dims;
  for (const MapInput &input : inputs) {
    values.push_back(input.reg);
    dims.push_back(input.dims);
  }
  SmallVector<Type> types(results.begin(), results.end());
  auto map = tile::MapOp::create(b, loc, types, values, dims, at, body);
  return SmallVector<Value>(map.getResults());
}

Value KernelBuilder::map(tile::RegType result, ArrayRef<MapInput> inputs, MapBody body, bool at) {
  return mapMany({result}, inputs, at, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange idx) {
    return SmallVector<Value>{body(b, loc, in, idx)};
  })[0];
}

Value mlir::attn::convertFloat(OpBuilder &b, Location loc, Value value, Type type) {
  auto from = cast<FloatType>(value.getType()), to = cast<FloatType>(type);
  if (from == to)
    return value;
  if (from.getWidth() < to.getWidth())
    return arith::ExtFOp::create(b, loc, to, value);
  if (from.getWidth() > to.getWidth())
    return arith::TruncFOp::create(b, loc, to, value);
  value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  return arith::TruncFOp::create(b, loc, to, value);
}

Value KernelBuilder::convert(Value value, Type element) {
  auto type = cast<tile::RegType>(value.getType());
  if (type.getElementType() == element)
    return value;
  return map(reg(type.getShape(), element), {{value, {}}}, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) {
    return convertFloat(b, loc, in[0], element);
  });
}

Value KernelBuilder::reduce(tile::ReduceKind kind, Value value, int64_t dim, Value init) {
  auto type = cast<tile::RegType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  return tile::ReduceOp::create(b, loc, reg(shape, type.getElementType()), kind, value, b.getI64IntegerAttr(dim), init,
                                tile::ReduceScope::All);
}

void KernelBuilder::finish() {
  Block &body = forEach.getBody().front();
  SmallVector<Attribute> fields;
  llvm::BitVector unused(body.getNumArguments());
  for (auto [arg, field] : llvm::zip_equal(body.getArguments(), forEach.getFields())) {
    if (arg.use_empty())
      unused.set(arg.getArgNumber());
    else
      fields.push_back(field);
  }
  body.eraseArguments(unused);
  forEach.setFieldsAttr(b.getArrayAttr(fields));
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

std::optional<CoordKind> mlir::attn::getCoordKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<CoordKind>>(op)
      .Case([](QPosOp) { return CoordKind::QPos; })
      .Case([](KVPosOp) { return CoordKind::KVPos; })
      .Case([](RequestOp) { return CoordKind::Request; })
      .Case([](QHeadOp) { return CoordKind::QHead; })
      .Case([](KVHeadOp) { return CoordKind::KVHead; })
      .Case([](QoLenOp) { return CoordKind::QoLen; })
      .Case([](KVLenOp) { return CoordKind::KVLen; })
      .Case([](RowOp) { return CoordKind::Row; })
      .Default([](Operation *) { return std::nullopt; });
}

void RowCoords::require(HookOp hook) {
  if (hook)
    hook.getBody().walk([&](Operation *op) {
      if (auto kind = getCoordKind(op); kind && *kind != CoordKind::KVPos)
        require(*kind);
    });
}

Value RowCoords::getLastRow() {
  if (!lastRow)
    lastRow = arith::SubIOp::create(kb.b, kb.loc, kb.item.rows, kb.index(1));
  return lastRow;
}

void RowCoords::require(CoordKind kind) {
  Source &source = sources[static_cast<int>(kind)];
  if (source.uniform || source.reg || source.base)
    return;
  const KernelSpec &spec = kb.spec;
  const ItemFields &item = kb.item;
  int64_t pack = spec.config.getPack(), rows = heads ? 16 : spec.config.getRows();
  bool table = spec.config.getRowTable() && !heads;
  OpBuilder &b = kb.b;
  Location loc = kb.loc;
  // One value a row, from the row's number (clamped to the last one).
  auto perRow = [&](llvm::function_ref<Value(OpBuilder &, Value row)> body) {
    Value last = getLastRow();
    return kb.map(
        KernelBuilder::reg({rows}, b.getIndexType()), {},
        [&](OpBuilder &b, Location loc, ValueRange, ValueRange idx) -> Value {
          Value row = arith::MinSIOp::create(b, loc, idx[0], last);
          return body(b, row);
        },
        /*at=*/true);
  };
  Value packValue = pack > 1 ? kb.index(pack) : Value();
  auto tokenOf = [&](OpBuilder &b, Value row) -> Value {
    return pack > 1 ? Value(arith::DivUIOp::create(b, loc, row, packValue)) : row;
  };
  auto fromTable = [&](int64_t column) {
    Value tokens = kb.arg("tokens"), columnValue = kb.index(column);
    source.reg = perRow([&](OpBuilder &b, Value row) -> Value {
      Value token = arith::AddIOp::create(b, loc, item.token0, tokenOf(b, row));
      Value value = memref::LoadOp::create(b, loc, tokens, ValueRange{token, columnValue});
      return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
    });
  };
  auto fromBase = [&](Value base) {
    if (heads)
      source.uniform = base;
    else if (pack == 1)
      source.base = base;
    else
      source.reg = perRow(
          [&](OpBuilder &b, Value row) -> Value { return arith::AddIOp::create(b, loc, base, tokenOf(b, row)); });
  };
  auto fromItem = [&](Value value, int64_t column) {
    if (table)
      fromTable(column);
    else
      source.uniform = value;
  };
  switch (kind) { // columns: AttnTokenInfo
  case CoordKind::QPos:
    return table ? fromTable(0) : fromBase(item.qpos0);
  case CoordKind::Row:
    return table ? fromTable(2) : fromBase(item.row0);
  case CoordKind::Request:
    return fromItem(item.request, 1);
  case CoordKind::QoLen:
    return fromItem(item.qoLen, 3);
  case CoordKind::KVLen:
    return fromItem(item.kvTotal, 4);
  case CoordKind::QHead:
    if (!heads && pack == 1) {
      source.uniform = item.head;
    } else {
      source.reg = perRow([&](OpBuilder &b, Value row) -> Value {
        if (!heads)
          row = arith::RemUIOp::create(b, loc, row, packValue);
        return arith::AddIOp::create(b, loc, item.head, row);
      });
    }
    return;
  case CoordKind::KVHead: {
    Value group = kb.index(spec.group);
    if (!heads) {
      source.uniform = arith::DivUIOp::create(b, loc, item.head, group);
    } else {
      source.reg = perRow([&](OpBuilder &b, Value row) -> Value {
        Value head = arith::AddIOp::create(b, loc, item.head, row);
        return arith::DivUIOp::create(b, loc, head, group);
      });
    }
    return;
  }
  case CoordKind::KVPos:
    return;
  }
}

Value mlir::attn::buildKey(OpBuilder &b, Location loc, KernelBuilder &kb, const CoordFrame &frame, ValueRange indices) {
  Value offset = indices[frame.keyDims.back()];
  if (frame.keyDims.size() == 2) {
    Value perGroup = kb.index(kb.spec.keysPerGroup());
    Value group = arith::MulIOp::create(b, loc, indices[frame.keyDims[0]], perGroup);
    offset = arith::AddIOp::create(b, loc, group, offset);
  }
  return arith::AddIOp::create(b, loc, frame.keys->j, offset);
}

Value mlir::attn::buildLastKey(OpBuilder &b, Location loc, KernelBuilder &kb) {
  Value last = arith::SubIOp::create(b, loc, kb.item.kvLen, kb.index(1));
  return kb.spec.config.getConsumers() > 0 ? Value(arith::MaxSIOp::create(b, loc, last, kb.index(0))) : last;
}
