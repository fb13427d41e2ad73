//===- ParseTest.cpp - batch files: what they say and what is refused -----===//
//
// Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every message of the reader is provoked once.
//
//===----------------------------------------------------------------------===//

#include "attn/Batch/Batch.h"

#include "gtest/gtest.h"

using namespace attn::batch;

namespace {

std::string errorOf(const std::string &text, const std::string &folder = ".") {
  Batch batch;
  std::string error;
  EXPECT_EQ(parse(text, folder, batch, error), error.empty());
  return error;
}

/// The error of a file with one request and more keys.
std::string with(const std::string &keys) { return errorOf("{\"requests\": [{\"qo\": 2, \"kv\": 40}], " + keys + "}"); }

TEST(BatchParse, EverythingIsRead) {
  Batch b;
  std::string error;
  ASSERT_TRUE(parse(R"({
    "comment": "all keys",
    "requests": [{"qo": 1, "kv": 10}, {"qo": 2, "kv": 30, "count": 2}],
    "levels": [{"requests": [0, 2], "prefix": 8}, {"requests": [1, 2], "prefix": 4}],
    "page_order": "sequential", "strides": "packed", "unowned": "zero", "split": 256, "density": 0.25,
    "magnitude": {"q": 2, "v": 3}, "scale": -0.5, "lse_base": "base2", "seed": 9,
    "params": {"cap": 50, "s": {"generator": "alibi", "heads": 32, "first": 8, "count": 8},
               "b": {"random": [-1, 1], "shape": [2, 3]}, "w": {"values": [1, 2]}}
  })",
                    ".", b, error))
      << error;
  ASSERT_EQ(3u, b.requests.size());
  EXPECT_EQ(30, b.requests[2].kv);
  EXPECT_EQ(2, b.prefixes[1].last);
  EXPECT_EQ(PageOrder::Sequential, b.pageOrder);
  EXPECT_EQ(Strides::Packed, b.strides);
  EXPECT_EQ(Unowned::Zero, b.unowned);
  EXPECT_EQ(SplitKind::Chunk, b.split);
  EXPECT_EQ(256, b.chunk);
  EXPECT_EQ(0.25, b.density);
  EXPECT_EQ(2, b.magnitudeQ);
  EXPECT_EQ(1, b.magnitudeK);
  EXPECT_EQ(3, b.magnitudeV);
  EXPECT_TRUE(b.hasScale);
  EXPECT_EQ("base2", b.lseBase);
  EXPECT_EQ(9u, b.seed);
  EXPECT_EQ(8, b.params["s"].numbers["first"]);
  EXPECT_EQ((std::vector<int64_t>{2, 3}), b.params["b"].shape);
  PrefixTree tree = prefixTree(b);
  EXPECT_EQ(2, tree.levels);
  EXPECT_EQ((std::vector<int64_t>{0, 1}), tree.depth);
  EXPECT_EQ((std::vector<int64_t>{2, 18, 18}), tree.own);
}

TEST(BatchParse, Defaults) {
  Batch b;
  std::string error;
  ASSERT_TRUE(parse(R"({"requests": []})", ".", b, error)) << error;
  EXPECT_EQ(PageOrder::Random, b.pageOrder);
  EXPECT_EQ(Unowned::NaN, b.unowned);
  EXPECT_EQ(SplitKind::Auto, b.split);
  EXPECT_FALSE(b.hasScale);
}

TEST(BatchParse, Structure) {
  EXPECT_EQ(0u, errorOf("{").find("not valid JSON: "));
  EXPECT_EQ("a batch file must hold one object", errorOf("[]"));
  EXPECT_EQ("'requests' is missing; list the requests or name a 'trace'", errorOf("{}"));
  EXPECT_EQ("'requests' and 'trace' exclude each other; remove one", errorOf(R"({"requests": [], "trace": {}})"));
  std::string unknown = with("\"page_ordr\": \"random\"");
  EXPECT_EQ(0u, unknown.find("unknown key 'page_ordr'; known here: requests, trace, levels, page_order")) << unknown;
}

TEST(BatchParse, Requests) {
  EXPECT_EQ("'requests' must be a list of objects like {\"qo\": 1, \"kv\": 1234}", errorOf(R"({"requests": 3})"));
  EXPECT_EQ("'requests[0]' must be an object like {\"qo\": 1, \"kv\": 1234}", errorOf(R"({"requests": [3]})"));
  EXPECT_EQ("'requests[0].kv' is missing", errorOf(R"({"requests": [{"qo": 1}]})"));
  EXPECT_EQ("'requests[0].qo' must be an integer from 0 to 1073741824",
            errorOf(R"({"requests": [{"qo": -1, "kv": 2}]})"));
  EXPECT_EQ("'requests[0].kv' must be an integer from 0 to 1073741824",
            errorOf(R"({"requests": [{"qo": 1, "kv": 1.5}]})"));
  EXPECT_EQ("unknown key 'requests[1].kw'; known here: qo, kv, count",
            errorOf(R"({"requests": [{"qo": 1, "kv": 2}, {"qo": 1, "kv": 2, "kw": 2}]})"));
  EXPECT_EQ("the batch is too large: at most 1073741824 query tokens and 17179869184 keys",
            errorOf(R"({"requests": [{"qo": 1000000000, "kv": 2, "count": 2}]})"));
  Batch b;
  b.requests = {{1, -1}};
  EXPECT_EQ("'requests[0]' must not have negative lengths", check(b));
}

TEST(BatchParse, Levels) {
  EXPECT_EQ("'levels' must be a list of objects like {\"requests\": [0, 3], \"prefix\": 512}", with("\"levels\": 1"));
  EXPECT_EQ("'levels[0]' must be an object like {\"requests\": [0, 3], \"prefix\": 512}", with("\"levels\": [1]"));
  EXPECT_EQ("'levels[0].requests' must be [first, last], both included", with("\"levels\": [{\"prefix\": 1}]"));
  EXPECT_EQ("'levels[0].prefix' is missing", with("\"levels\": [{\"requests\": [0, 0]}]"));
  EXPECT_EQ("'levels[0]' must name requests 0 to 0 in order, got [0, 1]",
            with("\"levels\": [{\"requests\": [0, 1], \"prefix\": 1}]"));
  EXPECT_EQ("'levels[0]' gives request 0 more shared keys than its kv of 40; kv counts the prefixes too",
            with("\"levels\": [{\"requests\": [0, 0], \"prefix\": 41}]"));
  EXPECT_EQ("'levels[1]' must lie inside or beside 'levels[0]'; list the outer prefix first and order requests depth "
            "first",
            errorOf(R"({"requests": [{"qo": 1, "kv": 9, "count": 3}],
                        "levels": [{"requests": [0, 1], "prefix": 1}, {"requests": [1, 2], "prefix": 1}]})"));
}

TEST(BatchParse, Choices) {
  EXPECT_EQ("'page_order' must be one of \"random\", \"sequential\"", with("\"page_order\": \"any\""));
  EXPECT_EQ("'strides' must be one of \"nhd\", \"hnd\", \"packed\"", with("\"strides\": 1"));
  EXPECT_EQ("'unowned' must be one of \"nan\", \"zero\", \"random\"", with("\"unowned\": \"\""));
  EXPECT_EQ("'lse_base' must be one of \"natural\", \"base2\"", with("\"lse_base\": \"e\""));
  EXPECT_EQ("'split' must be one of \"auto\", \"none\" or the keys of a chunk", with("\"split\": \"two\""));
  EXPECT_EQ("'split' must be an integer from 1 to 1073741824", with("\"split\": 0"));
  EXPECT_EQ("'seed' must be an integer from 0 to 9223372036854775807", with("\"seed\": -1"));
  EXPECT_EQ("'density' must be a number from 0 to 1", with("\"density\": 1.5"));
  EXPECT_EQ("'scale' must be a finite number", with("\"scale\": \"x\""));
  EXPECT_EQ("'magnitude' must be a number or an object with \"q\", \"k\", \"v\"", with("\"magnitude\": []"));
  EXPECT_EQ("'magnitude' must be from 0 to 1e6", with("\"magnitude\": -1"));
}

TEST(BatchParse, Params) {
  auto param = [](const std::string &value) { return with("\"params\": {\"p\": " + value + "}"); };
  EXPECT_EQ("'params' must be an object: one value per parameter of the variant", with("\"params\": 1"));
  EXPECT_EQ("'params.p' must be a number or an object with one of \"values\", \"random\", \"generator\"", param("[]"));
  EXPECT_EQ("'params.p.values' is missing: an object must have one of \"values\", \"random\", \"generator\"",
            param("{}"));
  EXPECT_EQ("'params.p.values' must be a list of numbers", param("{\"values\": [\"x\"]}"));
  EXPECT_EQ("'params.p.shape' holds 6 elements, but there are 1 values", param("{\"values\": [1], \"shape\": [2, 3]}"));
  EXPECT_EQ("'params.p.shape' must be a list of extents, at most 1073741824 elements in all",
            param("{\"random\": [0, 1], \"shape\": [-1]}"));
  EXPECT_EQ("'params.p.shape' must be a list of extents, at most 1073741824 elements in all",
            param("{\"random\": [0, 1], \"shape\": [1000000, 1000000]}"));
  EXPECT_EQ("'params.p.random' must be [lo, hi] with lo <= hi", param("{\"random\": [1, 0]}"));
  EXPECT_EQ("'params.p.generator' must be one of \"alibi\", \"tree_mask\", \"documents\", \"prefix_lengths\", "
            "\"per_request\", \"iota\", \"fill\"",
            param("{\"generator\": \"x\"}"));
  EXPECT_EQ("'params.p.heads' is missing: state the number of heads of the whole model",
            param("{\"generator\": \"alibi\"}"));
  EXPECT_EQ("'params.p.heads' must be an integer from 1 to 65536", param("{\"generator\": \"alibi\", \"heads\": 1.5}"));
  EXPECT_EQ("'params.p.count' must be an integer from 0 to 65536",
            param("{\"generator\": \"alibi\", \"heads\": 8, \"count\": -1}"));
  EXPECT_EQ("'params.p.first' must be an integer from 0 to 65536",
            param("{\"generator\": \"alibi\", \"heads\": 8, \"first\": -1}"));
  EXPECT_EQ("'params.p.first' plus count must not exceed heads, 8",
            param("{\"generator\": \"alibi\", \"heads\": 8, \"first\": 4, \"count\": 5}"));
  EXPECT_EQ("'params.p.density' must be a number from 0 to 1", param("{\"generator\": \"tree_mask\", \"density\": 2}"));
  EXPECT_EQ("'params.p.fraction' must be a number from 0 to 1",
            param("{\"generator\": \"prefix_lengths\", \"fraction\": 2}"));
  EXPECT_EQ("'params.p.mean' must be an integer from 1 to 1073741824",
            param("{\"generator\": \"documents\", \"mean\": 0}"));
  EXPECT_EQ("'params.p.of' is missing: one of \"qo\", \"kv\", \"qo_offset\", \"kv_offset\"",
            param("{\"generator\": \"per_request\"}"));
  EXPECT_EQ("'params.p.shape' must have one extent", param("{\"generator\": \"iota\", \"shape\": [2, 2]}"));
  EXPECT_EQ("unknown key 'params.p.head'; known here: values, shape", param("{\"values\": [1], \"head\": 2}"));
}

TEST(BatchParse, Trace) {
  std::string traces = ATTN_SOURCE_ROOT "/test/Inputs/traces";
  EXPECT_EQ("'trace' must be an object with \"file\", a path that counts from the batch file's folder",
            errorOf(R"({"trace": {"step": 3}})"));
  EXPECT_EQ("'trace.file' must be a path", errorOf(R"({"trace": {"file": 3}})"));
  EXPECT_EQ("'trace.chunk' must be an integer from 1 to 1048576",
            errorOf(R"({"trace": {"file": "azure_conv_2023.csv", "chunk": 0}})", traces));
  EXPECT_EQ("trace './none.csv' cannot be read: No such file or directory",
            errorOf(R"({"trace": {"file": "none.csv"}})"));
  EXPECT_EQ("trace '" + traces + "/azure_conv_2023.csv' is over before step 16000000; choose an earlier step",
            errorOf(R"({"trace": {"file": "azure_conv_2023.csv", "step": 16000000}})", traces));
  EXPECT_EQ("'trace.divide' must be at most 512",
            errorOf(R"({"trace": {"file": "azure_conv_2023.csv", "divide": 1000}})", traces));
  EXPECT_EQ("trace '" + traces +
                "/README.md', line 1: expected {\"input_length\": ..., \"output_length\": ..., \"hash_ids\": [...]} or "
                "timestamp,context,generated",
            errorOf(R"({"trace": {"file": "README.md"}})", traces));
  EXPECT_EQ("trace '/dev/null' holds no request", errorOf(R"({"trace": {"file": "/dev/null"}})"));
  EXPECT_EQ("'levels' come from the trace's hashes; remove the key or set trace.max_levels to 0 and list the requests",
            errorOf(R"({"trace": {"file": "azure_conv_2023.csv"}, "levels": []})", traces));
}

TEST(BatchParse, PreparedBatches) {
  std::string folder = ATTN_SOURCE_ROOT "/examples/batches/";
  Batch b;
  std::string error;
  for (const char *name : {"mixed_small.json", "trace_mixed.json", "decode_prefix.json", "trace_full.json"})
    EXPECT_TRUE(load(folder + name, b, error)) << error;
  EXPECT_GE(b.requests.size(), 16u);
  EXPECT_FALSE(load(folder + "none.json", b, error));
  EXPECT_EQ(folder + "none.json: cannot be read: No such file or directory", error);
}

TEST(BatchParse, TheTraceReaderAgreesWithPython) {
  // trace_mixed.json was written by `python3 -m attn_mlir.traces` with these numbers.
  Batch written, replayed;
  std::string error;
  ASSERT_TRUE(load(ATTN_SOURCE_ROOT "/examples/batches/trace_mixed.json", written, error)) << error;
  TraceStep step;
  step.file = ATTN_SOURCE_ROOT "/test/Inputs/traces/mooncake_conversation.jsonl";
  step.step = 68;
  step.maxBatch = 12;
  step.chunk = 128;
  step.divide = 8;
  ASSERT_TRUE(traceStep(step, replayed, error)) << error;
  ASSERT_EQ(written.requests.size(), replayed.requests.size());
  for (size_t i = 0; i != written.requests.size(); ++i) {
    EXPECT_EQ(written.requests[i].qo, replayed.requests[i].qo);
    EXPECT_EQ(written.requests[i].kv, replayed.requests[i].kv);
  }
  ASSERT_EQ(written.prefixes.size(), replayed.prefixes.size());
  for (size_t i = 0; i != written.prefixes.size(); ++i) {
    EXPECT_EQ(written.prefixes[i].last, replayed.prefixes[i].last);
    EXPECT_EQ(written.prefixes[i].length, replayed.prefixes[i].length);
  }
}

} // namespace
