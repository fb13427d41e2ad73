#!/usr/bin/env python3
# ===- kernels.py - random kernels through their passes ---------------------===//
#
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===//
"""Random attention (shapes, masks, hooks with branches and tables, scales, splits) and random configs, made kernels of level L;
attn-interpret --through runs the passes of each config one by one and compares with level L after each.

    utils/fuzz/kernels.py [--count N] [--seed S] [--only N] [--path gather|roles|chosen] [--keep DIR] [--bin build/bin]

With --path chosen the compiler chooses the configs, for sm_80 or sm_90a, and the kernels go on to llvm and nvvm: the
passes must take what the chooser chose, and only the chooser may refuse.

Prints "N right, N refused, N wrong"; a kernel that is wrong, breaks a tool or hangs is printed with the command that repeats
it. A refusal is a message; the last line counts each kind of them. Exit status 1 when one was wrong."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test" / "Integration"))
import matrix  # noqa: E402
import runner  # noqa: E402

ROWS = ["q_pos", "row", "request", "q_head", "kv_head", "qo_len", "kv_len"]
KEYS = ["kv_pos", "request", "kv_head", "kv_len", "qo_len"]
COORDS = {"query": ROWS, "output": ROWS, "sink": ROWS, "key": KEYS, "value": KEYS, "logits": ROWS + ["kv_pos"], "mask": ROWS + ["kv_pos"]}
TABLES = {"real": "f32", "half": "f16", "small": "i32", "byte": "i8"}


class Body:
    """Straight-line code with branches; numbers stay small."""

    def __init__(self, rng, kind):
        self.rng, self.kind, self.lines, self.count = rng, kind, [], 0

    def emit(self, text, indent=4):
        self.count += 1
        self.lines.append(" " * indent + f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def index(self):
        rng = self.rng
        value = self.emit(f"attn.{rng.choice(COORDS[self.kind])} %at")
        if rng.random() < 0.4:
            other = rng.choice([self.emit(f"arith.constant {rng.randint(-3, 40)} : index"), self.emit(f"attn.{rng.choice(COORDS[self.kind])} %at")])
            value = self.emit(f"arith.{rng.choice(['addi', 'subi', 'divsi', 'remui', 'maxsi'])} {value}, {other} : index")
        return value

    def condition(self):
        rng = self.rng
        made = self.emit(f"arith.cmpi {rng.choice(['slt', 'sle', 'sge', 'eq', 'ne'])}, {self.index()}, {self.index()} : index")
        if rng.random() < 0.3:
            made = self.emit(f"arith.{rng.choice(['andi', 'ori', 'xori'])} {made}, {self.condition()} : i1")
        return made

    def entry(self):
        """A number of a table."""
        table = self.rng.choice(list(TABLES))
        most = self.emit("arith.constant 63 : index")
        at = self.emit(f"arith.andi {self.index()}, {most} : index")
        value = self.emit(f"memref.load %{table}[{at}] : memref<?x{TABLES[table]}>")
        if TABLES[table] == "f16":
            return self.emit(f"arith.extf {value} : f16 to f32")
        return value if TABLES[table] == "f32" else self.emit(f"arith.sitofp {value} : {TABLES[table]} to f32")

    def number(self, depth=0):
        rng, choice = self.rng, self.rng.randrange(7 if depth < 2 else 4)
        if choice == 0:
            return self.emit(f"arith.constant {rng.uniform(-1, 1):.4f} : f32")
        if choice == 1:
            return self.entry()
        if choice == 2:
            return "%weight"
        if choice == 3:
            small = self.emit("arith.constant 7 : index")
            low = self.emit(f"arith.andi {self.index()}, {small} : index")
            word = self.emit(f"arith.index_cast {low} : index to i32")
            return self.emit(f"arith.sitofp {word} : i32 to f32")
        if choice == 4:
            return self.emit(f"arith.{rng.choice(['addf', 'subf', 'mulf', 'maximumf'])} {self.number(depth + 1)}, {self.number(depth + 1)} : f32")
        if choice == 5:
            return self.emit(f"arith.select {self.condition()}, {self.number(depth + 1)}, {self.number(depth + 1)} : f32")
        return self.branch(self.number(depth + 1))

    def branch(self, value):
        """scf.if with a load or arithmetic on one side."""
        condition = self.condition()
        other = self.number(2)
        self.count += 1
        name = f"%v{self.count}"
        outer, self.lines = self.lines, []
        inside = self.entry() if self.rng.random() < 0.5 else self.emit(f"arith.mulf {value}, {other} : f32")
        inner, self.lines = self.lines, outer
        self.lines.append(f"    {name} = scf.if {condition} -> f32 {{")
        self.lines += ["  " + line for line in inner] + [f"      scf.yield {inside} : f32", "    } else {", f"      scf.yield {value} : f32", "    }"]
        return name

    def bounded(self):
        """A number in [-1, 1]."""
        return self.emit(f"math.tanh {self.number()} : f32")


def hook(rng, kind, dim):
    body = Body(rng, kind)
    head = f"  attn.hook {kind} (%at: !attn.coord) {{\n"
    if kind == "mask":
        if rng.random() < 0.6:
            q, k = body.emit("attn.q_pos %at"), body.emit("attn.kv_pos %at")
            result = body.emit(f"arith.cmpi sle, {k}, {q} : index")
            if rng.random() < 0.5:
                width = body.emit(f"arith.constant {rng.randint(0, 40)} : index")
                distance = body.emit(f"arith.subi {q}, {k} : index")
                near = body.emit(f"arith.cmpi sle, {distance}, {width} : index")
                result = body.emit(f"arith.andi {result}, {near} : i1")
            if rng.random() < 0.5:  # by a table of keys, which is scanned
                zero = body.emit("arith.constant 0 : index")
                table = rng.choice(["small", "byte"])
                mine = body.emit(f"memref.load %{table}[{body.emit(f'arith.maxsi {q}, {zero} : index')}] : memref<?x{TABLES[table]}>")
                theirs = body.emit(f"memref.load %{table}[{k}] : memref<?x{TABLES[table]}>")
                same = body.emit(f"arith.cmpi {rng.choice(['eq', 'ne', 'sle', 'sgt'])}, {theirs}, {mine} : {TABLES[table]}")
                result = body.emit(f"arith.{rng.choice(['andi', 'andi', 'ori'])} {result}, {same} : i1")
            if rng.random() < 0.3:
                result = body.emit(f"arith.ori {result}, {body.condition()} : i1")
        else:
            result = body.condition()
        type = "i1"
    elif kind == "sink":
        result, type = body.bounded(), "f32"
    elif kind == "logits":
        head, type = "  attn.hook logits (%x: f32, %at: !attn.coord) {\n", "f32"
        choice = rng.randrange(6)
        if choice == 0:
            result = body.emit(f"arith.addf %x, {body.bounded()} : f32")
        elif choice == 1:
            result = body.branch("%x")
        elif choice == 2:
            result = body.emit(f"math.tanh %x {rng.choice(['', 'fastmath<afn>'])} : f32")
        elif choice == 3:  # bounds, close enough for a softmax without a maximum or just too wide
            cap = body.emit(f"arith.constant {rng.choice([1.0, 9.5, 9.8, 50.0, 56.0])} : f32")
            if rng.random() < 0.5:
                capped = body.emit(f"math.tanh {rng.choice(['%x', body.branch('%x')])} fastmath<afn> : f32")
                result = body.emit(f"arith.mulf {capped}, {cap} : f32")
            else:
                least = body.emit(f"arith.negf {cap} : f32")
                result = body.emit(f"arith.maximumf {body.emit(f'arith.minimumf %x, {cap} : f32')}, {least} : f32")
        elif choice == 4:  # the same behind a branch
            condition, other = body.condition(), body.bounded()
            capped = body.emit(f"arith.mulf {body.emit('math.tanh %x : f32')}, {body.emit('arith.constant 30.0 : f32')} : f32")
            result = body.emit(f"arith.select {condition}, {capped}, {other} : f32")
        else:  # a factor at the end, which tile-fold-scale looks for
            factor = rng.choice([body.emit("arith.constant 1.5 : f32"), body.emit("arith.constant -0.5 : f32"), "%weight"])
            result = body.emit(f"arith.mulf {rng.choice(['%x', body.branch('%x')])}, {factor} : f32")
    else:
        type = f"vector<{dim}xf32>"
        head = f"  attn.hook {kind} (%x: {type}, %at: !attn.coord) {{\n"
        if rng.random() < 0.4 and dim % 16 == 0:
            text = "interleaved, " if rng.random() < 0.3 else ""
            result = body.emit(f"attn.rope %x at {body.emit(f'attn.{COORDS[kind][0]} %at')} {{{text}theta = 10000.0 : f64}} : {type}")
        else:
            spread = body.emit(f"vector.broadcast {body.bounded()} : f32 to {type}")
            result = body.emit(f"arith.{rng.choice(['mulf', 'addf'])} %x, {spread} : {type}")
    return head + "\n".join(body.lines) + f"\n    attn.yield {result} : {type}\n  }}\n"


def make(seed, path):
    """(module with a config of its own, options of attn-interpret)

    One in eight kernels with a plain loop gets a third product: see thrice."""
    rng = random.Random(seed)
    chosen = path == "chosen"
    path = rng.choice(["gather", "roles"]) if chosen else path or rng.choice(["gather", "roles"])
    heads = rng.choice([(4, 2), (2, 2), (6, 2), (5, 1), (1, 1)])
    dim = rng.choice([64, 96, 128, 192] if chosen else [16, 32, 32, 64, 48] + ([40] if path == "gather" else []))
    element = rng.choice(["bf16", "f16"])
    narrow = rng.choice(["f8E4M3FN", "f8E5M2"]) if path == "gather" and rng.random() < 0.15 else element
    vector = 0.2 if path == "gather" else 0.02  # hooks on q, k and v have no roles
    shares = {"mask": 0.8, "logits": 0.5, "sink": 0.2, "output": 0.2, "query": vector, "key": vector, "value": vector}
    kinds = [kind for kind, share in shares.items() if rng.random() < share]
    names = [(name, f"memref<?x{type}>") for name, type in TABLES.items()] + [("weight", "f32")]
    variant = ("".join(hook(rng, kind, dim) for kind in kinds), names, {}) if kinds else "none"
    case = {"format": rng.choice(["paged1", "paged4", "paged8", "paged16", "ragged"]), "heads": heads, "dims": (dim, dim),
            "types": (element, narrow), "variant": variant, "split": "none", "batch": "decode", "index": "i32", "strides": "nhd",
            "lse": rng.choice(["natural", "base2", "none"]), "magnitude": 1.0, "scale": rng.choice(["default", "given"])}
    text, _ = matrix.module(case)
    if chosen:
        return text.replace("{format =", f'{{target = #attn.target<"{"sm_90a" if path == "roles" else "sm_80"}">, format ='), []
    keys, stages = rng.choice([16, 32, 48]), rng.choice([1, 2, 3])
    group = heads[0] // heads[1]
    if path == "roles":
        warps = rng.choice([1, 2, 4])
        consumers, chip, rows = rng.choice([c for c in (1, 2, 4) if warps % c == 0]), "sm_90a", 16 * warps
        config = f"consumers = {consumers}, load = tma, warps = {warps}"
        if rng.random() < 0.3:
            config += ", q_in_registers = true"
    else:
        rows = rng.choice([16, 16, 32, 64])
        groups = rng.choice([1, 2, 4]) if rows == 16 else 1
        keys *= groups  # at least 16 keys a group
        warps = rng.choice([w for w in (1, 2, 4) if w % groups == 0 and 16 * w // groups <= rows])
        chip, config = "sm_80", f"groups = {groups}, warps = {warps}"
    if group > 1 and rows % group == 0 and rng.random() < 0.5:
        config += f", pack = {group}"
    text = text.replace("{format =", f'{{target = #attn.target<"{chip}">, configs = [#attn.config<rows = {rows}, keys = {keys}, stages = {stages}, {config}>], format =')
    options = ["--param=weight=0.75", f"--split={rng.choice([1, 1, 2, 3])}", f"--ctas={rng.choice([1, 2])}", "--longest=3", f"--seed={rng.randrange(1000)}"]
    return text, options


def thrice(rng, text):
    """Level L with Q K computed twice and the mean taken: three products in the loop."""
    found = re.search(r"^( *)(%\w+) = tile\.dot (.*) transpose_b : (\(.*\)) -> (.*)$", text, re.M)
    if not found or rng.random() > 0.125:
        return text
    indent, name, operands, types, result = found.groups()
    lines = [f"%once = tile.dot {operands} transpose_b : {types} -> {result}", f"%again = tile.dot {operands} transpose_b : {types} -> {result}",
             f"{name} = tile.map (%p_first = %once : {result}, %p_again = %again : {result}) -> {result} {{", "  %half_of_it = arith.constant 0.5 : f32",
             "  %p_sum = arith.addf %p_first, %p_again : f32", "  %p_mean = arith.mulf %p_sum, %half_of_it : f32", "  tile.yield %p_mean : f32", "}"]
    return text[:found.start()] + "\n".join(indent + line for line in lines) + text[found.end():]


def run(seed, options, folder):
    text, flags = make(seed, options.path)
    source, level = folder / f"{seed}.mlir", folder / f"{seed}-l.mlir"
    source.write_text(text)
    tools = pathlib.Path(options.bin)
    if options.path == "chosen":
        front = [str(tools / "attn-opt"), str(source), "--attn-front-pipeline", "-o", str(level)]
        chip = re.search(r'target<"(\w+)">', text).group(1)
        back = [str(tools / "attn-opt"), str(level), f"--attn-gpu-pipeline=chip={chip}", "-o", os.devnull]
        status, output = runner.execute(front, options.timeout)
        refused = status == 1
        if status == 0:
            status, output = runner.execute(back, options.timeout)
        return judge(status, refused, output, " ".join(back if not refused else front))
    lines = [[str(tools / "attn-opt"), str(source), "--attn-to-tile", "--attn-keep-kernels", "--attn-legalize-math=target=gpu", "--canonicalize", "--cse", "-o", str(level)]]
    status, output = runner.execute(lines[0], options.timeout)
    if status == 0:
        level.write_text(thrice(random.Random(f"thrice {seed}"), level.read_text()))
        kernel = re.search(r"tile\.kernel @(\w+_r\d+)", level.read_text()).group(1)
        lines.append([str(tools / "attn-interpret"), str(level), f"--kernel={kernel}", "--through", f"--runs={options.runs}", *flags])
        status, output = runner.execute(lines[1], options.timeout)
    return judge(status, status == 3 or (status == 1 and len(lines) == 1), output, " ".join(lines[-1]))


def judge(status, refused, output, line):
    """(right, refused or wrong; why it was refused; the command and what it said)"""
    message = re.search(r"error: (?:'[\w.]+' op )?(.*)", output)
    # Numbers and names aside, so that messages of a kind are counted together.
    reason = re.sub(r"\d+|'[^']*'", "N", message.group(1))[:90] if refused and message else None
    # Where a tool says much, its first words name the error.
    said = output.strip() if len(output) < 700 else output[:300] + " … " + output.strip()[-300:]
    return "right" if status == 0 else "refused" if reason else "wrong", reason, line + "\n" + said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=-1)
    parser.add_argument("--path", default="", choices=["", "gather", "roles", "chosen"])
    parser.add_argument("--runs", type=int, default=2, help="random batches after each pass")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    seeds = [options.only] if options.only >= 0 else list(range(options.seed * 100000, options.seed * 100000 + options.count))
    counts, reasons = collections.Counter(right=0, refused=0, wrong=0), collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for seed, (what, reason, text) in zip(seeds, pool.map(lambda seed: run(seed, options, folder), seeds)):
                counts[what] += 1
                reasons.update([reason] if reason else [])
                if what == "wrong":
                    print(f"WRONG --only {seed}: {text}", flush=True)
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        print(f"refused {count}: {reason}")
    print(", ".join(f"{counts[what]} {what}" for what in ("right", "refused", "wrong")))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
