//===- Batch.cpp - reads batch files --------------------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small reader over llvm::json that remembers which keys it has taken, so
// that a misspelt key is an error with its name and the known ones.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Batch.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace attn {
namespace batch {

namespace {

constexpr int64_t kMaxTokens = int64_t(1) << 30;

/// Keys of one object; the first error stays.
class Reader {
public:
  Reader(const Object &object, std::string where, std::string &error)
      : object(object), where(std::move(where)), error(error) {}

  bool failed() const { return !error.empty(); }

  std::string name(const std::string &key) const { return where.empty() ? key : where + "." + key; }

  void fail(const std::string &key, const std::string &rule) {
    if (!failed())
      error = "'" + name(key) + "' " + rule;
  }

  const Value *take(const std::string &key) {
    taken.push_back(key);
    return object.get(key);
  }

  bool integer(const std::string &key, int64_t lo, int64_t hi, int64_t &value) {
    const Value *v = take(key);
    if (!v)
      return false;
    std::optional<int64_t> number = v->getAsInteger();
    if (!number || *number < lo || *number > hi) {
      fail(key, "must be an integer from " + std::to_string(lo) + " to " + std::to_string(hi));
      return false;
    }
    value = *number;
    return true;
  }

  bool number(const std::string &key, double &value) {
    const Value *v = take(key);
    if (!v)
      return false;
    std::optional<double> n = v->getAsNumber();
    if (!n || !std::isfinite(*n)) {
      fail(key, "must be a finite number");
      return false;
    }
    value = *n;
    return true;
  }

  /// The index of the word among `words`, or -1 when the key is absent or wrong.
  int choice(const std::string &key, const std::vector<std::string> &words, const char *also = "") {
    const Value *v = take(key);
    if (!v)
      return -1;
    std::optional<llvm::StringRef> text = v->getAsString();
    std::string known;
    for (size_t i = 0; i != words.size(); ++i) {
      if (text && *text == words[i])
        return int(i);
      known += (i ? ", " : "") + ("\"" + words[i] + "\"");
    }
    fail(key, "must be one of " + known + also);
    return -1;
  }

  void finish() {
    if (failed())
      return;
    std::vector<std::string> unknown;
    for (const auto &entry : object)
      if (std::find(taken.begin(), taken.end(), entry.first.str()) == taken.end())
        unknown.push_back(entry.first.str());
    if (unknown.empty())
      return;
    std::sort(unknown.begin(), unknown.end());
    std::string known;
    for (const std::string &key : taken)
      known += (known.empty() ? "" : ", ") + key;
    error = "unknown key '" + name(unknown[0]) + "'; known here: " + known;
  }

  const Object &object;
  std::string where;
  std::string &error;

private:
  std::vector<std::string> taken;
};

std::string element(const std::string &key, size_t i) { return key + "[" + std::to_string(i) + "]"; }

void readRequests(Reader &top, Batch &batch) {
  const Value *value = top.take("requests");
  if (!value)
    return;
  const Array *list = value->getAsArray();
  if (!list)
    return top.fail("requests", "must be a list of objects like {\"qo\": 1, \"kv\": 1234}");
  for (size_t i = 0; i != list->size(); ++i) {
    const Object *object = (*list)[i].getAsObject();
    std::string where = element("requests", i);
    if (!object)
      return top.fail(where, "must be an object like {\"qo\": 1, \"kv\": 1234}");
    Reader r(*object, where, top.error);
    Request request;
    int64_t count = 1;
    for (const char *key : {"qo", "kv"})
      if (!object->get(key))
        r.fail(key, "is missing");
    r.integer("qo", 0, kMaxTokens, request.qo);
    r.integer("kv", 0, kMaxTokens, request.kv);
    r.integer("count", 1, 1 << 20, count);
    r.finish();
    if (r.failed())
      return;
    batch.requests.insert(batch.requests.end(), count, request);
  }
}

void readLevels(Reader &top, Batch &batch) {
  const Value *value = top.take("levels");
  if (!value)
    return;
  const Array *list = value->getAsArray();
  if (!list)
    return top.fail("levels", "must be a list of objects like {\"requests\": [0, 3], \"prefix\": 512}");
  for (size_t i = 0; i != list->size(); ++i) {
    const Object *object = (*list)[i].getAsObject();
    std::string where = element("levels", i);
    if (!object)
      return top.fail(where, "must be an object like {\"requests\": [0, 3], \"prefix\": 512}");
    Reader r(*object, where, top.error);
    SharedPrefix prefix;
    const Value *run = r.take("requests");
    const Array *ends = run ? run->getAsArray() : nullptr;
    std::optional<int64_t> first, last;
    if (ends && ends->size() == 2) {
      first = (*ends)[0].getAsInteger();
      last = (*ends)[1].getAsInteger();
    }
    if (!first || !last)
      r.fail("requests", "must be [first, last], both included");
    if (!object->get("prefix"))
      r.fail("prefix", "is missing");
    r.integer("prefix", 0, kMaxTokens, prefix.length);
    r.finish();
    if (r.failed())
      return;
    prefix.first = *first;
    prefix.last = *last;
    batch.prefixes.push_back(prefix);
  }
}

/// Keys of each generator: numbers first, then words with their choices.
struct Generator {
  const char *name;
  std::vector<std::string> numbers;
  std::vector<std::pair<std::string, std::vector<std::string>>> words;
};

const std::vector<Generator> &generators() {
  static const std::vector<Generator> all = {
      {"alibi", {"heads", "first", "count"}, {}},
      {"tree_mask", {"density"}, {{"part", {"bits", "offsets"}}, {"kind", {"tree", "random", "causal"}}}},
      {"documents", {"mean"}, {{"part", {"ids", "starts", "offsets"}}}},
      {"prefix_lengths", {"fraction"}, {}},
      {"per_request", {}, {{"of", {"qo", "kv", "qo_offset", "kv_offset"}}}},
      {"iota", {}, {}},
      {"fill", {"value"}, {}},
  };
  return all;
}

void readShape(Reader &r, ParamSpec &spec) {
  const Value *value = r.take("shape");
  if (!value)
    return;
  const Array *list = value->getAsArray();
  int64_t total = 1;
  for (size_t i = 0; list && i != list->size(); ++i) {
    std::optional<int64_t> extent = (*list)[i].getAsInteger();
    if (!extent || *extent < 0 || *extent > kMaxTokens || (*extent && total > kMaxTokens / *extent)) {
      list = nullptr;
      break;
    }
    total *= *extent;
    spec.shape.push_back(*extent);
  }
  if (!list)
    r.fail("shape", "must be a list of extents, at most " + std::to_string(kMaxTokens) + " elements in all");
}

void readParam(const std::string &name, const Value &value, Batch &batch, std::string &error) {
  ParamSpec spec;
  std::string where = "params." + name;
  if (std::optional<double> number = value.getAsNumber()) {
    spec.number = *number;
    if (!std::isfinite(spec.number))
      error = "'" + where + "' must be a finite number";
    batch.params[name] = spec;
    return;
  }
  const Object *object = value.getAsObject();
  if (!object) {
    error = "'" + where + "' must be a number or an object with one of \"values\", \"random\", \"generator\"";
    return;
  }
  Reader r(*object, where, error);
  if (const Value *list = object->get("values")) {
    r.take("values");
    spec.kind = ParamSpec::Kind::Values;
    const Array *array = list->getAsArray();
    for (size_t i = 0; array && i != array->size(); ++i) {
      std::optional<double> number = (*array)[i].getAsNumber();
      if (!number) {
        array = nullptr;
        break;
      }
      spec.values.push_back(*number);
    }
    if (!array)
      r.fail("values", "must be a list of numbers");
    readShape(r, spec);
    int64_t total = 1;
    for (int64_t extent : spec.shape)
      total *= extent;
    if (!spec.shape.empty() && total != int64_t(spec.values.size()))
      r.fail("shape", "holds " + std::to_string(total) + " elements, but there are " +
                          std::to_string(spec.values.size()) + " values");
  } else if (const Value *range = object->get("random")) {
    r.take("random");
    spec.kind = ParamSpec::Kind::Random;
    const Array *ends = range->getAsArray();
    std::optional<double> lo, hi;
    if (ends && ends->size() == 2) {
      lo = (*ends)[0].getAsNumber();
      hi = (*ends)[1].getAsNumber();
    }
    if (!lo || !hi || !(*lo <= *hi))
      r.fail("random", "must be [lo, hi] with lo <= hi");
    else
      spec.lo = *lo, spec.hi = *hi;
    readShape(r, spec);
  } else if (object->get("generator")) {
    spec.kind = ParamSpec::Kind::Generator;
    std::vector<std::string> names;
    for (const Generator &g : generators())
      names.push_back(g.name);
    int which = r.choice("generator", names);
    if (which < 0)
      return;
    const Generator &g = generators()[which];
    spec.generator = g.name;
    for (const std::string &key : g.numbers) {
      double number;
      if (r.number(key, number))
        spec.numbers[key] = number;
    }
    for (const auto &[key, words] : g.words)
      if (int word = r.choice(key, words); word >= 0)
        spec.words[key] = words[word];
    readShape(r, spec);
    auto within = [&](const char *key, double lo, double hi, bool whole, const char *rule) {
      auto it = spec.numbers.find(key);
      if (it != spec.numbers.end() &&
          !(it->second >= lo && it->second <= hi && (!whole || it->second == std::floor(it->second))))
        r.fail(key, rule);
    };
    within("heads", 1, 1 << 16, true, "must be an integer from 1 to 65536");
    within("first", 0, 1 << 16, true, "must be an integer from 0 to 65536");
    within("count", 0, 1 << 16, true, "must be an integer from 0 to 65536");
    within("density", 0, 1, false, "must be a number from 0 to 1");
    within("fraction", 0, 1, false, "must be a number from 0 to 1");
    within("mean", 1, 1 << 30, true, "must be an integer from 1 to 1073741824");
    if (spec.generator == "alibi") {
      double heads = spec.numbers.count("heads") ? spec.numbers["heads"] : 0, first = spec.numbers["first"];
      if (heads == 0)
        r.fail("heads", "is missing: state the number of heads of the whole model");
      else if (first + spec.numbers["count"] > heads || first >= heads)
        r.fail("first", "plus count must not exceed heads, " + std::to_string(int64_t(heads)));
      if (!object->get("count"))
        spec.numbers.erase("count");
    }
    if (spec.generator == "per_request" && !object->get("of"))
      r.fail("of", "is missing: one of \"qo\", \"kv\", \"qo_offset\", \"kv_offset\"");
    if (spec.generator == "iota" && spec.shape.size() > 1)
      r.fail("shape", "must have one extent");
  } else {
    r.fail("values", "is missing: an object must have one of \"values\", \"random\", \"generator\"");
  }
  r.finish();
  batch.params[name] = spec;
}

void readParams(Reader &top, Batch &batch) {
  const Value *value = top.take("params");
  if (!value)
    return;
  const Object *object = value->getAsObject();
  if (!object)
    return top.fail("params", "must be an object: one value per parameter of the variant");
  // Sorted, so that the first error does not depend on a hash.
  std::vector<std::string> names;
  for (const auto &entry : *object)
    names.push_back(entry.first.str());
  std::sort(names.begin(), names.end());
  for (const std::string &name : names)
    if (!top.failed())
      readParam(name, *object->get(name), batch, top.error);
}

void readMagnitude(Reader &top, Batch &batch) {
  const Value *value = top.take("magnitude");
  if (!value)
    return;
  if (std::optional<double> number = value->getAsNumber()) {
    batch.magnitudeQ = batch.magnitudeK = batch.magnitudeV = *number;
  } else if (const Object *object = value->getAsObject()) {
    Reader r(*object, "magnitude", top.error);
    r.number("q", batch.magnitudeQ);
    r.number("k", batch.magnitudeK);
    r.number("v", batch.magnitudeV);
    r.finish();
  } else {
    top.fail("magnitude", "must be a number or an object with \"q\", \"k\", \"v\"");
  }
  for (double m : {batch.magnitudeQ, batch.magnitudeK, batch.magnitudeV})
    if (!(m >= 0 && m <= 1e6))
      top.fail("magnitude", "must be from 0 to 1e6");
}

void readTrace(Reader &top, const std::string &folder, Batch &batch) {
  const Value *value = top.take("trace");
  if (!value)
    return;
  const Object *object = value->getAsObject();
  if (!object || !object->get("file"))
    return top.fail("trace", "must be an object with \"file\", a path that counts from the batch file's folder");
  Reader r(*object, "trace", top.error);
  TraceStep step;
  if (std::optional<llvm::StringRef> file = r.take("file")->getAsString())
    step.file = file->str();
  else
    r.fail("file", "must be a path");
  r.integer("step", 0, 1 << 24, step.step);
  r.integer("max_batch", 1, 1 << 16, step.maxBatch);
  r.integer("chunk", 1, 1 << 20, step.chunk);
  r.integer("prefills", 0, 1 << 16, step.prefills);
  r.integer("divide", 1, 1 << 16, step.divide);
  r.integer("max_levels", 0, 8, step.maxLevels);
  r.finish();
  if (r.failed())
    return;
  llvm::SmallString<128> path(step.file);
  if (llvm::sys::path::is_relative(path)) {
    path = folder;
    llvm::sys::path::append(path, step.file);
  }
  step.file = path.str().str();
  traceStep(step, batch, top.error);
}

} // namespace

bool parse(const std::string &text, const std::string &folder, Batch &batch, std::string &error) {
  batch = Batch();
  error.clear();
  llvm::Expected<Value> root = llvm::json::parse(text);
  if (!root) {
    error = "not valid JSON: " + llvm::toString(root.takeError());
    return false;
  }
  const Object *object = root->getAsObject();
  if (!object) {
    error = "a batch file must hold one object";
    return false;
  }
  Reader top(*object, "", error);
  if (bool(object->get("requests")) == bool(object->get("trace")))
    top.fail("requests", object->get("trace") ? "and 'trace' exclude each other; remove one"
                                              : "is missing; list the requests or name a 'trace'");
  readRequests(top, batch);
  if (!top.failed())
    readTrace(top, folder, batch);
  if (!top.failed() && object->get("trace") && object->get("levels"))
    top.fail("levels",
             "come from the trace's hashes; remove the key or set trace.max_levels to 0 and list the requests");
  if (!top.failed())
    readLevels(top, batch);
  if (int i = top.choice("page_order", {"random", "sequential"}); i >= 0)
    batch.pageOrder = PageOrder(i);
  if (int i = top.choice("strides", {"nhd", "hnd", "packed"}); i >= 0)
    batch.strides = Strides(i);
  if (int i = top.choice("unowned", {"nan", "zero", "random"}); i >= 0)
    batch.unowned = Unowned(i);
  if (int i = top.choice("lse_base", {"natural", "base2"}); i >= 0)
    batch.lseBase = i ? "base2" : "natural";
  if (const Value *split = object->get("split"); split && split->getAsInteger()) {
    batch.split = SplitKind::Chunk;
    top.integer("split", 1, kMaxTokens, batch.chunk);
  } else if (int i = top.choice("split", {"auto", "none"}, " or the keys of a chunk"); i >= 0) {
    batch.split = SplitKind(i);
  }
  int64_t seed = 0;
  if (top.integer("seed", 0, std::numeric_limits<int64_t>::max(), seed))
    batch.seed = uint64_t(seed);
  if (top.number("density", batch.density) && !(batch.density >= 0 && batch.density <= 1))
    top.fail("density", "must be a number from 0 to 1");
  batch.hasScale = top.number("scale", batch.scale);
  readMagnitude(top, batch);
  readParams(top, batch);
  top.take("comment"); // free text, for people
  top.finish();
  if (error.empty())
    error = check(batch);
  return error.empty();
}

bool load(const std::string &path, Batch &batch, std::string &error) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file) {
    error = path + ": cannot be read: " + file.getError().message();
    return false;
  }
  if (parse((*file)->getBuffer().str(), llvm::sys::path::parent_path(path).str(), batch, error))
    return true;
  error = path + ": " + error;
  return false;
}

std::string check(const Batch &batch) {
  int64_t n = int64_t(batch.requests.size()), tokens = 0, keys = 0;
  for (size_t i = 0; i != batch.requests.size(); ++i) {
    const Request &r = batch.requests[i];
    if (r.qo < 0 || r.kv < 0)
      return "'" + element("requests", i) + "' must not have negative lengths";
    tokens += r.qo;
    keys += r.kv;
    if (tokens > kMaxTokens || keys > (kMaxTokens << 4))
      return "the batch is too large: at most " + std::to_string(kMaxTokens) + " query tokens and " +
             std::to_string(kMaxTokens << 4) + " keys";
  }
  std::vector<int64_t> shared(batch.requests.size(), 0);
  for (size_t i = 0; i != batch.prefixes.size(); ++i) {
    const SharedPrefix &p = batch.prefixes[i];
    std::string where = "'" + element("levels", i) + "'";
    if (p.first < 0 || p.last < p.first || p.last >= n)
      return where + " must name requests 0 to " + std::to_string(n - 1) + " in order, got [" +
             std::to_string(p.first) + ", " + std::to_string(p.last) + "]";
    for (size_t j = 0; j != i; ++j) {
      const SharedPrefix &o = batch.prefixes[j];
      bool disjoint = o.last < p.first || p.last < o.first;
      bool inside = o.first <= p.first && p.last <= o.last;
      if (!disjoint && !inside)
        return where + " must lie inside or beside '" + element("levels", j) +
               "'; list the outer prefix first and order requests depth first";
    }
    for (int64_t r = p.first; r <= p.last; ++r)
      if ((shared[r] += p.length) > batch.requests[r].kv)
        return where + " gives request " + std::to_string(r) + " more shared keys than its kv of " +
               std::to_string(batch.requests[r].kv) + "; kv counts the prefixes too";
  }
  return "";
}

PrefixTree prefixTree(const Batch &batch) {
  PrefixTree tree;
  for (const Request &r : batch.requests)
    tree.own.push_back(r.kv);
  for (size_t i = 0; i != batch.prefixes.size(); ++i) {
    const SharedPrefix &p = batch.prefixes[i];
    int64_t depth = 0;
    for (size_t j = 0; j != i; ++j)
      if (batch.prefixes[j].first <= p.first && p.last <= batch.prefixes[j].last)
        depth = std::max(depth, tree.depth[j] + 1);
    tree.depth.push_back(depth);
    tree.levels = std::max(tree.levels, depth + 1);
    for (int64_t r = p.first; r <= p.last; ++r)
      tree.own[r] -= p.length;
  }
  return tree;
}

} // namespace batch
} // namespace attn
