#!/usr/bin/env python3
"""Statements and batches to tune with attn-tune: the classes of shapes of benchmarks/prefill, NAME.mlir and NAME.json each.

  cases.py FOLDER [--only WORD,...]    prints the names"""
import argparse, json, os, sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(_here, ".."), os.path.join(_here, "..", "prefill")]
from statement import statement
from variants import VARIANTS

# name: query heads, KV heads, Dqk, Dvo, page (0: ragged), variant
CASES = {}
for _name, _heads, _d, _dv in (("d64", 32, 64, 64), ("d96", 16, 96, 96), ("d128", 16, 128, 128), ("d192", 16, 192, 128), ("d256", 8, 256, 256)):
    for _variant in ("full", "causal"):
        CASES[f"{_name}-{_variant}"] = (_heads, _heads, _d, _dv, 0, _variant)
for _variant in ("window", "softcap", "alibi"):
    CASES[f"d128-{_variant}"] = (16, 16, 128, 128, 0, _variant)
CASES["d128-page16-causal"] = (32, 8, 128, 128, 16, "causal")
CASES["d64-page16-causal"] = (32, 8, 64, 64, 16, "causal")

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("folder")
p.add_argument("--only")
args = p.parse_args()
os.makedirs(args.folder, exist_ok=True)
for name, (heads, kv, d, dv, page, variant) in CASES.items():
    if args.only and not any(word in name for word in args.only.split(",")):
        continue
    params = "%slopes: memref<?xf32>" if variant == "alibi" else ""
    batch = {"seed": 1, "requests": [{"qo": 4096, "kv": 4096, "count": 4}]}
    if params:
        batch["params"] = {"slopes": {"generator": "alibi", "heads": heads}}
    with open(os.path.join(args.folder, name + ".mlir"), "w") as f:
        f.write(statement("variant", VARIANTS[variant], heads, kv, d, dv, page, params))
    with open(os.path.join(args.folder, name + ".json"), "w") as f:
        json.dump(batch, f)
    print(name)
