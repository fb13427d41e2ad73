//===- AttnDialect.cpp - registration, parsing and printing of the attn dialect ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

#include "attn/Dialect/Attn/IR/AttnDialect.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnTypes.cpp.inc"

void AttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Attn/IR/AttnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// variant, hook
//===----------------------------------------------------------------------===//

/// `attributes {...}` must not repeat what the syntax already gave.
static ParseResult parseExtraAttributes(OpAsmParser &parser, NamedAttrList &attributes) {
  SMLoc loc = parser.getCurrentLocation();
  NamedAttrList extra;
  if (parser.parseOptionalAttrDictWithKeyword(extra))
    return failure();
  for (NamedAttribute attr : extra) {
    if (attributes.get(attr.getName()))
      return parser.emitError(loc) << "attribute '" << attr.getName().getValue() << "' is given by the syntax already";
    attributes.append(attr);
  }
  return success();
}

static void printArgs(OpAsmPrinter &p, Region &body) {
  p << '(';
  llvm::interleaveComma(body.getArguments(), p, [&](BlockArgument arg) { p.printRegionArgument(arg); });
  p << ')';
}

ParseResult VariantOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> params;
  Builder &builder = parser.getBuilder();
  Normalizer normalizer = Normalizer::Softmax;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      parser.parseArgumentList(params, AsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("normalizer"))) {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseLParen() || parser.parseKeyword(&keyword) || parser.parseRParen())
      return failure();
    auto kind = symbolizeNormalizer(keyword);
    if (!kind)
      return parser.emitError(loc) << "unknown normalizer '" << keyword << "', expected softmax or none";
    normalizer = *kind;
  }
  result.addAttribute("normalizer", NormalizerAttr::get(builder.getContext(), normalizer));
  // The names of the parameters are part of the ABI ("param:NAME"), so they outlive the text.
  if (!params.empty()) {
    SmallVector<StringRef> names;
    for (const OpAsmParser::Argument &param : params)
      names.push_back(param.ssaName.name.drop_front());
    result.addAttribute("param_names", builder.getStrArrayAttr(names));
  }
  Region *body = result.addRegion();
  if (parseExtraAttributes(parser, result.attributes) || parser.parseRegion(*body, params))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void VariantOp::print(OpAsmPrinter &p) {
  p << ' ';
  p.printSymbolName(getSymName());
  printArgs(p, getBody());
  if (getNormalizer() != Normalizer::Softmax)
    p << " normalizer(" << stringifyNormalizer(getNormalizer()) << ')';
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"sym_name", "normalizer", "param_names"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
}

std::string VariantOp::getParamName(unsigned i) {
  if (auto names = (*this)->getAttrOfType<ArrayAttr>("param_names"))
    if (i < names.size())
      if (auto name = dyn_cast<StringAttr>(names[i]))
        return name.getValue().str();
  return "p" + std::to_string(i);
}

void VariantOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument param : getParams())
    setName(param, getParamName(param.getArgNumber()));
}

HookOp VariantOp::getHook(HookKind kind) {
  for (auto hook : getBody().getOps<HookOp>())
    if (hook.getKind() == kind)
      return hook;
  return {};
}

ParseResult HookOp::parse(OpAsmParser &parser, OperationState &result) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseKeyword(&keyword))
    return failure();
  auto kind = symbolizeHookKind(keyword);
  if (!kind)
    return parser.emitError(loc) << "unknown hook '" << keyword
                                 << "', expected query, key, value, logits, mask, sink or output";
  result.addAttribute("kind", HookKindAttr::get(parser.getContext(), *kind));
  Region *body = result.addRegion();
  return failure(parser.parseArgumentList(args, AsmParser::Delimiter::Paren, /*allowType=*/true) ||
                 parseExtraAttributes(parser, result.attributes) || parser.parseRegion(*body, args));
}

void HookOp::print(OpAsmPrinter &p) {
  p << ' ' << stringifyHookKind(getKind()) << ' ';
  printArgs(p, getBody());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"kind"});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

YieldOp HookOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

MutableOperandRange AttentionOp::getDpsInitsMutable() {
  // o and lse are the last operands.
  unsigned count = getLse() ? 2 : 1;
  return MutableOperandRange(*this, getNumOperands() - count, count);
}

void AttentionOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<BaseMemRefType>(operand.get().getType()))
      continue;
    bool out = operand.getOperandNumber() >= getDpsInitsMutable()[0].getOperandNumber();
    effects.emplace_back(out ? static_cast<MemoryEffects::Effect *>(MemoryEffects::Write::get())
                             : MemoryEffects::Read::get(),
                         &operand, SideEffects::DefaultResource::get());
  }
}

static ArrayRef<int64_t> shapeOf(Value value) { return cast<ShapedType>(value.getType()).getShape(); }
int64_t AttentionOp::getQoHeads() { return shapeOf(getQ())[1]; }
int64_t AttentionOp::getKvHeads() { return shapeOf(getK())[shapeOf(getK()).size() - 2]; }
int64_t AttentionOp::getHeadDimQk() { return shapeOf(getQ()).back(); }
int64_t AttentionOp::getHeadDimVo() { return shapeOf(getV()).back(); }
int64_t AttentionOp::getPageSize() { return getFormat().getKind() == FormatKind::Ragged ? 0 : shapeOf(getK())[1]; }
VariantOp AttentionOp::lookupVariant() {
  if (!getVariantAttr())
    return {};
  return SymbolTable::lookupNearestSymbolFrom<VariantOp>(*this, getVariantAttr());
}

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
