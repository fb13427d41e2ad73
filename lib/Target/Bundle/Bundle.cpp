//===- Bundle.cpp - writes the file that the runtime loads -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Bundle.h"
#include "attn/ABI/BundleFormat.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

llvm::json::Value attn::attributeToJson(Attribute attribute) {
  return llvm::TypeSwitch<Attribute, llvm::json::Value>(attribute)
      .Case([](BoolAttr a) { return llvm::json::Value(a.getValue()); })
      .Case([](IntegerAttr a) { return llvm::json::Value(a.getInt()); })
      .Case([](FloatAttr a) { return llvm::json::Value(a.getValueAsDouble()); })
      .Case([](StringAttr a) { return llvm::json::Value(a.getValue()); })
      .Case([](DenseI64ArrayAttr a) {
        llvm::json::Array array;
        for (int64_t value : a.asArrayRef())
          array.push_back(value);
        return llvm::json::Value(std::move(array));
      })
      .Case([](ArrayAttr a) {
        llvm::json::Array array;
        for (Attribute value : a)
          array.push_back(attributeToJson(value));
        return llvm::json::Value(std::move(array));
      })
      .Case([](DictionaryAttr a) {
        llvm::json::Object object;
        for (NamedAttribute entry : a)
          object[entry.getName().getValue()] = attributeToJson(entry.getValue());
        return llvm::json::Value(std::move(object));
      })
      .Default([](Attribute) { return llvm::json::Value(nullptr); });
}

std::string attn::writeBundle(llvm::json::Object manifest, const std::vector<BundleBlob> &blobs) {
  std::string data;
  llvm::json::Array table;
  for (const BundleBlob &blob : blobs)
    table.push_back(llvm::json::Object{{"kind", blob.kind},
                                       {"offset", static_cast<int64_t>(attnabi::appendBlob(data, blob.bytes))},
                                       {"bytes", static_cast<int64_t>(blob.bytes.size())}});
  manifest["abi"] = ATTN_ABI_VERSION;
  manifest["blobs"] = std::move(table);
  return attnabi::makeBundle(llvm::formatv("{0:2}", llvm::json::Value(std::move(manifest))).str(), data);
}
