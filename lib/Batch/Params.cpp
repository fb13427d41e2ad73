//===- Params.cpp - values of a variant's parameters ----------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers, lists and generators become scalars or typed buffers. Generators
// know the batch's lengths, so that one file fits any trace.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Build.h"
#include "attn/Reference/Variants.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attn {
namespace batch {

namespace {

uint64_t hashName(const std::string &name) {
  uint64_t h = 1469598103934665603ull;
  for (unsigned char c : name)
    h = (h ^ c) * 1099511628211ull;
  return h | (uint64_t(1) << 63); // apart from the streams of tensors
}

double numberOr(const ParamSpec &spec, const char *key, double otherwise) {
  auto it = spec.numbers.find(key);
  return it == spec.numbers.end() ? otherwise : it->second;
}

std::string wordOr(const ParamSpec &spec, const char *key, const char *otherwise) {
  auto it = spec.words.find(key);
  return it == spec.words.end() ? otherwise : it->second;
}

/// Bits of all requests, or where each request's bytes start. A tree: every query sees all old keys, itself and its
/// ancestors among the new ones.
std::vector<double> treeMask(const ParamSpec &spec, const std::vector<Request> &requests, uint64_t seed) {
  bool bits = wordOr(spec, "part", "bits") == "bits";
  std::string kind = wordOr(spec, "kind", "tree");
  double density = numberOr(spec, "density", 0.5);
  // Both parts of one mask come from the batch's seed alone, so they fit each other.
  const uint64_t stream = hashName("tree_mask");
  std::vector<double> offsets, bytes;
  uint64_t draw = 0;
  for (const Request &r : requests) {
    offsets.push_back(double(bytes.size()));
    std::vector<uint8_t> mine((r.qo * r.kv + 7) / 8, 0);
    std::vector<int64_t> parent(r.qo, -1);
    for (int64_t i = 1; i < r.qo; ++i)
      parent[i] = int64_t(randomBits(seed, stream, draw++) % uint64_t(i));
    for (int64_t row = 0; row != r.qo; ++row) {
      std::vector<char> ancestor(r.qo, 0);
      for (int64_t i = row; i >= 0; i = parent[i])
        ancestor[i] = 1;
      for (int64_t j = 0; j != r.kv; ++j) {
        int64_t fresh = j - (r.kv - r.qo); // number of the new token, negative for old keys
        bool visible = kind == "random"   ? randomUniform(seed, stream, draw++) < density
                       : kind == "causal" ? fresh <= row
                                          : fresh < 0 || ancestor[fresh];
        if (visible)
          mine[(row * r.kv + j) / 8] |= uint8_t(1u << ((row * r.kv + j) % 8));
      }
    }
    bytes.insert(bytes.end(), mine.begin(), mine.end());
  }
  offsets.push_back(double(bytes.size()));
  return bits ? bytes : offsets;
}

/// Documents of random length: the id of every key, the position where its document starts, or each request's first
/// element in those.
std::vector<double> documents(const ParamSpec &spec, const std::vector<Request> &requests, uint64_t seed) {
  std::string part = wordOr(spec, "part", "ids");
  int64_t mean = int64_t(numberOr(spec, "mean", 256));
  const uint64_t stream = hashName("documents");
  std::vector<double> ids, starts, offsets;
  uint64_t draw = 0;
  for (const Request &r : requests) {
    offsets.push_back(double(ids.size()));
    int64_t start = 0, id = 0;
    while (start < r.kv) {
      int64_t length = 1 + int64_t(randomBits(seed, stream, draw++) % uint64_t(2 * mean - 1));
      for (int64_t j = 0; j != length && start + j < r.kv; ++j) {
        ids.push_back(double(id));
        starts.push_back(double(start));
      }
      start += length;
      ++id;
    }
  }
  offsets.push_back(double(ids.size()));
  return part == "ids" ? ids : part == "starts" ? starts : offsets;
}

int64_t product(const std::vector<int64_t> &shape) {
  int64_t total = 1;
  for (int64_t extent : shape)
    total *= extent;
  return total;
}

bool known(const std::vector<int64_t> &shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent >= 0; });
}

/// Values before rounding. An unset shape stays empty.
std::vector<double> generate(const Batch &batch, const Built &built, const ParamSpec &spec, const std::string &name,
                             std::vector<int64_t> shape) {
  const std::vector<Request> &requests = built.requests;
  std::vector<double> values;
  auto perElement = [&](auto value) {
    for (int64_t i = 0, n = product(shape); i != n; ++i)
      values.push_back(value(i));
    return values;
  };
  switch (spec.kind) {
  case ParamSpec::Kind::Number:
    return perElement([&](int64_t) { return spec.number; });
  case ParamSpec::Kind::Values:
    return spec.values;
  case ParamSpec::Kind::Random:
    return perElement([&](int64_t i) {
      return spec.lo + (spec.hi - spec.lo) * randomUniform(batch.seed, hashName(name), uint64_t(i));
    });
  case ParamSpec::Kind::Generator:
    break;
  }
  const std::string &g = spec.generator;
  if (g == "alibi")
    return ref::alibiSlopes(int64_t(numberOr(spec, "heads", 1)), int64_t(numberOr(spec, "first", 0)),
                            spec.numbers.count("count") ? int64_t(numberOr(spec, "count", 0)) : -1);
  if (g == "tree_mask")
    return treeMask(spec, requests, batch.seed);
  if (g == "documents")
    return documents(spec, requests, batch.seed);
  if (g == "iota")
    return perElement([](int64_t i) { return double(i); });
  if (g == "fill")
    return perElement([&](int64_t) { return numberOr(spec, "value", 0); });
  double offset = 0;
  for (size_t r = 0; r != requests.size(); ++r) {
    const Request &request = requests[r];
    std::string of = wordOr(spec, "of", "");
    if (g == "prefix_lengths") {
      double share = numberOr(spec, "fraction", 0.5) * randomUniform(batch.seed, hashName(name), r);
      values.push_back(std::floor(share * double(request.kv + 1)));
    } else if (of == "qo" || of == "kv") {
      values.push_back(double(of == "qo" ? request.qo : request.kv));
    } else {
      values.push_back(offset);
      offset += double(of == "qo_offset" ? request.qo : request.kv);
    }
  }
  return values;
}

struct Element {
  const char *name;
  size_t bytes;
  double lo, hi; ///< of integers; equal: a floating-point type
};
const Element kElements[] = {{"f32", 4, 0, 0},
                             {"bf16", 2, 0, 0},
                             {"f16", 2, 0, 0},
                             {"i64", 8, -9007199254740992.0, 9007199254740992.0},
                             {"i32", 4, -2147483648.0, 2147483647.0},
                             {"i8", 1, -128, 255}, // also bit masks, which are unsigned
                             {"i1", 1, 0, 1}};

} // namespace

bool resolveParam(const Batch &batch, const Built &built, const ParamDecl &decl, ParamValue &value,
                  std::string &error) {
  value = ParamValue();
  std::string where = "'params." + decl.name + "'";
  auto fail = [&](const std::string &text) {
    error = where + " " + text;
    return false;
  };
  auto it = batch.params.find(decl.name);
  if (it == batch.params.end())
    return fail("is missing in the batch file; the variant has a parameter '" + decl.name + "'");
  const ParamSpec &spec = it->second;
  if (decl.kind != ParamDecl::Kind::Buffer) {
    if (spec.kind != ParamSpec::Kind::Number)
      return fail("must be a number: the variant's parameter is a scalar");
    if (decl.kind == ParamDecl::Kind::Index && spec.number != std::floor(spec.number))
      return fail("must be an integer: the variant's parameter is an index");
    if (decl.kind == ParamDecl::Kind::Index && std::fabs(spec.number) > 9007199254740992.0)
      return fail("must be an integer up to 2^53 in size");
    value.number = decl.kind == ParamDecl::Kind::F32 ? double(float(spec.number)) : spec.number;
    return true;
  }
  const Element *element = nullptr;
  for (const Element &candidate : kElements)
    if (decl.element == candidate.name)
      element = &candidate;
  if (!element)
    return fail("has elements of type " + decl.element + ", which batch files cannot make");
  std::vector<int64_t> shape = spec.shape.empty() ? decl.shape : spec.shape;
  if (shape.size() != decl.shape.size())
    return fail("has a shape of rank " + std::to_string(shape.size()) + ", the variant's buffer has rank " +
                std::to_string(decl.shape.size()));
  bool needsShape = spec.kind == ParamSpec::Kind::Number || spec.kind == ParamSpec::Kind::Random ||
                    spec.generator == "iota" || spec.generator == "fill";
  if (needsShape && !known(shape))
    return fail("needs a \"shape\": the variant's buffer has dynamic extents");
  double expected = needsShape ? 1 : 0;
  if (needsShape)
    for (int64_t extent : shape)
      expected *= double(extent);
  if (spec.generator == "tree_mask")
    for (const Request &r : built.requests)
      expected += double(r.qo) * double(r.kv) / 8;
  if (expected * (sizeof(double) + element->bytes) > memoryLimit() / 2)
    return fail("has about " + std::to_string(int64_t(std::min(expected, 1e18))) +
                " values, which do not fit this machine's memory; make it smaller");
  value.values = generate(batch, built, spec, decl.name, shape);
  int64_t count = int64_t(value.values.size());
  if (!known(shape)) {
    if (shape.size() != 1)
      return fail("needs a \"shape\": the variant's buffer has dynamic extents");
    shape = {count};
  }
  for (size_t i = 0; i != shape.size(); ++i)
    if (decl.shape[i] >= 0 && decl.shape[i] != shape[i])
      return fail("has extent " + std::to_string(shape[i]) + " in dimension " + std::to_string(i) +
                  ", the variant's buffer has " + std::to_string(decl.shape[i]));
  if (product(shape) != count)
    return fail("gives " + std::to_string(count) + " values for a buffer of " + std::to_string(product(shape)));
  value.shape = shape;
  value.bytes.resize(value.values.size() * element->bytes);
  for (size_t i = 0; i != value.values.size(); ++i) {
    double &x = value.values[i];
    uint8_t *to = value.bytes.data() + i * element->bytes;
    ref::Storage type;
    if (ref::parseStorage(element->name, type)) {
      ref::storeElement(type, value.bytes.data(), i, x);
      x = ref::loadElement(type, value.bytes.data(), i);
      continue;
    }
    if (spec.kind == ParamSpec::Kind::Random)
      x = std::floor(x);
    if (x != std::floor(x) || x < element->lo || x > element->hi)
      return fail("holds a value that " + decl.element + " cannot, at element " + std::to_string(i));
    int64_t integer = int64_t(x);
    std::memcpy(to, &integer, element->bytes);
  }
  return true;
}

std::string unknownParams(const Batch &batch, const std::vector<ParamDecl> &decls, const std::string &variant) {
  for (const auto &entry : batch.params) {
    bool declared = std::any_of(decls.begin(), decls.end(), [&](const ParamDecl &d) { return d.name == entry.first; });
    if (declared)
      continue;
    std::string known;
    for (const ParamDecl &d : decls)
      known += (known.empty() ? "" : ", ") + d.name;
    return "'params." + entry.first + "' is no parameter of variant '" + variant + "'" +
           (known.empty() ? ", which has none" : "; it has: " + known);
  }
  return "";
}

} // namespace batch
} // namespace attn
