//===- Emitter.h - level-L kernels as loops over vectors --------*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One object emits one kernel, walking it in program order. Tiles live in the
// caller's scratch buffer at constant offsets; a buffer is reused as soon as
// the last use of every value in it has been emitted. Floats narrower than 32
// bits are f32 values that the narrow type can hold: they are widened when
// they are read from global memory and rounded where the program rounds, so
// that no op works on a narrow float and no compiler-rt call is left.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETOCPU_EMITTER_H
#define ATTN_LIB_CONVERSION_TILETOCPU_EMITTER_H

#include "attn/Conversion/TileToCPU/TileToCPU.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <memory>

namespace mlir::tile::cpu {

/// A part of scratch and the tile values that are in it.
struct Buffer {
  int64_t offset = 0;
  int64_t bytes = 0;
  SmallVector<Value> occupants;
  bool pinned = false; // a loop's or a branch's: freed by whoever pinned it
};

/// A tile value: strided elements of a buffer, or one scalar for all elements.
struct TileRef {
  SmallVector<int64_t> shape;
  SmallVector<int64_t> strides; // in elements; the last is 1
  Type element;                 // as the program says
  Value base;
  Buffer *buffer = nullptr;
  Value splat;
  bool isSplat() const { return !!splat; }
};

/// A buffer argument of the kernel.
struct BufferRef {
  Value pointer;
  MemRefType type;
  unsigned argument = 0;
  SmallVector<Value> strides;
};

/// Rows of a buffer.
struct ViewRef {
  BufferRef source;
  SmallVector<Value> offsets;
  Value rows;
  BufferRef pages;
  Value first;
  ViewType type;
};

class Emitter {
public:
  Emitter(KernelOp kernel, const TileToCPUOptions &options, SymbolTable &symbols)
      : kernel(kernel), options(options), symbols(symbols), b(kernel.getContext()), loc(kernel.getLoc()) {}

  /// Emits the function before the kernel. The kernel is left for the caller to erase.
  FailureOr<func::FuncOp> run();
  /// Functions whose body has been emitted in place of a call.
  const llvm::SetVector<Operation *> &getInlined() const { return inlined; }

private:
  //===--- Kernel.cpp: function, words, structure ---===//
  LogicalResult bindArguments();
  LogicalResult checkTypes();
  /// Values that control flow hands on are tiles or scalars.
  LogicalResult checkCarried(Operation *op, ValueRange values);
  static bool isSupported(Type element);
  Value getWord(DictionaryAttr word, Type type);
  DictionaryAttr makeWord(StringRef kind, StringRef operand = {}, int64_t dim = -1);
  FailureOr<Value> getSize(const BufferRef &buffer, int64_t dim);
  LogicalResult emitForEach(ForEachOp op);
  LogicalResult emitBlock(Block &block);
  LogicalResult emitStructural(Operation *op);
  LogicalResult emitFor(scf::ForOp op);
  LogicalResult emitWhile(scf::WhileOp op);
  LogicalResult emitIf(scf::IfOp op);
  LogicalResult emitConcat(ConcatOp op);
  LogicalResult emitSwapPairs(SwapPairsOp op);
  void propagateWant(Value value, Buffer *buffer, Block *block);

  //===--- Scratch.cpp: buffers and tile values ---===//
  Buffer *allocate(int64_t bytes);
  void release(Buffer *buffer);
  void finish(ArrayRef<Operation *> ops); // emitted: frees what they were the last to use
  bool isDead(Value value, ArrayRef<Operation *> alsoDone) const;
  TileRef makeTile(Type type, Buffer *buffer);
  /// Destination of `result`: the wanted buffer when nothing live is in it, else a new one. `inPlace` says whether
  /// `op`, one of `ops`, may overwrite its operand `value` while it runs.
  TileRef makeDestination(Value result, ArrayRef<Operation *> ops,
                          llvm::function_ref<bool(Operation *op, Value value)> inPlace);
  TileRef materialize(const TileRef &tile);
  void bind(Value value, const TileRef &tile);
  void copyTile(const TileRef &from, const TileRef &to);
  Value elementPointer(const TileRef &tile, ValueRange indices);
  /// W = 0: a scalar.
  Value loadTile(const TileRef &tile, ValueRange indices, int64_t w);
  void storeTile(Value value, const TileRef &tile, ValueRange indices);
  static bool isTile(Type type) { return isa<RegType, SmemType>(type); }
  static Type storageType(Type element, MLIRContext *context);
  static int64_t storageBytes(Type element);

  //===--- Views.cpp ---===//
  LogicalResult emitView(ViewOp op);
  LogicalResult emitLoad(LoadOp op);
  LogicalResult emitStore(StoreOp op);
  Value rowPointer(const ViewRef &view, Value row);
  Value clampRows(const ViewRef &view, Value row, int64_t count);

  //===--- Dot.cpp ---===//
  LogicalResult emitDot(DotOp op);
  void dotTransposed(const TileRef &a, const TileRef &bt, const TileRef *acc, const TileRef &c, ValueRange batch);
  void dotPlain(const TileRef &a, const TileRef &bn, const TileRef *acc, const TileRef &c, ValueRange batch);

  //===--- Groups.cpp: maps, masks and reductions fused into loop nests ---===//
  LogicalResult emitRun(SmallVectorImpl<Operation *> &run);
  LogicalResult emitGroup(ArrayRef<Operation *> ops);
  LogicalResult emitNest(ArrayRef<Operation *> ops, ArrayRef<int64_t> shape, bool skipMasks);
  LogicalResult emitOuterReduce(ReduceOp op);
  Value reduceLanes(Value vector, ReduceKind kind);
  Value combine(Value a, Value b, ReduceKind kind);

  //===--- Body.cpp: scalar code, on scalars or on vectors of `w` lanes ---===//
  LogicalResult emitScalar(Operation *op, int64_t w);
  LogicalResult emitBody(Block &block, int64_t w); // all but the terminator
  LogicalResult emitElementwise(Operation *op, int64_t w);
  LogicalResult emitMemRefLoad(memref::LoadOp op, int64_t w);
  LogicalResult emitCall(func::CallOp op, int64_t w);
  LogicalResult emitScalarIf(scf::IfOp op, int64_t w);
  LogicalResult emitScalarFor(scf::ForOp op, int64_t w);
  LogicalResult emitScalarWhile(scf::WhileOp op);
  LogicalResult emitPerLane(Operation *op, int64_t w);
  bool canSpeculate(Region &region);
  Value lookup(Value value) const { return scalars.lookup(value); }
  /// A value of vector type, whatever it was.
  Value widen(Value value, int64_t w);
  static bool isVarying(Value value) { return isa<VectorType>(value.getType()); }
  /// The type that computes for `type`: f32 for narrow floats.
  Type computeType(Type type) const;
  static bool isNarrowFloat(Type type);

  //===--- Convert.cpp: storage formats ---===//
  Value loadConverted(Value pointer, Type element, int64_t w);
  void storeConverted(Value value, Type element, Value pointer);
  Value roundTo(Value value, FloatType type);
  Value toBits(Value value, FloatType type);
  Value fromBits(Value bits, FloatType type);

  //===--- small helpers ---===//
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value constant(Type type, double value); // float, index or integer, scalar or vector
  Value constantInt(Type type, int64_t value);
  Value zeroOf(Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type)) ? constant(type, 0.0) : constantInt(type, 0);
  }
  Value gep(Value base, Type element, Value offset);
  Value iota(Value base, int64_t w); // base, base + 1, ... as vector<w x index>
  Type vec(Type element, int64_t w) const { return w ? Type(VectorType::get({w}, element)) : element; }
  static Type withElement(Type like, Type element);
  /// Largest power of two that divides `n`, at most the target's width.
  int64_t widthFor(int64_t n) const;
  /// A loop of `body` from 0 to `count`, or the body once when count is 1.
  void loop(int64_t count, int64_t step, llvm::function_ref<void(Value)> body);
  InFlightDiagnostic error(Operation *op, const Twine &text) { return op->emitOpError(text); }
  Type ptr() const { return LLVM::LLVMPointerType::get(b.getContext()); }

  KernelOp kernel;
  TileToCPUOptions options;
  SymbolTable &symbols;
  OpBuilder b;
  Location loc;
  func::FuncOp function;
  Value wordsArg, ctaArg, scratchArg;
  SmallVector<Attribute> words;
  llvm::MapVector<Attribute, Value> wordValues;
  Operation *entryEnd = nullptr; // words are loaded before it

  llvm::DenseMap<Value, Value> scalars;
  llvm::DenseMap<Value, TileRef> tiles;
  llvm::DenseMap<Value, ViewRef> views;
  llvm::DenseMap<Value, BufferRef> memrefs;
  llvm::DenseMap<Value, Value> iotas; // vector -> its first lane, when lanes count up by one
  llvm::DenseMap<Value, Buffer *> want;
  llvm::DenseSet<Operation *> emitted;
  llvm::SetVector<Operation *> inlined;
  SmallVector<func::FuncOp> callStack;

  std::vector<std::unique_ptr<Buffer>> live;
  int64_t scratchBytes = 0;
  bool hasLocalStores = false;

  // State of the nest being emitted.
  llvm::DenseMap<Value, TileRef> destinations;
};

} // namespace mlir::tile::cpu

#endif
