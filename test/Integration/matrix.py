#!/usr/bin/env python3
"""The numeric matrix: configurations of attention, compiled and run by attn-run, checked against the reference.

    matrix.py --tool build/bin/attn-run --set pairwise|random --device cpu|cuda [--seed N] [--count N] [--jobs N]
              [--target sm_80|sm_90a] [--only NUMBER] [--keep DIR]

`pairwise` covers every pair of values of two dimensions (shape, format, variant, split, types, …) at least once; `random`
draws `--count` configurations by seed. The last line is
"N passed, N failed". A failing configuration prints its number and the command that repeats it.
"""

import itertools
import random
import sys

import runner

DIMENSIONS = {
    "format": ["paged1", "paged5", "paged16", "paged64", "ragged", "bsr16", "bsr24"],
    "heads": [(1, 1), (4, 4), (8, 2), (5, 1), (6, 1), (14, 2), (12, 1), (16, 1), (3, 3)],
    "dims": [(64, 64), (128, 128), (32, 32), (40, 40), (56, 56), (80, 80), (96, 96), (112, 112), (192, 192), (224, 224), (256, 256), (192, 128)],
    "types": [("bf16", "bf16"), ("f16", "f16"), ("f16", "f8E4M3FN"), ("bf16", "f8E5M2"), ("f32", "f32")],
    "variant": ["none", "causal", "window", "softcap", "softcap_afn", "alibi", "sink_window", "rope", "prefix", "document", "tree",
                "sigmoid", "all"],
    "split": ["auto", "none", 64, 128],
    "batch": ["decode", "append", "prefill", "mixed", "empty", "short", "prefixes", "tree_prefixes"],
    "index": ["i32", "i64"],
    "strides": ["nhd", "hnd", "packed"],
    "lse": ["natural", "base2", "none"],
    "magnitude": [1.0, 12.0],
    "scale": ["default", "given", "negative", "zero"],
}

BATCHES = {
    "decode": [(1, 1), (1, 2), (1, 129), (1, 300), (1, 64)],
    "append": [(5, 65), (8, 127), (3, 128), (2, 3), (6, 296)],
    "prefill": [(70, 70), (33, 161), (1, 1), (129, 129)],
    "mixed": [(1, 257), (40, 200), (1, 17), (7, 7), (65, 128)],
    "empty": [(1, 33), (0, 20), (1, 0), (4, 0), (0, 0), (3, 130), (9, 4)],
    "short": [(1, 1), (2, 2), (3, 1), (1, 5)],
    "prefixes": [(1, 150), (1, 170), (2, 128), (1, 131), (1, 60)],
    "tree_prefixes": [(1, 100), (1, 140), (3, 120), (1, 90), (20, 200)],
}
PREFIXES = {
    "prefixes": [{"requests": [0, 3], "prefix": 96}],
    "tree_prefixes": [{"requests": [0, 3], "prefix": 33}, {"requests": [0, 1], "prefix": 40}],
}

COORDS = """    %q = attn.q_pos %at
    %k = attn.kv_pos %at
"""


def hook_mask(body):
    return "  attn.hook mask (%at: !attn.coord) {\n" + COORDS + body + "    attn.yield %in : i1\n  }\n"


CAUSAL = "    %in = arith.cmpi sle, %k, %q : index\n"
WINDOW = """    %d = arith.subi %q, %k : index
    %c = arith.cmpi sge, %d, %zero : index
    %w = arith.cmpi sle, %d, %left : index
    %in = arith.andi %c, %w : i1
"""
SINK_WINDOW = """    %d = arith.subi %q, %k : index
    %c = arith.cmpi sge, %d, %zero : index
    %w = arith.cmpi sle, %d, %left : index
    %s = arith.cmpi slt, %k, %sinks : index
    %ws = arith.ori %w, %s : i1
    %in = arith.andi %c, %ws : i1
"""
ZERO = "  %zero = arith.constant 0 : index\n"


def softcap(flags):
    return ("  attn.hook logits (%x: f32, %at: !attn.coord) {\n    %0 = arith.divf %x, %cap : f32\n    %1 = math.tanh %0" + flags +
            " : f32\n    %2 = arith.mulf %1, %cap : f32\n    attn.yield %2 : f32\n  }\n")


def rope(kind, position, dim):
    return (f"  attn.hook {kind} (%x: vector<{dim}xf32>, %at: !attn.coord) {{\n    %p = attn.{position} %at\n"
            f"    %y = attn.rope %x at %p {{theta = 10000.0 : f64}} : vector<{dim}xf32>\n    attn.yield %y : vector<{dim}xf32>\n  }}\n")


ALIBI = """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %s = memref.load %slopes[%h] : memref<?xf32>
    %d = arith.subi %k, %q : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    %b = arith.mulf %s, %f : f32
    %y = arith.addf %x, %b : f32
    attn.yield %y : f32
  }
"""
SINK = """  attn.hook sink (%at: !attn.coord) {
    %h = attn.q_head %at
    %s = memref.load %sink[%h] : memref<?xf32>
    attn.yield %s : f32
  }
"""


def variant(case):
    """(IR of the variant, [(name, type)], batch parameters, uses approximate functions)"""
    name, (dqk, dvo), heads = case["variant"], case["dims"], case["heads"][0]
    if not isinstance(name, str):  # given as it is
        return name
    if name == "none":
        return "", [], {}
    if name == "causal":
        return hook_mask(CAUSAL), [], {}
    if name == "window":
        return ZERO + hook_mask(WINDOW), [("left", "index")], {"left": 37}
    if name in ("softcap", "softcap_afn"):
        return softcap(" fastmath<afn>" if name.endswith("afn") else "") + hook_mask(CAUSAL), [("cap", "f32")], {"cap": 20.0}
    if name == "alibi":
        return ALIBI + hook_mask(CAUSAL), [("slopes", "memref<?xf32>")], {"slopes": {"generator": "alibi", "heads": heads}}
    if name == "sink_window":
        return (ZERO + SINK + hook_mask(SINK_WINDOW), [("left", "index"), ("sinks", "index"), ("sink", "memref<?xf32>")],
                {"left": 50, "sinks": 4, "sink": {"random": [-1, 2], "shape": [heads]}})
    if name == "rope":
        return rope("query", "q_pos", dqk) + rope("key", "kv_pos", dqk) + hook_mask(CAUSAL), [], {}
    if name == "prefix":
        body = """    %r = attn.request %at
    %l0 = memref.load %lengths[%r] : memref<?xi32>
    %l = arith.index_cast %l0 : i32 to index
    %c = arith.cmpi sle, %k, %q : index
    %p = arith.cmpi slt, %k, %l : index
    %in = arith.ori %c, %p : i1
"""
        return hook_mask(body), [("lengths", "memref<?xi32>")], {"lengths": {"generator": "prefix_lengths", "fraction": 0.4}}
    if name == "document":
        body = """    %r = attn.request %at
    %o0 = memref.load %offsets[%r] : memref<?xi32>
    %o = arith.index_cast %o0 : i32 to index
    %qc = arith.maxsi %q, %zero : index
    %qi = arith.addi %o, %qc : index
    %ki = arith.addi %o, %k : index
    %a = memref.load %ids[%qi] : memref<?xi32>
    %b = memref.load %ids[%ki] : memref<?xi32>
    %same = arith.cmpi eq, %a, %b : i32
    %c = arith.cmpi sle, %k, %q : index
    %in = arith.andi %same, %c : i1
"""
        return (ZERO + hook_mask(body), [("ids", "memref<?xi32>"), ("offsets", "memref<?xi32>")],
                {"ids": {"generator": "documents", "part": "ids", "mean": 40}, "offsets": {"generator": "documents", "part": "offsets"}})
    if name == "tree":
        body = """    %r = attn.request %at
    %row = attn.row %at
    %n = attn.kv_len %at
    %o = memref.load %offsets[%r] : memref<?xi64>
    %o2 = arith.index_cast %o : i64 to index
    %rb = arith.muli %row, %n : index
    %bit = arith.addi %rb, %k : index
    %byte = arith.divui %bit, %eight : index
    %sub = arith.remui %bit, %eight : index
    %at8 = arith.addi %o2, %byte : index
    %v = memref.load %bits[%at8] : memref<?xi8>
    %s8 = arith.index_cast %sub : index to i8
    %sh = arith.shrui %v, %s8 : i8
    %one = arith.constant 1 : i8
    %low = arith.andi %sh, %one : i8
    %in = arith.cmpi eq, %low, %one : i8
"""
        return ("  %eight = arith.constant 8 : index\n" + hook_mask(body), [("bits", "memref<?xi8>"), ("offsets", "memref<?xi64>")],
                {"bits": {"generator": "tree_mask", "part": "bits"}, "offsets": {"generator": "tree_mask", "part": "offsets"}})
    sigmoid = """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %onef : f32
    %y = arith.divf %onef, %d : f32
    attn.yield %y : f32
  }
"""
    if name == "sigmoid":
        return "  %onef = arith.constant 1.0 : f32\n" + sigmoid + hook_mask(CAUSAL), [], {}
    scale_vec = lambda kind, dim, factor: (
        f"  attn.hook {kind} (%x: vector<{dim}xf32>, %at: !attn.coord) {{\n    %s = vector.broadcast %{factor} : f32 to vector<{dim}xf32>\n"
        f"    %y = arith.mulf %x, %s : vector<{dim}xf32>\n    attn.yield %y : vector<{dim}xf32>\n  }}\n")
    return (ZERO + rope("query", "q_pos", dqk) + rope("key", "kv_pos", dqk) + scale_vec("value", dvo, "vs") + scale_vec("output", dvo, "os") +
            softcap("") + SINK + hook_mask(WINDOW),
            [("cap", "f32"), ("left", "index"), ("sink", "memref<?xf32>"), ("vs", "f32"), ("os", "f32")],
            {"cap": 30.0, "left": 90, "sink": {"random": [-1, 2], "shape": [heads]}, "vs": 0.5, "os": 3.0})


def module(case):
    """The case as IR, and its batch file."""
    (hq, hkv), (dqk, dvo), (tq, tkv) = case["heads"], case["dims"], case["types"]
    kind = case["format"].rstrip("0123456789")
    size = int(case["format"][len(kind):] or 0)
    body, names, params = variant(case)
    index = f"memref<?x{case['index']}>"
    wide = lambda rank: ", strided<[" + ", ".join(["?"] * (rank - 1) + ["1"]) + "]>"
    q = f"memref<?x{hq}x{dqk}x{tq}{wide(3)}>"
    o = f"memref<?x{hq}x{dvo}x{tq}{wide(3)}>"
    kv_shape = f"?x{hkv}x" if kind == "ragged" else f"?x{size}x{hkv}x"
    rank = 3 if kind == "ragged" else 4
    k, v = f"memref<{kv_shape}{dqk}x{tkv}{wide(rank)}>", f"memref<{kv_shape}{dvo}x{tkv}{wide(rank)}>"
    lse = case["lse"] if case["variant"] != "sigmoid" else "none"
    levels = levels_of(case)
    arguments = [("q", q), ("qo", index), ("k", k), ("v", v)]
    clause = {"indptr": [], "indices": [], "last": [], "row_indptr": []}
    for level in range(levels):
        for group in ("indptr",) + (() if kind == "ragged" else ("indices", "last")) + (("row_indptr",) if levels > 1 else ()):
            clause[group].append((f"{group}{level}", index))
    for group in clause.values():
        arguments += group
    arguments += [("o", o)] + ([("lse", f"memref<?x{hq}xf32>")] if lse != "none" else []) + names
    if case["scale"] != "default":
        arguments.append(("scale", "f32"))
    listed = lambda values: ", ".join(f"%{n}" for n, _ in values) + " : " + ", ".join(t for _, t in values)
    text = ""
    call = ""
    if case["variant"] != "none":
        normalizer = " normalizer(none)" if case["variant"] == "sigmoid" else ""
        text += f"attn.variant @variant({', '.join(f'%{n}: {t}' for n, t in names)}){normalizer} {{\n{body}}}\n\n"
        call = "@variant(" + (listed(names) if names else "") + ") "
    if case["scale"] != "default":
        call += "scale %scale "
    text += f"func.func @attention({', '.join(f'%{n}: {t}' for n, t in arguments)}) {{\n"
    text += f"  attn.attention {call}q(%q, %qo : {q}, {index}) kv(%k, %v : {k}, {v})"
    for group, values in clause.items():
        if values:
            text += f" {group}({listed(values)})"
    text += f" outs(%o : {o}" + (f", %lse : memref<?x{hq}xf32>" if lse != "none" else "") + ")"
    attributes = [f"format = #attn.format<{kind}" + (", row_block = 16" if kind == "bsr" else "") + ">"]
    if lse == "base2":
        attributes.append("lse_base = #attn.lse_base<base2>")
    text += " {" + ", ".join(attributes) + "}\n  return\n}\n"
    batch = {"requests": [{"qo": a, "kv": b} for a, b in BATCHES[case["batch"]]], "seed": case.get("seed", 0), "split": case["split"],
             "strides": case["strides"], "magnitude": case["magnitude"], "params": params}
    if case["batch"] in PREFIXES:
        batch["levels"] = PREFIXES[case["batch"]]
    if case["scale"] != "default":
        batch["scale"] = {"given": 0.07, "negative": -0.05, "zero": 0.0}[case["scale"]]
    return text, batch


def levels_of(case):
    return {"prefixes": 2, "tree_prefixes": 3}.get(case["batch"], 1)


def legal(case, device):
    """False for combinations that the compiler refuses or that mean nothing."""
    if case["types"][0] == "f32" and device != "cpu":
        return False
    if case["format"].startswith("bsr") and (levels_of(case) > 1 or case["variant"] in ("document", "tree", "prefix") or case["batch"] in ("empty",)):
        return False
    if case["variant"] == "sigmoid" and case["lse"] != "none":
        return False
    if case["variant"] in ("rope", "all") and case["dims"][0] % 16:
        return False
    return True


def pairwise(device, seed):
    """Greedy covering array: every legal pair of values at least once."""
    rng = random.Random(seed)
    names = list(DIMENSIONS)
    todo = {((a, i), (b, j)) for a, b in itertools.combinations(names, 2)
            for i in range(len(DIMENSIONS[a])) for j in range(len(DIMENSIONS[b]))}
    draw = lambda: {name: rng.randrange(len(DIMENSIONS[name])) for name in names}
    value = lambda numbers: {name: DIMENSIONS[name][i] for name, i in numbers.items()}
    cases = []
    while todo:
        best, gain = None, 0
        seedpairs = rng.sample(sorted(todo), min(len(todo), 12))
        for pair in seedpairs:
            for _ in range(6):
                numbers = draw()
                numbers.update(dict(pair))
                if not legal(value(numbers), device):
                    continue
                covered = sum(1 for p in itertools.combinations(numbers.items(), 2) if p in todo)
                if covered > gain:
                    best, gain = numbers, covered
        if best is None:  # these pairs are never legal together
            todo -= set(seedpairs)
            continue
        todo -= set(itertools.combinations(best.items(), 2))
        cases.append(dict(value(best), seed=len(cases)))
    return cases


def randoms(device, seed, count):
    rng = random.Random(seed)
    cases = []
    while len(cases) < count:
        case = {name: rng.choice(values) for name, values in DIMENSIONS.items()}
        if legal(case, device):
            cases.append(dict(case, seed=rng.randrange(1 << 30)))
    return cases


def main():
    parser = runner.make_parser(__doc__, timeout=120)
    parser.add_argument("--set", default="pairwise", choices=["pairwise", "random"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", type=int, default=-1)
    options = parser.parse_args()
    cases = pairwise(options.device, options.seed) if options.set == "pairwise" else randoms(options.device, options.seed, options.count)

    def run(number, folder):
        return runner.execute(runner.command(options, *runner.write(folder, number, *module(cases[number]))), options.timeout)

    numbers = [number for number in range(len(cases)) if options.only in (-1, number)]
    return runner.run_all(options, numbers, run, lambda number: f"{number}: {cases[number]}")


if __name__ == "__main__":
    sys.exit(main())
