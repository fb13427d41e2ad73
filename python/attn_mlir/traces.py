# ===- traces.py - serving steps out of traces ------------------------------===//
#
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===//
"""Turns one step of a replayed trace into a batch file.

Replays a trace on a saturated server with a prefix cache: requests enter in order of arrival while there is room, up to
`prefills` of them get a chunk of prefill in a step, all others that are prefilled decode one token. Shared prefixes are
found from the block hashes and become levels. lib/Batch/Trace.cpp has the same rules.

    python3 -m attn_mlir.traces FILE --step 400 --max-batch 16 --chunk 512 -o BATCH.json
"""

import argparse
import json
import sys

BLOCK = 512  # tokens of a hashed block


class TraceError(Exception):
    """A trace that cannot be used, and why."""


def read_trace(path):
    """A list of (input tokens, output tokens, block hashes) from Mooncake's JSON lines or Azure's CSV."""
    arrivals = []
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except OSError as error:
        raise TraceError(f"trace '{path}' cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("TIMESTAMP"):
            continue
        try:
            if line.startswith("{"):
                record = json.loads(line)
                arrival = (int(record["input_length"]), int(record["output_length"]), list(record.get("hash_ids", [])))
            else:
                _, context, generated = line.split(",")
                arrival = (int(context), int(generated), [])
            if arrival[0] < 0 or arrival[1] < 0:
                raise ValueError
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(
                f"trace '{path}', line {number}: expected {{\"input_length\": ..., \"output_length\": ..., "
                '"hash_ids": [...]} or timestamp,context,generated'
            ) from error
        arrivals.append(arrival)
    if not arrivals:
        raise TraceError(f"trace '{path}' holds no request")
    return arrivals


def _share(sequences, first, last, start, block, depth, out):
    """Prefix nodes of sequences[first:last], whose first `start` blocks are already shared."""
    if depth == 0:
        return
    begin = first
    while begin < last:
        head = sequences[begin][2]

        def same(i, at):
            other = sequences[i][2]
            return len(other) > at and len(head) > at and other[at] == head[at]

        end = begin + 1
        while end < last and same(end, start):
            end += 1
        if end - begin > 1:
            common = start + 1
            while all(same(i, common) for i in range(begin, end)):
                common += 1
            out.append({"requests": [begin, end - 1], "prefix": (common - start) * block})
            _share(sequences, begin, end, common, block, depth - 1, out)
        begin = end


def serving_step(arrivals, step, max_batch=16, chunk=512, prefills=2, divide=1, max_levels=3):
    """The batch of step number `step` as {"requests": [...], "levels": [...]}."""
    block = BLOCK // divide
    if block == 0:
        raise TraceError(f"divide must be at most {BLOCK}")
    scaled = []
    for tokens, generated, hashes in arrivals:
        tokens = max(1, tokens // divide)
        scaled.append((tokens, max(1, generated // divide), hashes[: tokens // block]))
    waiting = iter(enumerate(scaled))
    running, cache, now = [], set(), []
    for _ in range(step + 1):
        while len(running) < max_batch:
            order, arrival = next(waiting, (None, None))
            if arrival is None:
                break
            tokens, generated, hashes = arrival
            hit = 0
            while hit != len(hashes) and hashes[hit] in cache:
                hit += 1
            # At least one token is computed, for its logits.
            running.append([arrival, min(hit * block, tokens - 1), generated, order])
        now, stay, chunks = [], [], 0
        for entry in running:
            (tokens, _, hashes), old, _, order = entry
            qo = 1
            if old < tokens:
                if chunks == prefills:
                    stay.append(entry)
                    continue
                chunks += 1
                qo = min(chunk, tokens - old)
            else:
                entry[2] -= 1
            entry[1] = old + qo
            cache.update(hashes[old // block : entry[1] // block])
            now.append((qo, entry[1], hashes[: old // block], order))
            if entry[2] > 0:
                stay.append(entry)
        running = stay
        if not now:
            raise TraceError(f"the trace is over before step {step}; choose an earlier step")
    # Depth first: whoever shares blocks stands together.
    now.sort(key=lambda s: (s[2], s[3]))
    levels = []
    _share(now, 0, len(now), 0, block, max_levels, levels)
    batch = {"requests": [{"qo": qo, "kv": kv} for qo, kv, _, _ in now]}
    if levels:
        batch["levels"] = levels
    return batch


def dump(batch):
    """The batch as JSON, one request a line."""
    lines = []
    for key, value in batch.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row) for row in value)
            lines.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="attn_mlir.traces", description=__doc__.split("\n")[0])
    parser.add_argument("file", help="Mooncake JSON lines or Azure CSV")
    parser.add_argument("--step", type=int, default=0, help="steps since the start of the replay")
    parser.add_argument("--max-batch", type=int, default=16, help="sequences that run at once")
    parser.add_argument("--chunk", type=int, default=512, help="tokens of a prefill chunk")
    parser.add_argument("--prefills", type=int, default=2, help="prefill chunks in a step")
    parser.add_argument("--divide", type=int, default=1, help="divide all lengths, blocks too, by this")
    parser.add_argument("--max-levels", type=int, default=3, help="depth of shared prefixes, 0 for none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", default="-")
    args = parser.parse_args(argv)
    for name, least in (("step", 0), ("max_batch", 1), ("chunk", 1), ("prefills", 0), ("divide", 1), ("max_levels", 0)):
        if getattr(args, name) < least:
            parser.error(f"--{name.replace('_', '-')} must be at least {least}")
    try:
        batch = serving_step(
            read_trace(args.file), args.step, args.max_batch, args.chunk, args.prefills, args.divide, args.max_levels
        )
    except TraceError as error:
        print(f"attn_mlir.traces: {error}", file=sys.stderr)
        return 1
    batch["seed"] = args.seed
    text = dump(batch)
    if args.output == "-":
        sys.stdout.write(text)
    else:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
