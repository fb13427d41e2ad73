//===- Launch.cpp - attention as launches of its kernels ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's parameters are the words that `attn.words` lists (ABI.h). Those of
// the op's operands are computed here from memrefs and scalars; those of the
// plan come from new arguments of the function.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {
class Launcher {
public:
  Launcher(AttentionOp op, func::FuncOp func)
      : op(op), func(func), b(op), loc(op.getLoc()), variant(op.lookupVariant()) {}

  /// Launches `kernel` in front of the op.
  LogicalResult launch(LLVM::LLVMFuncOp kernel);

private:
  struct Metadata {
    Value pointer; // i64, of the first element
    SmallVector<Value> strides;
  };

  /// The plan's array `role`, an argument of the function; `kernel` is empty for arrays of the whole plan.
  Value planArray(StringRef role, StringRef kernel, Type type);
  /// The memref behind an operand's name, or null.
  Value operand(StringRef name, StringRef kernel);
  Value operandOfOp(StringRef name);
  Value param(StringRef name);
  const Metadata &metadata(Value memref);
  /// A scalar in the low bytes of 8.
  Value scalar(Value value);
  FailureOr<Value> word(DictionaryAttr record, StringRef kernel);
  Value toI64(Value index) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), index); }

  AttentionOp op;
  func::FuncOp func;
  OpBuilder b;
  Location loc;
  VariantOp variant;
  llvm::MapVector<std::pair<StringAttr, StringAttr>, Value> arrays;
  llvm::MapVector<Value, Metadata> known;
};
} // namespace

Value Launcher::planArray(StringRef role, StringRef kernel, Type type) {
  Value &array = arrays[{b.getStringAttr(role), b.getStringAttr(kernel)}];
  if (array)
    return array;
  SmallVector<NamedAttribute> attrs = {b.getNamedAttr("attn.plan", b.getStringAttr(role))};
  if (!kernel.empty())
    attrs.push_back(b.getNamedAttr("attn.kernel", b.getStringAttr(kernel)));
  unsigned position = func.getNumArguments();
  LogicalResult inserted = func.insertArgument(position, type, b.getDictionaryAttr(attrs), loc);
  (void)inserted; // a func.func takes any argument
  return array = func.getArgument(position);
}

Value Launcher::param(StringRef name) {
  for (auto [i, value] : llvm::enumerate(op.getParams()))
    if (variant && variant.getParamName(i) == name)
      return value;
  return {};
}

Value Launcher::operandOfOp(StringRef name) {
  if (name.consume_front("param:"))
    return param(name);
  if (name == "pages" && !op.getKvIndices().empty())
    return op.getKvIndices()[0]; // the tables of all levels are addressed from the first one's
  return llvm::StringSwitch<Value>(name)
      .Case("q", op.getQ())
      .Case("k", op.getK())
      .Case("v", op.getV())
      .Case("o", op.getO())
      .Case("lse", op.getLse())
      .Default(Value());
}

Value Launcher::operand(StringRef name, StringRef kernel) {
  if (Value own = operandOfOp(name))
    return own;
  int64_t dyn = ShapedType::kDynamic;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  if (name == "items")
    return planArray(name, kernel, MemRefType::get({dyn, 16}, i32));
  if (name == "cta_indptr" || name == "counter")
    return planArray(name, kernel, MemRefType::get({dyn}, i32));
  if (name == "tokens")
    return planArray(name, "", MemRefType::get({dyn, 8}, i32));
  if (name == "pieces")
    return planArray(name, "", MemRefType::get({dyn, 4}, i32));
  if (name == "part_o")
    return planArray(name, "", MemRefType::get({dyn, op.getHeadDimVo()}, f32));
  if (name == "part_lse")
    return planArray(name, "", MemRefType::get({dyn}, f32));
  return {};
}

const Launcher::Metadata &Launcher::metadata(Value memref) {
  Metadata &data = known[memref];
  if (data.pointer)
    return data;
  auto type = cast<MemRefType>(memref.getType());
  auto parts = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  for (Value stride : parts.getStrides())
    data.strides.push_back(toI64(stride));
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  Value bytes = arith::ConstantIndexOp::create(b, loc, type.getElementTypeBitWidth() / 8);
  Value offset = arith::MulIOp::create(b, loc, parts.getOffset(), bytes);
  data.pointer = toI64(arith::AddIOp::create(b, loc, base, offset));
  return data;
}

Value Launcher::scalar(Value value) {
  if (value.getType().isIndex())
    return toI64(value);
  if (value.getType().isF32())
    value = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  return arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
}

FailureOr<Value> Launcher::word(DictionaryAttr record, StringRef kernel) {
  auto text = [&](StringRef field) {
    auto attr = record.getAs<StringAttr>(field);
    return attr ? attr.getValue() : StringRef();
  };
  StringRef kind = text("kind");
  if (kind == "scale") {
    if (Value scale = op.getScale())
      return scalar(scale);
    float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(op.getHeadDimQk())));
    return scalar(arith::ConstantOp::create(b, loc, b.getF32FloatAttr(scale)));
  }
  if (kind == "param") {
    StringRef name = text("name").empty() ? text("operand") : text("name");
    if (Value value = param(name))
      return scalar(value);
  } else if (Value memref = operand(text("operand"), kernel)) {
    auto dim = record.getAs<IntegerAttr>("dim");
    int64_t d = dim ? dim.getInt() : 0;
    if (kind == "pointer")
      return metadata(memref).pointer;
    if (kind == "stride")
      return metadata(memref).strides[d];
    if (kind == "size")
      return toI64(memref::DimOp::create(b, loc, memref, d));
  }
  op.emitOpError() << "kernel '" << kernel << "' takes " << record << ", which a launch from IR does not have";
  return failure();
}

LogicalResult Launcher::launch(LLVM::LLVMFuncOp kernel) {
  StringRef name = kernel.getName();
  auto words = kernel->getAttrOfType<ArrayAttr>("attn.words");
  if (!words)
    return op.emitOpError() << "kernel '" << name << "' has no 'attn.words'; run convert-tile-to-gpu first";
  if (auto maps = kernel->getAttrOfType<ArrayAttr>("attn.maps"); maps && !maps.empty())
    return op.emitOpError()
           << "kernel '" << name
           << "' reads through tensor maps, which a launch from IR does not make; use configs with load "
              "= gather, or a bundle and the runtime";
  // Items first: the order of the arguments must not depend on what a kernel happens to read first.
  operand("items", name);
  Value indptr = operand("cta_indptr", name);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value lists = memref::DimOp::create(b, loc, indptr, 0);
  Value grid = arith::SubIOp::create(b, loc, lists, one);
  SmallVector<Value> values;
  for (auto record : words.getAsRange<DictionaryAttr>()) {
    FailureOr<Value> value = word(record, name);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  auto number = [&](StringRef attr) { return kernel->getAttrOfType<IntegerAttr>(attr).getInt(); };
  Value threads = arith::ConstantIndexOp::create(b, loc, number("attn.threads"));
  Value shared = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(number("attn.smem")));
  auto symbol = SymbolRefAttr::get(kernel->getParentOfType<gpu::GPUModuleOp>().getNameAttr(),
                                   {FlatSymbolRefAttr::get(kernel.getSymNameAttr())});
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  gpu::LaunchFuncOp::create(b, loc, symbol, gpu::KernelDim3{grid, one, one}, gpu::KernelDim3{threads, one, one}, shared,
                            values);
  return success();
}

FailureOr<int64_t> attn::convertToLaunches(AttentionOp op) {
  auto func = op->getParentOfType<func::FuncOp>();
  auto module = op->getParentOfType<ModuleOp>();
  if (!func || !module)
    return op.emitOpError() << "is not in a func.func of a module";
  auto names = op->getAttrOfType<ArrayAttr>("attn.kernels");
  auto merge = op->getAttrOfType<FlatSymbolRefAttr>("attn.merge");
  if (!names || !merge)
    return op.emitOpError() << "has no kernels; run attn-to-tile and convert-tile-to-gpu before attn-to-launch";
  if (!SymbolTable::symbolKnownUseEmpty(func, module))
    return op.emitOpError()
           << "is in @" << func.getName()
           << ", which others refer to; its plan becomes arguments of the function: inline the function "
              "or keep the op in one without callers";
  SmallVector<Attribute> all(names.begin(), names.end());
  all.push_back(merge);
  Launcher launcher(op, func);
  for (Attribute attr : all) {
    LLVM::LLVMFuncOp kernel;
    for (auto device : module.getOps<gpu::GPUModuleOp>())
      if (auto found = device.lookupSymbol<LLVM::LLVMFuncOp>(cast<FlatSymbolRefAttr>(attr).getAttr()))
        kernel = found;
    if (!kernel)
      return op.emitOpError() << "has kernel " << attr
                              << " in no gpu.module; run convert-tile-to-gpu before attn-to-launch";
    if (failed(launcher.launch(kernel)))
      return failure();
  }
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), UnitAttr::get(op.getContext()));
  op.erase();
  return static_cast<int64_t>(all.size());
}
