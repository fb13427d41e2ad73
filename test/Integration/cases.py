#!/usr/bin/env python3
"""Inputs that broke other attention libraries, by name: compiled and run by attn-run, checked against the reference.

    cases.py --tool build/bin/attn-run [--device cpu|cuda] [--target sm_80|sm_90a] [--only NAME] [--keep DIR] [--list]

docs/Cases.md says where each kind of input is tested. The last line is "N passed, N failed".
"""

import fnmatch
import pathlib
import re
import sys

import matrix
import runner

BASE = {"format": "paged16", "heads": (8, 2), "dims": (128, 128), "types": ("f16", "f16"), "variant": "causal", "split": "auto",
        "batch": "decode", "index": "i32", "strides": "nhd", "lse": "natural", "magnitude": 1.0, "scale": "default"}


def shifted(by):
    """Adds a constant to every logit."""
    return ("  attn.hook logits (%x: f32, %at: !attn.coord) {\n    %y = arith.addf %x, %by : f32\n    attn.yield %y : f32\n  }\n",
            [("by", "f32")], {"by": by})


def requests(*pairs):
    return {"requests": [dict(qo=qo, kv=kv, **({"count": count[0]} if count else {})) for qo, kv, *count in pairs]}


INFINITE = """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %q = attn.q_pos %at
    %none = arith.constant 0xFF800000 : f32
    %r = arith.remui %k, %three : index
    %dropped = arith.cmpi eq, %r, %zero : index
    %all = arith.cmpi eq, %q, %hundred : index
    %either = arith.ori %dropped, %all : i1
    %y = arith.select %either, %none, %x : f32
    attn.yield %y : f32
  }
"""


def capped(cap, more=""):
    """A soft-cap by a constant: the compiler knows how large logits are."""
    return (f"  %cap = arith.constant {cap} : f32\n" + matrix.softcap("") + matrix.hook_mask(matrix.CAUSAL) + more,
            [("sink", "memref<?xf32>")] if more else [], {"sink": {"random": [-90, 90], "shape": [8]}} if more else {})


CONSTANTS = "  %zero = arith.constant 0 : index\n  %hundred = arith.constant 100 : index\n  %three = arith.constant 3 : index\n"
VARIANTS = {
    "below_-5e4": shifted(-60000.0),
    "at_-524288": shifted(-524288.0),
    "nothing_visible": (matrix.hook_mask("    %in = arith.constant false\n"), [], {}),
    "left_window": (matrix.hook_mask("""    %d = arith.subi %q, %k : index
    %in = arith.cmpi sle, %d, %left : index
"""), [("left", "index")], {"left": 333}),
    "interior_only": ("  %lo = arith.constant 256 : index\n  %hi = arith.constant 384 : index\n" + matrix.hook_mask("""    %before = arith.cmpi slt, %k, %lo : index
    %after = arith.cmpi sge, %k, %hi : index
    %in = arith.ori %before, %after : i1
"""), [], {}),
    "unanalysed_interior": (CONSTANTS + matrix.hook_mask("""    %d = arith.subi %k, %hundred : index
    %d2 = arith.muli %d, %d : index
    %in = arith.cmpi sgt, %d2, %hundred : index
"""), [], {}),
    "per_head": (CONSTANTS + matrix.hook_mask("""    %h = attn.q_head %at
    %s = arith.addi %k, %h : index
    %r = arith.remui %s, %three : index
    %in = arith.cmpi ne, %r, %zero : index
"""), [], {}),
    "infinite": (CONSTANTS + INFINITE, [], {}),
    # q_pos is negative for the first rows when there are more queries than keys.
    "negative_positions": (CONSTANTS + matrix.hook_mask("""    %d = arith.divsi %q, %three : index
    %m = arith.remsi %q, %three : index
    %s = arith.addi %d, %m : index
    %in = arith.cmpi sge, %k, %s : index
"""), [], {}),
    "zero_divisor": (matrix.hook_mask("""    %d = arith.divsi %k, %by : index
    %r = arith.remui %k, %by : index
    %s = arith.addi %d, %r : index
    %in = arith.cmpi sle, %s, %q : index
"""), [("by", "index")], {"by": 0}),
    # A branch that reads a table in one arm only; keys from 200 on have no entry.
    "branch": ("  %most = arith.constant 200 : index\n" + """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %q = attn.q_pos %at
    %some = arith.cmpi slt, %k, %most : index
    %y = scf.if %some -> f32 {
      %b = memref.load %bias[%k] : memref<?xf32>
      %flag = memref.load %flags[%k] : memref<?xi8>
      %on = arith.trunci %flag : i8 to i1
      %z = scf.if %on -> f32 {
        %n = arith.negf %b : f32
        scf.yield %n : f32
      } else {
        scf.yield %b : f32
      }
      %s = arith.addf %x, %z : f32
      scf.yield %s : f32
    } else {
      scf.yield %x : f32
    }
    attn.yield %y : f32
  }
""" + matrix.hook_mask(matrix.CAUSAL), [("bias", "memref<?xf32>"), ("flags", "memref<?xi8>")],
               {"bias": {"random": [-2, 2], "shape": [200]}, "flags": {"values": [i * i % 3 % 2 for i in range(200)]}}),
    "capped_at_50": capped(50.0),
    "capped_at_9": capped(9.0),
    "capped_at_50_sink": capped(50.0, matrix.SINK),
    # Rows whose logits are all at the lower or all at the upper end.
    "clamped_apart": ("  %least = arith.constant -55.0 : f32\n  %most = arith.constant 55.0 : f32\n" + CONSTANTS + """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %q = attn.q_pos %at
    %r = arith.remui %q, %three : index
    %low = arith.cmpi eq, %r, %zero : index
    %far = arith.constant 1.0e6 : f32
    %down = arith.subf %x, %far : f32
    %up = arith.addf %x, %far : f32
    %moved = arith.select %low, %down, %up : f32
    %above = arith.maximumf %moved, %least : f32
    %y = arith.minimumf %above, %most : f32
    attn.yield %y : f32
  }
""" + matrix.hook_mask(matrix.CAUSAL), [], {}),
    "wide_table": ("""  attn.hook logits (%x: f32, %at: !attn.coord) {
    %q = attn.row %at
    %k = attn.kv_pos %at
    %b = memref.load %bias[%q, %k] : memref<?x?xf32>
    %y = arith.addf %x, %b : f32
    attn.yield %y : f32
  }
""", [("bias", "memref<?x?xf32>")], {"bias": {"random": [-2, 2], "shape": [40, 260]}}),
}

EMPTY_IN_THE_MIDDLE = [(1, 300), (1, 0), (1, 17)]
CASES = {
    "logits-below-5e4": ({"heads": (16, 1), "variant": "below_-5e4"}, requests((1, 64), (3, 64))),
    "score-near-524288": ({"variant": "at_-524288", "split": 64}, requests((1, 257), (1, 100))),
    "more-queries-than-keys": ({}, requests((40, 7), (129, 128), (2, 1))),
    "more-queries-than-keys-bf16-split": ({"types": ("bf16", "bf16"), "split": 64}, requests((200, 130), (9, 3))),
    "merge-two-empty-states": ({"variant": "nothing_visible", "split": 320}, requests((1, 640), (4, 640))),
    "merge-five-empty-states": ({"variant": "nothing_visible", "split": 128}, requests((1, 640), (4, 640))),
    "empty-kv-in-decode": ({}, requests(*EMPTY_IN_THE_MIDDLE)),
    "empty-kv-in-prefill": ({}, requests((64, 300), (40, 0), (70, 70))),
    "empty-kv-ragged": ({"format": "ragged"}, requests((1, 30), (5, 0), (0, 0), (0, 9), (33, 65))),
    "no-requests": ({}, {"requests": []}),
    "no-queries-at-all": ({}, requests((0, 30), (0, 0))),
    "sigmoid-split": ({"variant": "sigmoid", "split": 64}, requests((5, 700), (1, 300), (3, 65))),
    "left-window-333": ({"variant": "left_window", "split": 512}, requests((300, 4096), (1024, 1024))),
    "softcap-large-logits": ({"variant": "softcap", "magnitude": 11.0}, dict(requests((64, 200), (1, 333)), params={"cap": 50.0})),
    "softcap-constant": ({"variant": "capped_at_50", "magnitude": 11.0, "types": ("bf16", "bf16")}, requests((64, 200), (1, 333), (40, 7), (3, 0))),
    "softcap-constant-split": ({"variant": "capped_at_50", "magnitude": 11.0, "types": ("bf16", "bf16"), "split": 64}, requests((5, 200), (1, 333), (1, 0))),
    "softcap-constant-f16": ({"variant": "capped_at_50", "magnitude": 11.0}, requests((64, 200), (1, 333))),
    "softcap-constant-f16-small": ({"variant": "capped_at_9", "magnitude": 11.0}, requests((64, 200), (1, 333))),
    "softcap-constant-sink": ({"variant": "capped_at_50_sink", "magnitude": 11.0, "types": ("bf16", "bf16")}, requests((64, 200), (1, 333), (40, 7))),
    "clamped-rows-far-apart": ({"variant": "clamped_apart", "types": ("bf16", "bf16")}, requests((64, 200), (1, 333))),
    "clamped-rows-far-apart-split": ({"variant": "clamped_apart", "types": ("bf16", "bf16"), "split": 64}, requests((5, 200), (1, 333))),
    "alibi-heads-8-to-15-of-32": ({"variant": "alibi"}, dict(requests((5, 200), (1, 333)), params={
        "slopes": {"generator": "alibi", "heads": 32, "first": 8, "count": 8}})),
    "alibi-12-heads": ({"variant": "alibi", "heads": (12, 12)}, requests((5, 200), (1, 333))),
    "hnd-page-64-last-2": ({"format": "paged64", "strides": "hnd"}, requests((1, 130), (5, 66), (70, 194))),
    "decode-of-5-to-8": ({}, requests((5, 200), (6, 77), (7, 129), (8, 8))),
    "tree-mask-odd-lengths": ({"variant": "tree"}, requests((13, 131), (7, 65), (1, 3))),
    "tree-mask-almost-causal": ({"variant": "tree"}, dict(requests((70, 300), (5, 129)), params={
        "bits": {"generator": "tree_mask", "part": "bits", "kind": "causal"},
        "offsets": {"generator": "tree_mask", "part": "offsets", "kind": "causal"}})),
    "tree-mask-random": ({"variant": "tree"}, dict(requests((20, 300), (5, 129)), params={
        "bits": {"generator": "tree_mask", "part": "bits", "kind": "random", "density": 0.3},
        "offsets": {"generator": "tree_mask", "part": "offsets", "kind": "random", "density": 0.3}})),
    "mask-false-inside": ({"variant": "interior_only"}, requests((130, 700), (1, 640))),
    "mask-not-analysed": ({"variant": "unanalysed_interior"}, requests((130, 700), (1, 640))),
    "mask-per-head": ({"variant": "per_head", "heads": (10, 2)}, requests((33, 200), (1, 333))),
    "window-with-empty-tiles": ({"variant": "window"}, dict(requests((70, 900), (1, 900)), params={"left": 3})),
    "all-masked-rows": ({"variant": "nothing_visible"}, requests((65, 129), (1, 640))),
    "all-masked-rows-sink": ({"variant": "sink_window"}, dict(requests((5, 2), (1, 900)), params={
        "left": -1, "sinks": 0, "sink": {"random": [-1, 2], "shape": [8]}})),
    "minus-infinity-from-a-hook": ({"variant": "infinite"}, requests((5, 104), (1, 101), (1, 2), (70, 300))),
    "negative-positions": ({"variant": "negative_positions"}, requests((40, 7), (5, 3), (9, 300))),
    "division-by-zero-in-a-mask": ({"variant": "zero_divisor"}, requests((5, 200), (1, 77))),
    "table-of-two-dimensions": ({"variant": "wide_table"}, requests((40, 260), (1, 129))),
    "branch-in-a-hook": ({"variant": "branch"}, requests((300, 700), (130, 200), (1, 640), (64, 64))),
    "page-size-512": ({"format": "paged512"}, requests((1, 513), (5, 100), (70, 1025))),
    "page-size-1": ({"format": "paged1"}, requests((1, 513), (5, 100), (70, 130))),
    "page-size-5": ({"format": "paged5"}, requests((1, 513), (5, 100), (70, 130))),
    "batch-of-24-one-empty": ({"heads": (40, 8), "dims": (64, 64)}, {"requests": [{"qo": 5, "kv": 60 + 7 * i} for i in range(11)] +
                                                            [{"qo": 5, "kv": 0}] + [{"qo": 5, "kv": 9 + i} for i in range(12)]}),
    "16384-requests": ({"heads": (1, 1), "dims": (32, 32)}, requests((1, 2, 16384))),
    "16400-rows": ({"heads": (2, 1), "dims": (32, 32), "variant": "window"}, requests((400, 400, 41))),
    "bf16-kv-128k-split": ({"heads": (2, 1), "dims": (64, 64), "types": ("bf16", "bf16"), "split": 4096}, requests((1, 131072))),
    "bf16-kv-128k-unsplit": ({"heads": (2, 1), "dims": (64, 64), "types": ("bf16", "bf16"), "split": "none"}, requests((1, 131072))),
    "gqa-5": ({"heads": (5, 1)}, requests((1, 200), (40, 130))),
    "gqa-6": ({"heads": (12, 2)}, requests((1, 200), (40, 130))),
    "gqa-7": ({"heads": (14, 2)}, requests((1, 200), (40, 130))),
    "gqa-12": ({"heads": (24, 2)}, requests((1, 200), (40, 130))),
    "gqa-32": ({"heads": (32, 1)}, requests((1, 200), (40, 130))),
    "merge-96-heads": ({"heads": (96, 8), "split": 64}, requests((1, 300), (3, 129))),
    "head-dim-32": ({"dims": (32, 32)}, requests((1, 200), (40, 130))),
    "head-dim-56": ({"dims": (56, 56)}, requests((1, 200), (40, 130))),
    "head-dim-80": ({"dims": (80, 80)}, requests((1, 200), (40, 130))),
    "head-dim-96": ({"dims": (96, 96)}, requests((1, 200), (40, 130))),
    "head-dim-224": ({"dims": (224, 224)}, requests((1, 200), (40, 130))),
    "zero-lengths-of-at-most-1": ({"format": "ragged"}, requests((0, 0), (1, 5), (0, 3), (1, 0), (1, 1))),
    "packed-views": ({"strides": "packed"}, requests((5, 200), (40, 130), (1, 1))),
    "prime-lengths-65537": ({"heads": (2, 1), "dims": (64, 64)}, requests((2, 65537), (127, 296))),
    "split-with-an-empty-chunk": ({"variant": "window", "split": 64}, dict(requests((1, 640), (2, 65)), params={"left": 70})),
    "negative-scale": ({"scale": "negative"}, requests((5, 200), (1, 130))),
    "zero-scale": ({"scale": "zero"}, requests((5, 200), (1, 130))),
    "fp8-unowned-nan": ({"types": ("f16", "f8E4M3FN")}, dict(requests((5, 201), (1, 129)), unowned="nan")),
    "int64-tables": ({"index": "i64"}, requests((5, 201), (1, 129))),
    "base-2-lse": ({"lse": "base2", "split": 64}, requests((5, 201), (1, 129), (2, 0))),
}


def check_document(root):
    """Names in docs/Cases.md that stand for nothing, and cases that it does not name."""
    text = (root / "docs" / "Cases.md").read_text()
    tests = set()
    for path in (root / "test").rglob("*"):
        if path.suffix in (".cpp", ".py"):
            tests |= set(re.findall(r"TEST(?:_[FP])?\(\w+, (\w+)\)|def (test_\w+)", path.read_text()))
    tests = {name for pair in tests for name in pair}
    wrong, named = [], set()
    for row in re.findall(r"^\|[^|]*\|([^|]*)\|$", text, re.M)[1:]:
        for places in re.findall(r"cases/([\w*, -]+?)(?=[;(]|$)", row.strip()):
            for name in (name.strip() for name in places.split(",")):
                found = [case for case in CASES if fnmatch.fnmatch(case, name)]
                named.update(found)
                wrong += [] if found else [f"no case '{name}'"]
        for name in re.findall(r"(?:unit/\w+|python/\S+) ((?:`\w+`(?:, )?)+)", row):
            wrong += [f"no test '{test}'" for test in re.findall(r"`(\w+)`", name) if test not in tests]
        for name in re.findall(r"(?:^| )((?:Dialect|Conversion|Analysis|Examples|Fuzz|python)/[\w./*-]+)", row):
            wrong += [] if list((root / "test").glob(name)) else [f"no file '{name}'"]
    return wrong + [f"case '{case}' is not in docs/Cases.md" for case in CASES if case not in named]


def main():
    parser = runner.make_parser(__doc__, timeout=300)
    parser.add_argument("--only", default="", choices=["", *CASES])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check-document", action="store_true", help="compare the cases with docs/Cases.md")
    options = parser.parse_args()
    if options.check_document:
        wrong = check_document(pathlib.Path(__file__).resolve().parents[2])
        print("\n".join(wrong) or "docs/Cases.md is right")
        return 1 if wrong else 0
    if options.list:
        print("\n".join(CASES))
        return 0

    def run(name, folder):
        override, file = CASES[name]
        case = dict(BASE, **override)
        text, batch = matrix.module(dict(case, variant=VARIANTS.get(case["variant"], case["variant"])))
        batch.update(file)
        return runner.execute(runner.command(options, *runner.write(folder, name, text, batch)), options.timeout)

    return runner.run_all(options, [options.only] if options.only else list(CASES), run)


if __name__ == "__main__":
    sys.exit(main())
