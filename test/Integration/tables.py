#!/usr/bin/env python3
"""Masks that compare tables at the keys' positions (documents, segments, valid keys), run by attn-run against the reference.

    tables.py --tool build/bin/attn-run [--device cpu|cuda] [--target sm_80|sm_90a] [--count N] [--seed N] [--only N] [--keep DIR]
    tables.py --opt build/bin/attn-opt    # as well: the pipelines to sm_80 and sm_90a must not break

A mask is an expression of comparisons: entries at the key with entries at the query, with numbers, positions with positions; tables
hold runs (documents), permuted runs, a few numbers at random or padding, and begin anywhere in memory. The last line is
"N passed, N failed".
"""

import random
import sys

import matrix
import runner
from cases import BASE

PREDICATES = ["eq", "eq", "eq", "ne", "slt", "sle", "sgt", "sge"]
LIMITS = {"i8": 127, "i32": 2**31 - 1, "i64": 2**53}


def entries(rng, count, type):
    """The numbers of one request."""
    kind = rng.choice(["runs", "runs", "permuted", "random", "padding", "one"])
    if kind == "random":
        return [rng.randint(-2, 3) for _ in range(count)]
    if kind == "one":
        return [rng.choice([0, 5, LIMITS[type], -LIMITS[type] - (type != "i64")])] * count
    if kind == "padding":
        left = rng.randint(0, count // 2)
        return [0] * left + [1] * (count - left - count // 4) + [0] * (count // 4)
    out, number = [], rng.randint(0, 3)
    longest = rng.choice([3, 40, 200])
    while len(out) < count:
        out += [number] * rng.randint(1, longest)
        number = number + 1 if kind == "runs" else rng.randint(0, 9)
    return [min(x, 100) for x in out[:count]]


class Mask:
    def __init__(self, rng, type):
        self.rng, self.type, self.lines, self.count, self.compared = rng, type, [], 0, []

    def emit(self, text):
        self.count += 1
        self.lines.append(f"    %v{self.count} = {text}")
        return f"%v{self.count}"

    def table(self, place):
        """An entry of the request's part of the table; that of a query in front of the first key is the first."""
        at = self.emit(f"attn.{place} %at")
        if place == "q_pos":
            at = self.emit(f"arith.maxsi {at}, %zero : index")
        index = self.emit(f"arith.addi {at}, %base : index") if self.rng.random() < 0.5 else self.emit(f"arith.addi %base, {at} : index")
        return self.emit(f"memref.load %table[{index}] : memref<?x{self.type}>")

    def compare(self):
        rng, choice, type = self.rng, self.rng.randrange(6), self.type
        if choice < 3:
            sides = [self.table("kv_pos"), self.table("q_pos")]
        elif choice == 3:
            sides = [self.table("kv_pos"), self.emit(f"arith.constant {rng.randint(-1, 3)} : {type}")]
        elif choice == 4:
            return self.emit(f"arith.cmpi sle, {self.emit('attn.kv_pos %at')}, {self.emit('attn.q_pos %at')} : index")
        else:
            distance = self.emit(f"arith.subi {self.emit('attn.q_pos %at')}, {self.emit('attn.kv_pos %at')} : index")
            return self.emit(f"arith.cmpi slt, {distance}, {self.emit(f'arith.constant {rng.randint(1, 150)} : index')} : index")
        if type == "i32" and rng.random() < 0.3:
            sides, type = [self.emit(f"arith.index_cast {side} : i32 to index") for side in sides], "index"
        if rng.random() < 0.5:
            sides.reverse()
        return self.emit(f"arith.cmpi {rng.choice(PREDICATES)}, {sides[0]}, {sides[1]} : {type}")

    def expression(self, depth):
        rng = self.rng
        if depth == 0:
            value = rng.choice(self.compared) if self.compared and rng.random() < 0.2 else self.compare()
            self.compared.append(value)
            return self.emit(f"arith.xori {value}, %true : i1") if rng.random() < 0.15 else value
        a, b = self.expression(depth - 1), self.expression(rng.randrange(depth))
        return self.emit(f"arith.{rng.choice(['andi', 'andi', 'andi', 'ori'])} {a}, {b} : i1")


def make(rng, requests):
    type = rng.choice(["i32", "i32", "i32", "i8", "i64"])
    mask = Mask(rng, type)
    result = mask.expression(rng.randint(0, 2))
    prologue = ["    %zero = arith.constant 0 : index", "    %true = arith.constant true", "    %r = attn.request %at",
                "    %start = memref.load %offset[%r] : memref<?xi32>", "    %base = arith.index_cast %start : i32 to index"]
    body = "  attn.hook mask (%at: !attn.coord) {\n" + "\n".join(prologue + mask.lines) + f"\n    attn.yield {result} : i1\n  }}\n"
    values, offsets = [7] * rng.randint(0, 5), []
    for request in requests:
        offsets.append(len(values))
        values += entries(rng, max(request["kv"], 1), type) + [3] * rng.randint(0, 2)
    return body, [("table", f"memref<?x{type}>"), ("offset", "memref<?xi32>")], {"table": {"values": values}, "offset": {"values": offsets}}


def run(number, options, folder):
    rng = random.Random(f"{options.seed}:{number}")
    requests = [{"qo": qo, "kv": max(kv, 0)} for qo, kv in ((rng.choice([1, 33, 130, 270]), rng.choice([0, 1, 50, 300, 700])) for _ in range(3))]
    case = dict(BASE, heads=rng.choice([(2, 2), (4, 1)]), dims=(64, 64), variant=make(rng, requests), format=rng.choice(["ragged", "paged16", "paged5"]),
                split=rng.choice(["none", 64]))
    text, batch = matrix.module(case)
    host = text
    if options.device == "cpu" and rng.random() < 0.8:  # the host's own choice has few rows, which scan no tables
        host = text.replace("format = #attn.format", "configs = [#attn.config<rows = 64, keys = 64>], format = #attn.format")
    batch["requests"] = requests
    ir, file = runner.write(folder, number, host, batch)
    commands = [runner.command(options, ir, file)]
    if options.opt:
        ir, _ = runner.write(folder, f"{number}-gpu", text, batch)
        commands += runner.pipelines(options, ir)
    for command in commands:
        status, output = runner.execute(command, options.timeout)
        if status:
            return status, " ".join(command) + "\n" + output[-600:]
    return 0, ""


if __name__ == "__main__":
    sys.exit(runner.run_numbers(__doc__, run))
