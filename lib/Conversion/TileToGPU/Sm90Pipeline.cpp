//===- Sm90Pipeline.cpp - rings of stages with mbarriers ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pipeline has a full and an empty barrier per stage. Full completes when the
// loads of the stage have landed (or each committing warp has arrived), empty
// when every warp of every consumer has arrived. The k-th use of a role takes
// stage k mod N; a barrier's parity is (k / N) mod 2. Arrivals have no
// qualifiers: a release at cluster scope would put a memory barrier into the
// key loop.
//
// Of a gather each thread's copies arrive when they have landed, so its role
// never waits for memory and has as many stages in flight as are free. Such
// copies are writes of the generic proxy, and products and bulk copies read through
// the async one: the proxy fence stands between the wait and the read, on the
// path from every write to every read (PTX ISA, memory consistency model,
// proxy-preserved base causality order). In the writing thread it would have to
// come behind a wait for the copies, that is for memory, once a stage.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;

static constexpr int64_t kTicks = 10000000;

static void waitBarrier(Emitter &e, Value pointer, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(e.b, e.loc, pointer, parity, e.c32(kTicks));
}

/// The barrier of a stage: `first` + 8 * stage.
static Value barrierAt(Emitter &e, int64_t first, Value stage) { return e.smemPointer(e.mul(stage, e.c32(8)), first); }

/// One arrival per warp (lane 0), or per role of one thread.
static void arrive(Emitter &e, Value barrier) {
  Value predicate = e.group.single ? Value() : e.group.laneIsZero;
  NVVM::InlinePtxOp::create(e.b, e.loc, TypeRange(), ValueRange(barrier), ValueRange(),
                            e.b.getStringAttr("mbarrier.arrive.shared.b64 _, [$0];"), predicate);
}

/// A hardware barrier has a turn's group waiting and the group before it arriving.
void Emitter::takeTurn() {
  NVVM::InlinePtxOp::create(b, loc, TypeRange(),
                            ValueRange{add(group.number, c32(group.turns)), c32(2 * 32 * group.warps)}, ValueRange(),
                            b.getStringAttr("bar.sync $0, $1;"), Value());
}
void Emitter::passTurn() {
  Value last = compare(LLVM::ICmpPredicate::eq, group.number, c32(group.groups - 1));
  Value next = select(last, c32(group.turns), add(group.number, c32(group.turns + 1)));
  NVVM::InlinePtxOp::create(b, loc, TypeRange(), ValueRange{next, c32(2 * 32 * group.warps)}, ValueRange(),
                            b.getStringAttr("bar.arrive $0, $1;"), Value());
}
void Emitter::grantFirstTurn() {
  Value last = compare(LLVM::ICmpPredicate::eq, group.number, c32(group.groups - 1));
  NVVM::InlinePtxOp::create(b, loc, TypeRange(), ValueRange{c32(group.turns), c32(2 * 32 * group.warps)}, ValueRange(),
                            b.getStringAttr("bar.arrive $0, $1;"), last);
}

static RoleOp roleOf(Operation *op) { return op->getParentOfType<RoleOp>(); }

/// Arrivals of a role on a barrier that all its warps signal.
static int64_t arrivalsOf(RoleOp role) {
  bool tiles = role.walk([](Operation *op) {
                     auto spread = [](Type type) { return isa<RegType, PendingType>(type); };
                     bool any = isa<FillRowsOp>(op) || llvm::any_of(op->getOperandTypes(), spread) ||
                                llvm::any_of(op->getResultTypes(), spread);
                     if (auto load = dyn_cast<LoadAsyncOp>(op))
                       any |= isGather(load) || load.getView().getType().isPaged();
                     return any ? WalkResult::interrupt() : WalkResult::advance();
                   })
                   .wasInterrupted();
  bool single = role.getWarps() == 1 && role.getGroups() == 1 && !tiles;
  return single ? 1 : role.getGroups() * role.getWarps();
}

/// Whether the role reads its stages through the async proxy.
static bool readsAsync(RoleOp role) {
  auto isAsync = [](Operation *op) {
    return isa<DotAsyncOp, StoreAsyncOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return role.walk(isAsync).wasInterrupted();
}

static LogicalResult emitPipeline(Emitter &e, PipelineOp op) {
  auto pipeline = std::make_unique<Pipeline>();
  pipeline->op = op;
  pipeline->type = op.getResult().getType();
  auto slots = op->getAttrOfType<IntegerAttr>(kSharedOffset), barriers = op->getAttrOfType<IntegerAttr>(kBarrierOffset);
  auto words = op->getAttrOfType<IntegerAttr>(kWordsOffset);
  if (!slots || !barriers || (pipeline->type.getWords() && !words))
    return op.emitOpError() << "has no place in shared memory, run tile-allocate-shared first";
  int64_t stages = pipeline->type.getStages();
  SmemType slot = pipeline->type.getSlot();
  pipeline->slots = slots.getInt();
  pipeline->slotStride = llvm::alignTo(slot.getBytes(), slot.getLayout() ? 1024 : 128);
  pipeline->full = barriers.getInt();
  pipeline->empty = pipeline->full + 8 * stages;
  pipeline->words = words ? words.getInt() : 0;
  pipeline->rowGroups = op->hasAttr(kRowGroups);
  if (op.getChain()) {
    pipeline->chain = &e.pipeline(op.getChain());
    pipeline->chain->chained = pipeline.get();
    assert(pipeline->chain->type.getStages() == stages && "pipeline_c4 refuses another number of stages");
    pipeline->slots = pipeline->chain->slots;
    pipeline->slotStride = pipeline->chain->slotStride;
    pipeline->rowGroups = pipeline->chain->rowGroups;
  }

  // Who signals: found from the uses, the counts written on the op are checked against them.
  llvm::SmallSetVector<Operation *, 4> committers, releasers, loaders;
  for (Operation *user : op.getResult().getUsers()) {
    Operation *role = roleOf(user);
    if (!role)
      if (isa<ProducerAcquireOp, ConsumerWaitOp, ConsumerReleaseOp, CommitOp, LoadAsyncOp>(user))
        return user->emitOpError() << "is outside the roles of a specialised kernel";
    if (isa<CommitOp>(user))
      committers.insert(role);
    else if (auto load = dyn_cast<LoadAsyncOp>(user)) {
      loaders.insert(role);
      pipeline->gathered = isGather(load);
    } else if (isa<ConsumerReleaseOp>(user))
      releasers.insert(role);
  }
  int64_t fullCount = 0, emptyCount = 0;
  for (Operation *role : committers)
    if (!loaders.contains(role))
      fullCount += arrivalsOf(cast<RoleOp>(role));
  // One arrival that announces the bytes, or one of each thread that copies.
  for (Operation *role : loaders)
    fullCount += pipeline->gathered ? 32 * cast<RoleOp>(role).getWarps() : 1;
  if (loaders.size() > 1)
    return op.emitOpError() << "is loaded by several roles, expected one";
  for (Operation *role : releasers)
    emptyCount += arrivalsOf(cast<RoleOp>(role));
  if (fullCount == 0)
    return op.emitOpError() << "is never filled: expected tile.load_async or tile.commit";
  // Stages that nobody gives back are handed on, else roles_c6 has refused the pipeline.
  pipeline->arrivals = {fullCount, emptyCount};
  e.pipelines.insert({op.getResult(), std::move(pipeline)});
  return success();
}

/// Barriers are initialised by one thread before the roles part.
static LogicalResult emitRolesWithBarriers(Emitter &e, RolesOp op) {
  Block *init = e.newBlock(), *rest = e.newBlock();
  LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::eq, e.tid, e.c32(0)), init, ValueRange(), rest,
                         ValueRange());
  e.enter(init);
  for (auto &entry : e.pipelines) {
    Pipeline &p = *entry.second;
    for (int64_t i = 0; i < p.type.getStages(); ++i) {
      NVVM::MBarrierInitOp::create(e.b, e.loc, e.sharedPtr(p.full + 8 * i), e.c32(p.arrivals.first), Value());
      // A chained pipeline frees the stages of the one it is chained to.
      int64_t empties = p.chained ? p.chained->arrivals.second : p.arrivals.second;
      if (!p.chain)
        NVVM::MBarrierInitOp::create(e.b, e.loc, e.sharedPtr(p.empty + 8 * i), e.c32(empties), Value());
    }
  }
  NVVM::FenceMbarrierInitOp::create(e.b, e.loc);
  LLVM::BrOp::create(e.b, e.loc, ValueRange(), rest);
  e.enter(rest);
  NVVM::Barrier0Op::create(e.b, e.loc);
  return emitRoles(e, op);
}

LogicalResult tile::checkPanels(Operation *op, const Smem &s) {
  if (s.rowGroups)
    return op->emitOpError() << "reads or writes a stage by groups of rows, expected whole panels; drop '" << kRowGroups
                             << "' of its pipeline";
  return success();
}

static Smem slotAt(Emitter &e, Pipeline &p, Value stage) {
  Smem s;
  s.type = s.whole = p.type.getSlot();
  s.base = p.slots;
  s.stage = p.type.getStages() == 1 ? Value() : e.mul(stage, e.c32(p.slotStride));
  s.pipeline = p.op.getResult();
  s.rowGroups = p.rowGroups;
  return s;
}

static LogicalResult emitAcquire(Emitter &e, ProducerAcquireOp op) {
  Pipeline &p = e.pipeline(op.getPipeline());
  if (p.chain)
    return op.emitOpError() << "is of a chained pipeline, whose stages come from waiting for the one it is chained to";
  // Page lookups of the load that fills the stage are under way while it waits.
  for (Operation *user : op.getSlot().getUsers())
    if (auto load = dyn_cast<LoadAsyncOp>(user); load && load.getView().getType().isPaged() &&
                                                 e.views.contains(load.getView()) &&
                                                 e.indices.contains(load.getRow())) {
      if (!isGather(load))
        lookUpPages(e, load);
      else if (failed(lookUpRows(e, load)))
        return failure();
    }
  Index &k = e.counter(op.getPipeline(), Counter::Acquire);
  auto [stage, parity] = e.ringStage(k, p.type.getStages());
  waitBarrier(e, barrierAt(e, p.empty, stage), e.bitXor(parity, e.c32(1)));
  e.smems[op.getSlot()] = slotAt(e, p, stage);
  k.offset += 1;
  return success();
}

/// The stage that the role acquired last.
static Value lastAcquired(Emitter &e, Value pipeline) {
  Index k = e.counter(pipeline, Counter::Acquire);
  k.offset -= 1;
  return e.ringStage(k, e.pipeline(pipeline).type.getStages()).first;
}
Value tile::fullBarrierOfAcquired(Emitter &e, Value pipeline) {
  return barrierAt(e, e.pipeline(pipeline).full, lastAcquired(e, pipeline));
}

static LogicalResult emitSend(Emitter &e, SendOp op) {
  Pipeline &p = e.pipeline(op.getPipeline());
  assert(static_cast<int64_t>(op.getWords().size()) <= p.type.getWords() && "send_c1 refuses more words");
  Value stage = lastAcquired(e, op.getPipeline());
  Value offset = e.mul(stage, e.c32(4 * p.type.getWords()));
  // Stored by the lane that arrives on the barrier afterwards: its own stores are ordered before that.
  Value predicate = e.group.single ? Value() : e.group.laneIsZero;
  for (auto [i, word] : llvm::enumerate(op.getWords()))
    NVVM::InlinePtxOp::create(e.b, e.loc, TypeRange(),
                              ValueRange{e.smemPointer(offset, p.words + 4 * i), e.narrow(e.index(word))}, ValueRange(),
                              e.b.getStringAttr("st.shared.b32 [$0], $1;"), predicate);
  return success();
}

static LogicalResult emitCommit(Emitter &e, CommitOp op) {
  Pipeline &p = e.pipeline(op.getPipeline());
  if (!e.group.single) {
    // What the lanes stored is for bulk copies or other warps' tensor cores.
    NVVM::FenceProxyOp::create(e.b, e.loc, NVVM::ProxyKind::async_shared,
                               NVVM::SharedSpaceAttr::get(e.context, NVVM::SharedSpace::shared_cta));
    NVVM::SyncWarpOp::create(e.b, e.loc, e.c32(-1));
  }
  if (p.chain)
    e.counter(op.getPipeline(), Counter::Acquire).offset += 1;
  arrive(e, barrierAt(e, p.full, lastAcquired(e, op.getPipeline())));
  return success();
}

static LogicalResult emitWait(Emitter &e, ConsumerWaitOp op) {
  Pipeline &p = e.pipeline(op.getPipeline());
  Index &k = e.counter(op.getPipeline(), Counter::Wait);
  auto [stage, parity] = e.ringStage(k, p.type.getStages());
  waitBarrier(e, barrierAt(e, p.full, stage), parity);
  if (p.gathered && readsAsync(roleOf(op)))
    NVVM::FenceProxyOp::create(e.b, e.loc, NVVM::ProxyKind::async_shared,
                               NVVM::SharedSpaceAttr::get(e.context, NVVM::SharedSpace::shared_cta));
  e.smems[op.getSlot()] = slotAt(e, p, stage);
  if (!op.getWords().empty()) {
    Value offset = e.mul(stage, e.c32(4 * p.type.getWords()));
    for (auto [i, word] : llvm::enumerate(op.getWords())) {
      if (word.use_empty())
        continue;
      e.indices[word] = {
          LLVM::LoadOp::create(e.b, e.loc, e.i32, e.smemPointer(offset, p.words + 4 * i), 4, /*isVolatile=*/true), 0};
    }
  }
  k.offset += 1;
  p.waiting += !op.getObserves();
  return success();
}

static LogicalResult emitRelease(Emitter &e, ConsumerReleaseOp op) {
  Pipeline &p = e.pipeline(op.getPipeline());
  assert(!p.chained && "release_c1 refuses a pipeline whose stages are handed on");
  if (p.waiting < 1)
    return op.emitOpError() << "has no stage to release, expected tile.consumer_wait before it";
  Index k = e.counter(op.getPipeline(), Counter::Wait);
  k.offset -= p.waiting;
  p.waiting -= 1;
  Value stage = e.ringStage(k, p.type.getStages()).first;
  Pipeline &owner = p.chain ? *p.chain : p;
  arrive(e, barrierAt(e, owner.empty, stage));
  return success();
}

void tile::populateSm90Pipeline(Emitter &e) {
  e.on<PipelineOp>(emitPipeline);
  e.on<RolesOp>(emitRolesWithBarriers);
  e.on<ProducerAcquireOp>(emitAcquire);
  e.on<SendOp>(emitSend);
  e.on<CommitOp>(emitCommit);
  e.on<ConsumerWaitOp>(emitWait);
  e.on<ConsumerReleaseOp>(emitRelease);
}
