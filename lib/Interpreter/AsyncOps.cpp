//===- AsyncOps.cpp - pipelines, products in flight, tasks ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The k-th acquire of a role takes fill k, which lives in stage k mod N; the
// k-th wait of a group reads it. Loads land when they are waited for, stores
// from a stage leave when it is released, products read when they are awaited.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include <thread>

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::interp;

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

bool Task::runPipeline(PipelineOp op) {
  PipelineType type = op.getResult().getType();
  Pipe &pipe = machine.pipes.emplace_back();
  pipe.op = op;
  pipe.stages.resize(type.getStages());
  if (op.getChain()) {
    pipe.chain = get(op.getChain()).pipe;
    pipe.chain->chainedBy = &pipe;
    if (pipe.chain->op.getResult().getType().getSlot() != type.getSlot())
      return fail(op, "chains slots of another type, which the interpreter does not know");
  }
  for (auto [i, stage] : llvm::enumerate(pipe.stages))
    stage.memory = pipe.chain ? pipe.chain->stages[i].memory : std::make_shared<Smem>(type.getSlot());
  get(op.getResult()).pipe = &pipe;
  return true;
}

static std::shared_ptr<const SmemRef> getSlot(Stage &stage, std::shared_ptr<Hold> hold) {
  auto ref = std::make_shared<SmemRef>();
  ref->memory = stage.memory;
  ref->shape = stage.memory->shape;
  ref->offsets.assign(ref->shape.size(), 0);
  ref->hold = std::move(hold);
  return ref;
}

bool Task::runAcquire(ProducerAcquireOp op) {
  Pipe &pipe = *get(op.getPipeline()).pipe;
  if (pipe.chain) { // the oldest slot that this group holds
    auto &reading = uses[pipe.chain].reading;
    if (reading.empty())
      return fail(op, "takes a slot to hand on without holding one");
    get(op.getSlot()).smem = getSlot(pipe.at(reading.front()->number), reading.front());
    return true;
  }
  PipeUse &use = uses[&pipe];
  int64_t number = use.acquired++;
  Stage &stage = pipe.at(number);
  int64_t before = number - static_cast<int64_t>(pipe.stages.size());
  if (!machine.block(*this, op, [&stage, before] {
        return stage.state == Stage::Free && stage.number == (before < 0 ? -1 : before);
      }))
    return false;
  stage.memory->poison();
  stage.state = Stage::Acquired;
  stage.number = number;
  stage.commits = stage.releases = 0;
  stage.load.reset();
  stage.waits = 0;
  stage.message = false;
  stage.words.clear();
  auto hold = std::make_shared<Hold>();
  hold->number = number;
  use.filling.push_back(hold);
  get(op.getSlot()).smem = getSlot(stage, hold);
  return machine.pass(*this, op);
}

bool Task::runLoadAsync(LoadAsyncOp op) {
  Pipe &pipe = *get(op.getPipeline()).pipe;
  auto smem = get(op.getSlot()).smem;
  PipeUse &use = uses[&pipe];
  if (!smem->hold || !smem->hold->live)
    return fail(op, "loads into a slot that is not acquired");
  if (use.filling.empty() || smem->hold != use.filling.front())
    return fail(op, "fills a slot before an older one that is still empty");
  Stage &stage = pipe.at(smem->hold->number);
  // The load writes after the hold has ended; give it memory of its own.
  auto target = std::make_shared<SmemRef>(*smem);
  target->hold = nullptr;
  stage.load = Transfer{op, get(op.getView()).view, target, getInt(op.getRow())};
  stage.state = Stage::Full;
  ++pipe.fills;
  smem->hold->live = false;
  use.filling.pop_front();
  return machine.pass(*this, op);
}

bool Task::runSend(SendOp op) {
  Pipe &pipe = *get(op.getPipeline()).pipe;
  PipeUse &use = uses[&pipe];
  SmallVector<int64_t, 4> words;
  for (Value word : op.getWords())
    words.push_back(getInt(word));
  if (pipe.chain) {
    if (uses[pipe.chain].reading.empty())
      return fail(op, "sends words with a stage that it does not hold");
    pipe.at(uses[&pipe].committed).words = words;
    return true;
  }
  if (use.filling.empty())
    return fail(op, "sends words with a stage that it has not acquired");
  pipe.at(use.filling.front()->number).words = words;
  return true;
}

bool Task::runCommit(CommitOp op) {
  Pipe &pipe = *get(op.getPipeline()).pipe;
  if (!pipe.chain) {
    PipeUse &use = uses[&pipe];
    if (use.filling.empty())
      return fail(op, "commits a stage that it has not acquired");
    Stage &stage = pipe.at(use.filling.front()->number);
    stage.state = Stage::Full;
    stage.message = true;
    ++pipe.fills;
    use.filling.front()->live = false;
    use.filling.pop_front();
    return machine.pass(*this, op);
  }
  // The stage goes on from the consumers of the chained pipeline to that of this one.
  auto &reading = uses[pipe.chain].reading;
  if (reading.empty())
    return fail(op, "hands on a stage that it does not hold");
  auto hold = reading.front();
  reading.pop_front();
  hold->live = false;
  hold->end = op;
  int64_t number = hold->number;
  [[maybe_unused]] int64_t before = uses[&pipe].committed++;
  assert(before == number &&
         "the oldest stage held is the next to hand on, and release_c1 refuses another way to give it up");
  Stage &stage = pipe.at(number);
  if (stage.commits == 0) {
    stage.number = number;
    stage.releases = 0;
    stage.state = Stage::Acquired;
  }
  if (++stage.commits == static_cast<int64_t>(pipe.op.getProducers())) {
    stage.state = Stage::Full;
    ++pipe.fills;
    stage.commits = 0;
  }
  return machine.pass(*this, op);
}

bool Task::runWait(ConsumerWaitOp op) {
  Pipe &pipe = *get(op.getPipeline()).pipe;
  int64_t number = uses[&pipe].waited++;
  Stage &stage = pipe.at(number);
  if (!machine.block(*this, op, [&stage, number] { return stage.state == Stage::Full && stage.number == number; }))
    return false;
  if (stage.load) {
    Transfer load = *stage.load;
    stage.load.reset();
    std::vector<Word> data;
    bool undefinedTail = machine.undefinedTails && !isGather(cast<LoadAsyncOp>(load.op));
    if (!copyIn(load, data, load.smem->shape, undefinedTail) || !writeSmem(op, *load.smem, data))
      return false;
  }
  if (!op.getObserves()) {
    auto hold = std::make_shared<Hold>();
    hold->number = number;
    ++stage.waits;
    uses[&pipe].reading.push_back(hold);
    get(op.getSlot()).smem = getSlot(stage, hold);
  }
  if (!op.getWords().empty() && stage.words.empty())
    return fail(op, "reads words that nobody has sent");
  for (auto [i, value] : llvm::enumerate(op.getWords()))
    get(value).word.i = i < stage.words.size() ? stage.words[i] : 0;
  return machine.pass(*this, op);
}

bool Task::release(Pipe &pipe, Operation *op) {
  auto &reading = uses[&pipe].reading;
  if (reading.empty())
    return fail(op, "releases a stage that it does not hold");
  auto hold = reading.front();
  reading.pop_front();
  Stage &stage = pipe.at(hold->number);
  for (Transfer &store : hold->stores) {
    std::vector<Word> data;
    SmallVector<int64_t> shape;
    Val slot;
    slot.smem = store.smem;
    if (!read(store.op, slot, data, shape) || !copyOut(store, data, shape, /*whole=*/true))
      return false;
  }
  hold->live = false;
  hold->end = op;
  for (auto &pending : inFlight)
    for (const Val *operand : {&pending->a, &pending->b})
      if (operand->smem && operand->smem->hold == hold)
        return fail(op, "releases a slot that a product in flight reads");
  if (++stage.releases < static_cast<int64_t>(pipe.op.getConsumers()))
    return true;
  stage.state = Stage::Free;
  stage.memory->poison();
  if (pipe.chain)
    pipe.chain->at(hold->number).state = Stage::Free;
  return true;
}

bool Task::runRelease(ConsumerReleaseOp op) {
  return release(*get(op.getPipeline()).pipe, op) && machine.pass(*this, op);
}

bool Task::runStoreAsync(StoreAsyncOp op) {
  auto smem = get(op.getSlot()).smem;
  if (!checkLive(op, *smem))
    return false;
  if (!smem->hold)
    return fail(op, "stores from memory that no pipeline owns");
  smem->hold->stores.push_back({op, get(op.getView()).view, smem, getInt(op.getRow())});
  return true;
}

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

bool Task::runDotAsync(DotAsyncOp op) {
  auto pending = std::make_shared<Pending>();
  pending->op = op;
  pending->a = get(op.getA());
  pending->b = get(op.getB());
  for (const Val *operand : {&pending->a, &pending->b})
    if (operand->smem && !checkLive(op, *operand->smem))
      return false;
  if (op.getAcc()) {
    Val acc = get(op.getAcc());
    if (acc.pending) {
      pending->before = acc.pending;
      llvm::erase(inFlight, acc.pending);
    } else {
      pending->acc = acc;
    }
  }
  inFlight.push_back(pending);
  get(op.getResult()).pending = pending;
  return machine.pass(*this, op);
}

bool Task::compute(Pending &pending, Val &out) {
  auto dot = cast<DotAsyncOp>(pending.op);
  Val acc = pending.acc;
  if (pending.before && !compute(*pending.before, acc))
    return false;
  return runDot(dot, pending.a, pending.b, acc.tile.get(), dot.getTransposeB(), dot.getResult().getType().getReg(),
                out);
}

bool Task::runAwait(AwaitOp op) {
  auto pending = get(op.getPending()).pending;
  if (inFlight.empty() || inFlight.front() != pending)
    return fail(op, "waits for an accumulator before an older one");
  if (!machine.pass(*this, op))
    return false;
  inFlight.pop_front();
  Val out;
  if (!compute(*pending, out))
    return false;
  get(op.getResult()) = out;
  return true;
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

bool Machine::fail(Operation *op, const Twine &message) {
  if (!failure)
    failure = Failure{op->getLoc(), message.str()};
  return false;
}

/// Gives the baton to a task that can run; all blocked: a deadlock.
void Machine::next(std::unique_lock<std::mutex> &lock) {
  SmallVector<int, 8> ready;
  bool alive = false;
  for (auto [i, thread] : llvm::enumerate(threads)) {
    if (thread.done)
      continue;
    alive = true;
    if (!thread.ready || thread.ready())
      ready.push_back(i);
  }
  if (alive && ready.empty() && !failure) {
    for (auto &thread : threads)
      if (!thread.done) {
        fail(thread.blocked, "waits forever: every role waits");
        break;
      }
  }
  if (failure)
    failed = true;
  current = ready.empty() ? -1 : ready[random() % ready.size()];
  wake.notify_all();
}

bool Machine::block(Task &task, Operation *op, std::function<bool()> ready) {
  if (task.number < 0) {
    if (!ready())
      return fail(op, "waits forever: nothing else runs that could signal it");
    return true;
  }
  std::unique_lock<std::mutex> lock(mutex);
  Thread &self = threads[task.number];
  self.blocked = op;
  self.ready = std::move(ready);
  if (!failure && self.ready() && random() % 2) {
    self.ready = nullptr;
    return true;
  }
  next(lock);
  wake.wait(lock, [&] { return current == task.number || failed; });
  self.ready = nullptr;
  return !failed;
}

bool Machine::pass(Task &task, Operation *op) {
  if (task.number < 0 || random() % 2)
    return !failure;
  return block(task, op, [] { return true; });
}

bool Machine::runRoles(RolesOp roles, Task &parent) {
  std::list<Task> tasks;
  SmallVector<RoleOp> bodies;
  for (auto role : roles.getBody().getOps<RoleOp>())
    for (int64_t group = 0; group < static_cast<int64_t>(role.getGroups()); ++group) {
      Task &task = tasks.emplace_back(*this, static_cast<int>(tasks.size()));
      task.env = parent.env;
      if (role.getBody().getNumArguments())
        task.env[role.getBody().getArgument(0)].word.i = group;
      bodies.push_back(role);
      threads.push_back({&task, role, nullptr, false});
    }
  std::vector<std::thread> running;
  {
    std::unique_lock<std::mutex> lock(mutex);
    current = -1;
  }
  for (auto [task, body] : llvm::zip(tasks, bodies))
    running.emplace_back([this, &task = task, body = body]() mutable {
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return current == task.number || failed; });
      }
      if (!failed && task.run(body.getBody().front()))
        task.finish(body);
      std::unique_lock<std::mutex> lock(mutex);
      threads[task.number].done = true;
      if (failure) {
        failed = true;
        wake.notify_all();
      } else {
        next(lock);
      }
    });
  {
    std::unique_lock<std::mutex> lock(mutex);
    next(lock);
  }
  for (std::thread &thread : running)
    thread.join();
  threads.clear();
  return !failure && checkPipes();
}

/// What a task leaves behind when its program ends.
bool Task::finish(Operation *op) {
  assert(inFlight.empty() && "R1 refuses a product that is never awaited");
  for (auto &[pipe, use] : uses) {
    if (!use.filling.empty())
      return fail(pipe->op, "has a stage that a role has acquired and never filled");
    // A message that ends a stream, and stages that only others give back, may stay.
    bool observer = pipe->chainedBy && uses.count(pipe->chainedBy) && uses[pipe->chainedBy].waited;
    if (!use.reading.empty() && !observer && !(use.reading.size() == 1 && pipe->at(use.reading[0]->number).message))
      return fail(pipe->op, "has a stage that a role has waited for and never given back");
  }
  return true;
}

bool Machine::checkPipes() {
  for (Pipe &pipe : pipes)
    for (Stage &stage : pipe.stages)
      if (stage.state == Stage::Full && !(stage.message && stage.waits))
        return fail(pipe.op, "has a stage that was filled and never consumed by all its consumers");
  return true;
}
