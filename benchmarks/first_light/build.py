#!/usr/bin/env python3
"""Builds the prefill kernels of test/Kernels and writes OUT/*.cubin and OUT/kernels.json for prefill_gate.py.
build.py ATTN_OPT OUT [LLVM_BIN]      (needs ptxas on PATH; no GPU)"""
import json, os, re, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ["prefill-stream-s", "prefill-tile-s"]
PIPELINE = "builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu)"


def attribute(text):
    """An MLIR array of dictionaries as Python: `{a = 1 : i64, b = "x"}` is nearly JSON."""
    return json.loads(re.sub(r"(\w+) = ", r'"\1": ', text.replace(" : i64", "")))


def balanced(text, start):
    depth = 0
    for i in range(start, len(text)):
        depth += text[i] in "[{"
        depth -= text[i] in "]}"
        if depth == 0:
            return text[start : i + 1]


def build(opt, out, llvm, name, kernels):
    text = subprocess.run([opt, f"{HERE}/../../test/Kernels/{name}.mlir", f"--pass-pipeline={PIPELINE}"], check=True, capture_output=True, text=True).stdout
    for m in re.finditer(r"llvm\.func @(\w+)\(.*?attributes (\{)", text):
        a = text[m.start(2) : text.index("\n", m.start())]
        kernels[m.group(1)] = dict(
            words=attribute(balanced(a, a.index("attn.words = ") + 13)),
            maps=attribute(balanced(a, a.index("attn.maps = ") + 12)),
            smem=int(re.search(r"attn\.smem = (\d+)", a).group(1)),
            threads=int(re.search(r"attn\.threads = (\d+)", a).group(1)),
            causal=int("full" not in m.group(1)), any_length=int("tile" in name), cubin=f"{name}.cubin")
    # The gpu.module's body as a module of its own, for the command-line tools.
    start = text.index("\n", text.index("gpu.module @attn_kernels"))
    text = (text[: text.index("module {")] + 'module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {' +
            text[start : text.index("\n  }\n", start)] + "\n}\n")
    base = f"{out}/{name}"
    pipe = (f"{llvm}/mlir-opt -convert-nvvm-to-llvm | {llvm}/mlir-translate --mlir-to-llvmir | "
            f"{llvm}/llc -O3 -mcpu=sm_90a -mattr=+ptx86 -o {base}.ptx && ptxas -arch=sm_90a -v {base}.ptx -o {base}.cubin")
    r = subprocess.run(pipe, shell=True, input=text, text=True, capture_output=True)
    print(r.stderr)
    r.check_returncode()


def main():
    opt, out = sys.argv[1:3]
    llvm = sys.argv[3] if len(sys.argv) > 3 else "/usr/lib/llvm-22/bin"
    os.makedirs(out, exist_ok=True)
    kernels = {}
    for name in SOURCES:
        build(opt, out, llvm, name, kernels)
    json.dump(kernels, open(f"{out}/kernels.json", "w"), indent=1)


main()
