"""Assembles the kernels of a file (output of convert-tile-to-gpu) and prints what ptxas says of them.

usage: assemble.py KERNELS.mlir --chip sm_80
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

p = argparse.ArgumentParser()
p.add_argument("file")
p.add_argument("--chip", default="sm_80")
a = p.parse_args()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s failed:\n%s" % (command[0], (done.stderr + done.stdout)[:2000]))
    return done.stdout + done.stderr


features = {"sm_80": "+ptx78", "sm_86": "+ptx78", "sm_89": "+ptx81"}.get(a.chip, "+ptx86")
with tempfile.TemporaryDirectory() as folder:
    at = lambda name: os.path.join(folder, name)
    run("attn-opt", a.file, "--convert-nvvm-to-llvm", "--reconcile-unrealized-casts", "-o", at("a.mlir"))
    text = open(at("a.mlir")).read()
    start = text.index("gpu.module")
    open(at("a.mlir"), "w").write(text[: text.index("module")] + "module {" + text[text.index("\n", start):].rstrip()[:-1])
    run("mlir-translate", "--mlir-to-llvmir", at("a.mlir"), "-o", at("a.ll"))
    run("llc", "-O3", "-march=nvptx64", "-mcpu=" + a.chip, "-mattr=" + features, at("a.ll"), "-o", at("a.ptx"))
    report = run("ptxas", "-v", "-arch=" + a.chip, at("a.ptx"), "-o", at("a.cubin"))
    for line in report.splitlines():
        if re.search(r"Compiling|spill|registers|arning|C75", line):
            print(line.strip())
