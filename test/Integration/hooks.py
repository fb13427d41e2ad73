#!/usr/bin/env python3
"""Random hooks of the closed list's integer ops, run by attn-run against the reference; every result must agree to the bit.

    hooks.py --tool build/bin/attn-run [--device cpu|cuda] [--target sm_80|sm_90a] [--count N] [--seed N] [--only N] [--keep DIR]
    hooks.py --opt build/bin/attn-opt    # as well: the pipelines to sm_80 and sm_90a must not break

A hook hashes an expression of coordinates, table entries, constants at the edges of their types and converted floats
into seven bits, which move the logit (or decide the mask, or scale a head vector). The last line is "N passed, N failed".
"""

import random
import sys

import matrix
import runner
from cases import BASE

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
BINARY = ["addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "maxui",
          "minsi", "minui"]
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
COORDS = {"query": ["q_pos", "row", "request", "q_head", "kv_head", "qo_len", "kv_len"], "key": ["kv_pos", "request", "kv_head", "kv_len", "qo_len"]}
COORDS["logits"] = COORDS["mask"] = COORDS["query"] + ["kv_pos"]
COORDS["value"], COORDS["output"] = COORDS["key"], COORDS["query"]
TABLES = {"t8": "i8", "t32": "i32", "t64": "i64"}


class Hook:
    """Straight-line code with values by type."""

    def __init__(self, rng, kind, wide):
        self.rng, self.kind, self.lines, self.count, self.wide = rng, kind, [], 0, wide
        self.values = {type: [] for type in WIDTHS}

    def emit(self, text, type, indent="    "):
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"{indent}{name} = {text}")
        if type in self.values:
            self.values[type].append(name)
        return name

    def pick(self, type):
        if not self.values[type] or self.rng.random() < 0.15:
            return self.constant(type)
        return self.rng.choice(self.values[type][-8:])

    def constant(self, type):
        width = WIDTHS[type]
        if width == 1:
            return self.emit(f"arith.constant {self.rng.choice(['true', 'false'])}", type)
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if type == "index" and not self.wide:  # a machine may keep indices in 32 bits
            low, high = -70000, 70000
        number = self.rng.choice([0, 1, -1, 2, 3, 7, width - 1, width, width + 1, low, high, low + 1, self.rng.randint(low, high)])
        return self.emit(f"arith.constant {max(low, min(high, number))} : {type}", type)

    def leaf(self):
        choice = self.rng.randrange(4)
        if choice == 0:
            name = self.rng.choice(COORDS[self.kind])
            return self.emit(f"attn.{name} %at", "index")
        if choice == 1:
            table = self.rng.choice(list(TABLES))
            return self.emit(f"memref.load %{table}[{self.place()}] : memref<?x{TABLES[table]}>", TABLES[table])
        if choice == 2:
            number = self.emit(f"memref.load %tf[{self.place()}] : memref<?xf32>", "f32")
            op, type = self.rng.choice(["fptosi", "fptoui"]), self.rng.choice(["i1", "i8", "i16", "i32", "i64"])
            if self.rng.random() < 0.3:
                return self.emit(f"arith.bitcast {number} : f32 to i32", "i32")
            return self.emit(f"arith.{op} {number} : f32 to {type}", type)
        return self.constant(self.rng.choice(list(WIDTHS)))

    def place(self):
        """An index inside the tables, which have 16 entries."""
        at = self.emit(f"attn.{self.rng.choice(COORDS[self.kind])} %at", "index")
        mask = self.emit("arith.constant 15 : index", "none")
        return self.emit(f"arith.andi {at}, {mask} : index", "index")

    def step(self):
        rng, type = self.rng, self.rng.choice(["i8", "i16", "i32", "i32", "i64", "index", "i1"])
        choice = rng.randrange(8)
        if choice < 4:
            op = rng.choice(BINARY)
            if type == "index" and op in ("muli", "shli") and not self.wide:
                op = "subi"
            return self.emit(f"arith.{op} {self.pick(type)}, {self.pick(type)} : {type}", type)
        if choice == 4:
            return self.emit(f"arith.cmpi {rng.choice(PREDICATES)}, {self.pick(type)}, {self.pick(type)} : {type}", "i1")
        if choice == 5:
            return self.emit(f"arith.select {self.pick('i1')}, {self.pick(type)}, {self.pick(type)} : {type}", type)
        if choice == 6:
            return self.cast(type)
        condition, then, other = self.pick("i1"), self.pick(type), self.pick(type)
        a, b = self.pick(type), self.pick(type)
        op = rng.choice(["divsi", "remui", "shrsi", "xori"])
        name = f"%v{self.count}"
        self.count += 1
        self.lines += [f"    {name} = scf.if {condition} -> {type} {{", f"      %w{self.count} = arith.{op} {a}, {b} : {type}",
                       f"      %u{self.count} = arith.andi %w{self.count}, {then} : {type}", f"      scf.yield %u{self.count} : {type}",
                       "    } else {", f"      scf.yield {other} : {type}", "    }"]
        self.values[type].append(name)
        return name

    def cast(self, type):
        rng = self.rng
        value = self.pick(type)
        if type == "index":
            to = rng.choice(["i8", "i32", "i64"])
            return self.emit(f"arith.index_cast {value} : index to {to}", to)
        if not self.wide and WIDTHS[type] < 32 and rng.random() < 0.3:
            return self.emit(f"arith.index_cast {value} : {type} to index", "index")
        if self.wide and type != "i1" and rng.random() < 0.3:
            return self.emit(f"arith.{rng.choice(['index_cast', 'index_castui'])} {value} : {type} to index", "index")
        to = rng.choice(["i8", "i16", "i32", "i64"])
        if WIDTHS[to] > WIDTHS[type]:
            return self.emit(f"arith.{rng.choice(['extsi', 'extui'])} {value} : {type} to {to}", to)
        if WIDTHS[to] < WIDTHS[type]:
            return self.emit(f"arith.trunci {value} : {type} to {to}", to)
        return value

    def hash(self):
        """Seven bits of all values."""
        total = self.emit("arith.constant 12345 : i32", "none")
        factor = self.emit("arith.constant -1640531527 : i32", "none")
        for type, values in list(self.values.items()):
            for value in values[-4:]:
                word = value
                if type == "index":
                    value = self.emit(f"arith.index_cast {value} : index to i64", "none")
                if type in ("index", "i64"):
                    word = self.emit(f"arith.trunci {value} : i64 to i32", "none")
                elif type != "i32":
                    word = self.emit(f"arith.extsi {value} : {type} to i32", "none")
                mixed = self.emit(f"arith.xori {total}, {word} : i32", "none")
                total = self.emit(f"arith.muli {mixed}, {factor} : i32", "none")
        amount = self.emit("arith.constant 25 : i32", "none")
        return self.emit(f"arith.shrui {total}, {amount} : i32", "none")


def hook(rng, kind, dim, wide):
    code = Hook(rng, kind, wide)
    for _ in range(rng.randint(3, 6)):
        code.leaf()
    for _ in range(rng.randint(4, 14)):
        code.step()
    hashed = code.hash()
    if kind == "mask":
        three = code.emit("arith.constant 3 : i32", "none")
        zero = code.emit("arith.constant 0 : i32", "none")
        low = code.emit(f"arith.andi {hashed}, {three} : i32", "none")
        seen = code.emit(f"arith.cmpi ne, {low}, {zero} : i32", "none")
        return f"  attn.hook mask (%at: !attn.coord) {{\n" + "\n".join(code.lines) + f"\n    attn.yield {seen} : i1\n  }}\n"
    number = code.emit(f"arith.uitofp {hashed} : i32 to f32", "none")
    part = code.emit(f"arith.constant {'0.0625' if kind == 'logits' else '0.0078125'} : f32", "none")
    moved = code.emit(f"arith.mulf {number}, {part} : f32", "none")
    if kind == "logits":
        result, type = code.emit(f"arith.addf %x, {moved} : f32", "none"), "f32"
    else:
        type = f"vector<{dim}xf32>"
        spread = code.emit(f"vector.broadcast {moved} : f32 to {type}", "none")
        result = code.emit(f"arith.addf %x, {spread} : {type}", "none")
    return (f"  attn.hook {kind} (%x: {type}, %at: !attn.coord) {{\n" + "\n".join(code.lines) + f"\n    attn.yield {result} : {type}\n  }}\n")


def make(seed, device):
    rng = random.Random(seed)
    kinds = rng.sample(["logits", "mask", "query", "key", "value", "output"], rng.randint(1, 3))
    wide = device == "cpu"
    body = "".join(hook(rng, kind, 32, wide) for kind in kinds)
    names = [(name, f"memref<?x{type}>") for name, type in TABLES.items()] + [("tf", "memref<?xf32>")]
    edge = lambda bits: [0, 1, -1, 2, bits - 1, bits, -(1 << (bits - 1)), (1 << (bits - 1)) - 1] + [
        rng.randint(-(1 << min(bits - 1, 52)), (1 << min(bits - 1, 52)) - 1) for _ in range(8)]
    small = lambda values: [max(-(1 << 53), min(1 << 53, value)) for value in values]  # what JSON's numbers hold
    floats = [0.0, -0.5, 1.5, -1.5, 127.5, 128.0, 255.5, 256.0, 32768.0, 65536.0, 2147483648.0, -2147483904.0, 4294967296.0, 1e19, -1e19, 3e38]
    params = {"t8": {"values": edge(8)}, "t32": {"values": edge(32)}, "t64": {"values": small(edge(64))}, "tf": {"values": floats}}
    return body, names, params


def run(number, options, folder):
    rng = random.Random(number)
    case = dict(BASE, heads=(4, 2), dims=(32, 32), variant=make(f"{options.seed}:{number}", options.device),
                format=rng.choice(["ragged", "paged16", "paged5"]), split=rng.choice(["none", 64]))
    text, batch = matrix.module(case)
    batch["requests"] = [{"qo": 9, "kv": 5}, {"qo": 1, "kv": 130}, {"qo": 20, "kv": 70}]
    ir, file = runner.write(folder, number, text, batch)
    commands = [runner.command(options, ir, file), *runner.pipelines(options, ir)]
    for command in commands:
        status, output = runner.execute(command, options.timeout)
        # A pipeline may refuse; it may not break.
        if status == "timeout" or status < 0 or (command[0] == options.tool and status):
            return status, " ".join(command) + "\n" + output[-600:]
    return 0, ""


if __name__ == "__main__":
    sys.exit(runner.run_numbers(__doc__, run))
