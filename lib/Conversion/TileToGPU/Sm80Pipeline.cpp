//===- Sm80Pipeline.cpp - pipelines as groups of cp.async ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Full: every load is one group of cp.async; a wait lets `tile.in_flight`
// younger groups run on and then meets the other warps (or, when each warp
// reads only what it loads, its own lanes). Groups are counted, so a guarded
// load commits behind its guard, where it counts even when it did not run.
// Empty: a slot is free once all warps have met after its last reader.
//
//===----------------------------------------------------------------------===//

#include "Sm80.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::sm80;

bool sm80::isWarpPrivate(Emitter &e, SmemType slot) {
  return slot.getRank() == 3 && slot.getShape()[0] == e.group.warps;
}

static void meet(Emitter &e, SmemType slot) {
  Leaf leaf(e.b, e.loc);
  isWarpPrivate(e, slot) ? leaf.warpBarrier() : leaf.barrier();
}

static LogicalResult emitPipeline(Emitter &e, PipelineOp op) {
  PipelineType type = op.getType();
  if (op.getChain() || type.getWords() || op.getConsumers() != 1 || op.getProducers() != 1)
    return op.emitOpError() << "is chained, carries words or has several groups of producers or consumers, which "
                            << e.target.chip << " has no code for";
  auto offset = op->getAttrOfType<IntegerAttr>(kSharedOffset);
  if (!offset)
    return op.emitOpError() << "has no '" << kSharedOffset << "', run tile-allocate-shared first";
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->op = op;
  pipeline->type = type;
  pipeline->slots = offset.getInt();
  pipeline->slotStride = llvm::alignTo(type.getSlot().getBytes(), type.getSlot().getLayout() ? 1024 : 128);
  e.pipelines[op.getResult()] = std::move(pipeline);
  return success();
}

static Smem slotOf(Emitter &e, Value pipelineValue, Counter kind) {
  Pipeline &pipeline = e.pipeline(pipelineValue);
  Index &count = e.counter(pipelineValue, kind);
  Smem smem;
  smem.type = smem.whole = pipeline.type.getSlot();
  smem.base = pipeline.slots;
  if (pipeline.type.getStages() > 1)
    smem.stage = e.mul(e.ringStage(count, pipeline.type.getStages()).first, e.c32(pipeline.slotStride));
  smem.pipeline = pipelineValue;
  ++count.offset;
  return smem;
}

/// True when the warps have met since the last reader of the slot that `acquire` gets.
static bool hasMet(ProducerAcquireOp acquire) {
  // In a step: a wait for the pipeline's current slot stands before; what it frees is the slot of the step before.
  Operation *at = acquire;
  for (Operation *previous = at->getPrevNode();;) {
    for (; previous; previous = previous->getPrevNode()) {
      if (auto wait = dyn_cast<ConsumerWaitOp>(previous))
        if (wait.getPipeline() == acquire.getPipeline())
          return true;
      // An earlier acquire at this place has met already.
      if (isa<ProducerAcquireOp>(previous))
        return true;
      if (isa<ConsumerReleaseOp>(previous) || previous->getNumRegions())
        break;
    }
    if (previous || !isa<scf::IfOp>(at->getParentOp()))
      return false;
    at = at->getParentOp();
    previous = at->getPrevNode();
  }
}

static LogicalResult emitAcquire(Emitter &e, ProducerAcquireOp op) {
  if (!hasMet(op))
    meet(e, e.pipeline(op.getPipeline()).type.getSlot());
  e.smems[op.getSlot()] = slotOf(e, op.getPipeline(), Counter::Acquire);
  return success();
}

static LogicalResult emitWait(Emitter &e, ConsumerWaitOp op) {
  auto inFlight = op->getAttrOfType<IntegerAttr>("tile.in_flight");
  Leaf leaf(e.b, e.loc);
  leaf.cpAsyncWait(inFlight ? inFlight.getInt() : 0);
  meet(e, e.pipeline(op.getPipeline()).type.getSlot());
  e.smems[op.getSlot()] = slotOf(e, op.getPipeline(), Counter::Wait);
  return success();
}

static LogicalResult emitRelease(Emitter &, ConsumerReleaseOp) { return success(); }

static LogicalResult emitCommit(Emitter &e, NVVM::CpAsyncCommitGroupOp) {
  Leaf(e.b, e.loc).cpAsyncCommit();
  return success();
}

/// Ends the group of every load, outside the guards around it.
static void insertCommits(KernelOp kernel) {
  SmallVector<LoadAsyncOp> loads;
  kernel.walk([&](LoadAsyncOp load) { loads.push_back(load); });
  for (LoadAsyncOp load : loads) {
    Operation *at = load;
    while (auto guard = dyn_cast<scf::IfOp>(at->getParentOp()))
      at = guard;
    OpBuilder builder(load.getContext());
    builder.setInsertionPointAfter(at);
    NVVM::CpAsyncCommitGroupOp::create(builder, load.getLoc());
  }
}

void tile::populateSm80Pipeline(Emitter &e) {
  insertCommits(e.kernel);
  e.on<PipelineOp>(emitPipeline);
  e.on<ProducerAcquireOp>(emitAcquire);
  e.on<ConsumerWaitOp>(emitWait);
  e.on<ConsumerReleaseOp>(emitRelease);
  e.on<NVVM::CpAsyncCommitGroupOp>(emitCommit);
}

void tile::populateSm80(Emitter &e) {
  populateSm80Copy(e);
  populateSm80Pipeline(e);
  populateSm80Mma(e);
  populateSm80Exchange(e);
}
