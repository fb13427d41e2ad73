//===- Problem.cpp - the batch's data for one attention op -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "attn/Compiler/Manifest.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
namespace ref = ::attn::ref;

static llvm::Expected<ref::Storage> storageOf(Value value, llvm::StringRef what) {
  ref::Storage storage;
  Type element = cast<ShapedType>(value.getType()).getElementType();
  if (!ref::parseStorage(::attn::getElementName(element).str(), storage))
    return llvm::createStringError(
        llvm::formatv("{0} has element type {1}; expected f32, bf16, f16, f8E4M3FN or f8E5M2", what, element).str());
  return storage;
}

static llvm::Expected<::attn::batch::Geometry> geometryOf(mlir::attn::AttentionOp op) {
  ::attn::batch::Geometry g;
  g.headsQo = op.getQoHeads();
  g.headsKv = op.getKvHeads();
  g.headDimQk = op.getHeadDimQk();
  g.headDimVo = op.getHeadDimVo();
  auto q = storageOf(op.getQ(), "q"), k = storageOf(op.getK(), "k"), o = storageOf(op.getO(), "o");
  for (auto *type : {&q, &k, &o})
    if (!*type)
      return type->takeError();
  g.typeQ = *q;
  g.typeKv = *k;
  g.typeO = *o;
  switch (op.getFormat().getKind()) {
  case mlir::attn::FormatKind::Ragged:
    g.format = ref::Format::Ragged;
    break;
  case mlir::attn::FormatKind::Paged:
    g.format = ref::Format::Paged;
    break;
  case mlir::attn::FormatKind::Bsr:
    g.format = ref::Format::Bsr;
    break;
  }
  g.pageSize = op.getPageSize();
  g.rowBlock = op.getFormat().getRowBlock();
  g.levels = op.getKvIndptr().size();
  mlir::attn::VariantOp variant = op.lookupVariant();
  if (variant && variant.getNormalizer() == mlir::attn::Normalizer::None)
    g.normalizer = ref::Normalizer::None;
  if (op.getLseBase() == mlir::attn::LseBase::Base2)
    g.lseBase = ref::LseBase::Base2;
  return g;
}

static std::vector<::attn::batch::ParamDecl> declsOf(mlir::attn::AttentionOp op) {
  std::vector<::attn::batch::ParamDecl> decls;
  mlir::attn::VariantOp variant = op.lookupVariant();
  for (auto [i, value] : llvm::enumerate(op.getParams())) {
    ::attn::batch::ParamDecl decl;
    decl.name = variant.getParamName(i);
    if (auto shaped = dyn_cast<ShapedType>(value.getType())) {
      decl.kind = ::attn::batch::ParamDecl::Kind::Buffer;
      decl.element = ::attn::getElementName(shaped.getElementType()).str();
      for (int64_t extent : shaped.getShape())
        decl.shape.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
    } else if (value.getType().isIndex()) {
      decl.kind = ::attn::batch::ParamDecl::Kind::Index;
    }
    decls.push_back(std::move(decl));
  }
  return decls;
}

llvm::Expected<attnrun::Problem> attnrun::makeProblem(mlir::attn::AttentionOp op, const std::string &batchFile) {
  Problem problem;
  std::string error;
  if (!::attn::batch::load(batchFile, problem.batch, error))
    return llvm::createStringError(error);
  auto geometry = geometryOf(op);
  if (!geometry)
    return geometry.takeError();
  if (!::attn::batch::build(problem.batch, *geometry, problem.built, error))
    return llvm::createStringError(batchFile + ": " + error);
  problem.decls = declsOf(op);
  std::string unknown = ::attn::batch::unknownParams(
      problem.batch, problem.decls, op.getVariant() ? op.getVariant()->str() : std::string("attention"));
  if (!unknown.empty())
    return llvm::createStringError(batchFile + ": " + unknown);
  for (const auto &decl : problem.decls) {
    problem.params.emplace_back();
    if (!::attn::batch::resolveParam(problem.batch, problem.built, decl, problem.params.back(), error))
      return llvm::createStringError(batchFile + ": " + error);
  }
  if (problem.batch.hasScale && !op.getScale())
    return llvm::createStringError(batchFile + ": 'scale' is given, but the attention op has no scale operand");
  problem.hasScale = problem.batch.hasScale;
  problem.scale = static_cast<float>(problem.batch.scale);
  problem.wantsLse = static_cast<bool>(op.getLse());
  if (!op.getKvIndices().empty())
    problem.indexBits = cast<ShapedType>(op.getKvIndices()[0].getType()).getElementTypeBitWidth();
  return std::move(problem);
}
