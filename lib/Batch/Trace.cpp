//===- Trace.cpp - a serving step out of a trace --------------------------===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replays a trace on a saturated server with a prefix cache: requests enter in
// order of arrival while there is room, up to `prefills` of them get a chunk of
// prefill in a step, all others that are prefilled decode one token. Lines are
// Mooncake's JSON (with the hashes of 512-token blocks) or Azure's CSV.
//
// python/attn_mlir/traces.py has the same rules; a test compares them.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Batch.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <set>

namespace attn {
namespace batch {

namespace {

constexpr int64_t kBlock = 512; ///< tokens of a hashed block

struct Arrival {
  int64_t input = 0, output = 0;
  std::vector<int64_t> hashes;
};

struct Running {
  const Arrival *arrival;
  int64_t done;  ///< keys in the cache
  int64_t left;  ///< tokens still to generate
  int64_t order; ///< of arrival
};

/// One sequence of the step, before sorting.
struct Sequence {
  Request request;
  const std::vector<int64_t> *hashes;
  int64_t sharable; ///< whole blocks that were in the cache before the step
  int64_t order;
};

bool readMooncake(llvm::StringRef line, Arrival &arrival) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (!value) {
    llvm::consumeError(value.takeError());
    return false;
  }
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return false;
  std::optional<int64_t> input = object->getInteger("input_length"), output = object->getInteger("output_length");
  if (!input || !output)
    return false;
  arrival.input = *input;
  arrival.output = *output;
  if (const llvm::json::Array *hashes = object->getArray("hash_ids"))
    for (const llvm::json::Value &hash : *hashes) {
      if (!hash.getAsInteger())
        return false;
      arrival.hashes.push_back(*hash.getAsInteger());
    }
  return true;
}

bool readAzure(llvm::StringRef line, Arrival &arrival) {
  llvm::SmallVector<llvm::StringRef, 4> fields;
  line.split(fields, ',');
  return fields.size() == 3 && !fields[1].trim().getAsInteger(10, arrival.input) &&
         !fields[2].trim().getAsInteger(10, arrival.output);
}

bool readTrace(const std::string &path, std::vector<Arrival> &arrivals, std::string &error) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file) {
    error = "trace '" + path + "' cannot be read: " + file.getError().message();
    return false;
  }
  llvm::SmallVector<llvm::StringRef, 0> lines;
  (*file)->getBuffer().split(lines, '\n');
  for (size_t i = 0; i != lines.size(); ++i) {
    llvm::StringRef line = lines[i].trim();
    if (line.empty() || line.starts_with("TIMESTAMP"))
      continue;
    Arrival arrival;
    bool fine = line.starts_with("{") ? readMooncake(line, arrival) : readAzure(line, arrival);
    if (!fine || arrival.input < 0 || arrival.output < 0 || arrival.input > (1 << 28) || arrival.output > (1 << 28)) {
      error = "trace '" + path + "', line " + std::to_string(i + 1) +
              ": expected {\"input_length\": ..., \"output_length\": ..., \"hash_ids\": [...]} or "
              "timestamp,context,generated";
      return false;
    }
    arrivals.push_back(std::move(arrival));
  }
  if (arrivals.empty())
    error = "trace '" + path + "' holds no request";
  return !arrivals.empty();
}

/// Prefix nodes of the run [first, last) of sequences whose first `from` blocks are already shared.
void shareRun(const std::vector<Sequence> &all, int64_t first, int64_t last, int64_t from, int64_t block, int64_t depth,
              std::vector<SharedPrefix> &prefixes) {
  if (depth == 0)
    return;
  for (int64_t begin = first; begin < last;) {
    auto same = [&](int64_t i, int64_t at) {
      return all[i].sharable > at && all[begin].sharable > at && (*all[i].hashes)[at] == (*all[begin].hashes)[at];
    };
    int64_t end = begin + 1;
    while (end < last && same(end, from))
      ++end;
    if (end - begin > 1) {
      int64_t common = from + 1;
      auto everyone = [&] {
        for (int64_t i = begin; i != end; ++i)
          if (!same(i, common))
            return false;
        return true;
      };
      while (everyone())
        ++common;
      prefixes.push_back({begin, end - 1, (common - from) * block});
      shareRun(all, begin, end, common, block, depth - 1, prefixes);
    }
    begin = end;
  }
}

} // namespace

bool traceStep(const TraceStep &step, Batch &batch, std::string &error) {
  std::vector<Arrival> arrivals;
  if (!readTrace(step.file, arrivals, error))
    return false;
  int64_t block = kBlock / step.divide;
  if (block == 0) {
    error = "'trace.divide' must be at most " + std::to_string(kBlock);
    return false;
  }
  for (Arrival &a : arrivals) {
    a.input = std::max<int64_t>(1, a.input / step.divide);
    a.output = std::max<int64_t>(1, a.output / step.divide);
    // The last hash is of a partial block.
    a.hashes.resize(std::min<size_t>(a.hashes.size(), a.input / block));
  }

  std::vector<Running> running;
  std::set<int64_t> cache;
  size_t next = 0;
  std::vector<Sequence> now;
  for (int64_t t = 0; t <= step.step; ++t) {
    while (int64_t(running.size()) < step.maxBatch && next != arrivals.size()) {
      const Arrival &a = arrivals[next];
      int64_t hit = 0;
      while (hit != int64_t(a.hashes.size()) && cache.count(a.hashes[hit]))
        ++hit;
      // At least one token is computed, for its logits.
      running.push_back({&a, std::min(hit * block, a.input - 1), a.output, int64_t(next)});
      ++next;
    }
    now.clear();
    int64_t prefills = 0;
    std::vector<Running> stay;
    for (Running &r : running) {
      int64_t old = r.done, input = r.arrival->input, qo = 1;
      if (r.done < input) {
        if (prefills == step.prefills) {
          stay.push_back(r);
          continue;
        }
        ++prefills;
        qo = std::min(step.chunk, input - r.done);
      } else {
        --r.left;
      }
      r.done += qo;
      for (int64_t b = old / block; b < std::min<int64_t>(r.done / block, r.arrival->hashes.size()); ++b)
        cache.insert(r.arrival->hashes[b]);
      now.push_back(
          {{qo, r.done}, &r.arrival->hashes, std::min<int64_t>(old / block, r.arrival->hashes.size()), r.order});
      if (r.left > 0)
        stay.push_back(r);
    }
    running = std::move(stay);
    if (now.empty())
      break;
  }
  if (now.empty()) {
    error = "trace '" + step.file + "' is over before step " + std::to_string(step.step) + "; choose an earlier step";
    return false;
  }
  // Depth first: whoever shares blocks stands together.
  std::sort(now.begin(), now.end(), [](const Sequence &a, const Sequence &b) {
    auto end = [](const Sequence &s) { return s.hashes->begin() + s.sharable; };
    if (std::lexicographical_compare(a.hashes->begin(), end(a), b.hashes->begin(), end(b)))
      return true;
    if (std::lexicographical_compare(b.hashes->begin(), end(b), a.hashes->begin(), end(a)))
      return false;
    return a.order < b.order;
  });
  for (const Sequence &s : now)
    batch.requests.push_back(s.request);
  shareRun(now, 0, int64_t(now.size()), 0, block, step.maxLevels, batch.prefixes);
  return true;
}

} // namespace batch
} // namespace attn
