//===- Build.cpp - tensors and tables of a batch --------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plan of the work: the shared prefixes become levels of entries (runs of
// requests with keys of their own), entries get pages or token rows, and each
// owned row is filled with values named by (level, entry, key), so that page
// order and strides change nothing.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Build.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sys/resource.h>
#include <unistd.h>

namespace attn {
namespace batch {

using ref::Format;
using ref::Level;
using ref::Storage;

uint64_t randomBits(uint64_t seed, uint64_t stream, uint64_t index) {
  auto mix = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  };
  uint64_t key = mix(seed + 0x9e3779b97f4a7c15ull * (stream + 1));
  return mix(key + 0x9e3779b97f4a7c15ull * (index + 1));
}

double randomUniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return double(randomBits(seed, stream, index) >> 11) / double(uint64_t(1) << 53);
}

double randomNormal(uint64_t seed, uint64_t stream, uint64_t index) {
  // The sum of four uniform 16-bit numbers, centred: variance 4/12.
  uint64_t bits = randomBits(seed, stream, index);
  int64_t sum = int64_t(bits & 0xffff) + int64_t(bits >> 16 & 0xffff) + int64_t(bits >> 32 & 0xffff) +
                int64_t(bits >> 48) - 2 * 65535;
  return double(sum) * (1.7320508075688772 / 65536.0);
}

std::vector<uint8_t> indexBytes(const std::vector<int64_t> &values, int bits) {
  std::vector<uint8_t> bytes(values.size() * (bits / 8));
  for (size_t i = 0; i != values.size(); ++i) {
    int32_t narrow = int32_t(values[i]);
    std::memcpy(bytes.data() + i * (bits / 8), bits == 64 ? (const void *)&values[i] : &narrow, bits / 8);
  }
  return bytes;
}

double memoryLimit() {
  double limit = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE));
  rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    limit = std::min(limit, double(space.rlim_cur));
  return limit;
}

namespace {

/// Streams of random numbers.
enum Stream : uint64_t { kQ = 1, kPages, kBlocks, kFill, kKeys = 1 << 20, kValues = 2 << 20 };

/// A run of requests and the keys it shares.
struct Entry {
  int64_t first, last, length; // requests [first, last)
};

std::shared_ptr<std::vector<uint8_t>> allocate(Storage type, int64_t elements, Unowned fill, uint64_t seed,
                                               uint64_t stream) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(elements * ref::storageBytes(type), 0);
  if (fill == Unowned::NaN) // all ones is NaN in each of the types
    std::fill(bytes->begin(), bytes->end(), 0xff);
  if (fill == Unowned::Random)
    for (int64_t i = 0; i != elements; ++i)
      ref::storeElement(type, bytes->data(), i, randomNormal(seed, kFill + stream, i));
  return bytes;
}

double clampTo(Storage type, double value) {
  double top = ref::storageMax(type);
  return std::min(std::max(value, -top), top);
}

/// Stores a generated value. Any rounding will do here (the stored value is the input), so bf16 takes the short way.
void storeInput(Storage type, void *data, int64_t index, double value) {
  if (type != Storage::BF16)
    return ref::storeElement(type, data, index, clampTo(type, value));
  float narrow = float(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  uint16_t top = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  std::memcpy(static_cast<char *>(data) + 2 * index, &top, sizeof top);
}

/// Head vectors of one row, all heads, from (stream, row).
void fillRow(const Tensor &t, int64_t block, int64_t row, int64_t heads, int64_t dim, double magnitude, uint64_t seed,
             uint64_t stream, uint64_t number) {
  size_t rank = t.shape.size();
  int64_t base = (rank == 4 ? block * t.strides[0] : 0) + row * t.strides[rank - 3];
  for (int64_t h = 0; h != heads; ++h)
    for (int64_t d = 0; d != dim; ++d) {
      double value = magnitude * randomNormal(seed, stream, (number * heads + h) * dim + d);
      storeInput(t.type, t.data(), base + h * t.strides[rank - 2] + d, value);
    }
}

class Builder {
public:
  Builder(const Batch &batch, const Geometry &g, Built &out, std::string &error)
      : batch(batch), g(g), out(out), error(error) {}

  bool run() {
    error = check(batch);
    if (error.empty())
      checkGeometry();
    if (error.empty())
      checkMemory();
    if (!error.empty())
      return false;
    out = Built();
    out.geometry = g;
    out.requests = batch.requests;
    out.qoIndptr = {0};
    for (const Request &r : batch.requests)
      out.qoIndptr.push_back(out.qoIndptr.back() + r.qo);
    if (g.format == Format::Bsr ? !blockLists() : !composeLevels())
      return false;
    allocateKeys();
    fillKeys();
    makeQueries();
    return true;
  }

private:
  bool fail(const std::string &text) {
    error = text;
    return false;
  }

  void checkGeometry() {
    if (g.headsQo < 1 || g.headsKv < 1 || g.headsQo % g.headsKv || g.headDimQk < 1 || g.headDimVo < 1)
      error = "heads and head dims must be positive and query heads a multiple of kv heads";
    else if (g.format != Format::Ragged && g.pageSize < 1)
      error = "paged and bsr formats need a page size of at least 1";
    else if (g.format == Format::Bsr && g.rowBlock < 1)
      error = "the bsr format needs a row block of at least 1";
    else if (g.levels < 1)
      error = "the op must have at least one level";
    else if (g.format == Format::Bsr && (g.levels != 1 || !batch.prefixes.empty()))
      error = "'levels' of the batch file are for ragged and paged ops; a bsr op has one level, remove them";
    else if (!batch.lseBase.empty() && (batch.lseBase == "base2") != (g.lseBase == ref::LseBase::Base2))
      error = "'lse_base' of the batch file is " + batch.lseBase + ", but the op's lse is " +
              (g.lseBase == ref::LseBase::Base2 ? "base2" : "natural") + "; change one of them";
  }

  /// Tensors, the reference's copies of them as floats, and tables against what the process can have. In double:
  /// nothing overflows there.
  void checkMemory() {
    double tokensQ = 0, keys = 0, widest = 0;
    for (const Request &r : batch.requests) {
      tokensQ += double(r.qo);
      keys += double(r.kv) + double(g.format == Format::Ragged ? 0 : g.pageSize);
      widest = std::max(widest, double(r.kv) + double(g.pageSize));
    }
    if (g.format == Format::Bsr) // one matrix; its lists are per row block
      keys = widest + tokensQ / double(g.rowBlock) * widest / double(g.pageSize) * 8 / sizeof(KeyRow);
    double elementsQ = double(g.headsQo) * double(g.headDimQk + g.headDimVo);
    double elementsKv = double(g.headsKv) * double(g.headDimQk + g.headDimVo);
    if (batch.strides == Strides::Packed)
      elementsQ += elementsKv;
    double need = tokensQ * elementsQ * double(ref::storageBytes(g.typeQ) + sizeof(float)) +
                  keys * (elementsKv * double(ref::storageBytes(g.typeKv) + sizeof(float)) + sizeof(KeyRow)) +
                  double(batch.requests.size() + batch.prefixes.size()) * 256;
    need = std::min(need, 1e18);
    double have = memoryLimit();
    if (need > have)
      error = "the batch needs about " + std::to_string(int64_t(need / 1048576) + 1) + " MiB of memory and there are " +
              std::to_string(int64_t(have / 1048576)) + " MiB; shorten its requests";
  }

  //===--- levels -----------------------------------------------------------===//

  bool composeLevels() {
    PrefixTree tree = prefixTree(batch);
    int64_t n = int64_t(batch.requests.size());
    bool flat = g.levels == 1 && tree.levels > 0;
    if (flat && g.format == Format::Paged)
      for (size_t i = 0; i != batch.prefixes.size(); ++i)
        if (batch.prefixes[i].length % g.pageSize)
          return fail("'levels[" + std::to_string(i) + "].prefix' must be a multiple of the page size " +
                      std::to_string(g.pageSize) +
                      ", as the op has one level and requests share whole pages only; got " +
                      std::to_string(batch.prefixes[i].length));
    if (!flat && tree.levels + 1 > g.levels)
      return fail("the batch file has " + std::to_string(tree.levels) + " nested levels of prefixes and the op " +
                  std::to_string(g.levels) + " levels in all; the op needs " + std::to_string(tree.levels + 1) +
                  " (or 1, to share pages)");
    // Runs of each depth, in order, gaps filled with entries that have no keys.
    std::vector<std::vector<Entry>> depths(std::max(tree.levels, g.levels - 1));
    for (int64_t depth = 0; depth != int64_t(depths.size()); ++depth) {
      std::vector<Entry> nodes;
      for (size_t i = 0; i != batch.prefixes.size(); ++i)
        if (tree.depth[i] == depth)
          nodes.push_back({batch.prefixes[i].first, batch.prefixes[i].last + 1, batch.prefixes[i].length});
      std::sort(nodes.begin(), nodes.end(), [](const Entry &a, const Entry &b) { return a.first < b.first; });
      int64_t at = 0;
      for (const Entry &node : nodes) {
        if (node.first > at)
          depths[depth].push_back({at, node.first, 0});
        depths[depth].push_back(node);
        at = node.last;
      }
      if (at < n || depths[depth].empty())
        depths[depth].push_back({at, n, 0});
    }
    std::vector<Entry> own;
    for (int64_t r = 0; r != n; ++r)
      own.push_back({r, r + 1, tree.own[r]});
    depths.push_back(own);
    if (g.format == Format::Ragged)
      raggedTables(depths, flat);
    else
      pagedTables(depths, flat);
    return true;
  }

  void raggedTables(const std::vector<std::vector<Entry>> &depths, bool flat) {
    int64_t token = 0;
    if (flat) { // every request has a copy of the prefix
      Level level;
      level.kvIndptr = {0};
      for (const Entry &own : depths.back()) {
        int64_t number = 0;
        for (size_t depth = 0; depth != depths.size(); ++depth)
          for (size_t e = 0; e != depths[depth].size(); ++e)
            if (depths[depth][e].first <= own.first && own.first < depths[depth][e].last)
              for (int64_t j = 0; j != depths[depth][e].length; ++j, ++number)
                rows.push_back({0, token++, source(depth, depths.size(), e), uint64_t(j)});
        level.kvIndptr.push_back(token);
      }
      out.levels = {level};
      tokens = token;
      return;
    }
    for (size_t depth = 0; depth != depths.size(); ++depth) {
      Level level;
      level.kvIndptr = {token};
      if (depths.size() > 1)
        level.rowIndptr = {depths[depth].empty() ? 0 : depths[depth][0].first};
      for (size_t e = 0; e != depths[depth].size(); ++e) {
        for (int64_t j = 0; j != depths[depth][e].length; ++j)
          rows.push_back({0, token++, source(depth, depths.size(), e), uint64_t(j)});
        level.kvIndptr.push_back(token);
        if (depths.size() > 1)
          level.rowIndptr.push_back(depths[depth][e].last);
      }
      out.levels.push_back(level);
    }
    tokens = token;
  }

  void pagedTables(const std::vector<std::vector<Entry>> &depths, bool flat) {
    // Pages in logical order first; the placement is drawn afterwards.
    std::vector<std::vector<std::vector<int64_t>>> owned(depths.size());
    int64_t pages = 0;
    for (size_t depth = 0; depth != depths.size(); ++depth)
      for (const Entry &entry : depths[depth]) {
        std::vector<int64_t> list((entry.length + g.pageSize - 1) / g.pageSize);
        for (int64_t &page : list)
          page = pages++;
        owned[depth].push_back(list);
      }
    std::vector<int64_t> place = placePages(pages);
    for (size_t depth = 0; depth != depths.size(); ++depth)
      for (size_t e = 0; e != depths[depth].size(); ++e)
        for (int64_t j = 0; j != depths[depth][e].length; ++j)
          rows.push_back(
              {place[owned[depth][e][j / g.pageSize]], j % g.pageSize, source(depth, depths.size(), e), uint64_t(j)});
    auto lastLength = [&](int64_t keys) { return keys == 0 ? 0 : (keys - 1) % g.pageSize + 1; };
    if (flat) {
      Level level;
      level.kvIndptr = {0};
      for (int64_t r = 0; r != int64_t(batch.requests.size()); ++r) {
        for (size_t depth = 0; depth != depths.size(); ++depth)
          for (size_t e = 0; e != depths[depth].size(); ++e)
            if (depths[depth][e].first <= r && r < depths[depth][e].last)
              for (int64_t page : owned[depth][e])
                level.indices.push_back(place[page]);
        level.kvIndptr.push_back(int64_t(level.indices.size()));
        level.last.push_back(lastLength(batch.requests[r].kv));
      }
      out.levels = {level};
      return;
    }
    for (size_t depth = 0; depth != depths.size(); ++depth) {
      Level level;
      level.kvIndptr = {0};
      if (depths.size() > 1)
        level.rowIndptr = {depths[depth].empty() ? 0 : depths[depth][0].first};
      for (size_t e = 0; e != depths[depth].size(); ++e) {
        for (int64_t page : owned[depth][e])
          level.indices.push_back(place[page]);
        level.kvIndptr.push_back(int64_t(level.indices.size()));
        level.last.push_back(lastLength(depths[depth][e].length));
        if (depths.size() > 1)
          level.rowIndptr.push_back(depths[depth][e].last);
      }
      out.levels.push_back(level);
    }
  }

  /// A pool larger than needed, so that there are pages that nobody owns, and the page of each logical one.
  std::vector<int64_t> placePages(int64_t pages) {
    out.pages = pages + 1 + pages / 16;
    std::vector<int64_t> place(out.pages);
    for (int64_t i = 0; i != out.pages; ++i)
      place[i] = i;
    if (batch.pageOrder == PageOrder::Random)
      for (int64_t i = out.pages - 1; i > 0; --i)
        std::swap(place[i], place[randomBits(batch.seed, kPages, i) % uint64_t(i + 1)]);
    return place;
  }

  /// bsr: the columns of all requests are one matrix (blocks 0 .. n), and each row block draws its list.
  bool blockLists() {
    int64_t widest = 0;
    for (const Request &r : batch.requests)
      widest = std::max(widest, r.kv);
    int64_t blocks = (widest + g.pageSize - 1) / g.pageSize;
    out.pages = blocks + 1; // one that nobody owns
    for (int64_t j = 0; j != widest; ++j)
      rows.push_back({j / g.pageSize, j % g.pageSize, 0, uint64_t(j)});
    Level level;
    level.kvIndptr = {0};
    uint64_t draw = 0;
    for (const Request &r : batch.requests) {
      out.kvTotal.push_back(r.kv);
      for (int64_t row = 0; row < r.qo; row += g.rowBlock) {
        int64_t last = 0;
        for (int64_t c = 0; c * g.pageSize < r.kv; ++c) {
          if (randomUniform(batch.seed, kBlocks, draw++) >= batch.density)
            continue;
          level.indices.push_back(c);
          last = std::min(g.pageSize, r.kv - c * g.pageSize);
        }
        level.kvIndptr.push_back(int64_t(level.indices.size()));
        level.last.push_back(last);
      }
    }
    out.levels = {level};
    return true;
  }

  //===--- data -------------------------------------------------------------===//

  /// Where one key lies and the name of its values.
  struct KeyRow {
    int64_t block, row;
    uint64_t stream, number;
  };

  /// Entries of the prefixes count from the outermost; own keys have a range apart, so that they do not depend on the
  /// number of levels.
  static uint64_t source(size_t depth, size_t depths, size_t entry) {
    return depth + 1 == depths ? uint64_t(entry) : (uint64_t(depth + 1) << 32) + uint64_t(entry);
  }

  void allocateKeys() {
    bool ragged = g.format == Format::Ragged;
    int64_t H = g.headsKv, DK = g.headDimQk, DV = g.headDimVo, page = ragged ? 1 : g.pageSize;
    // One token row more than owned: reading past the end meets NaN, not the end of the buffer.
    int64_t blocks = ragged ? tokens + 1 : out.pages;
    auto make = [&](Tensor &t, int64_t dim) {
      t.type = g.typeKv;
      t.shape = ragged ? std::vector<int64_t>{tokens, H, dim} : std::vector<int64_t>{blocks, page, H, dim};
    };
    make(out.k, DK);
    make(out.v, DV);
    if (batch.strides == Strides::Packed) {
      int64_t width = H * (DK + DV);
      out.k.bytes = out.v.bytes = allocate(g.typeKv, blocks * page * width, batch.unowned, batch.seed, 1);
      out.v.offset = H * DK;
      out.k.strides = ragged ? std::vector<int64_t>{width, DK, 1} : std::vector<int64_t>{page * width, width, DK, 1};
      out.v.strides = ragged ? std::vector<int64_t>{width, DV, 1} : std::vector<int64_t>{page * width, width, DV, 1};
      return;
    }
    for (auto [t, dim] : {std::make_pair(&out.k, DK), std::make_pair(&out.v, DV)}) {
      t->bytes = allocate(g.typeKv, blocks * page * H * dim, batch.unowned, batch.seed, t == &out.k ? 1 : 2);
      bool hnd = batch.strides == Strides::Hnd;
      if (ragged)
        t->strides = hnd ? std::vector<int64_t>{dim, blocks * dim, 1} : std::vector<int64_t>{H * dim, dim, 1};
      else
        t->strides = hnd ? std::vector<int64_t>{H * page * dim, dim, page * dim, 1}
                         : std::vector<int64_t>{page * H * dim, H * dim, dim, 1};
    }
  }

  void fillKeys() {
    // Rows are apart in memory.
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < int64_t(rows.size()); ++i) {
      const KeyRow &r = rows[i];
      fillRow(out.k, r.block, r.row, g.headsKv, g.headDimQk, batch.magnitudeK, batch.seed, (kKeys << 20) + r.stream,
              r.number);
      fillRow(out.v, r.block, r.row, g.headsKv, g.headDimVo, batch.magnitudeV, batch.seed, (kValues << 20) + r.stream,
              r.number);
    }
  }

  void makeQueries() {
    int64_t n = out.qoIndptr.back(), H = g.headsQo, DK = g.headDimQk, DV = g.headDimVo;
    int64_t width = H * DK + (batch.strides == Strides::Packed ? g.headsKv * (DK + DV) : 0);
    out.q.type = g.typeQ;
    out.q.shape = {n, H, DK};
    out.q.strides = {width, DK, 1};
    out.q.bytes = allocate(g.typeQ, (n + 1) * width, batch.unowned, batch.seed, 3);
    for (int64_t t = 0; t != n; ++t)
      fillRow(out.q, 0, t, H, DK, batch.magnitudeQ, batch.seed, kQ, t);
    out.o.type = g.typeO;
    out.o.shape = {n, H, DV};
    out.o.strides = {H * DV, DV, 1};
    out.o.bytes = std::make_shared<std::vector<uint8_t>>(std::max<int64_t>(n * H * DV, 1) * ref::storageBytes(g.typeO));
    ref::poison(g.typeO, out.o.bytes->data(), n * H * DV);
    out.lse.type = Storage::F32;
    out.lse.shape = {n, H};
    out.lse.strides = {H, 1};
    out.lse.bytes = std::make_shared<std::vector<uint8_t>>(std::max<int64_t>(n * H, 1) * 4);
    ref::poison(Storage::F32, out.lse.bytes->data(), n * H);
  }

  const Batch &batch;
  const Geometry &g;
  Built &out;
  std::string &error;
  std::vector<KeyRow> rows;
  int64_t tokens = 0;
};

std::shared_ptr<std::vector<float>> toFloats(const Tensor &t) {
  int64_t count = t.bufferElements();
  auto floats = std::make_shared<std::vector<float>>(count);
  if (t.type == Storage::F32) {
    if (count)
      std::memcpy(floats->data(), t.bytes->data(), t.bytes->size());
    return floats;
  }
  // All values of the type, once.
  size_t bytes = ref::storageBytes(t.type);
  std::vector<float> table(size_t(1) << (8 * bytes));
  for (size_t bits = 0; bits != table.size(); ++bits)
    table[bits] = ref::decode(t.type, uint32_t(bits));
  const uint8_t *data = t.bytes->data();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i)
    (*floats)[i] = table[bytes == 1 ? data[i] : data[2 * i] | data[2 * i + 1] << 8];
  return floats;
}

} // namespace

bool build(const Batch &batch, const Geometry &geometry, Built &built, std::string &error) {
  return Builder(batch, geometry, built, error).run();
}

ref::Problem Built::problem() const {
  if (!floatQ) {
    floatQ = toFloats(q);
    floatKv = toFloats(k);
    floatV = v.bytes == k.bytes ? floatKv : toFloats(v);
  }
  ref::Problem p;
  p.format = geometry.format;
  p.pageSize = geometry.pageSize;
  p.rowBlock = geometry.rowBlock;
  p.headsQo = geometry.headsQo;
  p.headsKv = geometry.headsKv;
  p.headDimQk = geometry.headDimQk;
  p.headDimVo = geometry.headDimVo;
  p.normalizer = geometry.normalizer;
  p.lseBase = geometry.lseBase;
  p.q = {floatQ->data() + q.offset, 0, q.strides[0], q.strides[1]};
  auto view = [](const std::vector<float> &floats, const Tensor &t) {
    size_t rank = t.shape.size();
    return ref::View{floats.data() + t.offset, rank == 4 ? t.strides[0] : 0, t.strides[rank - 3], t.strides[rank - 2]};
  };
  p.k = view(*floatKv, k);
  p.v = view(*floatV, v);
  p.qoIndptr = qoIndptr;
  p.levels = levels;
  p.kvTotal = kvTotal;
  return p;
}

} // namespace batch
} // namespace attn
