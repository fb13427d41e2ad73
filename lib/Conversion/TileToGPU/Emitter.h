//===- Emitter.h - one tile kernel becomes one llvm.func -------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emitter walks a tile.kernel in program order and writes llvm and nvvm
// ops for one thread. A tile value is the list of this thread's registers, an
// index is a 32-bit register plus a constant (64-bit when it comes from the
// item's `table` field), a stage of shared memory is an offset. What the tile
// ops leave implicit (which stage comes next, which item) are counters that
// become block arguments of the loops that advance them.
//
// What each op becomes is in a table filled by the populate functions at the
// end, one per concern; a later entry for the same op replaces an earlier one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETOGPU_EMITTER_H
#define ATTN_LIB_CONVERSION_TILETOGPU_EMITTER_H

#include "attn/Dialect/Tile/IR/Layout.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Target/KnownTargets.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tile {

using Regs = SmallVector<Value>;

/// base + offset; base is null (a constant), i32 or i64.
struct Index {
  Value base;
  int64_t offset = 0;
  bool isConstant() const { return !base; }
};

/// A view: rows of a buffer.
struct View {
  ViewOp op;
  Value source; // the memref
  SmallVector<Index> offsets;
  std::optional<Index> rows; // number of valid rows
  Value pages;               // the page table, or null
  Index first;
  // Of pages that are gathered, global pointers: the view's columns in page 0, and the entry `first`.
  Value origin, entries;
};

/// Part of shared memory: `base` + `stage` + `rows` bytes (the last two i32 or null) from the start of the CTA's
/// memory. `whole` is the stage that it is cut from: it decides where panels and rows lie.
struct Smem {
  SmemType type, whole;
  int64_t base = 0;
  Value stage;
  Value rows;
  Value pipeline;         // the pipeline that the stage belongs to, or null
  bool rowGroups = false; // groups of 8 rows, in a group panel after panel (SharedMemory.h)
};

struct Pipeline {
  PipelineOp op;
  PipelineType type;
  int64_t slots = 0, slotStride = 0; // bytes; of the chained-to pipeline when chained
  int64_t full = 0, empty = 0;       // bytes of the first barrier (8 apart)
  int64_t words = 0;
  Pipeline *chain = nullptr;            // this pipeline hands on the slots of `chain`
  Pipeline *chained = nullptr;          // that pipeline frees the slots of this one
  std::pair<int64_t, int64_t> arrivals; // that complete the full and the empty barriers
  int64_t waiting = 0;                  // stages waited for and not released, at this point of the role
  bool gathered = false;                // filled by threads that copy rows, not by tensor copies
  bool rowGroups = false;               // how its stages lie
};

/// The threads that run the code being written.
struct Group {
  std::string name;
  int64_t warps = 1; // of one group
  int64_t groups = 1;
  int64_t firstWarp = 0;  // of group 0 in the CTA
  Value warp;             // number within the group, i32, the same for all lanes
  Value lane;             // i32
  Value laneIsZero;       // i1
  Value number;           // of the group, i32 (null when there is one)
  int64_t barrier = 0;    // first hardware barrier of the role; 0: the whole CTA
  int64_t turns = 0;      // first of the barriers by which the groups take turns; 0: they do not
  bool single = false;    // one elected thread runs the role
  Block *entry = nullptr; // dominates the role; ends in a branch
};

/// Counters that tile ops leave implicit.
enum class Counter { Acquire, Wait, Item };
using CounterKey = std::pair<Value, Counter>; // pipeline or items

class Emitter {
public:
  Emitter(KernelOp kernel, const ::attn::TargetInfo &target, OpBuilder builder);

  /// Writes the function (into the builder's block) or reports why not.
  FailureOr<LLVM::LLVMFuncOp> run();

  /// `handler` writes ops of type OpT.
  template <typename OpT> void on(LogicalResult (*handler)(Emitter &, OpT)) {
    typed[OpT::getOperationName()] = [handler](Emitter &e, Operation *op) { return handler(e, cast<OpT>(op)); };
  }

  /// What writes ops called `name`: to replace it by code that falls back on it.
  std::function<LogicalResult(Emitter &, Operation *)> &handler(StringRef name) { return typed[name]; }

  //===--- code ---===//
  OpBuilder b;
  Location loc;
  MLIRContext *context;
  const ::attn::TargetInfo &target;
  KernelOp kernel;
  Type i1, i8, i16, i32, i64, f32;
  Type shared, global, generic; // pointer types

  LogicalResult emitBlock(Block &block); // all ops but the terminator
  LogicalResult emitOp(Operation *op);
  Block *newBlock(TypeRange types = {});
  void enter(Block *block);
  /// Inserts at a place that dominates the role (before the branch that ends its entry block).
  OpBuilder::InsertPoint toEntry(Block *entry);

  Value c32(int64_t v);
  Value c64(int64_t v);
  Value c1(bool v);
  Value cf32(float v);
  template <typename OpT, typename... Args> Value make(Args &&...args) {
    return OpT::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }
  Value add(Value a, Value c), sub(Value a, Value c), mul(Value a, Value c);
  Value addSaturated(Value a, Value c);
  /// 1 / divisor (f32) within 1 ulp, once a block for each divisor: LLVM does not merge assembly. With `flushes`
  /// subnormal divisors are zeros.
  Value reciprocal(Value divisor, bool flushes);
  Value bitAnd(Value a, Value c), bitXor(Value a, Value c), bitOr(Value a, Value c);
  Value shr(Value a, int64_t by); // logical
  Value compare(LLVM::ICmpPredicate predicate, Value a, Value c);
  Value select(Value condition, Value a, Value c);
  /// Inline PTX. `results` of one type are returned apart.
  Regs ptx(StringRef code, StringRef constraints, ValueRange operands, TypeRange results, bool effects = true);
  /// Call of an LLVM intrinsic; null when there is no result.
  Value intrinsic(StringRef name, ValueRange operands, Type result = {});
  void callNone(StringRef name, ValueRange operands);
  Value shuffleXor(Value v, int64_t mask);

  //===--- values ---===//
  DenseMap<Value, Value> scalars;
  DenseMap<Value, Index> indices;
  DenseMap<Value, Regs> regs;
  DenseMap<Value, Smem> smems;
  DenseMap<Value, View> views;
  llvm::MapVector<Value, std::unique_ptr<Pipeline>> pipelines;

  Value scalar(Value v); // an index is materialised
  Index index(Value v);
  Value materialize(Index i); // i32, or i64 when wide
  Value narrow(Index i);      // i32
  Value widen(Index i);       // i64, sign extended
  Index addIndex(Index a, Index c);
  Regs &reg(Value v);
  const Fragment &fragment(Type regType);
  Pipeline &pipeline(Value v);
  /// The groups of a role issue products one after the other (tile-take-turns); the first is granted when the role
  /// begins.
  void takeTurn();
  void passTurn();
  void grantFirstTurn();
  bool isWide(Value v) { return wide.contains(v); }

  /// Registers that carry a value through a block argument, and back.
  LogicalResult flatten(Value v, Regs &out);
  LogicalResult flatTypes(Value v, SmallVectorImpl<Type> &out);
  LogicalResult bind(Value v, ArrayRef<Value> &in);
  LogicalResult alias(Value v, Value as); // v is the same as `as`

  //===--- arguments ---===//
  Value pointer(Value memref);             // of a kernel argument
  Value stride(Value memref, int64_t dim); // i64, elements
  Value sizeOf(Value memref, int64_t dim); // i64
  Value itemsPointer(Value items), itemsBounds(Value items);
  /// A tensor map parameter (an !llvm.ptr); the same record gives the same parameter.
  Value tensorMap(DictionaryAttr record);
  StringRef role(Value argument) { return kernel.getArgRole(cast<BlockArgument>(argument).getArgNumber()); }

  //===--- threads ---===//
  Group group;
  Value tid, cta;                       // i32
  Value lanePart(const LanePart &part); // cached at the role's entry
  /// `value`, a lane part, such that the back end cannot see through it.
  Value hideLanePart(Value value);
  /// The greatest value of each lane part.
  DenseMap<Value, int64_t> laneMax;
  /// Puts copies of these parts that the back end cannot see through in their place; `restoreLaneParts` undoes it.
  void hideLaneParts(ArrayRef<LanePart> parts);
  void restoreLaneParts();
  /// Coordinate of element e of a fragment in dimension d.
  Index coordinate(const Fragment &f, int64_t e, int64_t d);
  /// All threads of the group meet (a warp: bar.warp.sync).
  void sync();
  int64_t threads = 0;

  //===--- shared memory ---===//
  Value smemStart(); // i32 address of the CTA's dynamic shared memory
  Value smemBase();  // the same as a pointer
  Value smemPointer(Value bytes, int64_t constant = 0);
  /// i32 byte offset (base, stage and rows) without `constant`.
  Value smemOffset(const Smem &s);
  Value sharedPtr(int64_t constant) { return smemPointer(Value(), constant); }

  //===--- counters ---===//
  llvm::MapVector<CounterKey, Index> counters;
  Index &counter(Value of, Counter kind);
  /// (stage, parity) of the k-th use of a ring.
  std::pair<Value, Value> ringStage(Index k, int64_t stages);

  /// Of paged loads whose lookups are written already: pages of the boxes, or addresses of rows (halves of 32 bits).
  DenseMap<Operation *, Regs> pageNumbers, rowAddresses;

  /// What the lanes of the role that gathers begin with, by the shape of the tile (Sm80Copy.cpp).
  SmallVector<std::pair<SmallVector<int64_t>, Regs>> gatherLanes;

  /// First item and end of this role's list.
  DenseMap<Value, std::pair<Value, Value>> itemBounds;
  /// Values made once at the role's entry, by whoever wants them there.
  DenseMap<std::pair<Value, int64_t>, Value> roleValues;

  //===--- in flight ---===//
  struct InFlight {
    Value pending;
    Regs accumulators;
  };
  /// Partial sums of each row, of sums that waits stand behind.
  DenseMap<Value, SmallVector<Regs>> partials;
  SmallVector<InFlight> inFlight; // wgmma groups in issue order
  bool fenceNeeded = true;        // registers were touched since the last fence
  /// i1 of the branches around the code that is written without branches; loads are made where it holds. Null: always.
  Value guard;

  /// Conditions whose value is settled where the code is written: only the arm that is taken becomes code.
  DenseMap<Value, bool> settled;

  /// Attributes of the finished function: the manifest's words and maps.
  SmallVector<Attribute> words, maps;
  int64_t sharedBytes = 0;

  /// Values made in this block may not be reused where the builder stands now.
  void forgetLocal() { local.clear(); }

private:
  friend LogicalResult emitFor(Emitter &, scf::ForOp);
  friend LogicalResult emitWhile(Emitter &, scf::WhileOp);
  friend LogicalResult emitIf(Emitter &, scf::IfOp);
  friend LogicalResult emitRoles(Emitter &, RolesOp);
  friend LogicalResult emitForEach(Emitter &, ForEachOp);

  llvm::StringMap<std::function<LogicalResult(Emitter &, Operation *)>> typed;
  LLVM::LLVMFuncOp func;
  Region *region = nullptr;
  Block *entry = nullptr; // of the function
  int64_t numWords = 0;
  llvm::MapVector<Attribute, Value> wordValues, mapValues;
  DenseMap<Type, Fragment> fragments;
  DenseMap<std::tuple<void *, void *, int64_t>, Value> local; // block-local reuse of plain arithmetic
  SmallVector<std::pair<LanePart, Value>> laneParts, shownLaneParts;
  llvm::DenseSet<Value> wide;
  Value smemStartValue;

  Value word(DictionaryAttr record, Type type); // i64 or a pointer
  Value binary(StringRef name, Value a, Value c);
  void findWide();

  //===--- counters through control flow ---===//
  /// Counters that the regions of `op` advance, as representatives (block arguments) and the others as distances.
  struct CounterPlan {
    SmallVector<CounterKey> carried;
    SmallVector<std::tuple<CounterKey, CounterKey, int64_t>> derived; // key = other + distance
  };
  CounterPlan planCounters(Operation *op);
  void carryOut(const CounterPlan &plan, Regs &out);
  void carryIn(const CounterPlan &plan, ArrayRef<Value> in);
};

LogicalResult emitFor(Emitter &, scf::ForOp);
LogicalResult emitWhile(Emitter &, scf::WhileOp);
LogicalResult emitIf(Emitter &, scf::IfOp);
LogicalResult emitRoles(Emitter &, RolesOp);
LogicalResult emitForEach(Emitter &, ForEachOp);

/// Bytes and address of row `row` (an index) of a view: !llvm.ptr<1>. `page` rows come from the table.
FailureOr<Value> rowAddress(Emitter &e, const View &view, Index row);
/// The same in elements (i64) from the buffer's first.
/// i1, or null when every row exists.
Value rowExists(Emitter &e, const View &view, Index row);
/// Byte offset (i32, and a constant) of (row, column) of a stage in shared memory. `row` is a lane part plus a constant
/// multiple of 8 or less than 8; the caller passes the lane part and the constant apart.
Value smemAddress(Emitter &e, const Smem &s, Index row, Index chunk);

/// e4m3 and e5m2: tiles in registers hold them as f16, scalars of bodies too.
inline bool isEightBitFloat(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); }

/// f32 pairs to packed 16-bit registers and back.
Value pack16(Emitter &e, Value low, Value high, Type element);
std::pair<Value, Value> unpack16(Emitter &e, Value packed, Type element);

/// Refuses stages by groups of rows where the code expects whole panels.
LogicalResult checkPanels(Operation *op, const Smem &s);

/// Branch back to a loop's header, never unrolled: ptxas would copy the body, and takes seconds over it.
void branchBack(Emitter &e, Block *header, ValueRange operands);

/// Bytes 2 `half` and 2 `half` + 1 of `word`, 8-bit floats, as a pair of f16.
Value widenPair(Emitter &e, Value word, int64_t half, bool e5m2);

/// Full barrier of the stage that the role acquired last.
Value fullBarrierOfAcquired(Emitter &e, Value pipeline);

/// Writes the page lookups of a paged load (tensor copies; a gather); its view and row are known.
void lookUpPages(Emitter &e, LoadAsyncOp op);
LogicalResult lookUpRows(Emitter &e, LoadAsyncOp op);
/// Writes the copies of a gather into a stage: each thread of the group has some. They are not waited for.
LogicalResult gatherRows(Emitter &e, LoadAsyncOp op);

void populateControlFlow(Emitter &e);
void populateScalar(Emitter &e);
void populateElementwise(Emitter &e);
void populateMemory(Emitter &e);
void populateScan(Emitter &e);
void populateTransform(Emitter &e);
void populateSm80(Emitter &e);
void populateSm90Pipeline(Emitter &e);
void populateSm90Tma(Emitter &e);
void populateSm90Wgmma(Emitter &e);

} // namespace mlir::tile

#endif
