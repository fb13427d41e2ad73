"""Runs merges and appends as attn-to-gpu-binary launches them, on the CPU, and compares with numpy.

usage: launches.py PROGRAM.mlir. The host code goes through gpu-to-llvm; the kernels' LLVM IR is compiled for the host with its few
intrinsics replaced (launches.c).
"""
import ctypes
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s failed:\n%s" % (" ".join(command), done.stderr[:2000]))
    return done.stdout


def build(program, folder):
    at = lambda name: os.path.join(folder, name)
    run("attn-opt", program, "--attn-to-gpu-binary=chip=sm_80 format=ptx", "-o", at("binary.mlir"))
    run("attn-opt", at("binary.mlir"), "--convert-scf-to-cf", "--expand-strided-metadata", "--gpu-to-llvm", "--finalize-memref-to-llvm",
        "--convert-arith-to-llvm", "--convert-cf-to-llvm", "--convert-func-to-llvm", "--reconcile-unrealized-casts", "-o", at("host.mlir"))
    run("mlir-translate", "--mlir-to-llvmir", at("host.mlir"), "-o", at("host.ll"))
    run("attn-opt", program, "--convert-attn-to-loops=target=gpu", "--gpu-kernel-outlining", "-o", at("outlined.mlir"))
    text = run("attn-opt", at("outlined.mlir"), "--pass-pipeline=builtin.module(gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm,"
               "reconcile-unrealized-casts))")
    sources, finds = [at("host.ll"), os.path.join(HERE, "launches.c")], []
    for i, module in enumerate(re.findall(r"^  gpu\.module [^\n]*\n(.*?)^  }$", text, re.M | re.S)):
        with open(at("kernel%d.mlir" % i), "w") as file:
            file.write("module {\n%s}\n" % module)
        ll = run("mlir-translate", "--mlir-to-llvmir", at("kernel%d.mlir" % i)).replace("ptx_kernel ", "")
        for intrinsic in sorted(set(re.findall(r"@llvm\.(nvvm\.[\w.]+)\(", ll)), key=len, reverse=True):
            ll = ll.replace("@llvm.%s(" % intrinsic, "@%s(" % intrinsic.replace(".f32", "").replace(".", "_"))
        name, parameters = re.search(r"define void @(\w+)\(([^)]*)\)", ll).groups()
        types = [parameter.split()[0] for parameter in parameters.split(",")]
        entry = ["define void @emu_%s(ptr %%params) {" % name]
        for j, kind in enumerate(types):
            entry += ["  %%w%d = getelementptr ptr, ptr %%params, i64 %d" % (j, j), "  %%p%d = load ptr, ptr %%w%d" % (j, j),
                      "  %%a%d = load %s, ptr %%p%d" % (j, kind, j)]
        entry += ["  call void @%s(%s)" % (name, ", ".join("%s %%a%d" % (kind, j) for j, kind in enumerate(types))), "  ret void", "}"]
        with open(at("kernel%d.ll" % i), "w") as file:
            file.write(ll + "\n".join(entry) + "\n")
        sources.append(at("kernel%d.ll" % i))
        finds.append(name)
    with open(at("find.c"), "w") as file:
        file.write("#include <string.h>\n" + "".join("void emu_%s(void **);\n" % name for name in finds) +
                   "void *emu_find(const char *name) {\n" +
                   "".join('  if (!strcmp(name, "%s"))\n    return emu_%s;\n' % (name, name) for name in finds) + "  return 0;\n}\n")
    run("clang-22", "-O1", "-w", "-shared", "-fPIC", "-mf16c", "-ffp-contract=off", *sources, at("find.c"), "-o", at("program.so"), "-lm")
    return ctypes.CDLL(at("program.so"))


def descriptor(array):
    """A memref as gpu-to-llvm's host functions take it: allocated and aligned pointer, offset, sizes, strides."""
    pointer = ctypes.c_void_p(array.ctypes.data)
    strides = [stride // array.itemsize for stride in array.strides]
    return [pointer, pointer, *(ctypes.c_int64(n) for n in (0, *array.shape, *strides))]


def call(function, *arrays):
    function(*(value for array in arrays for value in descriptor(array)))


def check_merge(library, tokens, seed):
    rng = np.random.default_rng(seed)
    heads, dim = 3, 200  # the head dim is no multiple of the block
    wide = rng.standard_normal((tokens, heads, 2 * dim)).astype(np.float32)
    a, b = rng.standard_normal((tokens, heads, dim)).astype(np.float32), wide[..., dim:]
    la, lb = (8 * rng.standard_normal((tokens, heads))).astype(np.float32), (8 * rng.standard_normal((tokens, heads))).astype(np.float32)
    la[::2, 0] = -np.inf
    a[::2, 0] = np.nan  # what an empty state holds does not matter
    lb[::4, 0] = -np.inf
    o, lse = np.full((tokens, heads, dim), 7, np.float16), np.full((tokens, heads), 7, np.float32)
    call(library.merge, a, b, la, lb, o, lse)
    with np.errstate(all="ignore"):
        top = np.maximum(la, lb).astype(np.float64)
        shift = np.where(np.isinf(top), 0, top)
        wa, wb = np.exp(la - shift), np.exp(lb - shift)
        total = np.where(wa + wb == 0, 1, wa + wb)
        want = np.where(wa == 0, 0, wa / total)[..., None] * np.nan_to_num(a) + (wb / total)[..., None] * b
        want_lse = shift + np.log(wa + wb)
    np.testing.assert_allclose(o.astype(np.float64), want, atol=2e-3, rtol=2e-3)
    np.testing.assert_allclose(lse, want_lse, atol=1e-5, rtol=1e-6)


def check_append(library, requests, seed):
    """requests: (new tokens, keys with them)."""
    rng = np.random.default_rng(seed)
    page, heads, dk, dv = 5, 2, 40, 24
    new = [n for n, _ in requests]
    counts = [-(-keys // page) for _, keys in requests]
    indptr, kv_indptr = np.cumsum([0] + new).astype(np.int32), np.cumsum([0] + counts).astype(np.int64)
    pages = rng.permutation(sum(counts) + 2)[:sum(counts)].astype(np.int64)
    last = np.array([(keys - 1) % page + 1 if keys else 3 for _, keys in requests], np.int64)
    kn = rng.standard_normal((sum(new), heads, dk)).astype(np.float32)
    vn = rng.standard_normal((sum(new), heads, dv)).astype(np.float32)
    k = np.zeros((sum(counts) + 2, page, heads, dk), np.float32)
    v = np.zeros((sum(counts) + 2, page, heads, dv), np.float32)
    want_k, want_v = k.copy(), v.copy()
    for r, (n, keys) in enumerate(requests):
        for i in range(n):
            position = keys - n + i
            slot = pages[kv_indptr[r] + position // page], position % page
            want_k[slot], want_v[slot] = kn[indptr[r] + i], vn[indptr[r] + i]
    call(library.append, kn, vn, indptr, k, v, kv_indptr, pages, last)
    np.testing.assert_array_equal(k, want_k)
    np.testing.assert_array_equal(v, want_v)


with tempfile.TemporaryDirectory() as folder:
    library = build(sys.argv[1], folder)
    for seed, tokens in enumerate((1, 0, 9)):
        check_merge(library, tokens, seed)
    check_append(library, [(1, 1), (0, 0), (40, 43), (0, 9), (1, 26), (7, 7)], 5)
    check_append(library, [], 6)
print("merge and append agree")
