//===- Check.cpp - tile kernels on random batches ---===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The batch is one level of requests; every page outside the tables, every row
// of an output that no item owns, and the unused end of a page are NaN.
//
//===----------------------------------------------------------------------===//

#include "attn/Interpreter/Check.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::tile;

namespace {

struct Sizes {
  int64_t rows, keys, pack;
};

struct Request {
  int64_t token0, queries, keys, table;
};

/// Where an item left its state.
struct Piece {
  int64_t token0, head, rows, slot;
};

struct Batch {
  llvm::StringMap<std::unique_ptr<Buffer>> buffers;
  KernelArguments arguments;
  std::vector<Request> requests;
  std::vector<Piece> pieces;
  int64_t tokens = 0, heads = 0, headsKv = 0, depth = 0, depthV = 0, page = 0;
  double scale = 0;

  Buffer *get(StringRef role) {
    auto it = buffers.find(role);
    return it == buffers.end() ? nullptr : it->second.get();
  }
  double read(StringRef role, ArrayRef<int64_t> at) {
    Buffer *buffer = get(role);
    return buffer->data[buffer->getIndex(at)].f;
  }
  /// Key or value `key` of a request.
  double readKv(StringRef role, const Request &request, int64_t key, int64_t head, int64_t d) {
    if (!page)
      return read(role, {request.table + key, head, d});
    Buffer *pages = get("pages");
    return read(role, {pages->data[request.table + key / page].i, key % page, head, d});
  }
};

struct State {
  std::vector<double> o; // token, head, d
  std::vector<double> lse;
};

} // namespace

/// Tile sizes: those of the config, else of the options.
static Sizes getSizes(KernelOp kernel, const CheckOptions &options) {
  if (auto config = kernel->getAttrOfType<attn::ConfigAttr>("config"))
    return {std::max<int64_t>(1, config.getRows()), std::max<int64_t>(1, config.getKeys()),
            std::max<int64_t>(1, config.getPack())};
  return {options.rows, options.keys, 1};
}

static MemRefType getType(KernelOp kernel, StringRef role) {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getArgRole(i) == role)
      return dyn_cast<MemRefType>(kernel.getArgumentTypes()[i]);
  return {};
}

static void fillRandom(Buffer &buffer, std::mt19937_64 &random, ArrayRef<int64_t> rowsUsed) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  auto type = cast<FloatType>(buffer.element);
  int64_t row = buffer.strides[0];
  for (int64_t r : rowsUsed)
    for (int64_t i = 0; i < row; ++i)
      buffer.data[r * row + i].f = roundTo(type, uniform(random));
}

/// A table that a hook reads: numbers in [-1, 1) or from 0 to 3. Open extents are more than the positions, heads and
/// requests of small batches.
static std::unique_ptr<Buffer> makeTable(MemRefType type, std::mt19937_64 &random) {
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent))
      extent = 1024;
  auto buffer = std::make_unique<Buffer>(type.getElementType(), shape);
  auto real = dyn_cast<FloatType>(type.getElementType());
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (Word &word : buffer->data)
    if (real)
      word.f = roundTo(real, uniform(random));
    else
      word.i = static_cast<int64_t>(random() % 4);
  return buffer;
}

static LogicalResult buildRequests(KernelOp kernel, const Sizes &sizes, const CheckOptions &options,
                                   std::mt19937_64 &random, Batch &batch) {
  auto lengths = options.batch;
  if (lengths.empty()) {
    int64_t most = std::max<int64_t>(1, options.longest * sizes.rows / sizes.pack);
    for (int64_t n = 1 + random() % 3; n > 0; --n) {
      int64_t queries = 1 + random() % most, keys = random() % (options.longest * sizes.keys + 1);
      if (random() % 4 == 0)
        queries = 1;
      lengths.emplace_back(queries, keys);
    }
  }
  auto up = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
  int64_t tableSize = 0, rows = 0;
  for (auto [queries, keys] : lengths) {
    if (options.whole) {
      queries = up(queries, sizes.rows);
      keys = std::max(up(keys, sizes.keys), sizes.keys);
    }
    int64_t size = batch.page ? (keys + batch.page - 1) / batch.page : keys;
    batch.requests.push_back({batch.tokens, queries, keys, tableSize});
    batch.tokens += queries;
    tableSize += size;
    rows = tableSize;
  }
  std::vector<int64_t> places(rows + 3); // three more than needed, which stay NaN
  std::iota(places.begin(), places.end(), 0);
  if (batch.page) {
    std::shuffle(places.begin(), places.end(), random);
    auto pages = std::make_unique<Buffer>(getType(kernel, "pages").getElementType(), ArrayRef<int64_t>{rows + 1});
    for (int64_t i = 0; i < rows; ++i)
      pages->data[i].i = places[i];
    pages->data[rows].i = 1 << 30;
    batch.buffers["pages"] = std::move(pages);
  }
  for (StringRef role : {"k", "v"}) {
    MemRefType type = getType(kernel, role);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = rows + 3;
    shape[shape.size() - 2] = batch.headsKv;
    auto buffer = std::make_unique<Buffer>(type.getElementType(), shape);
    buffer->fill(std::numeric_limits<double>::quiet_NaN());
    fillRandom(*buffer, random, ArrayRef(places).take_front(rows));
    if (batch.page) // the end of each last page holds no key
      for (const Request &request : batch.requests)
        for (int64_t key = request.keys; key % batch.page; ++key)
          for (int64_t i = 0; i < buffer->strides[1]; ++i) {
            int64_t place = places[request.table + key / batch.page];
            buffer->data[place * buffer->strides[0] + key % batch.page * buffer->strides[1] + i].f =
                std::numeric_limits<double>::quiet_NaN();
          }
    batch.buffers[role] = std::move(buffer);
  }
  return success();
}

static void buildItems(const Sizes &sizes, const CheckOptions &options, std::mt19937_64 &random, Batch &batch) {
  int64_t pack = sizes.pack, perTile = std::max<int64_t>(1, sizes.rows / pack);
  int64_t slot = 0;
  auto &items = batch.arguments.items;
  for (auto [number, request] : llvm::enumerate(batch.requests))
    for (int64_t row = 0; row < request.queries; row += perTile)
      for (int64_t head = 0; head < batch.heads; head += pack) {
        int64_t tokens = std::min(perTile, request.queries - row);
        int64_t tiles = (request.keys + sizes.keys - 1) / sizes.keys;
        int64_t chunk = std::max<int64_t>(1, (tiles + options.split - 1) / options.split) * sizes.keys;
        bool whole = chunk >= request.keys;
        for (int64_t lo = 0; lo == 0 || lo < request.keys; lo += chunk) {
          AttnWorkItem item = {};
          item.token0 = request.token0 + row;
          item.rows = tokens * pack;
          item.head = head;
          item.request = number;
          item.table = request.table;
          item.kv_len = request.keys;
          item.qpos0 = row + request.keys - request.queries;
          item.klo = lo;
          item.khi = std::min(lo + chunk, request.keys);
          item.slot = whole ? -1 : slot;
          item.qo_len = request.queries;
          item.row0 = row;
          item.kv_total = request.keys;
          items.push_back(item);
          batch.pieces.push_back({item.token0, head, item.rows, item.slot});
          if (!whole)
            slot += item.rows;
        }
      }
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<AttnWorkItem> shuffled;
  for (size_t i : order)
    shuffled.push_back(items[i]);
  items = std::move(shuffled);
  batch.arguments.ctaIndptr = {0};
  for (int64_t cta = 1; cta < options.ctas; ++cta)
    batch.arguments.ctaIndptr.push_back(random() % (items.size() + 1));
  batch.arguments.ctaIndptr.push_back(items.size());
  llvm::sort(batch.arguments.ctaIndptr);
}

static LogicalResult buildBatch(KernelOp kernel, const CheckOptions &options, Batch &batch) {
  Sizes sizes = getSizes(kernel, options);
  MemRefType q = getType(kernel, "q"), k = getType(kernel, "k"), v = getType(kernel, "v"), o = getType(kernel, "o");
  if (!q || !k || !v || !o || q.getRank() != 3 || o.getRank() != 3 || (k.getRank() != 3 && k.getRank() != 4))
    return kernel.emitOpError() << "cannot be checked: expected arguments of roles q, k, v, o with ranks "
                                << "of the ABI";
  for (MemRefType type : {q, k, v, o})
    if (type.isDynamicDim(type.getRank() - 1) || (type.getRank() == 4 && type.isDynamicDim(1)))
      return kernel.emitOpError() << "cannot be checked: " << type << " has a dynamic page or vector";
  std::mt19937_64 random(options.seed * 7919 + 13);
  batch.heads = q.isDynamicDim(1) ? options.heads : q.getDimSize(1);
  batch.depth = q.getDimSize(2);
  batch.depthV = o.getDimSize(2);
  batch.headsKv = k.isDynamicDim(k.getRank() - 2) ? options.headsKv : k.getDimSize(k.getRank() - 2);
  if (batch.headsKv < 1 || batch.heads % batch.headsKv)
    return kernel.emitOpError() << "cannot be checked: " << batch.heads << " query heads for " << batch.headsKv
                                << " KV heads";
  batch.page = k.getRank() == 4 ? k.getDimSize(1) : 0;
  batch.scale = 1 / std::sqrt(static_cast<double>(batch.depth));
  if (batch.page && !getType(kernel, "pages"))
    return kernel.emitOpError() << "cannot be checked: pages without an argument of role 'pages'";
  if (failed(buildRequests(kernel, sizes, options, random, batch)))
    return failure();
  buildItems(sizes, options, random, batch);
  auto make = [&](StringRef role, SmallVector<int64_t> shape) {
    if (MemRefType type = getType(kernel, role)) {
      batch.buffers[role] = std::make_unique<Buffer>(type.getElementType(), shape);
      batch.get(role)->fill(std::numeric_limits<double>::quiet_NaN());
    }
  };
  int64_t partials = 1;
  for (const Piece &piece : batch.pieces)
    partials = std::max(partials, piece.slot + piece.rows);
  make("q", {batch.tokens + 2, batch.heads, batch.depth});
  make("o", {batch.tokens + 2, batch.heads, batch.depthV});
  make("lse", {batch.tokens + 2, batch.heads});
  make("part_o", {partials, batch.depthV});
  make("part_lse", {partials});
  make("tokens", {batch.tokens, 8});
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, batch.tokens));
  fillRandom(*batch.get("q"), random, rows);
  if (Buffer *tokens = batch.get("tokens"))
    for (auto [number, request] : llvm::enumerate(batch.requests))
      for (int64_t i = 0; i < request.queries; ++i) {
        int64_t values[] = {i + request.keys - request.queries,
                            static_cast<int64_t>(number),
                            i,
                            request.queries,
                            request.keys,
                            0,
                            0,
                            0};
        for (int64_t c = 0; c < 8; ++c)
          tokens->data[(request.token0 + i) * 8 + c].i = values[c];
      }
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (StringRef role = kernel.getArgRole(i);
        role.starts_with("param:") && isa<MemRefType>(kernel.getArgumentTypes()[i]))
      batch.buffers[role] = makeTable(cast<MemRefType>(kernel.getArgumentTypes()[i]), random);
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    StringRef role = kernel.getArgRole(i);
    Word word = {};
    Type type = kernel.getArgumentTypes()[i];
    if (role == "scale") {
      word.f = roundTo(cast<FloatType>(type), batch.scale);
    } else if (role.starts_with("param:") && !isa<MemRefType>(type)) {
      auto it = options.params.find(role.drop_front(6));
      if (it == options.params.end())
        return kernel.emitOpError() << "needs a value of parameter '" << role.drop_front(6) << "'";
      if (auto f = dyn_cast<FloatType>(type))
        word.f = roundTo(f, it->second);
      else
        word.i = static_cast<int64_t>(it->second);
    } else if (role != "items") {
      word.p = batch.get(role);
      if (!word.p)
        return kernel.emitOpError() << "cannot be checked: argument " << i << " has role '" << role << "'";
    }
    batch.arguments.values.push_back(word);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Expected and actual states
//===----------------------------------------------------------------------===//

static State computeReference(Batch &batch, const CheckOptions &options) {
  State state;
  state.o.assign(batch.tokens * batch.heads * batch.depthV, 0);
  state.lse.assign(batch.tokens * batch.heads, -std::numeric_limits<double>::infinity());
  int64_t group = batch.heads / batch.headsKv;
  for (const Request &request : batch.requests)
    for (int64_t i = 0; i < request.queries; ++i)
      for (int64_t h = 0; h < batch.heads; ++h) {
        int64_t token = request.token0 + i, position = i + request.keys - request.queries;
        int64_t lo = options.window < 0 ? 0 : std::max<int64_t>(0, position - options.window);
        int64_t hi = options.causal ? std::min(request.keys, position + 1) : request.keys;
        std::vector<double> logits;
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t key = lo; key < hi; ++key) {
          double x = 0;
          for (int64_t d = 0; d < batch.depth; ++d)
            x += batch.read("q", {token, h, d}) * batch.readKv("k", request, key, h / group, d);
          x *= batch.scale;
          if (options.softcap > 0)
            x = options.softcap * std::tanh(x / options.softcap);
          logits.push_back(x);
          most = std::max(most, x);
        }
        for (double &x : logits)
          sum += x = std::exp(x - most);
        if (logits.empty())
          continue;
        state.lse[token * batch.heads + h] = most + std::log(sum);
        for (int64_t key = lo; key < hi; ++key)
          for (int64_t d = 0; d < batch.depthV; ++d)
            state.o[(token * batch.heads + h) * batch.depthV + d] +=
                logits[key - lo] / sum * batch.readKv("v", request, key, h / group, d);
      }
  return state;
}

/// Final outputs and merged partial states of a run.
static State collect(KernelOp kernel, const CheckOptions &options, Batch &batch) {
  int64_t pack = getSizes(kernel, options).pack;
  State state;
  state.o.assign(batch.tokens * batch.heads * batch.depthV, 0);
  state.lse.assign(batch.tokens * batch.heads, -std::numeric_limits<double>::infinity());
  bool withLse = batch.get("lse");
  for (const Piece &piece : batch.pieces)
    for (int64_t r = 0; r < piece.rows; ++r) {
      int64_t token = piece.token0 + r / pack, head = piece.head + r % pack, row = token * batch.heads + head;
      double *o = &state.o[row * batch.depthV];
      if (piece.slot < 0) {
        for (int64_t d = 0; d < batch.depthV; ++d)
          o[d] = batch.read("o", {token, head, d});
        state.lse[row] = withLse ? batch.read("lse", {token, head}) : 0;
        continue;
      }
      // Partial states have their lse in base 2.
      double lse = batch.read("part_lse", {piece.slot + r}) * std::log(2.0), before = state.lse[row];
      double most = std::max(before, lse);
      if (std::isinf(most) && most < 0)
        continue;
      double a = std::exp(before - most), b = std::exp(lse - most);
      for (int64_t d = 0; d < batch.depthV; ++d)
        o[d] = (a ? o[d] * a / (a + b) : 0) + (b ? batch.read("part_o", {piece.slot + r, d}) * b / (a + b) : 0);
      state.lse[row] = most + std::log(a + b);
    }
  return state;
}

static LogicalResult compare(KernelOp kernel, Batch &batch, const State &actual, const State &expected,
                             double tolerance, CheckResult &result) {
  for (const Piece &piece : batch.pieces)
    result.rows += piece.rows;
  bool withLse = batch.get("lse");
  for (int64_t row = 0; row < batch.tokens * batch.heads; ++row) {
    double a = actual.lse[row], b = expected.lse[row];
    double error = a == b ? 0 : std::fabs(a - b);
    if (withLse && !(error <= 1e-3 + 1e-3 * std::fabs(b)))
      return kernel.emitOpError() << "gives lse " << a << " for token " << row / batch.heads << ", head "
                                  << row % batch.heads << ", expected " << b;
    if (withLse)
      result.lseError = std::max(result.lseError, error);
    for (int64_t d = 0; d < batch.depthV; ++d) {
      double x = actual.o[row * batch.depthV + d], y = expected.o[row * batch.depthV + d];
      error = std::fabs(x - y);
      if (!(error <= tolerance + tolerance * std::fabs(y)))
        return kernel.emitOpError() << "gives o = " << x << " for token " << row / batch.heads << ", head "
                                    << row % batch.heads << ", element " << d << ", expected " << y;
      result.outputError = std::max(result.outputError, error);
    }
  }
  // Rows behind the batch belong to nobody.
  Buffer *o = batch.get("o");
  for (int64_t i = batch.tokens * o->strides[0]; i < static_cast<int64_t>(o->data.size()); ++i)
    if (!std::isnan(o->data[i].f))
      return kernel.emitOpError() << "writes rows of o that no item owns";
  return success();
}

LogicalResult tile::checkKernel(KernelOp kernel, KernelOp other, const CheckOptions &options, CheckResult &result) {
  Batch batch;
  if (failed(buildBatch(kernel, options, batch)))
    return failure();
  InterpreterOptions run;
  run.seed = options.seed;
  run.maxSteps = options.maxSteps;
  if (failed(interpret(kernel, batch.arguments, run)))
    return failure();
  State actual = collect(kernel, options, batch), expected;
  if (other) {
    Batch again;
    if (failed(buildBatch(other, options, again)) || failed(interpret(other, again.arguments, run)))
      return failure();
    expected = collect(other, options, again);
  } else {
    expected = computeReference(batch, options);
  }
  Type type = batch.get("o")->element;
  double tolerance = type.isF32() ? 1e-4 : type.isF16() ? 1e-3 : 1e-2;
  return compare(kernel, batch, actual, expected, tolerance, result);
}
