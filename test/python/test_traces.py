# ===- test_traces.py - batches out of traces -------------------------------===//
#
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===//
"""The replay on small hand-made traces, the command line, and the batch kept in examples."""

import json
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from attn_mlir import traces  # noqa: E402

MOONCAKE = os.path.join(ROOT, "test", "Inputs", "traces", "mooncake_conversation.jsonl")
AZURE = os.path.join(ROOT, "test", "Inputs", "traces", "azure_conv_2023.csv")


def requests(batch):
    return [(r["qo"], r["kv"]) for r in batch["requests"]]


def test_one_request_prefills_then_decodes():
    arrivals = [(1200, 3, [])]
    steps = [requests(traces.serving_step(arrivals, t)) for t in range(6)]
    assert steps == [[(512, 512)], [(512, 1024)], [(176, 1200)], [(1, 1201)], [(1, 1202)], [(1, 1203)]]
    with pytest.raises(traces.TraceError, match="the trace is over before step 6"):
        traces.serving_step(arrivals, 6)


def test_prefill_slots_and_room_are_limits():
    arrivals = [(512, 1, []), (512, 5, []), (512, 5, []), (512, 5, [])]
    assert requests(traces.serving_step(arrivals, 0, max_batch=3)) == [(512, 512), (512, 512)]
    # The third gets its slot; the first generates its only token and leaves.
    assert requests(traces.serving_step(arrivals, 1, max_batch=3)) == [(1, 513), (1, 513), (512, 512)]
    assert requests(traces.serving_step(arrivals, 2, max_batch=3)) == [(1, 514), (1, 513), (512, 512)]


def test_shared_blocks_become_levels():
    arrivals = [
        (1536, 9, [1, 2, 3]),
        (1536, 9, [1, 2, 4]),
        (1000, 9, [7, 8]),
        (2048, 9, [1, 2, 3, 5]),
    ]
    batch = traces.serving_step(arrivals, 9, chunk=2048, prefills=4)
    # Depth first: 1-2-3, 1-2-3-5, 1-2-4, 7; the partial block 8 does not count.
    assert [kv - 9 for _, kv in requests(batch)] == [1536, 2048, 1536, 1000]
    assert batch["levels"] == [{"requests": [0, 2], "prefix": 1024}, {"requests": [0, 1], "prefix": 512}]
    assert traces.serving_step(arrivals, 9, chunk=2048, prefills=4, max_levels=1)["levels"] == batch["levels"][:1]
    assert "levels" not in traces.serving_step(arrivals, 9, chunk=2048, prefills=4, max_levels=0)


def test_cached_blocks_are_not_computed_again():
    arrivals = [(1024, 1, [1, 2]), (1536, 1, [1, 2, 3]), (1024, 1, [1, 2])]
    assert requests(traces.serving_step(arrivals, 2, max_batch=1, chunk=1024)) == [(512, 1536)]
    assert requests(traces.serving_step(arrivals, 4, max_batch=1, chunk=1024)) == [(1, 1024)]


def test_chunk_shares_only_old_blocks():
    arrivals = [(1024, 9, [1, 2]), (1024, 9, [1, 3])]
    batch = traces.serving_step(arrivals, 0)
    assert "levels" not in batch  # both compute block 1 in this step
    assert traces.serving_step(arrivals, 1)["levels"] == [{"requests": [0, 1], "prefix": 512}]


def test_divide_keeps_the_structure():
    arrivals = traces.read_trace(MOONCAKE)
    full = traces.serving_step(arrivals, 1, max_batch=4, chunk=1 << 20, prefills=4)
    small = traces.serving_step(arrivals, 1, max_batch=4, chunk=1 << 20, prefills=4, divide=8)
    assert [(qo, (kv - 1) // 8) for qo, kv in requests(full)] == [(qo, kv - 1) for qo, kv in requests(small)]
    assert full["levels"][0]["prefix"] == 8 * small["levels"][0]["prefix"]
    with pytest.raises(traces.TraceError, match="divide must be at most 512"):
        traces.serving_step(arrivals, 0, divide=513)


def test_azure_has_lengths_only():
    batch = traces.serving_step(traces.read_trace(AZURE), 30, max_batch=12, chunk=128)
    assert "levels" not in batch
    assert any(qo > 1 for qo, _ in requests(batch)) and any(qo == 1 for qo, _ in requests(batch))


def test_keys_cover_queries_and_prefixes():
    arrivals = traces.read_trace(MOONCAKE)
    for step in range(0, 120, 7):
        batch = traces.serving_step(arrivals, step, max_batch=24, chunk=128, divide=8)
        shared = [0] * len(batch["requests"])
        for level in batch.get("levels", []):
            for i in range(level["requests"][0], level["requests"][1] + 1):
                shared[i] += level["prefix"]
        for (qo, kv), prefix in zip(requests(batch), shared):
            assert qo + prefix <= kv


def test_the_prepared_batch_is_what_the_tool_writes(tmp_path):
    out = tmp_path / "batch.json"
    arguments = "--step 68 --max-batch 12 --chunk 128 --divide 8 --seed 1 -o".split()
    assert traces.main([MOONCAKE, *arguments, str(out)]) == 0
    with open(os.path.join(ROOT, "examples", "batches", "trace_mixed.json"), encoding="utf-8") as file:
        assert file.read() == out.read_text()


def test_command_line_errors(tmp_path, capsys):
    assert traces.main([str(tmp_path / "none")]) == 1
    assert "cannot be read: No such file or directory" in capsys.readouterr().err
    (tmp_path / "empty").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    assert traces.main([str(tmp_path / "empty")]) == 1
    assert "holds no request" in capsys.readouterr().err
    for text in ("1,2\n", '{"input_length": 3}\n', "a,b,c\n", "t,-1,3\n"):
        (tmp_path / "bad").write_text(text)
        assert traces.main([str(tmp_path / "bad")]) == 1
        assert "line 1: expected" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        traces.main([AZURE, "--chunk", "0"])
    assert "--chunk must be at least 1" in capsys.readouterr().err
    assert traces.main([AZURE]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == 0
