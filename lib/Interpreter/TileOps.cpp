//===- TileOps.cpp - tile ops on values ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The synchronous ops: views, transfers, shared memory and registers.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tile;
using namespace mlir::tile::interp;

static bool isPartial(RegType type) {
  auto slice = dyn_cast_or_null<SliceAttr>(type.getLayout());
  return slice && slice.getPartial();
}

Tile::Tile(RegType type)
    : shape(type.getShape()), element(type.getElementType()), lanes(isPartial(type) ? 4 : 1),
      data(getSize(shape) * lanes, Word{}) {}

Smem::Smem(SmemType type) : shape(type.getShape()), element(type.getElementType()), data(getSize(shape), Word{}) {
  poison();
}

void Smem::poison() {
  Word word = {};
  if (isa<FloatType>(element))
    word.f = std::numeric_limits<double>::quiet_NaN();
  else
    word.i = -0x55;
  llvm::fill(data, word);
}

/// Calls `f` with the index of each element of `shape` in turn.
template <typename F> static bool forEach(ArrayRef<int64_t> shape, F f) {
  SmallVector<int64_t, 3> at(shape.size(), 0);
  for (int64_t n = getSize(shape); n > 0; --n) {
    if (!f(ArrayRef<int64_t>(at)))
      return false;
    for (size_t i = shape.size(); i-- > 0;) {
      if (++at[i] < shape[i])
        break;
      at[i] = 0;
    }
  }
  return true;
}

static int64_t flatten(ArrayRef<int64_t> at, ArrayRef<int64_t> shape) {
  int64_t index = 0;
  for (size_t i = 0; i < at.size(); ++i)
    index = index * shape[i] + at[i];
  return index;
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

bool Task::runView(ViewOp op) {
  auto view = std::make_shared<ViewRef>();
  view->type = op.getResult().getType();
  view->source = get(op.getSource()).word.p;
  view->pages = op.getPages() ? get(op.getPages()).word.p : nullptr;
  for (Value offset : op.getOffsets())
    view->offsets.push_back(getInt(offset));
  int64_t fixed = view->type.getShape()[0];
  view->rows = op.getRows() ? getInt(op.getRows()) : ShapedType::isDynamic(fixed) ? INT32_MAX : fixed;
  view->first = op.getFirst() ? getInt(op.getFirst()) : 0;
  assert(view->source && (!op.getPages() || view->pages) && "arguments have been checked against their types");
  get(op.getResult()).view = view;
  return true;
}

/// Position of an element of a view in its buffer.
bool Task::locate(Operation *op, const ViewRef &view, int64_t row, int64_t column, int64_t &index) {
  SmallVector<int64_t, 4> at;
  if (view.type.isPaged()) {
    int64_t page = view.type.getPage();
    int64_t entry = view.pages->getIndex({view.first + row / page});
    if (entry < 0)
      return fail(op, "row " + Twine(row) + " has no entry in the page table");
    at = {view.pages->data[entry].i, row % page, view.offsets[0]};
  } else {
    at.assign(view.offsets.begin(), view.offsets.end());
    if (view.type.isPacked()) {
      at[0] += row / view.type.getPack();
      at[1] += row % view.type.getPack();
    } else {
      at[0] += row;
    }
  }
  if (view.type.getRank() == 2)
    at.push_back(column);
  index = view.source->getIndex(at);
  if (index < 0)
    return fail(op, "row " + Twine(row) + " lies outside of the buffer");
  return true;
}

bool Task::copyIn(const Transfer &transfer, std::vector<Word> &data, ArrayRef<int64_t> shape, bool undefinedTail) {
  const ViewRef &view = *transfer.view;
  if (transfer.row < 0)
    return fail(transfer.op, "starts at row " + Twine(transfer.row));
  int64_t columns = view.type.getRank() == 2 ? shape.back() : 1, rows = getSize(shape) / columns;
  Word past = {};
  if (undefinedTail && isa<FloatType>(view.type.getElementType()))
    past.f = std::numeric_limits<double>::quiet_NaN();
  data.assign(rows * columns, past);
  // Columns that the view does not have are zero.
  int64_t exist = view.type.getRank() == 2 ? view.type.getShape()[1] : 1;
  for (int64_t r = 0; r < rows && transfer.row + r < view.rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      if (c >= exist) {
        data[r * columns + c] = Word{};
        continue;
      }
      int64_t index;
      if (!locate(transfer.op, view, transfer.row + r, c, index))
        return false;
      data[r * columns + c] = view.source->data[index];
    }
  return true;
}

bool Task::copyOut(const Transfer &transfer, ArrayRef<Word> data, ArrayRef<int64_t> shape, bool whole) {
  const ViewRef &view = *transfer.view;
  if (transfer.row < 0)
    return fail(transfer.op, "starts at row " + Twine(transfer.row));
  int64_t columns = view.type.getRank() == 2 ? shape.back() : 1, rows = getSize(shape) / columns;
  if (whole && transfer.row + rows > view.rows)
    return fail(transfer.op, "writes " + Twine(transfer.row + rows) + " rows of a view of " + Twine(view.rows) +
                                 "; a bulk store is for whole tiles only");
  int64_t exist = view.type.getRank() == 2 ? view.type.getShape()[1] : 1; // columns behind them are dropped
  for (int64_t r = 0; r < rows && transfer.row + r < view.rows; ++r)
    for (int64_t c = 0; c < exist; ++c) {
      int64_t index;
      if (!locate(transfer.op, view, transfer.row + r, c, index))
        return false;
      view.source->data[index] = data[r * columns + c];
    }
  return true;
}

bool Task::readEntry(Operation *op, Value table, int64_t index, int64_t &entry) {
  if (--machine.steps < 0)
    return fail(op, "runs endlessly (more steps than the interpreter's limit)");
  Buffer *buffer = get(table).word.p;
  int64_t at = buffer ? buffer->getIndex({index}) : -1;
  if (at < 0)
    return fail(op, "reads outside of its buffer, at (" + Twine(index) + ")");
  entry = buffer->data[at].i;
  return true;
}

bool Task::runExtent(ExtentOp op) {
  int64_t from = get(op.getFrom()).word.i, to = get(op.getTo()).word.i, least = 0, most = 0;
  for (int64_t i = from; i < to; ++i) {
    int64_t entry;
    if (!readEntry(op, op.getTable(), i, entry))
      return false;
    least = i == from ? entry : std::min(least, entry);
    most = i == from ? entry : std::max(most, entry);
  }
  get(op.getLeast()).word.i = least;
  get(op.getMost()).word.i = most;
  return true;
}

bool Task::runScan(ScanOp op) {
  int64_t base = get(op.getBase()).word.i, from = get(op.getFrom()).word.i, to = get(op.getTo()).word.i;
  struct Condition {
    int64_t lo, hi;
    bool outside;
    int64_t first, last, count = 0;
  };
  Condition conditions[] = {
      {get(op.getSomeLo()).word.i, get(op.getSomeHi()).word.i, op.getSomeOutside(), std::max(from, to), from},
      {get(op.getAllLo()).word.i, get(op.getAllHi()).word.i, op.getAllOutside(), std::max(from, to), from}};
  for (int64_t i = from; i < to; ++i) {
    int64_t entry;
    if (!readEntry(op, op.getTable(), base + i, entry))
      return false;
    for (Condition &c : conditions)
      if ((entry >= c.lo && entry <= c.hi) != c.outside) {
        c.first = std::min(c.first, i);
        c.last = i + 1;
        ++c.count;
      }
  }
  auto &[some, all] = conditions;
  bool whole = all.last - all.first == all.count;
  get(op.getFirst()).word.i = some.first;
  get(op.getLast()).word.i = some.last;
  get(op.getAllFirst()).word.i = whole ? all.first : std::max(from, to);
  get(op.getAllLast()).word.i = whole ? all.last : from;
  return true;
}

bool Task::runLoad(LoadOp op) {
  Transfer transfer{op, get(op.getView()).view, nullptr, getInt(op.getRow())};
  if (auto reg = dyn_cast<RegType>(op.getResult().getType())) {
    auto tile = std::make_shared<Tile>(reg);
    if (!copyIn(transfer, tile->data, tile->shape))
      return false;
    setTile(op.getResult(), tile);
    return true;
  }
  auto ref = std::make_shared<SmemRef>();
  ref->memory = std::make_shared<Smem>(cast<SmemType>(op.getResult().getType()));
  ref->shape = ref->memory->shape;
  ref->offsets.assign(ref->shape.size(), 0);
  if (!copyIn(transfer, ref->memory->data, ref->shape))
    return false;
  get(op.getResult()).smem = ref;
  return true;
}

bool Task::runStore(StoreOp op) {
  std::vector<Word> data;
  SmallVector<int64_t> shape;
  return read(op, get(op.getValue()), data, shape) &&
         copyOut({op, get(op.getView()).view, nullptr, getInt(op.getRow())}, data, shape, /*whole=*/false);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

bool Task::checkLive(Operation *op, const SmemRef &ref) {
  if (!ref.hold || ref.hold->live)
    return true;
  return fail(op, "uses a slot of a pipeline that it has given away");
}

/// Position in the memory of element `at` of a part.
static int64_t getPosition(const SmemRef &ref, ArrayRef<int64_t> at) {
  size_t dropped = ref.offsets.size() - ref.shape.size();
  int64_t index = 0;
  for (size_t i = 0; i < ref.offsets.size(); ++i)
    index = index * ref.memory->shape[i] + ref.offsets[i] + (i < dropped ? 0 : at[i - dropped]);
  return index;
}

bool Task::read(Operation *op, const Val &val, std::vector<Word> &data, SmallVectorImpl<int64_t> &shape) {
  if (val.tile) {
    if (val.tile->lanes != 1)
      return fail(op, "reads a partial sum as if it were one");
    data = val.tile->data;
    shape.assign(val.tile->shape.begin(), val.tile->shape.end());
    return true;
  }
  const SmemRef &ref = *val.smem;
  if (!checkLive(op, ref))
    return false;
  shape.assign(ref.shape.begin(), ref.shape.end());
  data.clear();
  data.reserve(getSize(shape));
  return forEach(ref.shape, [&](ArrayRef<int64_t> at) {
    data.push_back(ref.memory->data[getPosition(ref, at)]);
    return true;
  });
}

bool Task::writeSmem(Operation *op, const SmemRef &ref, ArrayRef<Word> data) {
  if (!checkLive(op, ref))
    return false;
  size_t n = 0;
  return forEach(ref.shape, [&](ArrayRef<int64_t> at) {
    ref.memory->data[getPosition(ref, at)] = data[n++];
    return true;
  });
}

bool Task::runLocalLoad(LocalLoadOp op) {
  auto tile = std::make_shared<Tile>(cast<RegType>(op.getResult().getType()));
  SmallVector<int64_t> shape;
  if (!read(op, get(op.getSource()), tile->data, shape))
    return false;
  setTile(op.getResult(), tile);
  return true;
}

bool Task::runLocalStore(LocalStoreOp op) {
  std::vector<Word> data;
  SmallVector<int64_t> shape;
  return read(op, get(op.getValue()), data, shape) && writeSmem(op, *get(op.getDest()).smem, data);
}

bool Task::runTransform(TransformOp op) {
  std::shared_ptr<const SmemRef> source = get(op.getSource()).smem, result = source;
  if (op.getInto()) {
    result = get(op.getInto()).smem;
  } else if (!op.isInPlace()) {
    auto ref = std::make_shared<SmemRef>();
    ref->memory = std::make_shared<Smem>(op.getResult().getType());
    ref->shape = ref->memory->shape;
    ref->offsets.assign(ref->shape.size(), 0);
    result = ref;
  }
  Block &body = op.getBody().front();
  auto part = [&](const SmemRef &whole, int64_t first) {
    SmemRef ref = whole;
    ref.offsets[ref.offsets.size() - 2] += first;
    ref.shape[ref.shape.size() - 2] = op.getRows();
    return ref;
  };
  int64_t extent = source->shape[source->shape.size() - 2], step = op.getRows();
  for (int64_t first = 0; first < extent; first += step) {
    auto rows = std::make_shared<Tile>(cast<RegType>(body.getArgument(0).getType()));
    Val from;
    from.smem = std::make_shared<SmemRef>(part(*source, first));
    SmallVector<int64_t> shape;
    if (!read(op, from, rows->data, shape))
      return false;
    setTile(body.getArgument(0), rows);
    get(body.getArgument(1)).word.i = first;
    if (!run(body) || !writeSmem(op, part(*result, first), yielded[0].tile->data))
      return false;
  }
  get(op.getResult()).smem = result;
  return true;
}

bool Task::runSubview(SubviewOp op) {
  const SmemRef &source = *get(op.getSource()).smem;
  auto ref = std::make_shared<SmemRef>(source);
  size_t dropped = source.offsets.size() - source.shape.size(), dynamic = 0;
  ref->shape.assign(op.getResult().getType().getShape().begin(), op.getResult().getType().getShape().end());
  size_t less = source.shape.size() - ref->shape.size();
  for (auto [i, fixed] : llvm::enumerate(op.getStaticOffsets())) {
    int64_t offset = ShapedType::isDynamic(fixed) ? getInt(op.getOffsets()[dynamic++]) : fixed;
    int64_t extent = i < less ? 1 : ref->shape[i - less];
    if (offset < 0 || offset + extent > source.shape[i])
      return fail(op, "takes " + Twine(offset) + " to " + Twine(offset + extent) + " of dimension " + Twine(i) +
                          ", which has " + Twine(source.shape[i]));
    ref->offsets[dropped + i] += offset;
  }
  get(op.getResult()).smem = ref;
  return true;
}

bool Task::runFillRows(FillRowsOp op) {
  const SmemRef &ref = *get(op.getDest()).smem;
  if (!checkLive(op, ref))
    return false;
  int64_t first = getInt(op.getFirst()), row = 0, columns = ref.shape.back(), n = 0;
  return forEach(ref.shape, [&](ArrayRef<int64_t> at) {
    row = n++ / columns;
    if (row >= first)
      ref.memory->data[getPosition(ref, at)] = Word{};
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

bool Task::runSplat(SplatOp op) {
  auto tile = std::make_shared<Tile>(op.getResult().getType());
  llvm::fill(tile->data, get(op.getValue()).word);
  setTile(op.getResult(), tile);
  return true;
}

/// Captured scalars and memrefs of a body into a fresh frame.
bool Task::startBody(Operation *op, Body *body, SmallVectorImpl<Word> &frame) {
  if (!body)
    return machine.failure ? false : fail(op, "has a body that cannot be run");
  frame.assign(body->frame, Word{});
  for (auto &[value, slot] : body->captures)
    frame[slot] = get(value).word;
  return true;
}

bool Task::runMap(MapOp op) {
  Body *body = machine.compiler.get(op.getBody().front(), machine.failure);
  SmallVector<Word, 32> frame;
  if (!startBody(op, body, frame))
    return false;
  SmallVector<std::shared_ptr<Tile>> results;
  for (Value result : op.getResults())
    results.push_back(std::make_shared<Tile>(cast<RegType>(result.getType())));
  int64_t lanes = results[0]->lanes;
  struct Input {
    const Tile *tile;
    SmallVector<int64_t, 3> strides; // by dimension of the result
  };
  SmallVector<Input> inputs;
  ArrayRef<int64_t> shape = op.getShape();
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    Input in{get(input).tile.get(), SmallVector<int64_t, 3>(shape.size(), 0)};
    if (in.tile->lanes > lanes)
      return fail(op, "uses a partial sum for a result that is none");
    SmallVector<int64_t> span = op.getInputDims(i);
    int64_t stride = in.tile->lanes;
    for (size_t k = span.size(); k-- > 0;) {
      in.strides[span[k]] = stride;
      stride *= in.tile->shape[k];
    }
    inputs.push_back(std::move(in));
  }
  for (auto &result : results)
    if (result->lanes != lanes)
      return fail(op, "has partial and whole results");
  const Code &code = body->code;
  int64_t n = 0;
  bool done = forEach(shape, [&](ArrayRef<int64_t> at) {
    for (int64_t lane = 0; lane < lanes; ++lane, ++n) {
      for (auto [i, in] : llvm::enumerate(inputs)) {
        int64_t index = in.tile->lanes > 1 ? lane : 0;
        for (size_t d = 0; d < at.size(); ++d)
          index += at[d] * in.strides[d];
        frame[code.args[i]] = in.tile->data[index];
      }
      for (size_t d = inputs.size(); d < code.args.size(); ++d)
        frame[code.args[d]].i = at[d - inputs.size()];
      if (!runCode(code, frame, machine.failure, machine.steps))
        return false;
      for (auto [result, slot] : llvm::zip(results, code.results))
        result->data[n] = frame[slot];
    }
    return true;
  });
  for (auto [value, tile] : llvm::zip(op.getResults(), results))
    setTile(value, tile);
  return done;
}

bool Task::runMask(MaskOp op) {
  Body *body = machine.compiler.get(op.getBody().front(), machine.failure);
  SmallVector<Word, 32> frame;
  if (!startBody(op, body, frame))
    return false;
  bool interior = op.getKey() && getInt(op.getLo()) <= getInt(op.getKey()) &&
                  getInt(op.getKey()) + static_cast<int64_t>(op.getKeys()) <= getInt(op.getHi());
  auto tile = std::make_shared<Tile>(*get(op.getValue()).tile);
  if (tile->lanes != 1)
    return fail(op, "masks a partial sum");
  double other = op.getZero() ? 0.0 : -std::numeric_limits<double>::infinity();
  const Code &code = body->code;
  unsigned inputs = op.getInputs().size();
  SmallVector<const Tile *> tiles;
  SmallVector<SmallVector<int64_t>> spans;
  for (unsigned i = 0; i < inputs; ++i) {
    tiles.push_back(get(op.getInputs()[i]).tile.get());
    spans.push_back(op.getInputDims(i));
  }
  int64_t n = 0;
  bool done = forEach(tile->shape, [&](ArrayRef<int64_t> at) {
    for (unsigned i = 0; i < inputs; ++i) {
      int64_t index = 0;
      for (auto [k, dim] : llvm::enumerate(spans[i]))
        index = index * tiles[i]->shape[k] + at[dim];
      frame[code.args[i]] = tiles[i]->data[index];
    }
    for (size_t d = inputs; d < code.args.size(); ++d)
      frame[code.args[d]].i = at[d - inputs];
    if (!runCode(code, frame, machine.failure, machine.steps))
      return false;
    // What the interval says needs no mask may be dropped or not: the row is poisoned, unless nobody reads it (rows of
    // the tile behind the last one of the item, whose positions run on).
    if (!frame[code.results[0]].i)
      tile->data[n].f = interior ? std::numeric_limits<double>::quiet_NaN() : other;
    ++n;
    return true;
  });
  setTile(op.getResult(), tile);
  return done;
}

static double combine(ReduceKind kind, double a, double b) {
  if (kind == ReduceKind::AddF)
    return a + b;
  return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
}

bool Task::runReduce(ReduceOp op) {
  const Tile &value = *get(op.getValue()).tile;
  auto result = std::make_shared<Tile>(cast<RegType>(op.getResult().getType()));
  auto type = cast<FloatType>(result->element);
  bool scopeLanes = op.getScope() == ReduceScope::Lanes;
  if (!scopeLanes && value.lanes != 1)
    return fail(op, "reduces a partial sum along another dimension");
  if (op.getScope() == ReduceScope::All && result->lanes != 1)
    return fail(op, "has a partial result but combines all lanes");
  if (op.getScope() == ReduceScope::Thread && static_cast<size_t>(*op.getDim()) + 1 != value.shape.size())
    return fail(op, "combines what a thread holds along another dimension than the columns");
  std::vector<bool> seen(result->data.size(), false);
  if (op.getInit()) {
    result->data = get(op.getInit()).tile->data;
    seen.assign(seen.size(), true);
  }
  auto put = [&](int64_t index, double x) {
    double &r = result->data[index].f;
    r = seen[index] ? roundTo(type, combine(op.getKind(), r, x)) : x;
    seen[index] = true;
  };
  int64_t n = 0;
  if (scopeLanes) {
    for (int64_t i = 0; i < static_cast<int64_t>(value.data.size()); ++i)
      put(i / value.lanes, value.data[i].f);
  } else {
    int64_t dim = *op.getDim();
    forEach(value.shape, [&](ArrayRef<int64_t> at) {
      int64_t index = 0;
      for (size_t i = 0; i < at.size(); ++i)
        if (static_cast<int64_t>(i) != dim)
          index = index * value.shape[i] + at[i];
      if (result->lanes > 1) // columns 2t and 2t + 1 of each 8 belong to lane t
        index = index * result->lanes + at[dim] % 8 / 2;
      put(index, value.data[n++].f);
      return true;
    });
  }
  setTile(op.getResult(), result);
  return true;
}

bool Task::runDot(Operation *op, const Val &a, const Val &b, const Tile *acc, bool transposeB, RegType type, Val &out) {
  std::vector<Word> l, r;
  SmallVector<int64_t> ls, rs;
  if (!read(op, a, l, ls) || !read(op, b, r, rs))
    return false;
  auto tile = std::make_shared<Tile>(type);
  if (acc)
    tile->data = acc->data;
  int64_t m = ls[ls.size() - 2], k = ls.back(), n = type.getShape().back();
  int64_t batches = type.getRank() == 3 ? type.getShape()[0] : 1;
  for (int64_t g = 0; g < batches; ++g) {
    const Word *la = l.data() + (ls.size() == 3 ? g * m * k : 0);
    const Word *rb = r.data() + (rs.size() == 3 ? g * k * n : 0);
    std::vector<double> columns(k * n), sums(n);
    for (int64_t t = 0; t < k; ++t)
      for (int64_t j = 0; j < n; ++j)
        columns[t * n + j] = transposeB ? rb[j * k + t].f : rb[t * n + j].f;
    for (int64_t i = 0; i < m; ++i) {
      Word *row = &tile->data[(g * m + i) * n];
      for (int64_t j = 0; j < n; ++j)
        sums[j] = acc ? row[j].f : 0;
      for (int64_t t = 0; t < k; ++t)
        for (int64_t j = 0; j < n; ++j)
          sums[j] += la[i * k + t].f * columns[t * n + j];
      for (int64_t j = 0; j < n; ++j)
        row[j].f = static_cast<float>(sums[j]);
    }
  }
  out.tile = tile;
  return true;
}

bool Task::runSlice(SliceOp op) {
  const Tile &source = *get(op.getSource()).tile;
  auto tile = std::make_shared<Tile>(cast<RegType>(op.getResult().getType()));
  int64_t n = 0;
  forEach(tile->shape, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t, 3> from(at);
    for (auto [i, offset] : llvm::enumerate(op.getOffsets()))
      from[i] += offset;
    for (int64_t lane = 0; lane < tile->lanes; ++lane)
      tile->data[n++] = source.data[flatten(from, source.shape) * tile->lanes + lane];
    return true;
  });
  setTile(op.getResult(), tile);
  return true;
}

bool Task::runConcat(ConcatOp op) {
  auto tile = std::make_shared<Tile>(cast<RegType>(op.getResult().getType()));
  int64_t base = 0, dim = op.getDim();
  for (Value input : op.getInputs()) {
    const Tile &part = *get(input).tile;
    int64_t n = 0;
    forEach(part.shape, [&](ArrayRef<int64_t> at) {
      SmallVector<int64_t, 3> to(at);
      to[dim] += base;
      for (int64_t lane = 0; lane < tile->lanes; ++lane)
        tile->data[flatten(to, tile->shape) * tile->lanes + lane] = part.data[n++];
      return true;
    });
    base += part.shape[dim];
  }
  setTile(op.getResult(), tile);
  return true;
}

bool Task::runSwapPairs(SwapPairsOp op) {
  const Tile &source = *get(op.getSource()).tile;
  auto tile = std::make_shared<Tile>(cast<RegType>(op.getResult().getType()));
  int64_t n = 0;
  forEach(tile->shape, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t, 3> from(at);
    from.back() ^= 1;
    for (int64_t lane = 0; lane < tile->lanes; ++lane)
      tile->data[n++] = source.data[flatten(from, source.shape) * tile->lanes + lane];
    return true;
  });
  setTile(op.getResult(), tile);
  return true;
}
