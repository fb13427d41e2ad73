"""Runs a kernel whose role gathers rows from pages on emulated warps, and compares shared memory with what should stand there.

usage: gather.py KERNEL.mlir --kernel NAME --keys N --loads N --dim N --page N [options]
The kernel has `loads` stages of `keys` rows at the start of shared memory, fills each once, and takes head 1 of 2.
"""
import argparse
import ctypes
import mmap
import sys
import tempfile

import numpy as np

import emulate


def main():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--kernel", required=True)
    p.add_argument("--keys", type=int, required=True)
    p.add_argument("--loads", type=int, required=True)
    p.add_argument("--dim", type=int, required=True)
    p.add_argument("--page", type=int, required=True)
    p.add_argument("--rows", type=int, required=True, help="rows that exist; the others shall be zero")
    p.add_argument("--bytes", type=int, default=2, help="of an element")
    p.add_argument("--stride", type=int, default=0, help="bytes from page to page, where they shall lie apart")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    rng = np.random.default_rng(a.seed)
    pages, row = -(-a.rows // a.page), a.dim * a.bytes
    dense = a.page * 2 * row
    stride = a.stride or dense
    numbers = rng.permutation(pages)
    table = np.append(numbers, 1 << 30).astype(np.int32)  # past the end: must not be looked up
    pool = mmap.mmap(-1, stride * pages + 64, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
    memory = np.frombuffer(pool, np.uint8)
    start = memory.ctypes.data
    content = rng.integers(0, 256, (pages, a.page, 2, row), np.uint8)
    for number in range(pages):
        memory[number * stride:number * stride + dense] = content[number].reshape(-1)

    panels = -(-row // 128)
    expected = np.zeros((a.loads, panels, a.keys, 8, 16), np.uint8)
    for i in range(min(a.rows, a.loads * a.keys)):
        padded = np.zeros(panels * 128, np.uint8)
        padded[:row] = content[numbers[i // a.page], i % a.page, 1]
        for panel in range(panels):
            for chunk in range(8):
                at = panel * 128 + chunk * 16
                expected[i // a.keys, panel, i % a.keys, chunk ^ i % a.keys % 8] = padded[at:at + 16]

    with tempfile.TemporaryDirectory() as folder:
        library, words, threads, smem = emulate.build(a.file, a.kernel, folder)
    known = {"rows": a.rows, "pages": table.ctypes.data, "k": start}
    strides = [stride // a.bytes, 2 * a.dim, a.dim]
    values = [strides[int(w["dim"])] if w["kind"] == "stride" else known[w.get("operand", w.get("name"))] for w in words]
    library.emulate.restype = ctypes.c_char_p
    for seed in range(2):
        failure = library.emulate(library.emu_entry, (ctypes.c_uint64 * len(values))(*values), 1, threads, smem, seed)
        if failure:
            sys.exit(failure.decode())
        shared = np.frombuffer((ctypes.c_ubyte * (256 * 1024)).in_dll(library, "attn_shared"), np.uint8)
        bytes_ = panels * a.keys * 128
        apart = -(-bytes_ // 1024) * 1024
        for load in range(a.loads):
            wrong = np.flatnonzero(shared[load * apart:load * apart + bytes_] != expected[load].reshape(-1))
            if len(wrong):
                sys.exit(f"stage {load}: {len(wrong)} bytes differ, first at {wrong[0]}")
    print("right")


main()
