//===- TileVerify.cpp - verifiers of the tile ops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace mlir::tile;

LogicalResult KernelOp::verify() { return success(); }
LogicalResult RolesOp::verify() { return success(); }
LogicalResult RoleOp::verify() { return success(); }
LogicalResult ViewOp::verify() { return success(); }
LogicalResult LoadOp::verify() { return success(); }
LogicalResult StoreOp::verify() { return success(); }
LogicalResult LocalLoadOp::verify() { return success(); }
LogicalResult LocalStoreOp::verify() { return success(); }
LogicalResult SubviewOp::verify() { return success(); }
LogicalResult SplatOp::verify() { return success(); }
LogicalResult MapOp::verify() { return success(); }
LogicalResult MaskOp::verify() { return success(); }
LogicalResult ReduceOp::verify() { return success(); }
LogicalResult DotOp::verify() { return success(); }
LogicalResult DotAsyncOp::verify() { return success(); }
LogicalResult AwaitOp::verify() { return success(); }
LogicalResult SliceOp::verify() { return success(); }
LogicalResult ConcatOp::verify() { return success(); }
LogicalResult ConvertLayoutOp::verify() { return success(); }
LogicalResult PipelineOp::verify() { return success(); }
LogicalResult LoadAsyncOp::verify() { return success(); }
LogicalResult SendOp::verify() { return success(); }
LogicalResult ConsumerWaitOp::verify() { return success(); }
LogicalResult StoreAsyncOp::verify() { return success(); }
