#!/usr/bin/env python3
"""Compiles prefill statements (ragged and pages of 16, causal and full, head dims 128 and a few others) for sm_90a and writes OUT/*.cubin and OUT/generated.json
for generated_gate.py.      generate.py BUILD OUT      (needs ptxas on PATH; no GPU)"""
import json, os, struct, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from statement import CAUSAL, statement


def main():
    build, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    kernels = {}
    for page in (0, 16):
        for causal in (1, 0):
            for heads, kv, d, dv in ((16, 16, 128, 128), (32, 8, 128, 128), (8, 2, 64, 64), (8, 4, 256, 256), (8, 8, 192, 128)):
                if (d, dv) != (128, 128) and causal == bool(page):
                    continue  # of the other head dims ragged causal and paged full are enough
                name = f"{'paged' if page else 'ragged'}_{'causal' if causal else 'full'}_{heads}_{kv}_{d}_{dv}"
                path = f"{out}/{name}"
                open(path + ".mlir", "w").write(statement(name, CAUSAL if causal else "", heads, kv, d, dv, page))
                subprocess.run([f"{build}/bin/attn-compile", path + ".mlir", "--target=sm_90a", "--emit=bundle", "-o", path + ".bundle"], check=True)
                data = open(path + ".bundle", "rb").read()
                size = struct.unpack("<Q", data[16:24])[0]
                manifest = json.loads(data[32 : 32 + size])
                first = (32 + size + 63) // 64 * 64
                blob = manifest["blobs"][0]
                open(path + ".cubin", "wb").write(data[first + blob["offset"] : first + blob["offset"] + blob["bytes"]])
                for k in manifest["kernels"]:
                    if k["rows"] >= 64:
                        kernels[k["symbol"]] = dict(words=k["words"], maps=k["maps"], smem=k["smem"], threads=k["threads"], rows=k["rows"], pack=k["pack"],
                                                    row_table=k["row_table"], causal=causal, page=page, heads=heads, kv=kv, d=d, dv=dv, cubin=name + ".cubin")
                os.remove(path + ".bundle")
    json.dump(kernels, open(f"{out}/generated.json", "w"), indent=1)


main()
