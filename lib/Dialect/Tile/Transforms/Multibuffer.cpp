//===- Multibuffer.cpp - loads of a key loop become pipelines ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With `prefetch` the loop itself keeps stages - 1 loads of each buffer in
// flight: the first ones are issued before the loop, and each step, once its
// own tile has arrived, issues the load that reuses the slot of the step before.
// The barrier of that wait is then also the proof that the slot is free.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

namespace mlir::tile {
#define GEN_PASS_DEF_TILEMULTIBUFFERPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;

namespace {
/// One load of a loop and what becomes of it.
struct Site {
  LoadOp load;
  Value pipeline;
  SmallVector<Operation *> slice; // what computes the row inside the loop, in order
  Operation *firstUse = nullptr, *lastUse = nullptr;
  unsigned order = 0;  // among the loads of the loop
  int64_t divisor = 1; // of the row, in every step
};
} // namespace

/// Ancestor of `op` in `block`.
static Operation *ancestorIn(Block *block, Operation *op) { return block->findAncestorOpInBlock(*op); }

/// First and last op of the load's block that uses the stage, parts of it and what it is rewritten to included.
static void findUses(Value value, Block *block, Operation *&first, Operation *&last) {
  for (Operation *user : value.getUsers()) {
    Operation *at = ancestorIn(block, user);
    if (!first || at->isBeforeInBlock(first))
      first = at;
    if (!last || last->isBeforeInBlock(at))
      last = at;
    if (auto subview = dyn_cast<SubviewOp>(user))
      findUses(subview.getResult(), block, first, last);
    if (auto transform = dyn_cast<TransformOp>(user); transform && transform.isInPlace())
      findUses(transform.getResult(), block, first, last);
  }
}

/// The ops in the loop's block that `value` is computed from; false when one of them cannot be repeated for another
/// step.
static bool backwardSlice(Value value, scf::ForOp loop, llvm::SetVector<Operation *> &slice) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg == loop.getInductionVar() || !loop.getRegion().isAncestor(arg.getOwner()->getParent());
  Operation *op = value.getDefiningOp();
  if (!loop.getRegion().isAncestor(op->getParentRegion()) || slice.contains(op))
    return true;
  // A call to a function of this module computes bounds and positions from integers only.
  bool repeatable =
      op->getBlock() == loop.getBody() && op->getNumRegions() == 0 && (isPure(op) || isa<func::CallOp>(op));
  if (!repeatable)
    return false;
  for (Value operand : op->getOperands())
    if (!backwardSlice(operand, loop, slice))
      return false;
  slice.insert(op);
  return true;
}

/// A number that divides `value` in every run (0 when the value is 0): chunks begin at multiples of the kernel's keys.
static int64_t knownDivisor(Value value, KernelOp kernel) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent); loop && argument == loop.getInductionVar())
      return std::gcd(knownDivisor(loop.getLowerBound(), kernel), knownDivisor(loop.getStep(), kernel));
    auto config = kernel->getAttrOfType<attn::ConfigAttr>("config");
    if (auto each = dyn_cast<ForEachOp>(parent); each && config)
      if (cast<StringAttr>(each.getFields()[argument.getArgNumber()]).getValue() == "klo")
        return config.getKeys();
    return 1;
  }
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return std::abs(constant.value());
  auto of = [&](unsigned i) { return knownDivisor(op->getOperand(i), kernel); };
  if (isa<arith::MulIOp>(op)) {
    int64_t a = of(0), b = of(1);
    return a == 0 || b == 0 ? 0 : a < (1 << 20) && b < (1 << 20) ? a * b : std::max(a, b);
  }
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(of(0), of(1));
  if (isa<arith::SelectOp>(op))
    return std::gcd(of(1), of(2));
  return 1;
}

/// acquire and load_async of every site in `sites` for the step whose induction value is `iv`.
static void emitLoads(OpBuilder &builder, scf::ForOp loop, ArrayRef<Site *> sites, Value iv) {
  for (Site *site : sites) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), iv);
    for (Operation *op : site->slice)
      builder.clone(*op, mapping);
    Location loc = site->load.getLoc();
    auto slot = cast<PipelineType>(site->pipeline.getType()).getSlot();
    Value stage = ProducerAcquireOp::create(builder, loc, slot, site->pipeline);
    auto copy = LoadAsyncOp::create(builder, loc, mapping.lookupOrDefault(site->load.getView()),
                                    mapping.lookupOrDefault(site->load.getRow()), stage, site->pipeline);
    if (site->divisor != 1)
      copy->setAttr(kRowDivisor, builder.getI64IntegerAttr(site->divisor));
  }
}

/// `if (iv < upper bound) { load }` for each site: the loop runs forward, so a step exists when its induction value is
/// in range. Each load has a guard of its own: behind a guard its cp.async group is counted whether it ran or not.
static void emitGuardedLoads(OpBuilder &builder, scf::ForOp loop, ArrayRef<Site *> sites, Value iv) {
  Location loc = loop.getLoc();
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iv, loop.getUpperBound());
  for (Site *site : sites) {
    auto guard = scf::IfOp::create(builder, loc, exists, /*withElseRegion=*/false);
    OpBuilder inner = guard.getThenBodyBuilder();
    emitLoads(inner, loop, {site}, iv);
  }
}

static Value stepsAfter(OpBuilder &builder, scf::ForOp loop, Value iv, int64_t steps) {
  if (steps == 0)
    return iv;
  Location loc = loop.getLoc();
  Value n = arith::ConstantIndexOp::create(builder, loc, steps);
  Value distance = arith::MulIOp::create(builder, loc, loop.getStep(), n);
  return arith::AddIOp::create(builder, loc, iv, distance);
}

/// Moves reads of stages, and what is made of them in registers, down to their uses: V is wanted after the softmax, and
/// would only fill registers before.
static void sinkLocalLoads(scf::ForOp loop) {
  Block *body = loop.getBody();
  if (containsOp<LocalStoreOp>(loop))
    return;
  DenseSet<Operation *> follows;
  SmallVector<Operation *> order;
  for (Operation &op : *body) {
    bool moves = isa<LocalLoadOp>(op);
    if (isa<MapOp, SliceOp, ConcatOp, SwapPairsOp, ConvertLayoutOp>(op))
      moves = llvm::any_of(op.getOperands(), [&](Value v) { return follows.contains(v.getDefiningOp()); });
    if (moves && follows.insert(&op).second)
      order.push_back(&op);
  }
  for (Operation *op : llvm::reverse(order)) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *at = ancestorIn(body, user);
      if (at && (!first || at->isBeforeInBlock(first)))
        first = at;
    }
    if (first && first != body->getTerminator())
      op->moveBefore(first);
  }
}

/// Rewrites the loads of one loop. Returns their number, or failure with an error emitted.
static FailureOr<int64_t> multibufferLoop(scf::ForOp loop, KernelOp kernel, int64_t stages, bool prefetch) {
  Block *body = loop.getBody();
  sinkLocalLoads(loop);
  SmallVector<Site> sites;
  for (auto load : body->getOps<LoadOp>()) {
    if (!isa<SmemType>(load.getResult().getType()))
      continue;
    Site site{load, {}, {}};
    site.order = sites.size();
    site.divisor = knownDivisor(load.getRow(), kernel);
    findUses(load.getResult(), body, site.firstUse, site.lastUse);
    if (!site.firstUse)
      continue;
    if (site.lastUse == body->getTerminator())
      return load.emitOpError()
             << "hands its tile to the next step of the loop, expected one that is used within its step";
    llvm::SetVector<Operation *> slice;
    if (prefetch && (!backwardSlice(load.getRow(), loop, slice) || !backwardSlice(load.getView(), loop, slice)))
      return load.emitOpError()
             << "has a row that depends on carried values or memory, expected arithmetic on the loop's "
                "counter: it cannot be loaded ahead";
    site.slice = llvm::to_vector(slice);
    sites.push_back(site);
  }
  if (sites.empty())
    return 0;
  llvm::sort(sites, [](const Site &a, const Site &b) {
    return a.firstUse == b.firstUse ? a.order < b.order : a.firstUse->isBeforeInBlock(b.firstUse);
  });

  OpBuilder top = OpBuilder::atBlockBegin(&kernel.getBody().front());
  SmallVector<Site *> order;
  for (Site &site : sites) {
    auto type = PipelineType::get(stages, cast<SmemType>(site.load.getResult().getType()));
    site.pipeline =
        PipelineOp::create(top, site.load.getLoc(), type, /*chain=*/Value(), /*producers=*/1, /*consumers=*/1);
    order.push_back(&site);
  }

  int64_t distance = prefetch ? stages - 1 : 0, count = sites.size();
  OpBuilder before(loop);
  for (int64_t step = 0; step < distance; ++step) {
    Value iv = stepsAfter(before, loop, loop.getLowerBound(), step);
    emitGuardedLoads(before, loop, order, iv);
  }
  for (auto [index, site] : llvm::enumerate(sites)) {
    OpBuilder builder(site.firstUse);
    Location loc = site.load.getLoc();
    if (distance == 0)
      emitLoads(builder, loop, {&site}, loop.getInductionVar());
    auto slot = cast<PipelineType>(site.pipeline.getType()).getSlot();
    auto wait = ConsumerWaitOp::create(builder, loc, TypeRange(Type(slot)), site.pipeline);
    if (distance > 0) {
      // Loads younger than the one waited for: those of `distance` steps of all sites, without this site's own.
      wait->setAttr("tile.in_flight", builder.getI64IntegerAttr(count * distance - 1));
      Value next = stepsAfter(builder, loop, loop.getInductionVar(), distance);
      emitGuardedLoads(builder, loop, {&site}, next);
    }
    site.load.getResult().replaceAllUsesWith(wait.getSlot());
    builder.setInsertionPointAfter(site.lastUse);
    ConsumerReleaseOp::create(builder, loc, site.pipeline);
    site.load.erase();
  }

  // A plain load that only the loop needs (Q) waits while the first keys are already on their way, and with it what is
  // made of the stage.
  SmallVector<LoadOp> plain;
  for (auto load : loop->getBlock()->getOps<LoadOp>())
    if (isa<SmemType>(load.getResult().getType()) && load->isBeforeInBlock(loop))
      plain.push_back(load);
  for (LoadOp load : plain) {
    SmallVector<Operation *> late = {load};
    bool only = true;
    for (size_t i = 0; i < late.size(); ++i)
      for (Operation *user : late[i]->getUsers()) {
        Operation *at = ancestorIn(loop->getBlock(), user);
        if (at == user && isa<TransformOp, LocalLoadOp>(user) && user->isBeforeInBlock(loop))
          late.push_back(user);
        else
          only &= at && (at == loop || loop->isBeforeInBlock(at));
      }
    for (Operation *op : late)
      if (only)
        op->moveBefore(loop);
  }
  return count;
}

namespace {
struct TileMultibufferPass : public tile::impl::TileMultibufferPassBase<TileMultibufferPass> {
  using TileMultibufferPassBase::TileMultibufferPassBase;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    attn::ConfigAttr config = requireConfig(kernel);
    if (!config || failed(checkLevel(kernel, Level::Logical, "its loads are in pipelines already")))
      return signalPassFailure();
    int64_t stages = config.getStages();
    if (stages < 1 || stages > 8) {
      kernel.emitOpError() << "has " << stages << " stages, expected 1 to 8";
      return signalPassFailure();
    }
    for (scf::ForOp loop : getLoops(kernel)) {
      FailureOr<int64_t> count = multibufferLoop(loop, kernel, stages, prefetch);
      if (failed(count))
        return signalPassFailure();
      numPipelines += *count;
    }
    kernel.setLevel(Level::Pipelined);
  }
};
} // namespace
