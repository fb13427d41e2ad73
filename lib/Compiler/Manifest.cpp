//===- Manifest.cpp - from IR to the bundle's manifest -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Compiler/Manifest.h"
#include "attn/Target/Bundle.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace attn {
namespace json = llvm::json;

llvm::StringRef getElementName(Type type) {
  return llvm::TypeSwitch<Type, llvm::StringRef>(type)
      .Case([](Float32Type) { return "f32"; })
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float16Type) { return "f16"; })
      .Case([](Float8E4M3FNType) { return "e4m3"; })
      .Case([](Float8E5M2Type) { return "e5m2"; })
      .Case([](IntegerType t) -> llvm::StringRef {
        switch (t.getWidth()) {
        case 8:
          return "i8";
        case 32:
          return "i32";
        case 64:
          return "i64";
        default:
          return "";
        }
      })
      .Default([](Type) { return ""; });
}

static json::Array describeParams(mlir::attn::AttentionOp op, std::string &error) {
  json::Array params;
  mlir::attn::VariantOp variant = op.lookupVariant();
  for (auto [i, value] : llvm::enumerate(op.getParams())) {
    std::string name = "p" + std::to_string(i);
    if (variant)
      if (auto names = variant->getAttrOfType<ArrayAttr>("param_names"))
        if (i < names.size())
          name = cast<StringAttr>(names[i]).getValue();
    Type type = value.getType();
    if (auto shaped = dyn_cast<ShapedType>(type)) {
      llvm::StringRef element = ::attn::getElementName(shaped.getElementType());
      if (element.empty())
        error = llvm::formatv("parameter {0} has element type {1}; expected f32, bf16, f16, i8, i32 or i64", i,
                              shaped.getElementType());
      params.push_back(json::Object{
          {"name", name}, {"kind", "buffer"}, {"element", element}, {"rank", static_cast<int64_t>(shaped.getRank())}});
    } else {
      params.push_back(json::Object{{"name", name}, {"kind", type.isIndex() ? "index" : "f32"}});
    }
  }
  return params;
}

llvm::Expected<json::Object> describeAttention(mlir::attn::AttentionOp op, llvm::StringRef target) {
  auto elementOf = [](Value value) { return getElementName(cast<ShapedType>(value.getType()).getElementType()); };
  mlir::attn::VariantOp variant = op.lookupVariant();
  bool softmax = !variant || variant.getNormalizer() == mlir::attn::Normalizer::Softmax;
  llvm::StringRef lse = "none";
  if (op.getLse())
    lse = mlir::attn::stringifyLseBase(op.getLseBase());
  int64_t indexBits = 32;
  if (!op.getKvIndices().empty())
    indexBits = cast<ShapedType>(op.getKvIndices()[0].getType()).getElementTypeBitWidth();
  std::string error;
  json::Object manifest{
      {"name", variant ? variant.getSymName() : llvm::StringRef("attention")},
      {"target", target},
      {"heads_qo", op.getQoHeads()},
      {"heads_kv", op.getKvHeads()},
      {"head_dim_qk", op.getHeadDimQk()},
      {"head_dim_vo", op.getHeadDimVo()},
      {"type_q", elementOf(op.getQ())},
      {"type_kv", elementOf(op.getK())},
      {"type_o", elementOf(op.getO())},
      {"format", mlir::attn::stringifyFormatKind(op.getFormat().getKind())},
      {"page_size", op.getPageSize()},
      {"row_block", op.getFormat().getRowBlock()},
      {"index_bits", indexBits},
      {"levels", static_cast<int64_t>(op.getKvIndptr().size())},
      {"normalizer", softmax ? "softmax" : "none"},
      {"lse", lse},
      {"params", describeParams(op, error)},
  };
  if (!error.empty())
    return llvm::createStringError(error);
  return std::move(manifest);
}

llvm::Expected<json::Object> describeKernel(llvm::StringRef symbol, mlir::attn::ConfigAttr config, Operation *lowered,
                                            int64_t blob, int64_t ctasPerSm) {
  auto words = lowered->getAttrOfType<ArrayAttr>("attn.words");
  if (!words)
    return llvm::createStringError("kernel '" + symbol + "' was lowered without its argument words");
  auto number = [&](llvm::StringRef name, int64_t absent) {
    auto attr = lowered->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : absent;
  };
  auto maps = lowered->getAttrOfType<ArrayAttr>("attn.maps");
  json::Object kernel{
      {"symbol", symbol},
      {"blob", blob},
      {"rows", config.getRows()},
      {"pack", config.getPack()},
      {"keys", config.getKeys()},
      {"row_table", config.getRowTable()},
      {"threads", number("attn.threads", 1)},
      {"smem", number("attn.smem", 0)},
      {"ctas_per_sm", ctasPerSm},
      {"words", attributeToJson(words)},
      {"maps", maps ? attributeToJson(maps) : json::Value(json::Array())},
  };
  if (lowered->hasAttr("attn.scans"))
    kernel["scans"] = true;
  return std::move(kernel);
}

} // namespace attn
