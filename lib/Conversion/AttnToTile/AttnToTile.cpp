//===- AttnToTile.cpp - from attn.attention to level-L tile kernels ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "KernelBuilder.h"
#include "attn/Analysis/MaskAnalysis.h"
#include "attn/Dialect/Attn/Transforms/DefineIntegers.h"

using namespace mlir;
using namespace mlir::attn;

/// What this conversion asks for beyond the op's verifier.
static LogicalResult checkOp(AttentionOp op) {
  if (isa<RankedTensorType>(op.getQ().getType()))
    return op.emitOpError() << "works on tensors; bufferise it before attn-to-tile";
  if (!op.getConfigsAttr() || op.getConfigsAttr().empty())
    return op.emitOpError() << "has no 'configs'; run attn-select-config before attn-to-tile, or write them by hand";
  return success();
}

static LogicalResult checkConfig(AttentionOp op, ConfigAttr config) {
  int64_t pack = config.getPack(), groups = config.getGroups();
  auto error = [&]() { return op.emitOpError() << "config " << config << ": "; };
  if (pack != 1 && pack != op.getGroup())
    return error() << "pack is " << pack << ", expected 1 or " << op.getGroup() << ", the query heads of a KV head";
  if (pack > config.getRows())
    return error() << "packs " << pack << " heads into " << config.getRows() << " rows; use pack = 1 or more rows";
  if (groups < 1 || config.getKeys() % groups != 0)
    return error() << config.getKeys() << " keys do not divide into " << groups << " groups";
  return success();
}

/// Few queries read a table of keys as often as their mask does; tokens of several requests would each scan one; keys
/// of block-sparse rows are not in the order of their positions.
static bool wantsScans(AttentionOp op, ConfigAttr config) {
  return op.getFormat().getKind() != FormatKind::Bsr && !config.getRowTable() &&
         config.getRows() / config.getPack() >= 32;
}

FailureOr<AttentionKernels> attn::convertAttentionToTile(AttentionOp op) {
  if (failed(checkOp(op)))
    return failure();
  for (Attribute config : op.getConfigsAttr())
    if (failed(checkConfig(op, cast<ConfigAttr>(config))))
      return failure();
  auto module = op->getParentOfType<ModuleOp>();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  SymbolTable symbols(module);
  VariantOp variant = op.lookupVariant();
  std::string base = variant ? variant.getSymName().str() : "attention";
  RangeProgram program = analyzeMask(variant), placesOnly = analyzeMask(variant, /*scans=*/false);
  // Kernels are built from hooks that cannot go wrong; the statement stays as its author wrote it.
  OwningOpRef<VariantOp> defined(variant ? variant.clone() : VariantOp());
  if (variant)
    defineIntegers(*defined);
  AttentionKernels result;
  auto discard = [&]() {
    for (tile::KernelOp kernel : result.kernels)
      symbols.erase(kernel);
    return failure();
  };
  for (Attribute attr : op.getConfigsAttr()) {
    auto config = cast<ConfigAttr>(attr);
    KernelSpec spec(op, *defined, config, wantsScans(op, config) ? program : placesOnly);
    FailureOr<tile::KernelOp> kernel =
        buildAttentionKernel(builder, spec, base + "_r" + std::to_string(config.getRows()));
    if (failed(kernel))
      return discard();
    kernel->getOperation()->remove();
    symbols.insert(*kernel, module.getBody()->end()); // makes the name unique
    result.kernels.push_back(*kernel);
  }
  KernelSpec spec(op, *defined, cast<ConfigAttr>(op.getConfigsAttr()[0]), program);
  FailureOr<tile::KernelOp> merge = buildMergeKernel(builder, spec, base + "_merge");
  if (failed(merge))
    return discard();
  merge->getOperation()->remove();
  symbols.insert(*merge, module.getBody()->end());
  result.merge = *merge;

  SmallVector<Type> params;
  for (Value param : op.getParams())
    params.push_back(param.getType());
  result.range = buildRangeFunction(builder, op.getLoc(), base + "_range", program, params);
  result.range->remove();
  symbols.insert(result.range, module.getBody()->end());

  SmallVector<Attribute> names;
  for (tile::KernelOp kernel : result.kernels)
    names.push_back(FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
  op->setAttr("attn.kernels", builder.getArrayAttr(names));
  op->setAttr("attn.merge", FlatSymbolRefAttr::get(result.merge.getSymNameAttr()));
  op->setAttr("attn.range", FlatSymbolRefAttr::get(result.range.getSymNameAttr()));
  return result;
}
