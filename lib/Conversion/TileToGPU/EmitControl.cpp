//===- EmitControl.cpp - loops, branches, inlined calls ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Structured control flow becomes blocks. Results of loops are the arguments
// of their header, which dominates what follows, so no other block gets any.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;

void tile::branchBack(Emitter &e, Block *header, ValueRange operands) {
  auto br = LLVM::BrOp::create(e.b, e.loc, operands, header);
  auto unroll = LLVM::LoopUnrollAttr::get(e.context, /*disable=*/e.b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  br.setLoopAnnotationAttr(
      LLVM::LoopAnnotationAttr::get(e.context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

/// Stages in flight at the header of a loop are those in flight at its end.
static LogicalResult sameWaiting(Emitter &e, Operation *op, ArrayRef<int64_t> before) {
  for (auto [entry, n] : llvm::zip_equal(e.pipelines, before))
    if (entry.second->waiting != n && !entry.second->chained)
      return op->emitError() << "holds " << entry.second->waiting << " stages of a pipeline at its end and " << n
                             << " at its start, expected as many waits as releases";
  return success();
}
static SmallVector<int64_t> waitingNow(Emitter &e) {
  SmallVector<int64_t> out;
  for (auto &entry : e.pipelines)
    out.push_back(entry.second->waiting);
  return out;
}

/// Nothing may be in flight over a branch.
static LogicalResult landed(Emitter &e, Operation *op) {
  if (!e.inFlight.empty())
    return op->emitError() << "begins or ends while an accumulator is pending, await it before";
  return success();
}

LogicalResult tile::emitFor(Emitter &e, scf::ForOp loop) {
  if (failed(landed(e, loop)))
    return failure();
  auto plan = e.planCounters(loop);
  SmallVector<Type> types;
  bool overIndex = loop.getInductionVar().getType().isIndex();
  Type ivType = overIndex ? e.i32 : loop.getInductionVar().getType();
  Value lower, upper, step;
  if (overIndex) {
    lower = e.narrow(e.index(loop.getLowerBound()));
    upper = e.narrow(e.index(loop.getUpperBound()));
    step = e.narrow(e.index(loop.getStep()));
  } else {
    lower = e.scalar(loop.getLowerBound());
    upper = e.scalar(loop.getUpperBound());
    step = e.scalar(loop.getStep());
  }
  types.push_back(ivType);
  Regs init = {lower};
  for (auto [arg, value] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs())) {
    if (failed(e.flatTypes(arg, types)))
      return failure();
    size_t at = init.size();
    if (failed(e.flatten(value, init)))
      return failure();
    if (e.isWide(arg) && init.size() == at + 1)
      init[at] = e.widen({init[at], 0});
  }
  types.append(plan.carried.size(), e.i32);
  e.carryOut(plan, init);
  Block *header = e.newBlock(types), *body = e.newBlock();
  SmallVector<int64_t> waiting = waitingNow(e);
  LLVM::BrOp::create(e.b, e.loc, init, header);
  e.enter(header);
  Value iv = header->getArgument(0);
  SmallVector<Value> all(header->args_begin(), header->args_end());
  ArrayRef<Value> in = ArrayRef<Value>(all).drop_front();
  if (overIndex)
    e.indices[loop.getInductionVar()] = {iv, 0};
  else
    e.scalars[loop.getInductionVar()] = iv;
  for (BlockArgument arg : loop.getRegionIterArgs())
    (void)e.bind(arg, in);
  e.carryIn(plan, in);
  auto atHeader = e.counters;
  auto below = loop.getUnsignedCmp() ? LLVM::ICmpPredicate::ult : LLVM::ICmpPredicate::slt;
  Value more = e.compare(below, iv, upper);
  // The exit comes after the body in the list, for reading's sake.
  Block *exit = new Block();
  LLVM::CondBrOp::create(e.b, e.loc, more, body, ValueRange(), exit, ValueRange());
  e.enter(body);
  if (failed(e.emitBlock(*loop.getBody()))) {
    e.region->push_back(exit);
    return failure();
  }
  auto finish = [&]() -> LogicalResult {
    if (failed(landed(e, loop)) || failed(sameWaiting(e, loop, waiting)))
      return failure();
    Regs back = {e.add(iv, step)};
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    for (auto [arg, value] : llvm::zip_equal(loop.getRegionIterArgs(), yield.getOperands())) {
      size_t at = back.size();
      if (failed(e.flatten(value, back)))
        return failure();
      if (e.isWide(arg) && back.size() == at + 1)
        back[at] = e.widen({back[at], 0});
    }
    e.carryOut(plan, back);
    branchBack(e, header, back);
    return success();
  };
  LogicalResult finished = finish();
  e.region->push_back(exit);
  if (failed(finished))
    return failure();
  e.enter(exit);
  e.counters = atHeader;
  in = ArrayRef<Value>(all).drop_front();
  for (Value result : loop.getResults())
    (void)e.bind(result, in);
  return success();
}

LogicalResult tile::emitWhile(Emitter &e, scf::WhileOp loop) {
  if (failed(landed(e, loop)))
    return failure();
  auto plan = e.planCounters(loop);
  SmallVector<Type> types;
  Regs init;
  for (auto [arg, value] : llvm::zip_equal(loop.getBeforeArguments(), loop.getInits())) {
    if (failed(e.flatTypes(arg, types)))
      return failure();
    size_t at = init.size();
    if (failed(e.flatten(value, init)))
      return failure();
    if (e.isWide(arg) && init.size() == at + 1)
      init[at] = e.widen({init[at], 0});
  }
  types.append(plan.carried.size(), e.i32);
  e.carryOut(plan, init);
  SmallVector<int64_t> waiting = waitingNow(e);
  Block *header = e.newBlock(types), *body = new Block(), *exit = new Block();
  LLVM::BrOp::create(e.b, e.loc, init, header);
  e.enter(header);
  SmallVector<Value> all(header->args_begin(), header->args_end());
  ArrayRef<Value> in = all;
  for (BlockArgument arg : loop.getBeforeArguments())
    (void)e.bind(arg, in);
  e.carryIn(plan, in);
  auto work = [&]() -> LogicalResult {
    if (failed(e.emitBlock(*loop.getBeforeBody())) || failed(landed(e, loop)))
      return failure();
    scf::ConditionOp condition = loop.getConditionOp();
    for (auto [arg, result, value] :
         llvm::zip_equal(loop.getAfterArguments(), loop.getResults(), condition.getArgs())) {
      if (failed(e.alias(arg, value)) || failed(e.alias(result, value)))
        return failure();
    }
    auto atExit = e.counters;
    SmallVector<int64_t> waitingAtExit = waitingNow(e);
    LLVM::CondBrOp::create(e.b, e.loc, e.scalar(condition.getCondition()), body, ValueRange(), exit, ValueRange());
    e.region->push_back(body);
    e.enter(body);
    if (failed(e.emitBlock(*loop.getAfterBody())) || failed(landed(e, loop)) || failed(sameWaiting(e, loop, waiting)))
      return failure();
    Regs back;
    for (auto [arg, value] : llvm::zip_equal(loop.getBeforeArguments(), loop.getYieldOp().getOperands())) {
      size_t at = back.size();
      if (failed(e.flatten(value, back)))
        return failure();
      if (e.isWide(arg) && back.size() == at + 1)
        back[at] = e.widen({back[at], 0});
    }
    e.carryOut(plan, back);
    branchBack(e, header, back);
    e.counters = atExit;
    for (auto [entry, n] : llvm::zip_equal(e.pipelines, waitingAtExit))
      entry.second->waiting = n;
    return success();
  };
  LogicalResult done = work();
  if (!body->getParent())
    e.region->push_back(body);
  e.region->push_back(exit);
  e.enter(exit);
  return done;
}

/// True when both arms may run, with their loads guarded: scalars of a hook.
static bool canPredicate(scf::IfOp op) {
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  return llvm::all_of(op.getResultTypes(), isScalar) &&
         !op->walk([&](Operation *inner) {
              bool known = isa<scf::IfOp, scf::YieldOp, memref::LoadOp, func::CallOp>(inner) ||
                           (inner->getNumRegions() == 0 && isMemoryEffectFree(inner));
              return known && llvm::all_of(inner->getResultTypes(), isScalar) ? WalkResult::advance()
                                                                              : WalkResult::interrupt();
            }).wasInterrupted();
}

/// Both arms without a branch, for hooks that run beside a product in flight. Integer ops of hooks are defined for all
/// operands (attn-to-tile), so only loads could tell.
static LogicalResult emitPredicated(Emitter &e, scf::IfOp op) {
  Value condition = e.scalar(op.getCondition()), outer = e.guard;
  auto arm = [&](Region &region, Value taken, Regs &out) -> LogicalResult {
    if (region.empty())
      return success();
    e.guard = outer ? e.bitAnd(outer, taken) : taken;
    LogicalResult done = e.emitBlock(region.front());
    e.guard = outer;
    if (failed(done))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op.getResults(), region.front().getTerminator()->getOperands())) {
      size_t at = out.size();
      if (failed(e.flatten(value, out)))
        return failure();
      if (e.isWide(result) && out.size() == at + 1)
        out[at] = e.widen({out[at], 0});
    }
    return success();
  };
  Regs then, other;
  Value isFalse = e.bitXor(condition, LLVM::ConstantOp::create(e.b, e.loc, e.i1, e.b.getBoolAttr(true)));
  if (failed(arm(op.getThenRegion(), condition, then)) || failed(arm(op.getElseRegion(), isFalse, other)))
    return failure();
  for (auto [value, instead] : llvm::zip(then, other))
    value = e.select(condition, value, instead);
  ArrayRef<Value> in = then;
  for (Value result : op.getResults())
    (void)e.bind(result, in);
  return success();
}

/// The arm that is taken of a branch on a settled condition.
static LogicalResult emitArm(Emitter &e, scf::IfOp op, Region &arm) {
  if (arm.empty())
    return success();
  if (failed(e.emitBlock(arm.front())))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op.getResults(), arm.front().getTerminator()->getOperands()))
    if (failed(e.alias(result, value)))
      return failure();
  return success();
}

LogicalResult tile::emitIf(Emitter &e, scf::IfOp op) {
  if (auto known = e.settled.find(op.getCondition()); known != e.settled.end())
    return emitArm(e, op, known->second ? op.getThenRegion() : op.getElseRegion());
  if ((!e.inFlight.empty() || e.guard) && canPredicate(op))
    return emitPredicated(e, op);
  if (failed(landed(e, op)))
    return failure();
  auto plan = e.planCounters(op);
  SmallVector<Type> types;
  for (Value result : op.getResults())
    if (failed(e.flatTypes(result, types)))
      return failure();
  types.append(plan.carried.size(), e.i32);
  Block *thenBlock = new Block(), *elseBlock = new Block(), *exit = new Block();
  for (Type type : types)
    exit->addArgument(type, e.loc);
  LLVM::CondBrOp::create(e.b, e.loc, e.scalar(op.getCondition()), thenBlock, ValueRange(), elseBlock, ValueRange());
  auto before = e.counters;
  SmallVector<int64_t> waiting = waitingNow(e);
  SmallVector<int64_t> waitingThen;
  // Counters that are not carried stand at a fixed distance from one that is, in both arms.
  auto arm = [&](Region &region, Block *block) -> LogicalResult {
    e.region->push_back(block);
    e.enter(block);
    e.counters = before;
    for (auto [entry, n] : llvm::zip_equal(e.pipelines, waiting))
      entry.second->waiting = n;
    Regs out;
    if (!region.empty()) {
      if (failed(e.emitBlock(region.front())) || failed(landed(e, op)))
        return failure();
      auto yield = cast<scf::YieldOp>(region.front().getTerminator());
      for (auto [result, value] : llvm::zip_equal(op.getResults(), yield.getOperands())) {
        size_t at = out.size();
        if (failed(e.flatten(value, out)))
          return failure();
        if (e.isWide(result) && out.size() == at + 1)
          out[at] = e.widen({out[at], 0});
      }
    }
    e.carryOut(plan, out);
    LLVM::BrOp::create(e.b, e.loc, out, exit);
    return success();
  };
  LogicalResult good = arm(op.getThenRegion(), thenBlock);
  waitingThen = waitingNow(e);
  if (succeeded(good))
    good = arm(op.getElseRegion(), elseBlock);
  if (!elseBlock->getParent())
    e.region->push_back(elseBlock);
  e.region->push_back(exit);
  if (failed(good) || failed(sameWaiting(e, op, waitingThen)))
    return failure();
  e.enter(exit);
  e.counters = before;
  SmallVector<Value> all(exit->args_begin(), exit->args_end());
  ArrayRef<Value> in = all;
  for (Value result : op.getResults())
    (void)e.bind(result, in);
  e.carryIn(plan, in);
  return success();
}

static LogicalResult emitCall(Emitter &e, func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return call.emitError() << "calls '" << call.getCallee() << "', which has no body here";
  if (!llvm::hasSingleElement(callee.getBody()))
    return call.emitError() << "calls '" << call.getCallee()
                            << "', which has several blocks, expected structured control flow";
  // Recursion would not end; the depth of calls is bounded by the number of functions.
  for (Operation *op = call->getParentOp(); op; op = op->getParentOp())
    if (op == callee)
      return call.emitError() << "calls '" << call.getCallee() << "' recursively";
  static constexpr int64_t kMostDepth = 32;
  thread_local int64_t depth = 0;
  if (depth >= kMostDepth)
    return call.emitError() << "calls '" << call.getCallee() << "' more than " << kMostDepth << " levels deep";
  Block &body = callee.getBody().front();
  for (auto [arg, value] : llvm::zip_equal(body.getArguments(), call.getOperands())) {
    if (isa<MemRefType>(arg.getType()))
      return call.emitError() << "passes a buffer to '" << call.getCallee()
                              << "', which is not supported; load before the call";
    if (failed(e.alias(arg, value)))
      return failure();
  }
  ++depth;
  LogicalResult done = e.emitBlock(body);
  --depth;
  if (failed(done))
    return failure();
  for (auto [result, value] : llvm::zip_equal(call.getResults(), body.getTerminator()->getOperands()))
    if (failed(e.alias(result, value)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

/// The fields of item number `at` (i32) as indices; loads do not alias anything that the kernel writes.
static void loadFields(Emitter &e, Value items, Value at, ArrayAttr fields, ValueRange values) {
  Value record =
      LLVM::GEPOp::create(e.b, e.loc, e.global, e.i8, e.itemsPointer(items),
                          ArrayRef<LLVM::GEPArg>{e.mul(LLVM::SExtOp::create(e.b, e.loc, e.i64, at), e.c64(64))});
  for (auto [field, value] : llvm::zip_equal(fields, values)) {
    if (value.use_empty())
      continue;
    StringRef name = cast<StringAttr>(field).getValue();
    Value pointer = record;
    if (int64_t offset = getItemFieldOffset(name))
      pointer =
          LLVM::GEPOp::create(e.b, e.loc, e.global, e.i8, record, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    Type type = name == "table" ? e.i64 : e.i32;
    auto load = LLVM::LoadOp::create(e.b, e.loc, type, pointer, name == "table" ? 8 : 4);
    load.setInvariant(true);
    e.indices[value] = {load, 0};
  }
}

/// First item of this CTA and the end of its list, loaded where the role begins.
static std::pair<Value, Value> itemRange(Emitter &e, Value items) {
  Value at = LLVM::GEPOp::create(e.b, e.loc, e.global, e.i32, e.itemsBounds(items), ArrayRef<LLVM::GEPArg>{e.cta});
  Value next = LLVM::GEPOp::create(e.b, e.loc, e.global, e.i32, at, ArrayRef<LLVM::GEPArg>{1});
  auto first = LLVM::LoadOp::create(e.b, e.loc, e.i32, at, 4), last = LLVM::LoadOp::create(e.b, e.loc, e.i32, next, 4);
  first.setInvariant(true);
  last.setInvariant(true);
  return {first, last};
}

LogicalResult tile::emitForEach(Emitter &e, ForEachOp op) {
  auto plan = e.planCounters(op);
  auto [first, last] = itemRange(e, op.getItems());
  SmallVector<Type> types = {e.i32};
  Regs init = {first};
  types.append(plan.carried.size(), e.i32);
  e.carryOut(plan, init);
  SmallVector<int64_t> waiting = waitingNow(e);
  Block *header = e.newBlock(types), *body = e.newBlock(), *exit = new Block();
  LLVM::BrOp::create(e.b, e.loc, init, header);
  e.enter(header);
  SmallVector<Value> all(header->args_begin(), header->args_end());
  e.carryIn(plan, ArrayRef<Value>(all).drop_front());
  auto atHeader = e.counters;
  Value at = header->getArgument(0);
  LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::slt, at, last), body, ValueRange(), exit,
                         ValueRange());
  e.enter(body);
  loadFields(e, op.getItems(), at, op.getFields(), op.getBody().getArguments());
  LogicalResult done = e.emitBlock(op.getBody().front());
  if (succeeded(done) && (failed(landed(e, op)) || failed(sameWaiting(e, op, waiting))))
    done = failure();
  if (succeeded(done)) {
    Regs back = {e.add(at, e.c32(1))};
    e.carryOut(plan, back);
    branchBack(e, header, back);
  }
  e.region->push_back(exit);
  e.enter(exit);
  e.counters = atHeader;
  return done;
}

static LogicalResult emitNextItem(Emitter &e, NextItemOp op) {
  Index &k = e.counter(op.getItems(), Counter::Item);
  // The bounds are loaded once per role: they live next to the counter.
  auto &bounds = e.itemBounds[op.getItems()];
  if (!bounds.first) {
    OpBuilder::InsertPoint here = e.toEntry(e.group.entry);
    bounds = itemRange(e, op.getItems());
    e.b.restoreInsertionPoint(here);
  }
  Value at = e.materialize(e.addIndex({bounds.first, 0}, k));
  Value some = e.compare(LLVM::ICmpPredicate::slt, at, bounds.second);
  k.offset += 1;
  e.scalars[op.getSome()] = some;
  // Past the end the last record is not there: read under a branch, zeros otherwise.
  SmallVector<Value> used;
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  for (auto [field, value] : llvm::zip_equal(op.getFields(), op.getValues()))
    if (!value.use_empty()) {
      used.push_back(value);
      names.push_back(field);
      types.push_back(cast<StringAttr>(field).getValue() == "table" ? e.i64 : e.i32);
    }
  if (used.empty())
    return success();
  Block *load = e.newBlock(), *join = e.newBlock(types);
  Regs zeros;
  for (Type type : types)
    zeros.push_back(type == e.i64 ? e.c64(0) : e.c32(0));
  LLVM::CondBrOp::create(e.b, e.loc, some, load, ValueRange(), join, zeros);
  e.enter(load);
  loadFields(e, op.getItems(), at, e.b.getArrayAttr(names), used);
  Regs out;
  for (Value v : used)
    out.push_back(e.index(v).base);
  LLVM::BrOp::create(e.b, e.loc, out, join);
  e.enter(join);
  for (auto [v, arg] : llvm::zip_equal(used, join->getArguments()))
    e.indices[v] = {arg, 0};
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// True when one thread can run the role: only bulk copies, words and uniform scalars.
static bool runsOnOneThread(RoleOp role) {
  if (role.getWarps() != 1 || role.getGroups() != 1)
    return false;
  return !role.walk([](Operation *op) {
                auto spread = [](Type type) { return isa<RegType, PendingType>(type); };
                bool paged = false;
                if (auto load = dyn_cast<LoadAsyncOp>(op))
                  paged = isGather(load) || load.getView().getType().isPaged();
                bool tile = isa<FillRowsOp, LocalStoreOp, StoreOp, ExtentOp, ScanOp>(op) ||
                            llvm::any_of(op->getOperandTypes(), spread) || llvm::any_of(op->getResultTypes(), spread);
                return paged || tile ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

LogicalResult tile::emitRoles(Emitter &e, RolesOp op) {
  // Roles of less than a warpgroup share warpgroups of their own: setmaxnreg is for whole warpgroups.
  struct Place {
    RoleOp role;
    int64_t firstWarp;
  };
  SmallVector<Place> small, large;
  int64_t warp = 0;
  for (RoleOp role : op.getBody().getOps<RoleOp>())
    if (role.getWarps() % 4) {
      small.push_back({role, warp});
      warp += role.getWarps() * role.getGroups();
    }
  int64_t smallWarps = llvm::alignTo(warp, 4);
  warp = smallWarps;
  std::optional<int64_t> smallRegisters;
  for (Place &place : small) {
    auto registers = place.role.getRegisters();
    if (!registers)
      continue;
    if (smallRegisters && *smallRegisters != static_cast<int64_t>(*registers))
      return place.role.emitOpError() << "asks for " << *registers
                                      << " registers and shares a warpgroup with a role that asks for "
                                      << *smallRegisters << ", expected the same number";
    smallRegisters = *registers;
  }
  for (RoleOp role : op.getBody().getOps<RoleOp>())
    if (role.getWarps() % 4 == 0) {
      large.push_back({role, warp});
      warp += role.getWarps() * role.getGroups();
    }
  if (warp * 32 != e.threads)
    return op.emitOpError() << "takes " << warp << " warps, the kernel was given " << e.threads / 32;
  if (warp > 32)
    return op.emitOpError() << "takes " << warp << " warps, more than the 32 of a CTA";

  // Registers: what the launch allots must cover what the roles ask for, else setmaxnreg waits for ever.
  int64_t launch = std::min<int64_t>(e.target.registersPerSm / e.threads / 8 * 8, 248), asked = 0;
  bool any = smallRegisters.has_value();
  asked += smallWarps * 32 * smallRegisters.value_or(launch);
  for (Place &place : large) {
    any |= place.role.getRegisters().has_value();
    asked += 32 * place.role.getWarps() * place.role.getGroups() * place.role.getRegisters().value_or(launch);
  }
  if (any && asked > launch * e.threads)
    return op.emitOpError() << "asks for " << asked << " registers in all, more than the " << launch * e.threads
                            << " that a launch of " << e.threads << " threads allots (" << launch
                            << " a thread): the kernel would hang; ask for fewer 'registers'";
  for (RoleOp role : op.getBody().getOps<RoleOp>())
    if (auto n = role.getRegisters(); n && (*n < 24 || *n > 256 || *n % 8))
      return role.emitOpError() << "asks for " << *n << " registers, expected a multiple of 8 from 24 to 256";

  Group outer = e.group;
  auto countersBefore = e.counters;
  Block *exit = new Block();
  auto setRegisters = [&](std::optional<int64_t> n) {
    if (n && e.target.setMaxRegisters)
      NVVM::SetMaxRegisterOp::create(e.b, e.loc, static_cast<int32_t>(*n),
                                     *n < launch ? NVVM::SetMaxRegisterAction::decrease
                                                 : NVVM::SetMaxRegisterAction::increase);
  };
  int64_t barrier = 1;
  auto body = [&](Place place) -> LogicalResult {
    RoleOp role = place.role;
    Location outerLoc = e.loc;
    e.loc = role.getLoc();
    e.group = Group();
    e.group.name = role.getName().str();
    e.group.warps = role.getWarps();
    e.group.groups = role.getGroups();
    e.group.firstWarp = place.firstWarp;
    e.group.single = runsOnOneThread(role);
    if (e.group.warps > 1) {
      e.group.barrier = barrier;
      barrier += e.group.groups;
      if (role.walk([](DotAsyncOp dot) {
                return dot->hasAttr(kTakesTurn) ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted() &&
          e.group.groups > 1) {
        e.group.turns = barrier;
        barrier += e.group.groups;
      }
      if (barrier > 16)
        return role.emitOpError() << "needs more than the 16 hardware barriers of a CTA";
    }
    Block *entry = e.b.getInsertionBlock();
    e.group.entry = entry;
    e.local.clear();
    e.laneParts.clear();
    e.itemBounds.clear();
    e.gatherLanes.clear();
    e.roleValues.clear();
    e.counters.clear();
    for (auto &p : e.pipelines)
      p.second->waiting = 0;
    Value relative = place.firstWarp ? e.sub(outer.warp, e.c32(place.firstWarp)) : outer.warp;
    if (e.group.groups > 1) {
      e.group.number = llvm::isPowerOf2_64(e.group.warps)
                           ? e.shr(relative, llvm::Log2_64(e.group.warps))
                           : Value(LLVM::UDivOp::create(e.b, e.loc, e.i32, relative, e.c32(e.group.warps)));
      e.group.warp = llvm::isPowerOf2_64(e.group.warps) ? e.bitAnd(relative, e.c32(e.group.warps - 1))
                                                        : e.sub(relative, e.mul(e.group.number, e.c32(e.group.warps)));
    } else {
      e.group.warp = relative;
    }
    e.group.lane = outer.lane;
    e.group.laneIsZero = outer.laneIsZero;
    if (role.getBody().getNumArguments())
      e.indices[role.getBody().getArgument(0)] = e.group.number ? Index{e.group.number, 0} : Index{};
    Block *start = e.newBlock();
    if (e.group.single) {
      Value elected = NVVM::ElectSyncOp::create(e.b, e.loc, e.i1, Value());
      LLVM::CondBrOp::create(e.b, e.loc, elected, start, ValueRange(), exit, ValueRange());
    } else {
      LLVM::BrOp::create(e.b, e.loc, ValueRange(), start);
    }
    e.enter(start);
    if (e.group.turns)
      e.grantFirstTurn();
    LogicalResult done = e.emitBlock(role.getBody().front());
    if (succeeded(done))
      LLVM::BrOp::create(e.b, e.loc, ValueRange(), exit);
    e.loc = outerLoc;
    return done;
  };

  // Blocks stand in the order of the roles.
  auto open = [&](Block *block) {
    e.region->push_back(block);
    e.enter(block);
  };
  auto work = [&]() -> LogicalResult {
    Value warpNumber = outer.warp;
    // One branch per role, small ones behind a common setmaxnreg (ptxas wants this shape to honour it).
    if (smallWarps) {
      Block *inside = e.newBlock(), *rest = new Block();
      LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::ult, warpNumber, e.c32(smallWarps)), inside,
                             ValueRange(), large.empty() ? exit : rest, ValueRange());
      e.enter(inside);
      setRegisters(smallRegisters);
      for (Place &place : small) {
        Block *mine = e.newBlock(), *other = new Block();
        int64_t end = place.firstWarp + place.role.getWarps() * place.role.getGroups();
        LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::ult, warpNumber, e.c32(end)), mine,
                               ValueRange(), other, ValueRange());
        e.enter(mine);
        LogicalResult done = body(place);
        open(other);
        if (failed(done)) {
          e.region->push_back(rest);
          return failure();
        }
      }
      LLVM::BrOp::create(e.b, e.loc, ValueRange(), exit);
      if (large.empty()) {
        delete rest;
        return success();
      }
      open(rest);
    }
    for (auto [i, place] : llvm::enumerate(large)) {
      if (i + 1 < large.size()) {
        Block *mine = e.newBlock(), *other = new Block();
        int64_t end = place.firstWarp + place.role.getWarps() * place.role.getGroups();
        LLVM::CondBrOp::create(e.b, e.loc, e.compare(LLVM::ICmpPredicate::ult, warpNumber, e.c32(end)), mine,
                               ValueRange(), other, ValueRange());
        e.enter(mine);
        setRegisters(place.role.getRegisters());
        LogicalResult done = body(place);
        open(other);
        if (failed(done))
          return failure();
        continue;
      }
      setRegisters(place.role.getRegisters());
      if (failed(body(place)))
        return failure();
    }
    return success();
  };
  LogicalResult done = work();
  e.region->push_back(exit);
  e.enter(exit);
  e.group = outer;
  e.counters = countersBefore;
  e.laneParts.clear();
  return done;
}

void tile::populateControlFlow(Emitter &e) {
  e.on<scf::ForOp>(emitFor);
  e.on<scf::WhileOp>(emitWhile);
  e.on<scf::IfOp>(emitIf);
  e.on<func::CallOp>(emitCall);
  e.on<ForEachOp>(emitForEach);
  e.on<NextItemOp>(emitNextItem);
  e.on<RolesOp>(emitRoles);
}
