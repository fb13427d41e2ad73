//===- StreamItems.cpp - the items of a CTA become one stream of key blocks ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   consumer: for_each item: open (Q K and softmax of its first block)
//                            loops; close (P V of its last block, its results)
// becomes
//   wait for Q and its words; if there is an item:
//     open
//     while: loops; give Q back, wait for the next Q and its words; more?
//       do: close of this item, its product beside that of the next one's open
//     close
// The fields of an item travel as words with its query tile, and with them what
// takes many lookups to find (the keys of a document); the producer sends
// a last stage without rows.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "WarpSpecialize.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tile {
#define GEN_PASS_DEF_TILESTREAMITEMSPASS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace mlir::tile

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::specialize;

namespace {
/// The program of an item in the consumers, cut where the stream joins it to its neighbours.
struct Stream {
  RoleOp producer, consumer;
  ForEachOp loads, items; // of the two roles
  ConsumerWaitOp query;   // of the item's query tile
  PipelineOp pipeline;    // of `query`
  // `open` without `query`; `loops` up to the last loop over keys and the releases behind it; `close` the rest.
  SmallVector<Operation *> open, loops, close;
  DotAsyncOp first, last;       // the products of `open` and `close`
  SmallVector<unsigned> fields; // that the consumers use, as argument numbers
  unsigned rows = 0;            // the word of `rows`
  unsigned words = 0;           // one for each field, two for `table`, and one for each of `found`
  SmallVector<Value> found;     // by the producer's lookups; in the consumers, arguments of `items` behind the fields
  DenseMap<int64_t, size_t> foundBy; // where the results of a lookup begin
  // What `loops` and `close` need of an item when it was opened, and what `close` needs of both.
  llvm::SetVector<Value> opened, done;

  LogicalResult find(KernelOp kernel);
  void emit();

private:
  LogicalResult findParts();
  LogicalResult findFields();
  LogicalResult findRoles(KernelOp kernel);
  bool moveLookups();
  void observeLookups();
  bool isRepeatable(Operation *op);
  bool isTable(unsigned field) { return cast<StringAttr>(items.getFields()[field]).getValue() == "table"; }
  void mapItem(OpBuilder &builder, ValueRange slotAndWords, IRMapping &mapping);
  void addRoots(Value value, const llvm::SmallPtrSetImpl<Operation *> &inside, llvm::SetVector<Value> &roots);
  void addRootsOf(ArrayRef<Operation *> ops, llvm::SetVector<Value> &roots);
  Value get(Value value, IRMapping &mapping, OpBuilder &builder);
  void clone(Operation *op, IRMapping &mapping, OpBuilder &builder);
  void emitBoundary(OpBuilder &builder, IRMapping &before, IRMapping &next);
  void emitProducer();
  void emitEnd(Operation *last);
};
} // namespace

//===----------------------------------------------------------------------===//
// Finding the parts
//===----------------------------------------------------------------------===//

static bool hasProducts(Operation *op) { return isa<scf::ForOp>(op) && containsOp<DotAsyncOp>(op); }

LogicalResult Stream::findParts() {
  Block &body = items.getBody().front();
  Operation *firstLoop = nullptr, *lastLoop = nullptr;
  for (Operation &op : body)
    if (hasProducts(&op)) {
      firstLoop = firstLoop ? firstLoop : &op;
      lastLoop = &op;
    }
  if (!firstLoop)
    return items.emitOpError() << "has no loop of products to stream";
  while (isa_and_nonnull<ConsumerReleaseOp>(lastLoop->getNextNode()))
    lastLoop = lastLoop->getNextNode();
  for (Operation &op : body.without_terminator()) {
    bool before = op.isBeforeInBlock(firstLoop);
    (before ? open : lastLoop->isBeforeInBlock(&op) ? close : loops).push_back(&op);
  }
  auto only = [&](ArrayRef<Operation *> ops, StringRef where, DotAsyncOp &dot) -> LogicalResult {
    for (Operation *op : ops)
      if (auto found = dyn_cast<DotAsyncOp>(op)) {
        if (dot)
          return found.emitOpError() << "is the second product " << where << " the loops, expected one (run "
                                     << "tile-reverse-keys and tile-skew-dots first)";
        dot = found;
      }
    if (!dot)
      return items.emitOpError() << "has no product " << where << " its loops, expected one (run tile-reverse-keys "
                                 << "and tile-skew-dots first)";
    return success();
  };
  if (failed(only(open, "before", first)) || failed(only(close, "behind", last)))
    return failure();
  // The pipeline that is waited for once an item holds the query tile.
  for (Operation *op : open)
    if (auto wait = dyn_cast<ConsumerWaitOp>(op)) {
      int64_t waits = 0;
      items.walk([&](ConsumerWaitOp other) { waits += other.getPipeline() == wait.getPipeline(); });
      if (waits > 1)
        continue;
      if (query)
        return wait.emitOpError()
               << "waits for a second tile that is loaded once an item, expected the query tile only";
      query = wait;
    }
  if (!query)
    return items.emitOpError() << "waits for no query tile in shared memory before its loops";
  pipeline = query.getPipeline().getDefiningOp<PipelineOp>();
  if (pipeline.getType().getWords() || pipeline.getChain())
    return pipeline.emitOpError() << "has words or a chain already";
  llvm::erase(open, query);
  // Fragments are read again from the query's stage when the loops begin, so it is kept until they end.
  for (Operation *op : llvm::make_early_inc_range(open))
    if (auto release = dyn_cast<ConsumerReleaseOp>(op); release && release.getPipeline() == query.getPipeline()) {
      llvm::erase(open, op);
      loops.push_back(op);
      break;
    }
  return success();
}

LogicalResult Stream::findFields() {
  bool found = false;
  ArrayRef<BlockArgument> args = items.getBody().getArguments();
  for (auto [number, name, arg] : llvm::enumerate(items.getFields(), args.take_front(items.getFields().size()))) {
    StringRef field = cast<StringAttr>(name).getValue();
    if (arg.use_empty() && field != "rows")
      continue;
    if (field == "rows") {
      rows = words;
      found = true;
    }
    fields.push_back(number);
    words += field == "table" ? 2 : 1;
  }
  words += this->found.size();
  if (!found)
    return items.emitOpError() << "does not name the field 'rows', which tells the end of the stream";
  return success();
}

/// A wait for a query tile: the stage, and the fields.
static ConsumerWaitOp emitQueryWait(OpBuilder &builder, ConsumerWaitOp query, Type slot, size_t words) {
  SmallVector<Type> types(words + 1, builder.getIndexType());
  types[0] = slot;
  return ConsumerWaitOp::create(builder, query.getLoc(), types, query.getPipeline());
}

static void eraseDead(ForEachOp items) {
  items.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}

/// Copies `op`, and what it is computed from, from the consumers' item to the producer's.
static void cloneLookup(Operation *op, ForEachOp items, IRMapping &mapping, OpBuilder &builder) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && def->getBlock() == &items.getBody().front() && !mapping.contains(operand))
        cloneLookup(def, items, mapping, builder);
    }
  });
  builder.clone(*op, mapping);
}

/// Words of a pipeline at most.
static constexpr size_t kMaxWords = 32;

/// The lookups of `open` become the role's that loads the query tile; true when there are any.
bool Stream::moveLookups() {
  SmallVector<Operation *> lookups;
  size_t results = 0;
  for (Operation *op : open)
    if (op->hasAttr(kLookup)) {
      lookups.push_back(op);
      results += op->getNumResults();
    }
  if (lookups.empty() || items.getFields().size() + 1 + results > kMaxWords)
    return false;
  ProducerAcquireOp acquire;
  loads.walk([&](ProducerAcquireOp op) {
    if (op.getPipeline() == query.getPipeline())
      acquire = op;
  });
  OpBuilder builder(acquire);
  IRMapping mapping;
  mapping.map(items.getBody().getArguments(), loads.getBody().getArguments());
  for (Operation *op : lookups) // all before the first is replaced: one may use another
    if (!mapping.contains(op->getResult(0)))
      cloneLookup(op, items, mapping, builder);
  for (Operation *op : lookups) {
    foundBy[op->getAttrOfType<IntegerAttr>(kLookup).getInt()] = found.size();
    for (Value result : op->getResults()) {
      found.push_back(mapping.lookup(result));
      result.replaceAllUsesWith(items.getBody().addArgument(result.getType(), op->getLoc()));
    }
  }
  for (Operation *op : lookups)
    op->erase();
  eraseDead(items);
  return true;
}

/// Roles that load keys take what was found from the words too. They wait for the query tile of the item whose keys
/// they load next, which must not be the only one: it comes when the consumers are done with the one before.
void Stream::observeLookups() {
  if (found.empty() || pipeline.getType().getStages() < 2)
    return;
  for (RoleOp role : consumer->getParentOfType<RolesOp>().getBody().getOps<RoleOp>()) {
    if (role == producer || role == consumer)
      continue;
    for (auto each : role.getBody().getOps<ForEachOp>()) {
      ConsumerWaitOp wait;
      for (Operation &op : llvm::make_early_inc_range(each.getBody().front())) {
        auto number = op.getAttrOfType<IntegerAttr>(kLookup);
        if (!number)
          continue;
        OpBuilder builder(&op);
        if (!wait) {
          wait = emitQueryWait(builder, query, query.getSlot().getType(), words);
          wait.setObserves(true);
        }
        op.replaceAllUsesWith(
            wait.getWords().take_back(found.size()).slice(foundBy.lookup(number.getInt()), op.getNumResults()));
        op.erase();
      }
      eraseDead(each);
    }
  }
}

LogicalResult Stream::find(KernelOp kernel) {
  if (failed(findRoles(kernel)))
    return failure();
  if (moveLookups()) {
    open.clear(), loops.clear(), close.clear();
    query = {}, first = {}, last = {};
    if (failed(findParts()))
      return failure();
  }
  if (failed(findFields()))
    return failure();
  addRootsOf(loops, opened);
  llvm::SetVector<Value> behind;
  addRootsOf(close, behind);
  llvm::SmallPtrSet<Operation *, 16> inLoops(loops.begin(), loops.end());
  for (Value value : behind) {
    done.insert(value);
    if (!value.getDefiningOp() || !inLoops.contains(value.getDefiningOp()))
      opened.insert(value);
  }
  return success();
}

LogicalResult Stream::findRoles(KernelOp kernel) {
  if (failed(checkLevel(kernel, Level::Specialized, "run tile-warp-specialize first")))
    return failure();
  SmallVector<RoleOp> producers;
  kernel.walk([&](RoleOp role) {
    if (containsOp<DotAsyncOp>(role))
      consumer = role;
    else if (containsOp<LoadAsyncOp>(role))
      producers.push_back(role);
  });
  if (!consumer || producers.empty())
    return kernel.emitOpError() << "has no role that loads and another that multiplies";
  auto only = [](RoleOp role) {
    auto range = role.getBody().getOps<ForEachOp>();
    return llvm::hasSingleElement(range) ? *range.begin() : ForEachOp();
  };
  items = only(consumer);
  if (!items)
    return kernel.emitOpError() << "has consumers without tile.for_each: its items are a stream already";
  if (failed(findParts()))
    return failure();
  for (Operation *user : query.getPipeline().getUsers())
    if (isa<ProducerAcquireOp>(user))
      producer = user->getParentOfType<RoleOp>();
  loads = producer ? only(producer) : ForEachOp();
  if (!loads)
    return query.emitOpError() << "waits for a tile that no role loads in its tile.for_each";
  return success();
}

/// Scalar arithmetic, views, parts of stages, splats, fragments of the query: made again where they are needed, not
/// carried.
bool Stream::isRepeatable(Operation *op) {
  if (op->getBlock() != &items.getBody().front() || op->getNumRegions() != 0)
    return false;
  if (auto load = dyn_cast<LocalLoadOp>(op)) {
    auto part = load.getSource().getDefiningOp<SubviewOp>();
    return (part ? part.getSource() : load.getSource()) == query.getSlot();
  }
  return isMemoryEffectFree(op) && llvm::none_of(op->getOperandTypes(), llvm::IsaPred<RegType>);
}

/// Adds what must be carried so that `value`, which ops outside of `inside` made, can be had.
void Stream::addRoots(Value value, const llvm::SmallPtrSetImpl<Operation *> &inside, llvm::SetVector<Value> &roots) {
  if (!items.getBody().isAncestor(value.getParentRegion()))
    return;
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (cast<BlockArgument>(value).getOwner() == &items.getBody().front())
      roots.insert(value);
    return;
  }
  if (inside.contains(op) || op->getBlock() != &items.getBody().front())
    return;
  if (!isRepeatable(op)) {
    roots.insert(value);
    return;
  }
  for (Value operand : op->getOperands())
    addRoots(operand, inside, roots);
}

void Stream::addRootsOf(ArrayRef<Operation *> ops, llvm::SetVector<Value> &roots) {
  llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
  for (Operation *op : ops)
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        addRoots(operand, inside, roots);
    });
}

//===----------------------------------------------------------------------===//
// Writing the stream
//===----------------------------------------------------------------------===//

/// `value` of an item, computed again when only its roots are at hand.
Value Stream::get(Value value, IRMapping &mapping, OpBuilder &builder) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &items.getBody().front())
    return value;
  for (Value operand : op->getOperands())
    get(operand, mapping, builder);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

void Stream::clone(Operation *op, IRMapping &mapping, OpBuilder &builder) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        get(operand, mapping, builder);
  });
  builder.clone(*op, mapping);
}

/// The weights that the next product reads: they wait until the one before has read its own (R3).
static bool isOperandA(Operation *op) {
  auto map = dyn_cast<MapOp>(op);
  if (!map || map.getNumResults() != 1)
    return false;
  auto layout = dyn_cast_or_null<OperandAttr>(cast<RegType>(map.getResult(0).getType()).getLayout());
  return layout && layout.getKind() == OperandKind::A;
}

/// What `dot` needs of `ops`, and ops before it that write shared memory or branch (no control flow over a pending
/// product).
static llvm::SmallPtrSet<Operation *, 16> getNeeded(ArrayRef<Operation *> ops, DotAsyncOp dot) {
  llvm::SmallPtrSet<Operation *, 16> all(ops.begin(), ops.end()), needed;
  SmallVector<Operation *> work = {dot};
  for (Operation *op : ops) {
    if (op == dot)
      break;
    if (isa<ConsumerWaitOp, FillRowsOp, ExtentOp, ScanOp>(op) || isa<scf::SCFDialect>(op->getDialect()))
      work.push_back(op);
  }
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!needed.insert(op).second)
      continue;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && all.contains(def))
          work.push_back(def);
    });
  }
  return needed;
}

/// The step that closes one item (`before`) and opens the next.
void Stream::emitBoundary(OpBuilder &builder, IRMapping &before, IRMapping &next) {
  llvm::SmallPtrSet<Operation *, 16> needed = getNeeded(close, last);
  for (Operation *op : close)
    if (needed.contains(op) && op != last)
      clone(op, before, builder);
  // Between the waits and the products stands what they need; the bounds of the next item are computed behind them.
  llvm::SmallPtrSet<Operation *, 16> opens = getNeeded(open, first);
  SmallVector<Operation *> later, sunk;
  auto it = open.begin();
  for (; *it != first; ++it)
    if (opens.contains(*it))
      clone(*it, next, builder);
    else if (!isa<LocalLoadOp>(*it))
      later.push_back(*it);
  clone(*it++, next, builder);
  clone(last, before, builder);
  for (Operation *op : later)
    clone(op, next, builder);
  for (; it != open.end(); ++it) {
    if (isOperandA(*it))
      sunk.push_back(*it);
    else
      clone(*it, next, builder);
  }
  // The await of the last product and the release of its stage, the next weights, then the item's results.
  SmallVector<Operation *> rest;
  for (Operation *op : close)
    if (!needed.contains(op))
      rest.push_back(op);
  auto await = llvm::find_if(rest, [&](Operation *op) {
    auto wait = dyn_cast<AwaitOp>(op);
    return wait && wait.getPending() == last.getResult();
  });
  auto end = await == rest.end() ? await : await + 1;
  while (end != rest.end() && isa<ConsumerReleaseOp>(*end))
    ++end;
  for (auto at = rest.begin(); at != end; ++at)
    clone(*at, before, builder);
  for (Operation *op : sunk)
    clone(op, next, builder);
  for (auto at = end; at != rest.end(); ++at)
    clone(*at, before, builder);
}

/// The fields of an item from the words that came with its query tile.
void Stream::mapItem(OpBuilder &builder, ValueRange slotAndWords, IRMapping &mapping) {
  Location loc = query.getLoc();
  mapping.map(query.getSlot(), slotAndWords[0]);
  unsigned word = 1;
  for (unsigned field : fields) {
    Value value = slotAndWords[word++];
    if (isTable(field)) {
      Value size = arith::ConstantIndexOp::create(builder, loc, int64_t(1) << 32);
      Value upper = arith::MulIOp::create(builder, loc, slotAndWords[word++], size);
      value = arith::AddIOp::create(builder, loc, upper, value);
    }
    mapping.map(items.getBody().getArgument(field), value);
  }
  for (BlockArgument arg : items.getBody().getArguments().take_back(found.size()))
    mapping.map(arg, slotAndWords[word++]);
}

void Stream::emitProducer() {
  OpBuilder builder(producer.getContext());
  Location loc = query.getLoc();
  Value ring = query.getPipeline();
  Type slot = query.getSlot().getType();
  ProducerAcquireOp acquire;
  loads.walk([&](ProducerAcquireOp op) {
    if (op.getPipeline() == ring)
      acquire = op;
  });
  // The role's list names the same fields in the same order.
  SmallVector<Value> sent;
  builder.setInsertionPointAfter(acquire);
  for (unsigned field : fields) {
    Value value = loads.getBody().getArgument(field);
    if (!isTable(field)) {
      sent.push_back(value);
      continue;
    }
    // value = upper * 2^32 + lower, the lower part with a sign.
    Value half = arith::ConstantIndexOp::create(builder, loc, int64_t(1) << 31);
    Value bits = arith::ConstantIndexOp::create(builder, loc, 32);
    Value rounded = arith::AddIOp::create(builder, loc, value, half);
    Value upper = arith::ShRSIOp::create(builder, loc, rounded, bits);
    Value shifted = arith::ShLIOp::create(builder, loc, upper, bits);
    sent.push_back(arith::SubIOp::create(builder, loc, value, shifted));
    sent.push_back(upper);
  }
  llvm::append_range(sent, found);
  SendOp::create(builder, loc, ring, sent);
  builder.setInsertionPointAfter(loads);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  ProducerAcquireOp::create(builder, loc, slot, ring);
  SendOp::create(builder, loc, ring, SmallVector<Value>(words, zero));
  CommitOp::create(builder, loc, ring);
}

/// The end of the stream is a stage too: where stages are handed on, it is, and who takes them gives it back.
void Stream::emitEnd(Operation *last) {
  for (Operation *user : llvm::make_early_inc_range(query.getPipeline().getUsers())) {
    auto chained = dyn_cast<PipelineOp>(user);
    if (!chained)
      continue;
    OpBuilder builder(last->getContext());
    builder.setInsertionPointAfter(last);
    Location loc = chained.getLoc();
    CommitOp::create(builder, loc, chained.getResult());
    RoleOp role;
    for (Operation *other : chained.getResult().getUsers())
      if (isa<ConsumerReleaseOp>(other))
        role = other->getParentOfType<RoleOp>();
    if (!role)
      continue;
    builder.setInsertionPoint(role.getBody().front().getTerminator());
    ConsumerWaitOp::create(builder, loc, TypeRange(query.getSlot().getType()), chained.getResult());
    ConsumerReleaseOp::create(builder, loc, chained.getResult());
  }
}

void Stream::emit() {
  Location loc = items.getLoc();
  OpBuilder builder(items);
  PipelineType type = pipeline.getType();
  pipeline.getResult().setType(
      PipelineType::get(type.getContext(), type.getStages(), type.getSlot(), static_cast<int64_t>(words)));
  emitProducer();
  observeLookups();
  Type slot = query.getSlot().getType();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  auto isItem = [&](OpBuilder &b, ValueRange words) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, words[1 + rows], zero);
  };
  auto firstWait = emitQueryWait(builder, query, slot, words);
  auto branch = scf::IfOp::create(builder, loc, isItem(builder, firstWait.getResults()), /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  IRMapping opening;
  mapItem(builder, firstWait.getResults(), opening);
  for (Operation *op : open)
    if (!isa<LocalLoadOp>(op))
      clone(op, opening, builder);

  SmallVector<Value> init;
  SmallVector<Type> openedTypes, doneTypes;
  for (Value value : opened) {
    init.push_back(opening.lookup(value));
    openedTypes.push_back(value.getType());
  }
  for (Value value : done)
    doneTypes.push_back(value.getType());
  size_t numDone = doneTypes.size();
  doneTypes.push_back(slot);
  doneTypes.append(words, builder.getIndexType());
  auto loop = scf::WhileOp::create(
      builder, loc, doneTypes, init,
      [&](OpBuilder &b, Location, ValueRange args) {
        IRMapping mapping;
        for (auto [value, arg] : llvm::zip_equal(opened, args))
          mapping.map(value, arg);
        for (Operation *op : loops)
          clone(op, mapping, b);
        auto wait = emitQueryWait(b, query, slot, words);
        SmallVector<Value> results;
        for (Value value : done)
          results.push_back(mapping.lookup(value));
        llvm::append_range(results, wait.getResults());
        scf::ConditionOp::create(b, loc, isItem(b, wait.getResults()), results);
      },
      [&](OpBuilder &b, Location, ValueRange args) {
        IRMapping before, next;
        for (auto [value, arg] : llvm::zip_equal(done, args.take_front(numDone)))
          before.map(value, arg);
        mapItem(b, args.drop_front(numDone), next);
        emitBoundary(b, before, next);
        SmallVector<Value> results;
        for (Value value : opened)
          results.push_back(next.lookup(value));
        scf::YieldOp::create(b, loc, results);
      });
  IRMapping closing;
  for (auto [value, result] : llvm::zip_equal(done, loop.getResults().take_front(numDone)))
    closing.map(value, result);
  for (Operation *op : close)
    clone(op, closing, builder);
  emitEnd(branch);
  items.erase();
}

namespace {
struct StreamItemsPass : tile::impl::TileStreamItemsPassBase<StreamItemsPass> {
  void runOnOperation() override {
    Stream stream;
    if (failed(stream.find(getOperation())))
      return signalPassFailure();
    stream.emit();
    ++numStreams;
    numWords += stream.words;
  }
};
} // namespace
