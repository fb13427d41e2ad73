//===- TileOps.cpp - parsing, printing and building of the tile ops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::tile;

//===----------------------------------------------------------------------===//
// kernel
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type, Level level) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getLevelAttrName(state.name), LevelAttr::get(builder.getContext(), level));
  Block *block = builder.createBlock(state.addRegion());
  for (Type input : type.getInputs())
    block->addArgument(input, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(inputs, results); };
  if (function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                               getFunctionTypeAttrName(result.name), buildType,
                                               getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  if (!result.attributes.get(getLevelAttrName(result.name)))
    return parser.emitError(parser.getNameLoc()) << "expected attribute 'level', for example #tile.level<logical>";
  Region *body = result.regions.front().get();
  if (!body->empty() && (body->back().empty() || !body->back().back().hasTrait<OpTrait::IsTerminator>())) {
    OpBuilder builder(parser.getContext());
    builder.setInsertionPointToEnd(&body->back());
    ReturnOp::create(builder, result.location);
  }
  return success();
}

void KernelOp::print(OpAsmPrinter &p) {
  function_interface_impl::printFunctionOp(p, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

StringRef KernelOp::getArgRole(unsigned i) {
  auto role = getArgAttrOfType<StringAttr>(i, "tile.arg");
  return role ? role.getValue() : StringRef();
}

//===----------------------------------------------------------------------===//
// for_each, next_item, role
//===----------------------------------------------------------------------===//

void ForEachOp::build(OpBuilder &builder, OperationState &state, Value items, ArrayRef<StringRef> fields) {
  state.addOperands(items);
  state.addAttribute(getFieldsAttrName(state.name), builder.getStrArrayAttr(fields));
  Region *region = state.addRegion();
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(region);
  for (size_t i = 0; i < fields.size(); ++i)
    block->addArgument(builder.getIndexType(), state.location);
  YieldOp::create(builder, state.location, ValueRange());
}

ParseResult ForEachOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> args;
  SmallVector<Attribute> fields;
  Builder &builder = parser.getBuilder();
  auto one = [&]() -> ParseResult {
    OpAsmParser::Argument arg;
    StringRef field;
    if (parser.parseArgument(arg) || parser.parseEqual() || parser.parseKeyword(&field))
      return failure();
    arg.type = builder.getIndexType();
    args.push_back(arg);
    fields.push_back(builder.getStringAttr(field));
    return success();
  };
  OpAsmParser::UnresolvedOperand items;
  Region *region = result.addRegion();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one) || parser.parseKeyword("in") ||
      parser.parseOperand(items) ||
      parser.resolveOperand(items, ItemsType::get(builder.getContext()), result.operands) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*region, args))
    return failure();
  result.addAttribute(getFieldsAttrName(result.name), builder.getArrayAttr(fields));
  ensureTerminator(*region, builder, result.location);
  return success();
}

void ForEachOp::print(OpAsmPrinter &p) {
  p << " (";
  llvm::interleaveComma(llvm::zip_equal(getBody().getArguments(), getFields()), p, [&](auto pair) {
    p.printOperand(std::get<0>(pair));
    p << " = " << cast<StringAttr>(std::get<1>(pair)).getValue();
  });
  p << ") in " << getItems();
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"fields"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

static LogicalResult verifyFields(Operation *op, ArrayAttr fields) {
  llvm::SmallSet<StringRef, 16> seen;
  for (Attribute field : fields) {
    StringRef name = cast<StringAttr>(field).getValue();
    if (getItemFieldOffset(name) < 0)
      return op->emitOpError() << "unknown item field '" << name << "', see AttnWorkItem in the ABI header";
    if (!seen.insert(name).second)
      return op->emitOpError() << "item field '" << name << "' is named twice";
  }
  return success();
}

LogicalResult ForEachOp::verify() {
  if (getBody().getNumArguments() != getFields().size())
    return emitOpError() << "has " << getBody().getNumArguments() << " arguments for " << getFields().size()
                         << " fields";
  return verifyFields(*this, getFields());
}

ParseResult NextItemOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand items;
  SmallVector<Attribute> fields;
  Builder &builder = parser.getBuilder();
  auto one = [&]() -> ParseResult {
    StringRef field;
    if (parser.parseKeyword(&field))
      return failure();
    fields.push_back(builder.getStringAttr(field));
    return success();
  };
  if (parser.parseOperand(items) ||
      parser.resolveOperand(items, ItemsType::get(builder.getContext()), result.operands) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  result.addAttribute(getFieldsAttrName(result.name), builder.getArrayAttr(fields));
  result.addTypes(builder.getI1Type());
  result.types.append(fields.size(), builder.getIndexType());
  return success();
}

void NextItemOp::print(OpAsmPrinter &p) {
  p << ' ' << getItems() << " (";
  llvm::interleaveComma(getFields(), p, [&](Attribute field) { p << cast<StringAttr>(field).getValue(); });
  p << ')';
  p.printOptionalAttrDict((*this)->getAttrs(), {"fields"});
}

LogicalResult NextItemOp::verify() {
  if (getValues().size() != getFields().size())
    return emitOpError() << "has " << getValues().size() << " values for " << getFields().size() << " fields";
  return verifyFields(*this, getFields());
}

ParseResult RoleOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  int64_t warps = 0, groups = 1, registers = 0;
  SmallVector<OpAsmParser::Argument> args;
  auto number = [&](int64_t &value) -> ParseResult {
    return failure(parser.parseLParen() || parser.parseInteger(value) || parser.parseRParen());
  };
  if (parser.parseSymbolName(name) || parser.parseKeyword("warps") || number(warps))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("groups")) && number(groups))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("registers"))) {
    if (number(registers))
      return failure();
    result.addAttribute("registers", builder.getI64IntegerAttr(registers));
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  if (succeeded(parser.parseOptionalLParen())) {
    OpAsmParser::Argument arg;
    if (parser.parseArgument(arg) || parser.parseRParen())
      return failure();
    arg.type = builder.getIndexType();
    args.push_back(arg);
  }
  result.addAttribute("name", name);
  result.addAttribute("warps", builder.getI64IntegerAttr(warps));
  result.addAttribute("groups", builder.getI64IntegerAttr(groups));
  Region *region = result.addRegion();
  if (parser.parseRegion(*region, args))
    return failure();
  ensureTerminator(*region, builder, result.location);
  return success();
}

void RoleOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getName());
  p << " warps(" << getWarps() << ')';
  if (getGroups() != 1)
    p << " groups(" << getGroups() << ')';
  if (getRegisters())
    p << " registers(" << *getRegisters() << ')';
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name", "warps", "groups", "registers"});
  if (!getBody().getArguments().empty())
    p << " (" << getBody().getArgument(0) << ')';
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

//===----------------------------------------------------------------------===//
// map and mask
//===----------------------------------------------------------------------===//

/// `(%a = %x[0] : type, ...)`, with or without block arguments.
static ParseResult parseInputs(OpAsmParser &parser, bool named, SmallVectorImpl<OpAsmParser::Argument> *args,
                               SmallVectorImpl<Value> &inputs, SmallVectorImpl<Attribute> &dims) {
  Builder &builder = parser.getBuilder();
  auto one = [&]() -> ParseResult {
    OpAsmParser::Argument arg;
    OpAsmParser::UnresolvedOperand operand;
    Type type;
    SmallVector<int64_t> span;
    if (named && (parser.parseArgument(arg) || parser.parseEqual()))
      return failure();
    if (parser.parseOperand(operand))
      return failure();
    if (succeeded(parser.parseOptionalLSquare())) {
      if (parser.parseCommaSeparatedList([&]() { return parser.parseInteger(span.emplace_back()); }) ||
          parser.parseRSquare())
        return failure();
    }
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseColonType(type))
      return failure();
    auto reg = dyn_cast<RegType>(type);
    if (!reg)
      return parser.emitError(loc) << "expected a !tile.reg type, got " << type;
    if (parser.resolveOperand(operand, type, inputs))
      return failure();
    if (named) {
      arg.type = reg.getElementType();
      args->push_back(arg);
    }
    dims.push_back(builder.getDenseI64ArrayAttr(span));
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, one);
}

static ParseResult parseAt(OpAsmParser &parser, bool &present, SmallVectorImpl<OpAsmParser::Argument> &args) {
  present = succeeded(parser.parseOptionalKeyword("at"));
  if (!present)
    return success();
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&]() -> ParseResult {
    OpAsmParser::Argument arg;
    arg.type = parser.getBuilder().getIndexType();
    if (parser.parseArgument(arg))
      return failure();
    args.push_back(arg);
    return success();
  });
}

static void printSpan(OpAsmPrinter &p, Attribute dims) {
  ArrayRef<int64_t> span = cast<DenseI64ArrayAttr>(dims).asArrayRef();
  if (span.empty())
    return;
  p << '[';
  llvm::interleaveComma(span, p);
  p << ']';
}

static SmallVector<int64_t> expandDims(ArrayAttr dims, unsigned i, int64_t inputRank) {
  auto span = cast<DenseI64ArrayAttr>(dims[i]).asArrayRef();
  if (!span.empty())
    return SmallVector<int64_t>(span);
  return llvm::to_vector(llvm::seq<int64_t>(0, inputRank));
}

static ArrayAttr makeDims(Builder &builder, ArrayRef<SmallVector<int64_t>> dims) {
  SmallVector<Attribute> attrs;
  for (const auto &span : dims)
    attrs.push_back(builder.getDenseI64ArrayAttr(span));
  return builder.getArrayAttr(attrs);
}

/// Creates the body block: one scalar per input, then `rank` indices.
static Block *createBody(OpBuilder &builder, OperationState &state, ValueRange inputs, int64_t indices) {
  Block *block = builder.createBlock(state.addRegion());
  for (Value input : inputs)
    block->addArgument(cast<RegType>(input.getType()).getElementType(), state.location);
  for (int64_t i = 0; i < indices; ++i)
    block->addArgument(builder.getIndexType(), state.location);
  return block;
}

void MapOp::build(OpBuilder &builder, OperationState &state, TypeRange results, ValueRange inputs,
                  ArrayRef<SmallVector<int64_t>> dims, bool at,
                  function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange, ValueRange)> body) {
  state.addTypes(results);
  state.addOperands(inputs);
  state.addAttribute(getDimsAttrName(state.name), makeDims(builder, dims));
  state.getOrAddProperties<Properties>().operandSegmentSizes = {static_cast<int32_t>(inputs.size()), 0};
  if (at)
    state.addAttribute(getAtAttrName(state.name), builder.getUnitAttr());
  OpBuilder::InsertionGuard guard(builder);
  Block *block = createBody(builder, state, inputs, at ? cast<RegType>(results[0]).getRank() : 0);
  ValueRange args = block->getArguments();
  YieldOp::create(builder, state.location,
                  body(builder, state.location, args.take_front(inputs.size()), args.drop_front(inputs.size())));
}

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  SmallVector<Value> inputs;
  SmallVector<Attribute> dims;
  SmallVector<OpAsmParser::Argument> args;
  SmallVector<Type> types;
  Region *region = result.addRegion();
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  bool at = false;
  if (succeeded(parser.parseOptionalKeyword(&name))) { // short form: the body is one op
    if (parseInputs(parser, /*named=*/false, nullptr, inputs, dims) ||
        parser.parseOptionalAttrDict(result.attributes) || parser.parseArrowTypeList(types))
      return failure();
    auto reg = types.size() == 1 ? dyn_cast<RegType>(types[0]) : RegType();
    if (!reg)
      return parser.emitError(loc) << "the short form has one result of type !tile.reg";
    OpBuilder bodyBuilder(parser.getContext());
    Block *block = bodyBuilder.createBlock(region);
    for (Value input : inputs)
      block->addArgument(cast<RegType>(input.getType()).getElementType(), result.location);
    OperationState inner(result.location, name);
    if (!inner.name.isRegistered())
      return parser.emitError(loc) << "unknown op '" << name << "' in the short form of tile.map";
    inner.addOperands(block->getArguments());
    inner.addTypes(reg.getElementType());
    Operation *op = bodyBuilder.create(inner);
    YieldOp::create(bodyBuilder, result.location, op->getResults());
  } else {
    if (parseInputs(parser, /*named=*/true, &args, inputs, dims) || parseAt(parser, at, args) ||
        parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseArrowTypeList(types) ||
        parser.parseRegion(*region, args))
      return failure();
  }
  result.addOperands(inputs);
  result.addTypes(types);
  result.addAttribute(getDimsAttrName(result.name), builder.getArrayAttr(dims));
  if (at)
    result.addAttribute(getAtAttrName(result.name), builder.getUnitAttr());
  result.getOrAddProperties<Properties>().operandSegmentSizes = {static_cast<int32_t>(inputs.size()), 0};
  return success();
}

/// The body's only op when the short form can say it, else null.
static Operation *getShortForm(MapOp map) {
  Block &block = map.getBody().front();
  if (map.getAt() || map.getNumResults() != 1 || !llvm::hasNItems(block, 2))
    return nullptr;
  Operation &op = block.front();
  if (op.getNumRegions() || op.getNumResults() != 1 || op.getOperands() != ValueRange(block.getArguments()) ||
      map.getYield().getOperands() != ValueRange(op.getResults()))
    return nullptr;
  // The short form has no place for attributes other than their defaults.
  OperationState fresh(op.getLoc(), op.getName(), op.getOperands(), op.getResultTypes(), {});
  OpBuilder builder(op.getContext());
  Operation *plain = Operation::create(fresh);
  bool same = plain->getAttrDictionary() == op.getAttrDictionary();
  plain->destroy();
  return same ? &op : nullptr;
}

void MapOp::print(OpAsmPrinter &p) {
  p << ' ';
  Operation *shortOp = getShortForm(*this);
  if (shortOp)
    p << shortOp->getName().getStringRef();
  p << '(';
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    if (i)
      p << ", ";
    if (!shortOp) {
      p.printOperand(getBody().getArgument(i));
      p << " = ";
    }
    p.printOperand(input);
    printSpan(p, getDims()[i]);
    p << " : " << input.getType();
  }
  p << ')';
  SmallVector<StringRef> elided = {"dims", "at", "operandSegmentSizes"};
  if (shortOp) {
    p.printOptionalAttrDict((*this)->getAttrs(), elided);
  } else {
    if (getAt()) {
      p << " at (";
      llvm::interleaveComma(getIndexArgs(), p, [&](Value v) { p.printOperand(v); });
      p << ')';
    }
    p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), elided);
  }
  p.printArrowTypeList(getResultTypes());
  if (shortOp)
    return;
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

SmallVector<int64_t> MapOp::getInputDims(unsigned i) {
  return expandDims(getDims(), i, cast<RegType>(getInputs()[i].getType()).getRank());
}
ArrayRef<int64_t> MapOp::getShape() { return cast<RegType>(getResult(0).getType()).getShape(); }
ValueRange MapOp::getInputArgs() { return ValueRange(getBody().getArguments()).take_front(getInputs().size()); }
ValueRange MapOp::getIndexArgs() { return ValueRange(getBody().getArguments()).drop_front(getInputs().size()); }
YieldOp MapOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

void MaskOp::build(OpBuilder &builder, OperationState &state, Value value, ValueRange inputs,
                   ArrayRef<SmallVector<int64_t>> dims, Value key, Value lo, Value hi, int64_t keys, bool zero,
                   function_ref<Value(OpBuilder &, Location, ValueRange, ValueRange)> body) {
  state.addTypes(value.getType());
  state.addOperands(value);
  state.addOperands(inputs);
  if (key)
    state.addOperands({key, lo, hi});
  int32_t interval = key ? 1 : 0;
  state.getOrAddProperties<Properties>().operandSegmentSizes = {1, static_cast<int32_t>(inputs.size()), interval,
                                                                interval, interval};
  state.addAttribute(getDimsAttrName(state.name), makeDims(builder, dims));
  state.addAttribute(getKeysAttrName(state.name), builder.getI64IntegerAttr(keys));
  if (zero)
    state.addAttribute(getZeroAttrName(state.name), builder.getUnitAttr());
  OpBuilder::InsertionGuard guard(builder);
  Block *block = createBody(builder, state, inputs, cast<RegType>(value.getType()).getRank());
  ValueRange args = block->getArguments();
  Value keep = body(builder, state.location, args.take_front(inputs.size()), args.drop_front(inputs.size()));
  YieldOp::create(builder, state.location, ValueRange(keep));
}

ParseResult MaskOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand value, key, lo, hi;
  SmallVector<Value> inputs;
  SmallVector<Attribute> dims;
  SmallVector<OpAsmParser::Argument> args;
  Region *region = result.addRegion();
  bool at = false, interval = false, zero = false;
  int64_t keys = 0;
  Type type;
  if (parser.parseOperand(value) || parseInputs(parser, true, &args, inputs, dims) || parseAt(parser, at, args))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("unless"))) {
    interval = true;
    if (parser.parseOperand(key) || parser.parseKeyword("in") || parser.parseLSquare() || parser.parseOperand(lo) ||
        parser.parseComma() || parser.parseOperand(hi) || parser.parseRParen() || parser.parseKeyword("keys") ||
        parser.parseInteger(keys))
      return failure();
  }
  zero = succeeded(parser.parseOptionalKeyword("zero"));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperand(value, type, result.operands))
    return failure();
  result.addOperands(inputs);
  if (interval) {
    Type index = builder.getIndexType();
    if (parser.resolveOperand(key, index, result.operands) || parser.resolveOperand(lo, index, result.operands) ||
        parser.resolveOperand(hi, index, result.operands))
      return failure();
  }
  if (parser.parseRegion(*region, args))
    return failure();
  int32_t n = interval ? 1 : 0;
  result.getOrAddProperties<Properties>().operandSegmentSizes = {1, static_cast<int32_t>(inputs.size()), n, n, n};
  result.addTypes(type);
  result.addAttribute(getDimsAttrName(result.name), builder.getArrayAttr(dims));
  result.addAttribute(getKeysAttrName(result.name), builder.getI64IntegerAttr(keys));
  if (zero)
    result.addAttribute(getZeroAttrName(result.name), builder.getUnitAttr());
  return success();
}

void MaskOp::print(OpAsmPrinter &p) {
  p << ' ' << getValue() << " (";
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    if (i)
      p << ", ";
    p.printOperand(getBody().getArgument(i));
    p << " = ";
    p.printOperand(input);
    printSpan(p, getDims()[i]);
    p << " : " << input.getType();
  }
  p << ") at (";
  llvm::interleaveComma(getIndexArgs(), p, [&](Value v) { p.printOperand(v); });
  p << ')';
  if (getKey())
    p << " unless " << getKey() << " in [" << getLo() << ", " << getHi() << ") keys " << getKeys();
  if (getZero())
    p << " zero";
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"dims", "keys", "zero", "operandSegmentSizes"});
  p << " : " << getValue().getType() << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

SmallVector<int64_t> MaskOp::getInputDims(unsigned i) {
  return expandDims(getDims(), i, cast<RegType>(getInputs()[i].getType()).getRank());
}
ValueRange MaskOp::getInputArgs() { return ValueRange(getBody().getArguments()).take_front(getInputs().size()); }
ValueRange MaskOp::getIndexArgs() { return ValueRange(getBody().getArguments()).drop_front(getInputs().size()); }
YieldOp MaskOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

//===----------------------------------------------------------------------===//
// dot, consumer_wait
//===----------------------------------------------------------------------===//

/// `(a, b) -> r`, or `(a, b, acc) -> r` when the accumulator's type is not the result's.
static ParseResult parseDotTypes(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> accOperand, Type &a,
                                 Type &b, Type &acc, Type &result) {
  if (parser.parseLParen() || parser.parseType(a) || parser.parseComma() || parser.parseType(b))
    return failure();
  bool withAcc = succeeded(parser.parseOptionalComma());
  if ((withAcc && parser.parseType(acc)) || parser.parseRParen() || parser.parseArrow() || parser.parseType(result))
    return failure();
  if (withAcc && !accOperand)
    return parser.emitError(parser.getNameLoc()) << "has a type for an accumulator that is not there";
  if (!withAcc && accOperand) {
    acc = result;
    if (auto pending = dyn_cast<PendingType>(result))
      acc = pending.getReg();
  }
  return success();
}

static void printDotTypes(OpAsmPrinter &p, Operation *, Value, Type a, Type b, Type acc, Type result) {
  p << '(' << a << ", " << b;
  Type usual = result;
  if (auto pending = dyn_cast<PendingType>(result))
    usual = pending.getReg();
  if (acc && acc != usual)
    p << ", " << acc;
  p << ") -> " << result;
}

ParseResult ConsumerWaitOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand pipeline;
  Type type;
  if (parser.parseOperand(pipeline) || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseColonType(type) || parser.resolveOperand(pipeline, type, result.operands))
    return failure();
  auto pipe = dyn_cast<PipelineType>(type);
  if (!pipe)
    return parser.emitError(loc) << "expected a !tile.pipeline type, got " << type;
  result.addTypes(pipe.getSlot());
  result.types.append(pipe.getWords(), parser.getBuilder().getIndexType());
  return success();
}

void ConsumerWaitOp::print(OpAsmPrinter &p) {
  p << ' ' << getPipeline();
  p.printOptionalAttrDict((*this)->getAttrs());
  p << " : " << getPipeline().getType();
}

#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
