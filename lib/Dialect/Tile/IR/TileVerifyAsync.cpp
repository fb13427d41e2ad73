//===- TileVerifyAsync.cpp - verifiers of the order of asynchronous ops ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// R1 to R4: what can be seen in the program text. The tile interpreter checks
// the rest on a run.
//
//===----------------------------------------------------------------------===//

#include "TileVerify.h"

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::rules;

/// The await that ends the chain of dots that `dot` belongs to, or null.
static AwaitOp getAwait(DotAsyncOp dot) {
  while (dot && dot.getResult().hasOneUse()) {
    Operation *user = *dot.getResult().user_begin();
    if (auto await = dyn_cast<AwaitOp>(user))
      return await;
    dot = dyn_cast<DotAsyncOp>(user);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// R1: a pending has one use, in its block, and awaits come in issue order
//===----------------------------------------------------------------------===//

static LogicalResult verifyPendingIn(Block &block) {
  SmallVector<Value> inFlight;
  for (Operation &op : block) {
    for (Value operand : op.getOperands()) {
      if (!isa<PendingType>(operand.getType()))
        continue;
      if (!isa<AwaitOp, DotAsyncOp>(op))
        return fail(&op, "R1") << "uses a pending accumulator, which only tile.await and tile.dot_async may";
      if (isa<DotAsyncOp>(op) && operand != cast<DotAsyncOp>(op).getAcc())
        return fail(&op, "R1") << "uses a pending accumulator as an operand of the product";
      auto it = llvm::find(inFlight, operand);
      if (it == inFlight.end())
        return fail(&op, "R1") << "uses a pending accumulator that this block has not issued";
      if (isa<AwaitOp>(op) && it != inFlight.begin()) {
        auto diag = fail(&op, "R1") << "waits for an accumulator before an older one, expected issue order";
        diag.attachNote(inFlight.front().getLoc()) << "this one was issued before";
        return diag;
      }
      inFlight.erase(it);
    }
    if (auto dot = dyn_cast<DotAsyncOp>(op)) {
      if (!dot.getResult().hasOneUse())
        return fail(&op, "R1") << "has " << llvm::range_size(dot.getResult().getUses())
                               << " uses of its pending accumulator, expected one";
      inFlight.push_back(dot.getResult());
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (failed(verifyPendingIn(inner)))
          return failure();
  }
  return success();
}

LogicalResult rules::verifyPending(KernelOp kernel) { return verifyPendingIn(kernel.getBody().front()); }

//===----------------------------------------------------------------------===//
// R2: no use of a slot after its release, no dot on it in flight at its release
//===----------------------------------------------------------------------===//

/// The slot, the parts of it, and what it is rewritten to.
static SmallVector<Value> getParts(Value slot) {
  SmallVector<Value> parts = {slot};
  for (size_t i = 0; i < parts.size(); ++i)
    for (Operation *user : parts[i].getUsers()) {
      if (auto part = dyn_cast<SubviewOp>(user))
        parts.push_back(part.getResult());
      else if (auto transform = dyn_cast<TransformOp>(user); transform && transform.isInPlace())
        parts.push_back(transform.getResult());
    }
  return parts;
}

/// `release` gives back the slot that `wait` has taken; both stand in one block.
static LogicalResult verifyReleased(ConsumerWaitOp wait, Operation *release) {
  Block *block = release->getBlock();
  for (Value part : getParts(wait.getSlot()))
    for (Operation *user : part.getUsers()) {
      Operation *here = block->findAncestorOpInBlock(*user);
      if (!here)
        continue;
      Operation *end = here;
      if (auto dot = dyn_cast<DotAsyncOp>(user))
        if (AwaitOp await = getAwait(dot))
          end = block->findAncestorOpInBlock(*await);
      if (!end->isBeforeInBlock(release)) {
        InFlightDiagnostic diag = here->isBeforeInBlock(release)
                                      ? fail(user, "R2")
                                            << "reads a slot that is released before the product has been awaited"
                                      : fail(user, "R2") << "uses a slot after its release";
        diag.attachNote(release->getLoc()) << "the slot is released here";
        return diag;
      }
    }
  return success();
}

/// The pipeline whose oldest waited stage `op` gives away: a release, or a commit to the pipeline that chains it.
static Value getReleased(Operation *op) {
  if (auto release = dyn_cast<ConsumerReleaseOp>(op))
    return release.getPipeline();
  if (auto commit = dyn_cast<CommitOp>(op))
    if (auto pipeline = commit.getPipeline().getDefiningOp<PipelineOp>())
      return pipeline.getChain();
  return {};
}

static LogicalResult verifySlotsIn(Block &block) {
  llvm::MapVector<Value, SmallVector<ConsumerWaitOp>> held;
  for (Operation &op : block) {
    if (auto wait = dyn_cast<ConsumerWaitOp>(op); wait && !wait.getObserves()) {
      held[wait.getPipeline()].push_back(wait);
    } else if (Value pipeline = getReleased(&op)) {
      // A release without a wait of this block gives back a stage of an enclosing one.
      auto &waits = held[pipeline];
      if (waits.empty())
        continue;
      if (failed(verifyReleased(waits.front(), &op)))
        return failure();
      waits.erase(waits.begin());
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (failed(verifySlotsIn(inner)))
          return failure();
  }
  return success();
}

LogicalResult rules::verifySlots(KernelOp kernel) { return verifySlotsIn(kernel.getBody().front()); }

//===----------------------------------------------------------------------===//
// R4: acquires = loads and commits, waits = releases, on every path of a role
//===----------------------------------------------------------------------===//

namespace {
/// Stages that a role has acquired and not yet filled, waited for and not yet given away; per pipeline.
using Balance = llvm::MapVector<Value, std::pair<int64_t, int64_t>>;
} // namespace

static bool isZero(const Balance &balance) {
  return llvm::all_of(balance, [](auto &entry) { return entry.second == std::pair<int64_t, int64_t>(0, 0); });
}
static bool isSame(const Balance &a, const Balance &b) {
  Balance difference = a;
  for (auto &[pipeline, count] : b) {
    difference[pipeline].first -= count.first;
    difference[pipeline].second -= count.second;
  }
  return isZero(difference);
}
static void add(Balance &to, const Balance &from) {
  for (auto &[pipeline, count] : from) {
    to[pipeline].first += count.first;
    to[pipeline].second += count.second;
  }
}

static LogicalResult countIn(Region &region, Balance &balance);

/// A role that waits for a pipeline only to read its words: it gives back the slots by the pipeline that chains it.
static bool isObserver(ConsumerWaitOp wait) {
  if (wait.getObserves())
    return true;
  auto role = wait->getParentOfType<RoleOp>();
  for (Operation *user : wait.getPipeline().getUsers())
    if (auto chained = dyn_cast<PipelineOp>(user))
      return role && llvm::any_of(chained.getResult().getUsers(), [&](Operation *other) {
               return isa<ConsumerReleaseOp>(other) && role->isAncestor(other);
             });
  return false;
}

static bool isChained(Value pipeline) {
  auto op = pipeline.getDefiningOp<PipelineOp>();
  return op && op.getChain();
}

static LogicalResult countOp(Operation &op, Balance &balance) {
  if (auto acquire = dyn_cast<ProducerAcquireOp>(op))
    balance[acquire.getPipeline()].first += !isChained(acquire.getPipeline());
  else if (auto load = dyn_cast<LoadAsyncOp>(op))
    --balance[load.getPipeline()].first;
  else if (auto wait = dyn_cast<ConsumerWaitOp>(op))
    balance[wait.getPipeline()].second += !isObserver(wait);
  else if (Value pipeline = getReleased(&op))
    --balance[pipeline].second;
  else if (auto commit = dyn_cast<CommitOp>(op))
    --balance[commit.getPipeline()].first;
  if (isa<RolesOp, MapOp, MaskOp, TransformOp>(op) || op.getNumRegions() == 0)
    return success(); // roles are counted one by one
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Balance then, other;
    if (failed(countIn(branch.getThenRegion(), then)) || failed(countIn(branch.getElseRegion(), other)))
      return failure();
    if (!isSame(then, other))
      return fail(&op, "R4") << "leaves different numbers of stages acquired or waited for on its two paths";
    add(balance, then);
    return success();
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    Balance before, after;
    if (failed(countIn(loop.getBefore(), before)) || failed(countIn(loop.getAfter(), after)))
      return failure();
    add(after, before);
    if (!isZero(after))
      return fail(&op, "R4") << "does not give back in each iteration as many stages as it takes";
    add(balance, before);
    return success();
  }
  for (Region &region : op.getRegions()) {
    Balance inner;
    if (failed(countIn(region, inner)))
      return failure();
    if (!isZero(inner))
      return fail(&op, "R4") << "does not give back in each iteration as many stages as it takes";
  }
  return success();
}

static LogicalResult countIn(Region &region, Balance &balance) {
  for (Block &block : region)
    for (Operation &op : block)
      if (failed(countOp(op, balance)))
        return failure();
  return success();
}

static LogicalResult verifyProgram(Operation *program, Region &region) {
  Balance balance;
  if (failed(countIn(region, balance)))
    return failure();
  for (auto &[pipeline, count] : balance) {
    // The last stage of a stream with words may be a message that there is no more.
    bool end = count.second == 1 && cast<PipelineType>(pipeline.getType()).getWords();
    if (count.first == 0 && (count.second == 0 || end))
      continue;
    auto diag = fail(program, "R4") << (count.first ? "acquires and fills" : "waits for and gives back")
                                    << " different numbers of stages of a pipeline";
    diag.attachNote(pipeline.getLoc()) << "the pipeline is this one";
    return diag;
  }
  return success();
}

LogicalResult rules::verifyBalance(KernelOp kernel) {
  WalkResult result = kernel.getBody().walk([&](RoleOp role) {
    return failed(verifyProgram(role, role.getBody())) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return verifyProgram(kernel, kernel.getBody());
}

//===----------------------------------------------------------------------===//
// R3: the registers of A of a product in flight are not written
//===----------------------------------------------------------------------===//

/// The next value of a carried value, or null when `arg` is not carried by a loop.
static Value getNext(BlockArgument arg) {
  Operation *parent = arg.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    OpOperand *yielded = loop.getTiedLoopYieldedValue(arg);
    return yielded ? yielded->get() : Value();
  }
  if (auto loop = dyn_cast<scf::WhileOp>(parent); loop && arg.getOwner() == loop.getAfterBody()) {
    // The value of the next iteration passes through the condition; follow it only when it is passed on unchanged.
    auto before = dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[arg.getArgNumber()]);
    if (before && before.getOwner() == loop.getBeforeBody())
      return loop.getYieldOp().getOperand(before.getArgNumber());
  }
  return {};
}

/// Where the path through `await` computes `value` in `loop`, if that is before the await.
static Operation *getEarlyWrite(Value value, AwaitOp await, Operation *loop) {
  while (Operation *def = value.getDefiningOp()) {
    if (!loop->isProperAncestor(def))
      return nullptr;
    Operation *here = def->getBlock()->findAncestorOpInBlock(*await);
    if (!here)
      return nullptr;
    if (here != def)
      return def->isBeforeInBlock(here) ? def : nullptr;
    auto branch = dyn_cast<scf::IfOp>(def);
    if (!branch)
      return nullptr;
    unsigned number = cast<OpResult>(value).getResultNumber();
    Region &region =
        branch.getThenRegion().isAncestor(await->getParentRegion()) ? branch.getThenRegion() : branch.getElseRegion();
    value = region.front().getTerminator()->getOperand(number);
  }
  return nullptr;
}

LogicalResult rules::verifyCarriedOperands(KernelOp kernel) {
  WalkResult result = kernel.getBody().walk([&](DotAsyncOp dot) -> WalkResult {
    auto carried = dyn_cast<BlockArgument>(dot.getA());
    if (!carried || !isa<RegType>(carried.getType()))
      return WalkResult::advance();
    Value next = getNext(carried);
    AwaitOp await = getAwait(dot);
    if (!next || next == carried || !await)
      return WalkResult::advance();
    if (Operation *write = getEarlyWrite(next, await, carried.getOwner()->getParentOp())) {
      auto diag = fail(write, "R3") << "computes the next value of registers that a product in flight still reads; "
                                    << "move it behind the await";
      diag.attachNote(dot.getLoc()) << "this product reads them";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
