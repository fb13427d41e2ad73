//===- Machine.h - state of a CTA and of its tasks -*- C++ -*- ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Machine is one CTA: its pipelines and its scheduler. A Task is one program
// counter: the whole kernel, or one group of a role. Tasks are threads that
// pass a baton; exactly one runs at any time, so nothing here needs a lock.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_MACHINE_H
#define ATTN_LIB_INTERPRETER_MACHINE_H

#include "Scalar.h"
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <random>

namespace mlir::tile::interp {

/// A register tile. A partial slice holds one term for each of the `lanes` (4) lanes of a row, innermost.
struct Tile {
  SmallVector<int64_t, 3> shape;
  Type element;
  int64_t lanes = 1;
  std::vector<Word> data;

  Tile(RegType type);
  bool isFloat() const { return isa<FloatType>(element); }
};

struct Smem {
  SmallVector<int64_t, 3> shape;
  Type element;
  std::vector<Word> data;

  Smem(SmemType type);
  void poison();
};

struct ViewRef {
  ViewType type;
  Buffer *source, *pages;
  SmallVector<int64_t, 3> offsets;
  int64_t rows, first;
};

struct SmemRef;

/// Copies whose effect is put off: a load to a stage until it is waited for, a store from one until its release.
struct Transfer {
  Operation *op;
  std::shared_ptr<const ViewRef> view;
  std::shared_ptr<const SmemRef> smem;
  int64_t row;
};

/// A task's right to use a stage, from acquire to fill or from wait to release.
struct Hold {
  bool live = true;
  Operation *end = nullptr; // what ended it
  int64_t number = 0;       // of the fill
  SmallVector<Transfer, 1> stores;
};

struct SmemRef {
  std::shared_ptr<Smem> memory;
  SmallVector<int64_t, 3> offsets, shape;
  std::shared_ptr<Hold> hold; // null for memory that no pipeline owns
};

struct Pending;

/// The value of an SSA value; which member counts follows from the type.
struct Val {
  Word word = {};
  std::shared_ptr<const Tile> tile;
  std::shared_ptr<const SmemRef> smem;
  std::shared_ptr<const ViewRef> view;
  std::shared_ptr<Pending> pending;
  struct Pipe *pipe = nullptr;
};

/// A product that has been issued. Its operands are read when it is awaited.
struct Pending {
  Operation *op;
  Val a, b, acc;
  std::shared_ptr<Pending> before; // the one that it continues
};

struct Stage {
  std::shared_ptr<Smem> memory;
  int64_t number = -1; // of the fill that the stage holds or is acquired for
  enum { Free, Acquired, Full } state = Free;
  int64_t commits = 0, releases = 0, waits = 0;
  bool message = false; // filled by commit, so perhaps with words only
  std::optional<Transfer> load;
  SmallVector<int64_t, 4> words;
};

struct Pipe {
  PipelineOp op;
  Pipe *chain = nullptr, *chainedBy = nullptr;
  std::vector<Stage> stages;
  int64_t fills = 0;
  Stage &at(int64_t number) { return stages[number % stages.size()]; }
};

/// What one task has done with one pipeline.
struct PipeUse {
  int64_t acquired = 0, waited = 0, committed = 0;
  std::deque<std::shared_ptr<Hold>> filling, reading;
};

class Task;

class Machine {
public:
  Machine(const KernelArguments &arguments, const InterpreterOptions &options, Compiler &compiler)
      : arguments(arguments), compiler(compiler), steps(options.maxSteps), random(options.seed) {}

  bool runCta(KernelOp kernel, int64_t cta);
  /// Runs the groups of the roles side by side.
  bool runRoles(RolesOp roles, Task &parent);
  /// Lets other tasks run until `ready` holds; false when the run has failed.
  bool block(Task &task, Operation *op, std::function<bool()> ready);
  /// May let another task run.
  bool pass(Task &task, Operation *op);
  bool fail(Operation *op, const Twine &message);

  const KernelArguments &arguments;
  Compiler &compiler;
  int64_t steps, cta = 0;
  bool undefinedTails = false; // of asynchronous loads
  std::list<Pipe> pipes;
  std::optional<Failure> failure;

private:
  struct Thread {
    Task *task;
    Operation *blocked = nullptr;
    std::function<bool()> ready;
    bool done = false;
  };
  void next(std::unique_lock<std::mutex> &lock);
  bool checkPipes();

  std::mt19937_64 random;
  std::atomic<bool> failed{false}; // for the tasks that wait; `failure` belongs to the running one
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Thread> threads;
  int current = -1;
  friend class Task;
};

class Task {
public:
  Task(Machine &machine, int number = -1) : number(number), machine(machine) {}

  bool run(Block &block);
  bool finish(Operation *op);

  DenseMap<Value, Val> env;
  SmallVector<Val> yielded;
  int number; // of the thread, or -1

private:
  bool runOp(Operation *op);
  bool runScalar(Operation *op);
  bool runFor(scf::ForOp op);
  bool runIf(scf::IfOp op);
  bool runWhile(scf::WhileOp op);
  bool runForEach(ForEachOp op);
  bool runNextItem(NextItemOp op);
  // TileOps.cpp
  bool runView(ViewOp op);
  bool readEntry(Operation *op, Value table, int64_t index, int64_t &entry);
  bool runExtent(ExtentOp op);
  bool runScan(ScanOp op);
  bool runLoad(LoadOp op);
  bool runStore(StoreOp op);
  bool runLocalLoad(LocalLoadOp op);
  bool runLocalStore(LocalStoreOp op);
  bool runTransform(TransformOp op);
  bool runSubview(SubviewOp op);
  bool runFillRows(FillRowsOp op);
  bool runSplat(SplatOp op);
  bool runMap(MapOp op);
  bool runMask(MaskOp op);
  bool runReduce(ReduceOp op);
  bool runDot(Operation *op, const Val &a, const Val &b, const Tile *acc, bool transposeB, RegType type, Val &out);
  bool runSlice(SliceOp op);
  bool runConcat(ConcatOp op);
  bool runSwapPairs(SwapPairsOp op);
  // AsyncOps.cpp
  bool runPipeline(PipelineOp op);
  bool runAcquire(ProducerAcquireOp op);
  bool runLoadAsync(LoadAsyncOp op);
  bool runSend(SendOp op);
  bool runCommit(CommitOp op);
  bool runWait(ConsumerWaitOp op);
  bool runRelease(ConsumerReleaseOp op);
  bool runStoreAsync(StoreAsyncOp op);
  bool runDotAsync(DotAsyncOp op);
  bool runAwait(AwaitOp op);
  bool compute(Pending &pending, Val &out);
  bool release(Pipe &pipe, Operation *op);

  bool fail(Operation *op, const Twine &message) { return machine.fail(op, message); }
  Val &get(Value value) { return env[value]; }
  int64_t getInt(Value value) { return env[value].word.i; }
  void setTile(Value value, std::shared_ptr<const Tile> tile) { env[value].tile = std::move(tile); }
  bool checkLive(Operation *op, const SmemRef &ref);
  /// Elements of a reg or smem, row-major.
  bool read(Operation *op, const Val &val, std::vector<Word> &data, SmallVectorImpl<int64_t> &shape);
  bool locate(Operation *op, const ViewRef &view, int64_t row, int64_t column, int64_t &index);
  /// Rows of a view; those past its end are zero, or NaN where they may be anything.
  bool copyIn(const Transfer &transfer, std::vector<Word> &data, ArrayRef<int64_t> shape, bool undefinedTail = false);
  bool copyOut(const Transfer &transfer, ArrayRef<Word> data, ArrayRef<int64_t> shape, bool whole);
  bool writeSmem(Operation *op, const SmemRef &ref, ArrayRef<Word> data);
  bool startBody(Operation *op, Body *body, SmallVectorImpl<Word> &frame);

  Machine &machine;
  DenseMap<Operation *, Instr> decoded;
  llvm::MapVector<Pipe *, PipeUse> uses;
  std::deque<std::shared_ptr<Pending>> inFlight;
  int64_t item = 0;
  friend class Machine;
};

inline int64_t getSize(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

} // namespace mlir::tile::interp

#endif
