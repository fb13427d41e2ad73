//===- TileDialect.cpp - registration of types, attributes and ops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tile;

#include "attn/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "attn/Dialect/Tile/IR/TileEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Tile/IR/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Tile/IR/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

ArrayRef<StringRef> tile::getItemFields() {
  static const StringRef fields[] = {"token0", "rows", "head", "request", "table",  "kv_len", "kpos0",
                                     "qpos0",  "klo",  "khi",  "slot",    "qo_len", "row0",   "kv_total"};
  return fields;
}

int64_t tile::getItemFieldOffset(StringRef name) {
  int64_t offset = 0;
  for (StringRef field : getItemFields()) {
    if (field == name)
      return offset;
    offset += field == "table" ? 8 : 4;
  }
  return -1;
}

ArrayRef<StringRef> tile::getArgRoles() {
  static const StringRef roles[] = {"q",      "k",        "v",     "o",      "lse",    "pages",
                                    "part_o", "part_lse", "items", "tokens", "pieces", "scale"};
  return roles;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// `<` dims `x` type (`,` attribute)? `>`, shared by reg and smem.
static LogicalResult parseShaped(AsmParser &parser, SmallVectorImpl<int64_t> &shape, Type &type, Attribute &layout) {
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(type))
    return failure();
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout))
    return failure();
  return parser.parseGreater();
}

static void printShaped(AsmPrinter &printer, ArrayRef<int64_t> shape, Type type, Attribute layout) {
  printer << '<';
  printer.printDimensionList(shape);
  if (!shape.empty())
    printer << 'x';
  printer << type;
  if (layout)
    printer << ", " << layout;
  printer << '>';
}

static LogicalResult verifyShape(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                 StringRef what) {
  if (shape.empty() || shape.size() > 3)
    return emitError() << what << " has rank " << shape.size() << ", expected 1 to 3";
  for (int64_t dim : shape)
    if (dim <= 0 || dim > 65536)
      return emitError() << what << " has extent " << dim << ", expected 1 to 65536";
  return success();
}

static bool isTileElement(Type type) {
  if (auto f = dyn_cast<FloatType>(type))
    return f.getWidth() <= 32;
  if (auto i = dyn_cast<IntegerType>(type))
    return i.isSignless() && i.getWidth() <= 64;
  return type.isIndex();
}

Type RegType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type type;
  Attribute layout;
  if (failed(parseShaped(parser, shape, type, layout)))
    return {};
  return parser.getChecked<RegType>(parser.getContext(), shape, type, layout);
}
void RegType::print(AsmPrinter &printer) const { printShaped(printer, getShape(), getElementType(), getLayout()); }
LogicalResult RegType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type type,
                              Attribute layout) {
  if (!isTileElement(type))
    return emitError() << "reg has element type " << type
                       << ", expected a float of at most 32 bits, an integer or index";
  if (layout && !isa<MmaAttr, OperandAttr, BlockedAttr, SliceAttr>(layout))
    return emitError() << "reg has layout " << layout
                       << ", expected #tile.mma, #tile.operand, #tile.blocked or #tile.slice";
  return verifyShape(emitError, shape, "reg");
}
int64_t RegType::getNumElements() const {
  int64_t n = 1;
  for (int64_t dim : getShape())
    n *= dim;
  return n;
}

Type SmemType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type type;
  Attribute layout;
  if (failed(parseShaped(parser, shape, type, layout)))
    return {};
  return parser.getChecked<SmemType>(parser.getContext(), shape, type, layout);
}
void SmemType::print(AsmPrinter &printer) const { printShaped(printer, getShape(), getElementType(), getLayout()); }
LogicalResult SmemType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type type,
                               Attribute layout) {
  if (!isTileElement(type) || type.isIndex() || type.isInteger(1))
    return emitError() << "smem has element type " << type << ", expected a float or an integer of 8 to 32 bits";
  if (layout && !isa<SwizzleAttr>(layout))
    return emitError() << "smem has layout " << layout << ", expected #tile.swizzle";
  return verifyShape(emitError, shape, "smem");
}
int64_t SmemType::getNumElements() const {
  int64_t n = 1;
  for (int64_t dim : getShape())
    n *= dim;
  return n;
}
int64_t SmemType::getBytes() const {
  int64_t elements = getNumElements();
  if (auto swizzle = dyn_cast_or_null<SwizzleAttr>(getLayout()); swizzle && swizzle.getPanel() > 0) {
    int64_t columns = getShape().back();
    elements = elements / columns * llvm::alignTo(columns, swizzle.getPanel()); // whole panels
  }
  return elements * getElementType().getIntOrFloatBitWidth() / 8;
}

Type ViewType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type type;
  int64_t page = 0, pack = 0;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/true) || parser.parseType(type))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    int64_t value = 0;
    if (keyword != "paged" && keyword != "packed") {
      parser.emitError(parser.getCurrentLocation()) << "expected 'paged' or 'packed', got '" << keyword << "'";
      return {};
    }
    if (parser.parseLess() || parser.parseInteger(value) || parser.parseGreater())
      return {};
    (keyword == "paged" ? page : pack) = value;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ViewType>(parser.getContext(), shape, type, page, pack);
}
void ViewType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType();
  if (getPage())
    printer << ", paged<" << getPage() << '>';
  if (getPack())
    printer << ", packed<" << getPack() << '>';
  printer << '>';
}
LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type type,
                               int64_t page, int64_t pack) {
  if (shape.empty() || shape.size() > 2)
    return emitError() << "view has rank " << shape.size() << ", expected 1 or 2";
  if (shape.size() == 2 && ShapedType::isDynamic(shape[1]))
    return emitError() << "view has a dynamic row length, expected a fixed one";
  if (page < 0 || pack < 0)
    return emitError() << "view has a negative page size or packing factor";
  if (page && pack)
    return emitError() << "view is paged and packed, expected at most one";
  if (!isTileElement(type))
    return emitError() << "view has element type " << type << ", expected a float, an integer or index";
  return success();
}

Type PipelineType::parse(AsmParser &parser) {
  SmallVector<int64_t> stages;
  Type slot;
  int64_t words = 0;
  if (parser.parseLess() || parser.parseDimensionList(stages, false) || parser.parseType(slot))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("words") || parser.parseEqual() || parser.parseInteger(words)))
    return {};
  if (parser.parseGreater())
    return {};
  auto smem = dyn_cast<SmemType>(slot);
  if (!smem || stages.size() != 1) {
    parser.emitError(parser.getNameLoc()) << "pipeline is written as <stages x !tile.smem<...>>";
    return {};
  }
  return parser.getChecked<PipelineType>(parser.getContext(), stages[0], smem, words);
}
void PipelineType::print(AsmPrinter &printer) const {
  printer << '<' << getStages() << " x " << Type(getSlot());
  if (getWords())
    printer << ", words = " << getWords();
  printer << '>';
}
LogicalResult PipelineType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages, SmemType slot,
                                   int64_t words) {
  if (stages < 1 || stages > 32)
    return emitError() << "pipeline has " << stages << " stages, expected 1 to 32";
  if (words < 0 || words > 32)
    return emitError() << "pipeline has " << words << " words, expected 0 to 32";
  return success();
}
