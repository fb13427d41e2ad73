//===- EmitMemory.cpp - views, rows in global memory, shared memory by plain stores ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row of a view has a 64-bit address and exists or not. Loads into registers
// give zero for rows that do not exist, stores skip them: both stand under a
// branch per row, with vectors of up to 16 bytes where the layout has them.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "attn/Dialect/Tile/IR/Gather.h"
#include "attn/Dialect/Tile/Transforms/SharedMemory.h"

using namespace mlir;
using namespace mlir::tile;

/// Adds `i` times the stride of dimension `dim` to an offset in elements (i64).
static Value addScaled(Emitter &e, Value offset, Value source, Index i, int64_t dim) {
  if (i.isConstant() && i.offset == 0)
    return offset;
  Value part = e.mul(e.widen(i), e.stride(source, dim));
  return offset ? e.add(offset, part) : part;
}

static LogicalResult emitView(Emitter &e, ViewOp op) {
  auto argument = [&](Value v) {
    auto arg = dyn_cast<BlockArgument>(v);
    return arg && arg.getOwner() == &e.kernel.getBody().front();
  };
  if (!argument(op.getSource()) || (op.getPages() && !argument(op.getPages())))
    return op.emitError() << "is of a buffer that is not an argument of the kernel";
  auto source = dyn_cast<MemRefType>(op.getSource().getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!source || failed(source.getStridesAndOffset(strides, offset)) || strides.empty())
    return op.emitError() << "is of a buffer whose layout is not strided";
  View view;
  view.op = op;
  view.source = op.getSource();
  for (Value offset : op.getOffsets())
    view.offsets.push_back(e.index(offset));
  if (op.getRows())
    view.rows = e.index(op.getRows());
  view.pages = op.getPages();
  if (op.getFirst())
    view.first = e.index(op.getFirst());
  auto gathers = [](Operation *user) {
    auto load = dyn_cast<LoadAsyncOp>(user);
    return load && isGather(load);
  };
  if (view.pages && llvm::any_of(op->getUsers(), gathers)) {
    // Here and not where rows are looked up, which is in a loop.
    auto advance = [&](Value from, Type element, Value by) -> Value {
      return LLVM::GEPOp::create(e.b, e.loc, e.global, element, from, ArrayRef<LLVM::GEPArg>{by});
    };
    Type stored = isEightBitFloat(source.getElementType()) ? e.i8 : source.getElementType();
    Value heads;
    for (auto [i, head] : llvm::enumerate(view.offsets))
      heads = addScaled(e, heads, view.source, head, 2 + i);
    view.origin = e.pointer(view.source);
    if (heads)
      view.origin = advance(view.origin, stored, heads);
    view.entries =
        advance(e.pointer(view.pages), cast<MemRefType>(view.pages.getType()).getElementType(), e.widen(view.first));
  }
  e.views[op] = view;
  return success();
}

static std::pair<Index, Index> divide(Emitter &e, Index row, int64_t by) {
  if (row.isConstant())
    return {{Value(), row.offset / by}, {Value(), row.offset % by}};
  Value v = e.materialize(row);
  Value n = v.getType() == e.i64 ? e.c64(by) : e.c32(by);
  if (llvm::isPowerOf2_64(by))
    return {{e.shr(v, llvm::Log2_64(by)), 0}, {e.bitAnd(v, v.getType() == e.i64 ? e.c64(by - 1) : e.c32(by - 1)), 0}};
  Value q = LLVM::UDivOp::create(e.b, e.loc, v, n);
  return {{q, 0}, {e.sub(v, e.mul(q, n)), 0}};
}

static FailureOr<Value> rowOffset(Emitter &e, const View &view, Index row) {
  ViewType type = const_cast<View &>(view).op.getResult().getType();
  auto source = cast<MemRefType>(view.source.getType());
  int64_t rank = source.getRank(), vector = type.getRank() == 2 ? 1 : 0;
  Value offset;
  if (type.isPaged()) {
    assert(rank == 3 + vector && "view_c2 refuses other buffers of pages");
    auto [page, inside] = divide(e, row, type.getPage());
    Index entry = e.addIndex(view.first, page);
    Type element = cast<MemRefType>(view.pages.getType()).getElementType();
    assert((element.isInteger(32) || element.isInteger(64)) && "view_c5 refuses other tables");
    Value at = LLVM::GEPOp::create(e.b, e.loc, e.global, element, e.pointer(view.pages),
                                   ArrayRef<LLVM::GEPArg>{e.widen(entry)});
    auto load = LLVM::LoadOp::create(e.b, e.loc, element, at, element.getIntOrFloatBitWidth() / 8);
    load.setInvariant(true);
    Value number = load;
    if (element.isInteger(32))
      number = LLVM::SExtOp::create(e.b, e.loc, e.i64, number);
    offset = e.mul(number, e.stride(view.source, 0));
    offset = addScaled(e, offset, view.source, inside, 1);
    for (auto [i, head] : llvm::enumerate(view.offsets))
      offset = addScaled(e, offset, view.source, head, 2 + i);
  } else if (type.isPacked()) {
    auto [token, head] = divide(e, row, type.getPack());
    Index first = view.offsets.empty() ? Index() : view.offsets[0];
    Index firstHead = view.offsets.size() > 1 ? view.offsets[1] : Index();
    offset = addScaled(e, offset, view.source, e.addIndex(first, token), 0);
    offset = addScaled(e, offset, view.source, e.addIndex(firstHead, head), 1);
    for (size_t i = 2; i < view.offsets.size(); ++i)
      offset = addScaled(e, offset, view.source, view.offsets[i], i);
  } else {
    Index first = view.offsets.empty() ? Index() : view.offsets[0];
    offset = addScaled(e, offset, view.source, e.addIndex(first, row), 0);
    for (size_t i = 1; i < view.offsets.size(); ++i)
      offset = addScaled(e, offset, view.source, view.offsets[i], i);
  }
  return offset ? offset : e.c64(0);
}

FailureOr<Value> tile::rowAddress(Emitter &e, const View &view, Index row) {
  FailureOr<Value> offset = rowOffset(e, view, row);
  if (failed(offset))
    return failure();
  auto source = cast<MemRefType>(view.source.getType());
  Value pointer = e.pointer(view.source);
  if (matchPattern(*offset, m_Zero()))
    return pointer;
  Type stored = isEightBitFloat(source.getElementType()) ? e.i8 : source.getElementType();
  return Value(LLVM::GEPOp::create(e.b, e.loc, e.global, stored, pointer, ArrayRef<LLVM::GEPArg>{*offset}));
}

Value tile::rowExists(Emitter &e, const View &view, Index row) {
  if (!view.rows)
    return {};
  if (view.rows->isConstant() && row.isConstant() && row.offset < view.rows->offset)
    return {};
  Index limit = *view.rows;
  bool wide = (limit.base && limit.base.getType() == e.i64) || (row.base && row.base.getType() == e.i64);
  if (wide)
    return e.compare(LLVM::ICmpPredicate::slt, e.widen(row), e.widen(limit));
  return e.compare(LLVM::ICmpPredicate::slt, e.materialize(row), e.materialize(limit));
}

namespace {
/// Consecutive elements of one row in a thread's registers.
struct Run {
  int64_t element; // first, in register order
  int64_t count;
  int64_t row, column; // constants
};
} // namespace

/// Runs of the fragment along its last dimension (or single rows for rank 1), at most 16 bytes.
static SmallVector<Run> findRuns(const Fragment &f, int64_t bytes) {
  SmallVector<Run> runs;
  for (int64_t i = 0, n = f.getNumElements(); i < n; ++i) {
    ArrayRef<int64_t> at = f.getOffsets(i);
    int64_t row = at.size() > 1 ? at[at.size() - 2] : at[0], column = at.size() > 1 ? at.back() : 0;
    if (!runs.empty() && at.size() > 1) {
      Run &last = runs.back();
      int64_t grown = (last.count + 1) * bytes;
      if (last.row == row && column == last.column + last.count && last.element + last.count == i && grown <= 16 &&
          f.getOffsets(last.element).drop_back(2) == at.drop_back(2)) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({i, 1, row, column});
  }
  return runs;
}

/// The lanes of a quad hold pairs of columns of each of 4 groups of 8; afterwards each holds a group: lane i the pairs
/// of lanes 0 to 3 of group i. In two steps, each exchanging half of the registers with another lane.
static void exchangeInQuad(Emitter &e, MutableArrayRef<Value> pairs) {
  auto isSet = [&](int64_t bit) -> Value {
    return e.compare(LLVM::ICmpPredicate::ne, e.bitAnd(e.group.lane, e.c32(bit)), e.c32(0));
  };
  Value odd = isSet(1), high = isSet(2);
  Value half[2][2]; // group (lane & 1) + 2 h, of the lanes of this half of the quad
  for (int64_t h = 0; h < 2; ++h) {
    Value even = pairs[2 * h], other = pairs[2 * h + 1];
    Value got = e.shuffleXor(e.select(odd, even, other), 1);
    half[h][0] = e.select(odd, got, even);
    half[h][1] = e.select(odd, other, got);
  }
  for (int64_t i = 0; i < 2; ++i) {
    Value got = e.shuffleXor(e.select(high, half[0][i], half[1][i]), 2);
    pairs[i] = e.select(high, got, half[0][i]);
    pairs[2 + i] = e.select(high, half[1][i], got);
  }
}

/// Rows of at least so many columns are exchanged before they are stored: there no stage is free for a tensor copy of
/// the results, and stores of single registers took 5 % of a prefill's time (docs/Performance.md). Narrower tiles are
/// stored like this at the ends of requests only, and have no registers for it.
static constexpr int64_t kLeastExchanged = 256;

/// Runs of a 16-bit accumulator, a register each: where four of a row are whole groups of 8 columns one after another,
/// the first of them becomes 16 bytes of one group in each lane, and the others are dropped. A store of a register by
/// itself is 16 bytes of each of 8 rows: half a sector, and as dear as one of four registers.
static DenseMap<int64_t, Regs> exchangeRuns(Emitter &e, const Fragment &f, SmallVectorImpl<Run> &runs,
                                            ArrayRef<Value> values) {
  DenseMap<int64_t, Regs> exchanged;
  LanePart pairs{1, 4, 2, 1, 1, 0};
  if (f.getPack() != 2 || !(f.getLanePart(1) == pairs))
    return exchanged;
  SmallVector<Run> kept;
  for (size_t i = 0; i < runs.size();) {
    bool whole = i + 4 <= runs.size();
    for (size_t j = 0; whole && j < 4; ++j)
      whole = runs[i + j].count == 2 && runs[i + j].row == runs[i].row &&
              runs[i + j].column == runs[i].column + 8 * static_cast<int64_t>(j);
    kept.push_back(runs[i]);
    if (!whole) {
      ++i;
      continue;
    }
    Regs words;
    for (size_t j = 0; j < 4; ++j)
      words.push_back(LLVM::BitcastOp::create(e.b, e.loc, e.i32, values[runs[i + j].element / 2]));
    exchangeInQuad(e, words);
    exchanged[runs[i].element] = words;
    i += 4;
  }
  runs = kept;
  return exchanged;
}

static LogicalResult emitStore(Emitter &e, StoreOp op) {
  auto type = dyn_cast<RegType>(op.getValue().getType());
  if (!type)
    return op.emitError() << "stores from shared memory, which has code in the specialised form only (store_async)";
  const View &view = e.views.find(op.getView())->second;
  ViewType viewType = op.getView().getType();
  if (type.getElementType() != viewType.getElementType())
    return op.emitError() << "stores elements of type " << type.getElementType() << " to a view of "
                          << viewType.getElementType();
  if (type.getRank() != viewType.getRank())
    return op.emitError() << "stores a tile of rank " << type.getRank() << " to a view of rank " << viewType.getRank();
  const Fragment f = e.fragment(type);
  const Regs values = e.reg(op.getValue());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  if (bytes == 0 || isEightBitFloat(type.getElementType()))
    return op.emitError() << "stores elements of type " << type.getElementType();
  // Threads that hold copies (more warps than the layout, lanes that share a row) store once.
  Value mine;
  auto also = [&](Value c) { mine = mine ? e.bitAnd(mine, c) : c; };
  if (int64_t same = f.getSharedLaneMask())
    also(e.compare(LLVM::ICmpPredicate::eq, e.bitAnd(e.group.lane, e.c32(same)), e.c32(0)));
  if (f.getWarps() < e.group.warps)
    also(e.compare(LLVM::ICmpPredicate::ult, e.group.warp, e.c32(f.getWarps())));
  // Rows that repeat over warps because a dimension was reduced away.
  SmallVector<int64_t> kept;
  auto root = dyn_cast<MmaAttr>(getRootLayout(type.getLayout(), kept));
  if (auto operand = dyn_cast_or_null<OperandAttr>(getRootLayout(type.getLayout(), kept)))
    root = dyn_cast<MmaAttr>(operand.getParent());
  if (root) {
    int64_t div = 1;
    for (int64_t d = root.getWarps().size() - 1; d >= 0; --d) {
      int64_t n = root.getWarps()[d];
      if (n > 1 && !llvm::is_contained(kept, d)) {
        Value along = div > 1 ? Value(LLVM::UDivOp::create(e.b, e.loc, e.group.warp, e.c32(div))) : e.group.warp;
        along = LLVM::URemOp::create(e.b, e.loc, along, e.c32(n));
        also(e.compare(LLVM::ICmpPredicate::eq, along, e.c32(0)));
      }
      div *= n;
    }
  }
  int64_t rowDim = type.getRank() > 1 ? type.getRank() - 2 : 0;
  if (type.getRank() > 2)
    return op.emitError() << "stores a tile of rank 3, expected 1 or 2";
  SmallVector<Run> runs = findRuns(f, bytes);
  if (type.getRank() > 1) { // columns that the view does not have
    int64_t columns = viewType.getShape()[1];
    if (columns % 8)
      return op.emitError() << "stores rows of " << columns << " columns, expected a multiple of 8";
    llvm::erase_if(runs, [&](const Run &run) { return run.column >= columns; });
  }
  Index start = e.index(op.getRow());
  // One branch per row: the runs of a row are neighbours after this sort.
  llvm::stable_sort(runs, [](const Run &a, const Run &b) { return a.row < b.row; });
  DenseMap<int64_t, Regs> exchanged;
  if (type.getRank() > 1 && bytes == 2 && type.getShape()[1] >= kLeastExchanged)
    exchanged = exchangeRuns(e, f, runs, values);
  for (size_t i = 0; i < runs.size();) {
    size_t end = i;
    while (end < runs.size() && runs[end].row == runs[i].row)
      ++end;
    Index row = e.addIndex(start, {e.lanePart(f.getLanePart(rowDim)), runs[i].row});
    Value exists = rowExists(e, view, row);
    if (mine)
      exists = exists ? e.bitAnd(exists, mine) : mine;
    Block *store = nullptr, *join = nullptr;
    if (exists) {
      store = e.newBlock();
      join = e.newBlock();
      LLVM::CondBrOp::create(e.b, e.loc, exists, store, ValueRange(), join, ValueRange());
      e.enter(store);
    }
    FailureOr<Value> address = rowAddress(e, view, row);
    if (failed(address))
      return failure();
    Value base = *address;
    if (type.getRank() > 1)
      if (Value lane = e.lanePart(f.getLanePart(rowDim + 1)))
        base = LLVM::GEPOp::create(e.b, e.loc, e.global, type.getElementType(), base, ArrayRef<LLVM::GEPArg>{lane});
    for (; i < end; ++i) {
      const Run &run = runs[i];
      Value pointer = base;
      if (run.column)
        pointer = LLVM::GEPOp::create(e.b, e.loc, e.global, type.getElementType(), base,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(run.column)});
      // Whole registers, as a vector when there are several.
      SmallVector<Value> parts;
      if (auto words = exchanged.find(run.element); words != exchanged.end()) {
        parts = words->second;
        Value group = e.mul(e.bitAnd(e.group.lane, e.c32(3)), e.c32(6)); // on top of 2 columns a lane
        pointer =
            LLVM::GEPOp::create(e.b, e.loc, e.global, type.getElementType(), pointer, ArrayRef<LLVM::GEPArg>{group});
      } else
        for (int64_t k = 0; k < run.count; k += f.getPack())
          parts.push_back(values[(run.element + k) / f.getPack()]);
      Value v = parts[0];
      if (parts.size() > 1) {
        v = LLVM::UndefOp::create(e.b, e.loc,
                                  VectorType::get({static_cast<int64_t>(parts.size())}, parts[0].getType()));
        for (auto [k, part] : llvm::enumerate(parts))
          v = LLVM::InsertElementOp::create(e.b, e.loc, v, part, e.c32(k));
      }
      LLVM::StoreOp::create(e.b, e.loc, v, pointer, parts.size() * (f.getPack() == 2 ? 4 : bytes));
    }
    if (exists) {
      LLVM::BrOp::create(e.b, e.loc, ValueRange(), join);
      e.enter(join);
    }
  }
  return success();
}

/// Rows straight into registers; shared-memory results belong to the copy patterns of a machine.
static LogicalResult emitLoad(Emitter &e, LoadOp op) {
  auto type = dyn_cast<RegType>(op.getResult().getType());
  if (!type)
    return op.emitError() << "loads into shared memory, which has no code on " << e.target.chip
                          << " outside a pipeline";
  const View &view = e.views.find(op.getView())->second;
  ViewType viewType = op.getView().getType();
  if (type.getElementType() != viewType.getElementType() || type.getRank() != viewType.getRank() || type.getRank() > 2)
    return op.emitError() << "loads a tile " << type << " from a view " << viewType
                          << ", expected the same rank and elements";
  if (isEightBitFloat(type.getElementType()))
    return op.emitError() << "loads " << type.getElementType()
                          << " into registers, which has code through shared memory only";
  const Fragment f = e.fragment(type);
  int64_t bytes =
      std::max<int64_t>(1, type.getElementType().isIndex() ? 8 : type.getElementType().getIntOrFloatBitWidth() / 8);
  int64_t rowDim = type.getRank() > 1 ? type.getRank() - 2 : 0;
  SmallVector<Run> runs = findRuns(f, bytes);
  Type part = f.getPack() == 2 ? e.i32 : type.getElementType();
  Regs out(f.getNumRegisters());
  if (type.getRank() > 1 && type.getShape().back() > viewType.getShape()[1]) { // columns that the view does not have
    int64_t columns = viewType.getShape()[1];
    if (columns % 8)
      return op.emitError() << "loads rows of " << columns << " columns, expected a multiple of 8";
    out.assign(out.size(), LLVM::ConstantOp::create(e.b, e.loc, part, e.b.getZeroAttr(part)));
    llvm::erase_if(runs, [&](const Run &run) { return run.column >= columns; });
  }
  llvm::stable_sort(runs, [](const Run &a, const Run &b) { return a.row < b.row; });
  Index start = e.index(op.getRow());
  for (size_t i = 0; i < runs.size();) {
    size_t first = i, end = i;
    int64_t registers = 0;
    while (end < runs.size() && runs[end].row == runs[i].row)
      registers += runs[end++].count / f.getPack();
    Index row = e.addIndex(start, {e.lanePart(f.getLanePart(rowDim)), runs[i].row});
    Value exists = rowExists(e, view, row);
    Block *load = nullptr, *join = nullptr;
    if (exists) {
      load = e.newBlock();
      join = e.newBlock(SmallVector<Type>(registers, part));
      Value zero = LLVM::ConstantOp::create(e.b, e.loc, part, e.b.getZeroAttr(part));
      LLVM::CondBrOp::create(e.b, e.loc, exists, load, ValueRange(), join, SmallVector<Value>(registers, zero));
      e.enter(load);
    }
    FailureOr<Value> address = rowAddress(e, view, row);
    if (failed(address))
      return failure();
    Value base = *address;
    if (type.getRank() > 1)
      if (Value lane = e.lanePart(f.getLanePart(rowDim + 1)))
        base = LLVM::GEPOp::create(e.b, e.loc, e.global, type.getElementType(), base, ArrayRef<LLVM::GEPArg>{lane});
    SmallVector<Value> loaded;
    for (; i < end; ++i) {
      const Run &run = runs[i];
      Value pointer = base;
      if (run.column)
        pointer = LLVM::GEPOp::create(e.b, e.loc, e.global, type.getElementType(), base,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(run.column)});
      int64_t n = run.count / f.getPack();
      Type whole = n > 1 ? Type(VectorType::get({n}, part)) : part;
      Value v = LLVM::LoadOp::create(e.b, e.loc, whole, pointer, n * (f.getPack() == 2 ? 4 : bytes));
      for (int64_t k = 0; k < n; ++k)
        loaded.push_back(n > 1 ? Value(LLVM::ExtractElementOp::create(e.b, e.loc, v, e.c32(k))) : v);
    }
    if (exists) {
      LLVM::BrOp::create(e.b, e.loc, loaded, join);
      e.enter(join);
      loaded.assign(join->args_begin(), join->args_end());
    }
    size_t k = 0;
    for (size_t r = first; r < end; ++r)
      for (int64_t n = 0; n < runs[r].count / f.getPack(); ++n)
        out[runs[r].element / f.getPack() + n] = loaded[k++];
  }
  e.regs[op.getResult()] = out;
  return success();
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

static LogicalResult emitSubview(Emitter &e, SubviewOp op) {
  Smem s = e.smems.find(op.getSource())->second;
  FailureOr<SmemShape> shape = SmemShape::get(s.whole, [&]() { return op.emitOpError(); });
  if (failed(shape))
    return failure();
  int64_t rank = s.type.getRank();
  auto dynamic = op.getOffsets().begin();
  for (auto [d, offset] : llvm::enumerate(op.getStaticOffsets())) {
    Index i = ShapedType::isDynamic(offset) ? e.index(*dynamic++) : Index{Value(), offset};
    int64_t left = rank - 1 - d;
    if (left == 0) { // columns: whole panels
      if (!i.isConstant() || i.offset % shape->panelColumns)
        return op.emitError() << "cuts columns at other places than whole panels of " << shape->panelColumns;
      s.base += i.offset / shape->panelColumns * shape->panelBytes;
      continue;
    }
    int64_t unit = left == 1 ? shape->rowBytes : shape->panelBytes * shape->panels;
    if (left == 1 && shape->chunkMask && i.isConstant() && i.offset % (8))
      return op.emitError() << "cuts rows at " << i.offset
                            << ", expected a multiple of 8 (the swizzle repeats every 8 rows)";
    s.base += i.offset * unit;
    if (i.base) {
      Value bytes = e.mul(e.narrow({i.base, 0}), e.c32(unit));
      s.rows = s.rows ? e.add(s.rows, bytes) : bytes;
    }
  }
  s.type = op.getResult().getType();
  e.smems[op] = s;
  return success();
}

Value tile::smemAddress(Emitter &e, const Smem &s, Index row, Index chunk) {
  SmemShape shape = *SmemShape::get(s.whole);
  // (chunk ^ swizzle(row)) * 16: the constant of the row is a multiple of 8 or the lane part is, so that only one of
  // them reaches the swizzle.
  int64_t chunksPerPanel = shape.rowBytes / 16;
  Value offset = e.smemOffset(s);
  int64_t constant = s.base;
  Value where;
  int64_t panel = chunk.offset / chunksPerPanel, inside = chunk.offset % chunksPerPanel;
  constant += panel * shape.panelBytes;
  Value chunkValue = chunk.base ? e.add(e.c32(inside), e.narrow({chunk.base, 0})) : e.c32(inside);
  if (shape.chunkMask) {
    Value turn;
    if (row.base)
      turn = e.bitAnd(e.shr(row.offset % 8 ? e.narrow(row) : e.narrow({row.base, 0}), shape.rowShift),
                      e.c32(shape.chunkMask));
    else
      turn = e.c32((row.offset >> shape.rowShift) & shape.chunkMask);
    where = e.mul(e.bitXor(chunkValue, turn), e.c32(16));
  } else {
    where = e.mul(chunkValue, e.c32(16));
  }
  if (row.base)
    offset = e.add(offset, e.mul(e.narrow({row.base, 0}), e.c32(shape.rowBytes)));
  constant += row.offset * shape.rowBytes;
  return e.add(e.add(offset, where), e.c32(constant));
}

void tile::populateMemory(Emitter &e) {
  e.on<ViewOp>(emitView);
  e.on<StoreOp>(emitStore);
  e.on<LoadOp>(emitLoad);
  e.on<SubviewOp>(emitSubview);
}
