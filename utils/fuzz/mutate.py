#!/usr/bin/env python3
# ===- mutate.py - feeds mutated IR to attn-opt -----------------------------===//
#
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===//
"""Mutates .mlir files and runs a tool on each: it may refuse an input, never crash, assert or hang.

    utils/fuzz/mutate.py --tool build/bin/attn-opt --count 2000 --seed 1 test/Dialect examples/variants
    utils/fuzz/mutate.py --args="--attn-select-config" --args="--attn-to-tile" SEEDS...
    utils/fuzz/mutate.py --tool build/bin/attn-run --suffix .json --args="examples/variants/alibi.mlir --batch={}" examples/batches

Seeds are files or folders; split inputs (// -----) are taken apart. Each `--args` is one command line, used in turn
(none: parse, verify and print); {} in it stands for the input, which else comes last, with -o /dev/null. Input number i depends on the seeds, --seed and i alone, so a finding can be made again with
--only i. Inputs that break the tool are saved in --out with the command and the end of stderr. Exit status: 0 when
nothing was found, 1 when something was, 2 when the arguments make no sense.
"""

import argparse
import concurrent.futures
import hashlib
import itertools
import json
import math
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[A-Za-z_][\w$.]*|[%#^]\d+|-?\d+\.\d*(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]+|\d+|->|::|==|\s+|.')
NUMBER = re.compile(r"-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?$")
NUMBERS = ["0", "1", "-1", "2", "3", "7", "16", "255", "65535", "2147483647", "-2147483648", "4294967296",
           "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1.0", "0.0", "-0.0", "1e308", "0x7FC00000"]
TYPES = ["f32", "bf16", "f16", "f64", "f8E4M3FN", "f8E5M2", "i1", "i8", "i32", "i64", "index", "none", "si32", "tf32"]
SHAPED = ["memref", "tensor", "vector"]
ASSERT = re.compile(r"Assertion .* failed|LLVM ERROR|UNREACHABLE|PLEASE submit a bug report|Stack dump|"
                    r"AddressSanitizer|runtime error:|terminate called")


def tokens_of(text):
    return TOKEN.findall(text)


def words(tokens, test):
    return [i for i, token in enumerate(tokens) if test(token)]


def visible(token):
    return not token.isspace()


def swap_tokens(rng, tokens, corpus):
    places = words(tokens, visible)
    if len(places) > 1:
        a, b = rng.sample(places, 2)
        tokens[a], tokens[b] = tokens[b], tokens[a]


def delete_tokens(rng, tokens, corpus):
    places = words(tokens, visible)
    if places:
        start = rng.choice(places)
        del tokens[start : start + rng.choice([1, 1, 1, 2, 5, 20])]


def duplicate_token(rng, tokens, corpus):
    places = words(tokens, visible)
    if places:
        place = rng.choice(places)
        tokens.insert(place, " ")
        tokens.insert(place, tokens[place + 1])


def change_number(rng, tokens, corpus):
    places = words(tokens, NUMBER.match)
    inside = [i for i, t in enumerate(tokens) if re.match(r"[x\w]", t) and not NUMBER.match(t) and re.search(r"\d", t)]
    if inside and (not places or rng.random() < 0.3):  # the 16 of 4x16xf32 or of f16
        place = rng.choice(inside)
        digits = rng.choice(list(re.finditer(r"\d+", tokens[place])))
        new = rng.choice([number for number in NUMBERS if number.isdigit()])  # a sign or a point would not parse there
        tokens[place] = tokens[place][: digits.start()] + new + tokens[place][digits.end() :]
    elif places:
        tokens[rng.choice(places)] = rng.choice(NUMBERS)


def change_type(rng, tokens, corpus):
    def element(token):
        return re.search(r"(?:^|x)(" + "|".join(TYPES) + r")$", token)

    places = words(tokens, lambda t: element(t) or t in SHAPED)
    if places:
        place = rng.choice(places)
        token = tokens[place]
        if token in SHAPED:  # everywhere: a mixture is refused by the parser
            new = rng.choice(SHAPED)
            tokens[:] = [new if other == token else other for other in tokens]
        else:
            found = element(token)
            tokens[place] = token[: found.start(1)] + rng.choice(TYPES)


def change_shape(rng, tokens, corpus):
    """Of 4x?xf32: an extent becomes dynamic, static, or goes."""
    places = words(tokens, lambda t: t == "?" or re.match(r"x\d|x[a-z]\w*\d", t) or re.match(r"\d+$", t))
    if places:
        place = rng.choice(places)
        tokens[place] = rng.choice(["?", "0", "1", "2x3", "", "16", "?x?"])


def change_everywhere(rng, tokens, corpus):
    """One extent, constant or element type, the same change wherever it stands: what parses before mostly does after."""
    text = "".join(tokens)
    if rng.random() < 0.6:
        found = sorted(set(re.findall(r"(?<![\w.%#@])\d+(?=x|\b)|(?<=x)\d+(?=x)", text)))
        new = rng.choice(["0", "1", "2", "3", "5", "7", "8", "16", "24", "32", "48", "64", "96", "128", "192", "256", "512", "1000", "65536"])
    else:
        found = sorted(set(re.findall(r"(?<![\w%])(?:" + "|".join(TYPES) + r")\b|(?<=x)(?:" + "|".join(TYPES) + r")\b", text)))
        new = rng.choice(TYPES)
    if found:
        old = rng.choice(found)
        left = r"(?<![\w.%#@])" if not old[0].isdigit() else r"(?<![\w.%#@-])"
        text = re.sub(left + old + r"(?=x|\b)|(?<=x)" + old + r"(?=x|\b)", new, text)
        tokens[:] = tokens_of(text)


def duplicate_lines(rng, tokens, corpus):
    lines = "".join(tokens).split("\n")
    start = rng.randrange(len(lines))
    piece = lines[start : start + rng.choice([1, 1, 2, 4])]
    at = rng.randrange(len(lines) + 1)
    tokens[:] = tokens_of("\n".join(lines[:at] + piece + lines[at:]))


def delete_lines(rng, tokens, corpus):
    lines = "".join(tokens).split("\n")
    start = rng.randrange(len(lines))
    del lines[start : start + rng.choice([1, 1, 2, 3])]
    tokens[:] = tokens_of("\n".join(lines))


def move_lines(rng, tokens, corpus):
    lines = "".join(tokens).split("\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    tokens[:] = tokens_of("\n".join(lines))


def foreign_line(rng, tokens, corpus):
    lines = "".join(tokens).split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(rng.choice(corpus).split("\n")))
    tokens[:] = tokens_of("\n".join(lines))


def edit_attribute(rng, tokens, corpus):
    """Drops, doubles or empties something in braces or angle brackets; or replaces a word by another one of the file."""
    pairs = {"{": "}", "<": ">", "[": "]", "(": ")"}
    places = words(tokens, lambda t: t in pairs)
    if not places:
        return
    start = rng.choice(places)
    close, depth, end = pairs[tokens[start]], 0, start
    for end in range(start, len(tokens)):
        depth += (tokens[end] == tokens[start]) - (tokens[end] == close)
        if depth == 0:
            break
    kind = rng.randrange(3)
    if kind == 0:
        del tokens[start : end + 1]
    elif kind == 1:
        del tokens[start + 1 : end]
    elif end - start < 2000:
        tokens[end + 1 : end + 1] = tokens[start : end + 1]


def replace_word(rng, tokens, corpus):
    """A value, symbol, alias or word becomes another one of its kind."""
    places = words(tokens, lambda t: re.match(r"[%@#!^]?[A-Za-z_]|[%]\d", t))
    if len(places) > 1:
        place = rng.choice(places)
        sigil = tokens[place][0]
        same = [i for i in places if tokens[i][0] == sigil or sigil.isalpha() and tokens[i][0].isalpha()]
        tokens[place] = tokens[rng.choice(same)]


def replace_use(rng, tokens, corpus):
    """An operand becomes a value that was defined before it: often of the same type."""
    places = words(tokens, lambda t: t.startswith("%"))
    if len(places) > 4:
        use = rng.randrange(2, len(places))
        tokens[places[use]] = tokens[places[rng.randrange(max(0, use - 8), use)]]


def replace_operation(rng, tokens, corpus):
    """An operation becomes another one of its dialect, from any seed."""
    name = re.compile(r'"?[a-z]+\.[a-z_.]+"?$')
    places = words(tokens, name.match)
    if places:
        place = rng.choice(places)
        dialect = tokens[place].split(".")[0] + "."
        others = sorted({t for t in tokens_of(rng.choice(corpus)) + tokens if name.match(t) and t.startswith(dialect)})
        tokens[place] = rng.choice(others)


def truncate(rng, tokens, corpus):
    del tokens[rng.randrange(len(tokens) + 1) :]


def odd_bytes(rng, tokens, corpus):
    tokens.insert(rng.randrange(len(tokens) + 1), rng.choice(["\0", "\u00e9", "\\", '"', "/*", "//", "%", "!attn.coord", "-" * 200]))


def change_key(rng, tokens, corpus):
    """JSON: a string becomes another one of any seed."""
    places = words(tokens, lambda t: t.startswith('"'))
    others = sorted({t for text in corpus for t in tokens_of(text) if t.startswith('"')})
    if places and others:
        tokens[rng.choice(places)] = rng.choice(others)


def change_value(rng, tokens, corpus):
    """JSON: a number becomes a value of another kind."""
    places = words(tokens, NUMBER.match)
    if places:
        tokens[rng.choice(places)] = rng.choice(["null", "true", '"x"', "[]", "{}", "[1, 2, 3]", '{"qo": 1}', "1e400", "0.5", "-7"])


# With their weights: most changes should still parse, else only the parser is tested.
MUTATIONS = {change_everywhere: 8, change_number: 5, replace_operation: 5, replace_use: 5, delete_lines: 3, move_lines: 2,
             duplicate_lines: 2, edit_attribute: 2, change_type: 2, change_shape: 2, replace_word: 2, swap_tokens: 1,
             delete_tokens: 1, duplicate_token: 1, foreign_line: 1, truncate: 1, odd_bytes: 1}

MUTATIONS_JSON = {change_number: 8, change_key: 4, change_value: 3, edit_attribute: 2, swap_tokens: 1, delete_tokens: 1,
                  duplicate_token: 1, delete_lines: 1, duplicate_lines: 1, foreign_line: 1, truncate: 1, odd_bytes: 1}


def mutate(corpus, seed, number, mutations=None):
    """Input `number`: a seed with one to three mutations."""
    mutations = mutations or MUTATIONS
    rng = random.Random(f"{seed}:{number}")
    tokens = tokens_of(rng.choice(corpus))
    for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])):
        if tokens:
            rng.choices(list(mutations), list(mutations.values()))[0](rng, tokens, corpus)
    return "".join(tokens)


def read_seeds(paths, suffix):
    """Texts of all seeds, in a fixed order."""
    files = []
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            files += sorted(path.rglob("*" + suffix))
        elif path.is_file():
            files.append(path)
        else:
            raise SystemExit(f"mutate.py: no such file or folder: {path}")
    texts = []
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        # Comments would take most of the mutations.
        text = re.sub(r"^\s*//(?! -----).*\n", "", text, flags=re.M)
        texts += [piece.strip("\n") + "\n" for piece in re.split(r"^// -----.*$", text, flags=re.M) if piece.strip()]
    return [text for text in texts if len(text) < 200_000]


def generic_forms(tool, texts, timeout):
    """The seeds that verify, and those in generic syntax, where every attribute and type stands in the open."""
    valid, forms = [], []
    for text in texts:
        try:
            done = subprocess.run([tool, "--mlir-print-op-generic", "-"], input=text.encode(), capture_output=True,
                                  timeout=10 * timeout, check=False)
        except subprocess.TimeoutExpired:
            continue
        if done.returncode == 0:
            valid.append(text)
            if len(done.stdout) < 200_000:
                forms.append(done.stdout.decode(errors="replace"))
    return valid, forms


# Crashes of LLVM 22's own parser, which mlir-opt shows as well: dense arrays of a type without a width.
UPSTREAM = re.compile(r"\barray<index\b")


def verdict(code, stderr, timed_out):
    """What went wrong, or None."""
    if timed_out or code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "hang"
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
    found = ASSERT.search(stderr)
    if found:
        return found.group(0)
    return None


def command_line(tool, args, path):
    if any("{}" in arg for arg in args):
        return [tool, *(arg.replace("{}", path) for arg in args)]
    return [tool, *args, path, "-o", os.devnull]


def run_one(job):
    tool, args, text, timeout, memory, suffix, number = job

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "input" + suffix)
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        # A busy machine must not look like a hang: the limit is one of processor time, with a tenfold one by the clock.
        limits = f"ulimit -t {math.ceil(timeout)}" + (f" -v {memory << 10}" if memory else "")
        command = ["bash", "-c", limits + '; exec "$@"', "bash", *command_line(tool, args, path)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=10 * timeout, check=False)
            stderr, code, late = done.stderr.decode(errors="replace"), done.returncode, False
        except subprocess.TimeoutExpired as error:
            stderr, code, late = (error.stderr or b"").decode(errors="replace"), 0, True
    found = verdict(code, stderr, late)
    if found == "SIGSEGV" and UPSTREAM.search(text) and "parseDenseArrayAttr" in stderr:
        code, found = 1, None
    return number, code, found, stderr[-4000:]


def site(stderr):
    """What tells two crashes apart: the assertion, or the first frames of our own code."""
    found = re.search(r"Assertion .*|LLVM ERROR.*|ERROR: AddressSanitizer: \S+", stderr)
    frames = re.findall(r"#\d+ 0x[0-9a-f]+ (?:in )?([\w:~<>]*(?:attn|tile|mlir)[\w:~<>]*)", stderr)[:3]
    return (found.group(0) if found else "") + " ".join(frames)


def keep(options, number, what, stderr, job):
    """Saves the input and what shows the finding, at once: a long run may be stopped."""
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{options.seed}-{number}{options.suffix}"
    path.write_text(job[2], encoding="utf-8", errors="replace")
    (out / f"{options.seed}-{number}.txt").write_text(
        f"{what}\n{shlex.join(command_line(options.tool, job[1], str(path)))}\n{stderr}", encoding="utf-8", errors="replace")
    return path


def main(argv=None):
    parser = argparse.ArgumentParser(prog="mutate.py", description=__doc__.split("\n")[0])
    parser.add_argument("seeds", nargs="+", help="files or folders")
    parser.add_argument("--tool", default="build/bin/attn-opt")
    parser.add_argument("--args", action="append", default=[], help="arguments of the tool: one pipeline; may be repeated")
    parser.add_argument("--suffix", choices=[".mlir", ".json"], default=".mlir", help="what the seeds are")
    parser.add_argument("--count", type=int, default=2000, help="inputs")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--generic", action="store_true", help="mutate the seeds' generic forms as well")
    parser.add_argument("--valid", action="store_true", help="only seeds that the tool verifies: mutations reach deeper")
    parser.add_argument("--only", type=int, help="this input alone; prints it")
    parser.add_argument("--timeout", type=float, default=20, help="seconds of processor time for one input")
    parser.add_argument("--memory", type=int, default=0, help="MiB of address space, 0: no limit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", default="fuzz-findings", help="folder for inputs that break the tool")
    options = parser.parse_args(argv)
    corpus = read_seeds(options.seeds, options.suffix)
    mutations = MUTATIONS_JSON if options.suffix == ".json" else MUTATIONS
    if not corpus:
        print(f"mutate.py: the seeds hold no {'IR' if options.suffix == '.mlir' else 'JSON'}", file=sys.stderr)
        return 2
    if not os.access(options.tool, os.X_OK):
        print(f"mutate.py: cannot run '{options.tool}'; build it or name it with --tool", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.generic or options.valid:
        valid, forms = generic_forms(options.tool, corpus, options.timeout)
        corpus = (valid if options.valid else corpus) + (forms if options.generic else [])
    pipelines = [shlex.split(args) for args in options.args] or [[]]
    numbers = range(options.count) if options.only is None else [options.only]
    if options.only is not None:
        print(mutate(corpus, options.seed, options.only, mutations))
    jobs = ((options.tool, pipelines[n % len(pipelines)], mutate(corpus, options.seed, n, mutations), options.timeout,
             options.memory, options.suffix, n) for n in numbers)
    digest, accepted, findings, sites = hashlib.sha256(), 0, 0, {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # In portions, so that not all inputs are in memory at once; results in order.
        while True:
            portion = list(itertools.islice(jobs, 64 * options.jobs))
            if not portion:
                break
            for job, (number, code, what, stderr) in zip(portion, pool.map(run_one, portion)):
                digest.update(job[2].encode(errors="replace"))
                accepted += code == 0 and what is None
                if what:
                    findings += 1
                    path = keep(options, number, what, stderr, job)
                    sites.setdefault((what, " ".join(job[1]), site(stderr)), []).append(str(path))
    for (what, args, where), paths in sorted(sites.items(), key=lambda item: -len(item[1])):
        print(f"{what} with '{args}' ({len(paths)} inputs, first {paths[0]}): {where}"[:400])
    print(json.dumps({"inputs": len(numbers), "accepted": accepted, "findings": findings, "seeds": len(corpus),
                      "digest": digest.hexdigest()[:16]}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
