//===- KernelBuilder.h - what attention and merge kernels are built with -*- C++ -*-===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to attn-to-tile: the kernel's specification, its arguments, short
// spellings of tile ops, and where the coordinates of hooks come from.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELBUILDER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELBUILDER_H

#include "attn/Analysis/RangeProgram.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::attn {

/// What a kernel is made from: the op, its variant, one config.
struct KernelSpec {
  /// `variant`: whose hooks the kernel gets; null: none.
  KernelSpec(AttentionOp op, VariantOp variant, ConfigAttr config, const RangeProgram &range);

  AttentionOp op;
  VariantOp variant;
  ConfigAttr config;
  const RangeProgram &range;
  FormatKind format;
  int64_t dqk, dvo, page, group;
  int64_t dqkTile, dvoTile; // columns of tiles: on a GPU whole steps of the products, the rest is zero
  Type qType, kvType, oType;
  bool softmax, fp8, gpu;
  bool bounded; // the softmax needs no maximum

  HookOp getHook(HookKind kind) const { return variant ? VariantOp(variant).getHook(kind) : HookOp(); }
  /// 64 or 32 keys of one group where the config has groups, else all of them.
  int64_t keysPerGroup() const { return config.getKeys() / config.getGroups(); }
};

/// Input of a tile.map or tile.mask: a register tile and the dimensions of the result that it spans (empty: all).
struct MapInput {
  Value reg;
  SmallVector<int64_t> dims;
};

using MapBody = llvm::function_ref<Value(OpBuilder &, Location, ValueRange inputs, ValueRange indices)>;

/// The coordinates of AttnWorkItem, as the arguments of tile.for_each.
struct ItemFields {
  Value token0, rows, head, request, table, kvLen, kpos0, qpos0, klo, khi, slot, qoLen, row0, kvTotal;
};

/// A kernel under construction.
class KernelBuilder {
public:
  /// Creates the kernel with the arguments of `roles` and an empty for_each; leaves `b` in its body. Arguments of
  /// every kernel: first those of `roles`, then the variant's parameters.
  KernelBuilder(OpBuilder &builder, const KernelSpec &spec, StringRef name, ConfigAttr config,
                ArrayRef<StringRef> roles);

  const KernelSpec &spec;
  OpBuilder b;
  Location loc;
  tile::KernelOp kernel;
  tile::ForEachOp forEach;
  ItemFields item;
  /// The variant's parameters and constants in this kernel.
  IRMapping variantMap;

  /// The argument with that role, or null.
  Value arg(StringRef role) const { return args.lookup(role); }
  SmallVector<Value> getParams() const { return params; }

  /// Constants, at the top of the kernel, one each.
  Value index(int64_t value);
  Value f32(float value);
  /// A place at the top of the kernel, after the constants made so far.
  OpBuilder top();

  static tile::RegType reg(ArrayRef<int64_t> shape, Type element) { return tile::RegType::get(shape, element); }
  Value splat(float value, ArrayRef<int64_t> shape);
  Value map(tile::RegType result, ArrayRef<MapInput> inputs, MapBody body, bool at = false);
  /// As map, with any number of results.
  SmallVector<Value>
  mapMany(ArrayRef<tile::RegType> results, ArrayRef<MapInput> inputs, bool at,
          llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange, ValueRange)> body);
  template <typename OpTy> Value mapOp(tile::RegType result, ArrayRef<MapInput> inputs) {
    return map(result, inputs, [&](OpBuilder &b, Location loc, ValueRange in, ValueRange) -> Value {
      return OpTy::create(b, loc, result.getElementType(), in);
    });
  }
  /// Converts to `element`, which may be the type that it has.
  Value convert(Value reg, Type element);
  Value reduce(tile::ReduceKind kind, Value reg, int64_t dim, Value init = {});

  /// Drops item fields that nobody reads. Call when the kernel is complete.
  void finish();

private:
  llvm::StringMap<Value> args;
  SmallVector<Value> params;
  llvm::DenseMap<int64_t, Value> indexConstants;
  llvm::DenseMap<uint32_t, Value> floatConstants;
  Operation *lastTop = nullptr;
};

/// Scalar float conversion between any two float types (none when equal).
Value convertFloat(OpBuilder &b, Location loc, Value value, Type type);

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

enum class CoordKind { QPos, KVPos, Request, QHead, KVHead, QoLen, KVLen, Row };
/// The kind of a coordinate op, none for other ops.
std::optional<CoordKind> getCoordKind(Operation *op);

/// Where the query-side coordinates of a tile's rows come from: one value for the whole tile, a register tile of one
/// value a row, or a base to which the row's number is added.
class RowCoords {
public:
  struct Source {
    Value uniform, reg, base;
  };
  /// `heads`: rows are heads of one token (merge), else packed rows of an item.
  RowCoords(KernelBuilder &kb, bool heads) : kb(kb), heads(heads) {}
  /// Makes what the coordinates of `hook` need at the builder's present place; uses must be dominated by it.
  void require(HookOp hook);
  const Source &get(CoordKind kind) const { return sources[static_cast<int>(kind)]; }
  Value getLastRow();

private:
  void require(CoordKind kind);
  KernelBuilder &kb;
  bool heads;
  Value lastRow;
  Source sources[8];
};

/// Where key-side coordinates come from: the loop's key `j`.
struct KeyCoords {
  Value j;
  /// bsr: a register tile of positions.
  Value positions;
  /// bsr, in consumers: what is added to a key's number, for each column block of the keys.
  SmallVector<Value> shifts;
};

/// The frame of one tile.map or tile.mask: which dimensions are rows and keys.
struct CoordFrame {
  RowCoords *rows = nullptr;
  int64_t rowDim = -1;
  const KeyCoords *keys = nullptr;
  SmallVector<int64_t> keyDims; // key, or group and key
};

/// The key's number within its level, from the indices of a frame.
Value buildKey(OpBuilder &b, Location loc, KernelBuilder &kb, const CoordFrame &frame, ValueRange indices);

/// The last key's number. Consumers visit a block of keys of those who have none, too: 0 there.
Value buildLastKey(OpBuilder &b, Location loc, KernelBuilder &kb);

//===----------------------------------------------------------------------===//
// Hooks
//===----------------------------------------------------------------------===//

/// One hook's region, cloned into the bodies of tile ops.
class HookBody {
public:
  /// Adds the row registers that the hook reads to `inputs`.
  HookBody(KernelBuilder &kb, HookOp hook, const CoordFrame &frame, SmallVectorImpl<MapInput> &inputs);

  /// The value of a scalar hook: clones the whole region. `x` replaces the hook's first argument where it has one.
  Value clone(OpBuilder &b, Location loc, ValueRange inputs, ValueRange indices, Value x = {});

  /// The value of a mask hook: the terms that compare places, and those that look up entries at the key's position,
  /// which do so where `looksUp` (i1, the same for all elements; null: everywhere). Either is null when there are none.
  std::pair<Value, Value> cloneMask(OpBuilder &b, Location loc, ValueRange inputs, ValueRange indices, Value looksUp);

  /// Starts a body in which single values are asked for.
  void begin(OpBuilder &b, Location loc, ValueRange inputs, ValueRange indices);
  /// A scalar of the hook in the body begun last (cloned with what it needs).
  Value scalar(Value value);

private:
  Value coord(CoordKind kind);
  void replaceCoords(Operation *op);
  void compareUnclamped();
  KernelBuilder &kb;
  HookOp hook;
  const CoordFrame &frame;
  bool clampRows, clampKeys; // to positions that exist
  unsigned firstInput;
  llvm::DenseMap<int, unsigned> inputOf;
  // The body begun last.
  OpBuilder *b = nullptr;
  std::optional<Location> loc;
  ValueRange inputs, indices;
  IRMapping mapping;
  llvm::DenseMap<int, Value> coordCache;
};

/// Lifts a head-vector hook to tiles: `x` is [..., D] of any float type, the result is of type `element`. Reports an
/// error at the op that cannot be lifted.
FailureOr<Value> liftVectorHook(KernelBuilder &kb, HookOp hook, const CoordFrame &frame, Value x, Type element);

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Writes o and lse: sink, output hook, rounding, base of lse. `o` [rows, D] is normalised, `lse2` [rows] is in base 2
/// (null without a normalizer). `pack` is the packing of the views of o and lse.
LogicalResult buildFinalise(KernelBuilder &kb, Value o, Value lse2, int64_t pack, bool heads);

/// o / sum and base-2 lse of a state (maximum, sum, unnormalised o); an empty state is (0, -inf). Without a maximum
/// (null) weights are powers of the logits themselves.
std::pair<Value, Value> buildNormalise(KernelBuilder &kb, Value max, Value sum, Value o);

/// 0 where x = -inf (subtracting it is then harmless), else x.
Value buildZeroIfEmpty(KernelBuilder &kb, Value x);
/// exp2(x - y); y spans dimensions `dims` of x (empty: all).
Value buildExp2Diff(KernelBuilder &kb, Value x, Value y, ArrayRef<int64_t> dims = {});

FailureOr<tile::KernelOp> buildAttentionKernel(OpBuilder &builder, const KernelSpec &spec, StringRef name);
FailureOr<tile::KernelOp> buildMergeKernel(OpBuilder &builder, const KernelSpec &spec, StringRef name);

} // namespace mlir::attn

#endif
