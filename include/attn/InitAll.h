//===- InitAll.h - registration of everything ------------------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place where dialects, passes and pipelines are registered.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INITALL_H
#define ATTN_INITALL_H

#include "attn/Conversion/AttnToHost/AttnToHost.h"
#include "attn/Conversion/AttnToTile/Passes.h"
#include "attn/Conversion/TileToCPU/TileToCPU.h"
#include "attn/Conversion/TileToGPU/TileToGPU.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/BufferizableOpInterfaceImpl.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Target/Host.h"
#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Our dialects and those that our pipelines meet.
inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::attn::AttnDialect, mlir::tile::TileDialect>();
  mlir::attn::registerBufferizableOpInterfaceExternalModels(registry);
}

/// All passes and pipelines.
inline void registerAllPasses() {
  mlir::attn::registerAttnPasses();
  mlir::tile::registerTilePasses();
  mlir::tile::registerTileToCPUPasses();
  mlir::attn::registerAttnToHostPasses();
  mlir::attn::registerAttnToTilePasses();
  mlir::tile::registerTileToGPUPasses();
  registerHostPipelines();
  registerPipelines();
}

} // namespace attn

#endif
