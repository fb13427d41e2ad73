//===- AllocateShared.cpp - places in shared memory ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/IR/Layout.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "attn/Target/KnownTargets.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILEALLOCATESHAREDPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

int64_t tile::getScratchBytes(Operation *op) {
  auto bytesOf = [](RegType type) {
    int64_t bits = type.getElementType().isIndex() ? 64 : type.getElementType().getIntOrFloatBitWidth();
    return type.getNumElements() * std::max<int64_t>(1, bits / 8);
  };
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (!reduce.getDim() || reduce.getScope() != ReduceScope::All)
      return 0;
    // Each thread leaves its registers of the result when the dimension is spread over warps.
    FailureOr<Fragment> value = Fragment::get(cast<RegType>(reduce.getValue().getType()));
    FailureOr<Fragment> result = Fragment::get(cast<RegType>(reduce.getResult().getType()));
    if (failed(value) || failed(result) || *reduce.getDim() >= cast<RegType>(reduce.getValue().getType()).getRank() ||
        value->getLanePart(*reduce.getDim()).warpMul == 0)
      return 0;
    return value->getWarps() * result->getNumElements() * 32 * 4;
  }
  if (auto convert = dyn_cast<ConvertLayoutOp>(op))
    return bytesOf(cast<RegType>(convert.getSource().getType()));
  return 0;
}

/// Whether the results of both may be wanted at once. They do not leave their blocks.
static bool areLiveTogether(TransformOp a, TransformOp b) {
  Block *block = a->getBlock(), *other = b->getBlock();
  if (block != other)
    return block->findAncestorOpInBlock(*b) || other->findAncestorOpInBlock(*a);
  if (b->isBeforeInBlock(a))
    std::swap(a, b);
  return llvm::any_of(a->getUsers(), [&](Operation *user) {
    Operation *at = block->findAncestorOpInBlock(*user);
    return !at || b->isBeforeInBlock(at) || at == b;
  });
}

/// Transforms whose results can stand in one place, in program order.
static SmallVector<SmallVector<TransformOp>> shareResults(KernelOp kernel) {
  SmallVector<SmallVector<TransformOp>> places;
  kernel.walk<WalkOrder::PreOrder>([&](TransformOp transform) {
    if (transform.isInPlace() || transform.getInto())
      return;
    auto free = llvm::find_if(places, [&](ArrayRef<TransformOp> place) {
      return llvm::none_of(place, [&](TransformOp other) { return areLiveTogether(other, transform); });
    });
    if (free == places.end())
      places.push_back({transform});
    else
      free->push_back(transform);
  });
  return places;
}

namespace {
struct TileAllocateSharedPass : public tile::impl::TileAllocateSharedPassBase<TileAllocateSharedPass> {
  using TileAllocateSharedPassBase::TileAllocateSharedPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Builder builder(&getContext());
    int64_t top = 0, scratch = 0, pipelines = 0;
    auto place = [&](int64_t bytes, int64_t alignment) {
      top = llvm::alignTo(top, alignment);
      int64_t offset = top;
      top += bytes;
      return builder.getI64IntegerAttr(offset);
    };
    auto alignmentOf = [](SmemType type) { return type.getLayout() ? 1024 : 128; };
    auto config = kernel->getAttrOfType<mlir::attn::ConfigAttr>("config");
    bool barriers =
        kernel.getLevel() == Level::Specialized || (config && config.getLoad() == mlir::attn::LoadPath::Tma);
    DenseMap<Value, Attribute> slots; // of pipelines, for those chained to them
    int64_t firstOther = 0;           // 0 until something else than a pipeline has a place
    // At level P the pipelines are idle outside their loops; what runs there may use their memory.
    bool idle = kernel.getLevel() == Level::Pipelined && !barriers;
    auto outsideLoops = [](Operation *op) {
      for (auto loop = op->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
        if (containsOp<ConsumerWaitOp>(loop))
          return false;
      return true;
    };

    kernel.walk([&](Operation *op) {
      if (auto pipeline = dyn_cast<PipelineOp>(op)) {
        SmemType slot = pipeline.getType().getSlot();
        // Stages stand one after another, each aligned like the first.
        int64_t stride = llvm::alignTo(slot.getBytes(), alignmentOf(slot));
        Attribute offset = pipeline.getChain()
                               ? slots.lookup(pipeline.getChain())
                               : Attribute(place(stride * pipeline.getType().getStages(), alignmentOf(slot)));
        if (offset)
          op->setAttr(kSharedOffset, offset);
        slots[pipeline.getResult()] = offset;
        if (firstOther == 0)
          pipelines = top;
      } else if (auto load = dyn_cast<LoadOp>(op)) {
        if (auto smem = dyn_cast<SmemType>(load.getResult().getType()))
          op->setAttr(kSharedOffset, place(smem.getBytes(), alignmentOf(smem))), firstOther = top;
      } else {
        int64_t bytes = getScratchBytes(op);
        scratch = std::max(scratch, bytes);
        idle &= bytes == 0 || outsideLoops(op);
      }
    });
    for (ArrayRef<TransformOp> results : shareResults(kernel)) {
      int64_t bytes = 0, alignment = 1;
      for (TransformOp transform : results) {
        SmemType type = TransformOp(transform).getResult().getType();
        bytes = std::max(bytes, type.getBytes());
        alignment = std::max<int64_t>(alignment, alignmentOf(type));
      }
      Attribute offset = place(bytes, alignment);
      for (TransformOp transform : results)
        transform->setAttr(kSharedOffset, offset);
    }
    kernel.walk([&](PipelineOp pipeline) {
      PipelineType type = pipeline.getType();
      if (barriers)
        pipeline->setAttr(kBarrierOffset, place(16 * type.getStages(), 16));
      if (type.getWords())
        pipeline->setAttr(kWordsOffset, place(4 * type.getWords() * type.getStages(), 16));
    });
    if (scratch) {
      Attribute offset = idle && scratch <= pipelines ? builder.getI64IntegerAttr(0) : place(scratch, 128);
      kernel.walk([&](Operation *op) {
        if (getScratchBytes(op))
          op->setAttr(kSharedOffset, offset);
      });
    }
    top = llvm::alignTo(top, 16);

    int64_t most = limit;
    StringRef chip = "the option";
    if (auto target = kernel->getAttrOfType<mlir::attn::TargetAttr>("target")) {
      const ::attn::TargetInfo *info = ::attn::findTarget(target.getChip());
      if (!info) {
        kernel.emitOpError() << "has unknown target '" << target.getChip() << "', expected one of "
                             << ::attn::knownTargetNames();
        return signalPassFailure();
      }
      if (!most) {
        most = info->sharedPerCta;
        chip = info->chip;
      }
    }
    if (most && top > most) {
      kernel.emitOpError() << "needs " << top << " bytes of shared memory, " << top - most << " more than the " << most
                           << " of " << chip << ": choose fewer 'stages', 'keys' or 'rows'";
      return signalPassFailure();
    }
    kernel->setAttr(kSharedBytes, builder.getI64IntegerAttr(top));
  }
};
} // namespace
