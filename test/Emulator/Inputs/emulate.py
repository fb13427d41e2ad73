"""Runs a GPU kernel on the CPU, thread by thread, and compares it with attention in double precision.

usage: emulate.py KERNELS.mlir --kernel NAME [options]
KERNELS.mlir is the output of convert-tile-to-gpu. The LLVM IR of the kernel is compiled for the host with the
intrinsics replaced (wrappers.ll, warps.cpp).
"""
import argparse
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
        sys.exit("%s failed:\n%s" % (command[0], done.stderr[:2000]))
    return done.stdout


def build(path, name, folder):
    """Shared library with `emu_entry`, the kernel's words, threads and shared bytes."""
    lowered = os.path.join(folder, "lowered.mlir")
    run("attn-opt", path, "--convert-nvvm-to-llvm", "--reconcile-unrealized-casts", "-o", lowered)
    text = open(lowered).read()
    start = text.index("gpu.module")
    text = text[: text.index("module")] + "module {" + text[text.index("\n", start):].rstrip()[:-1]
    head = text[text.index("@%s(" % name):].split("\n")[0]
    words = []
    for record in re.findall(r"\{[^{}]*\}", re.search(r"attn\.words = \[(.*?)\]", head).group(1)):
        words.append(dict(re.findall(r'(\w+) = "?([\w:]+)', record)))
    threads = int(re.search(r"attn\.threads = (\d+)", head).group(1))
    smem = int(re.search(r"attn\.smem = (\d+)", head).group(1))
    open(lowered, "w").write(text)
    ll = run("mlir-translate", "--mlir-to-llvmir", lowered)
    ll = re.sub(r" ?addrspace\([13]\)", "", ll).replace("ptx_kernel ", "")
    ll = re.sub(r"fptrunc float (%\w+) to bfloat", r"call bfloat @round_bf16(float \1)", ll)  # the host has no such instruction
    ll = re.sub(r'asm (?:sideeffect )?"mov.b32 \$0, \$1;", "=r,r"', "@asm_mov", ll)
    ll = re.sub(r'asm (?:sideeffect )?"(lg2|sin|cos|rcp).approx(?:.ftz)?.f32 \$0, \$1;", "=f,f"', r"@asm_\1", ll)
    ll = re.sub(r'asm sideeffect "[^"]*mbarrier.try_wait.parity.shared.b64[^"]*", "r,r,n"', "@asm_try_wait", ll)
    ll = re.sub(r'asm sideeffect "@\$1 mbarrier.arrive.shared.b64 _, \[\$0\];", "r,b"', "@asm_arrive", ll)
    if " asm " in ll:
        sys.exit("unknown inline assembly: " + re.search(r'asm .*', ll).group(0))
    for intrinsic in sorted(set(re.findall(r"@llvm\.(nvvm\.[\w.]+)", ll)), key=len, reverse=True):
        ll = re.sub(r"declare [^\n]*@llvm\.%s\(.*\n" % re.escape(intrinsic), "", ll)
        ll = ll.replace("@llvm." + intrinsic + "(", "@" + intrinsic.replace(".", "_") + "(")
    types = []
    for parameter in re.search(r"define void @%s\(([^)]*(?:\([^)]*\)[^)]*)*)\)" % name, ll).group(1).split(","):
        types.append("ptr" if parameter.strip().startswith("ptr") else "i64")
    entry = ["define void @emu_entry(ptr %args) {"]
    for i, kind in enumerate(types):
        entry += ["  %%p%d = getelementptr i64, ptr %%args, i64 %d" % (i, i), "  %%a%d = load %s, ptr %%p%d" % (i, kind, i)]
    entry += ["  call void @%s(%s)" % (name, ", ".join("%s %%a%d" % (k, i) for i, k in enumerate(types))), "  ret void", "}"]
    wrappers = open(os.path.join(HERE, "wrappers.ll")).read()
    source = os.path.join(folder, "kernel.ll")
    open(source, "w").write(ll + "\n" + wrappers + "\n" + "\n".join(entry) + "\n")
    library = os.path.join(folder, "kernel.so")
    run("clang-22", "-O1", "-w", "-shared", "-fPIC", "-mf16c", "-ffp-contract=off", source, os.path.join(HERE, "warps.cpp"), "-o", library, "-lstdc++", "-lm")
    return ctypes.CDLL(library), words, threads, smem


def fp8_values(kind):
    """The value of each of the 256 bytes."""
    b = np.arange(256)
    if kind == "e5m2":
        return (b.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    e, m = b >> 3 & 15, b & 7
    v = np.where(e > 0, (8 + m) * 2.0 ** (e - 10), m * 2.0**-9) * np.where(b & 128, -1, 1)
    return np.where(b & 127 == 127, np.nan, v)


def to_storage(x, kind):
    if kind in ("e4m3", "e5m2"):
        values = fp8_values(kind)
        known = np.flatnonzero(np.isfinite(values))
        known = known[np.argsort(values[known], kind="stable")]
        at = np.clip(np.searchsorted(values[known], x), 1, len(known) - 1)
        lower = x - values[known[at - 1]] < values[known[at]] - x
        return known[at - lower].astype(np.uint8)
    if kind == "f16":
        return x.astype(np.float16).view(np.uint16)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_storage(x, kind):
    if kind in ("e4m3", "e5m2"):
        return fp8_values(kind)[x]
    if kind == "f16":
        return x.view(np.float16).astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def rotated(x, positions, theta):
    half = x.shape[-1] // 2
    angle = np.outer(positions, theta ** (-np.arange(half) / half))
    lower, upper = x[..., :half], x[..., half:]
    return np.concatenate([lower * np.cos(angle) - upper * np.sin(angle), upper * np.cos(angle) + lower * np.sin(angle)], -1)


ITEM = np.dtype([("token0", "i4"), ("rows", "i4"), ("head", "i4"), ("request", "i4"), ("table", "i8"), ("kv_len", "i4"),
                 ("kpos0", "i4"), ("qpos0", "i4"), ("klo", "i4"), ("khi", "i4"), ("slot", "i4"), ("qo_len", "i4"),
                 ("row0", "i4"), ("kv_total", "i4"), ("reserved", "i4")])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--kernel", required=True)
    p.add_argument("--heads-q", type=int, default=32)
    p.add_argument("--heads-kv", type=int, default=8)
    p.add_argument("--dim", type=int, default=128)
    p.add_argument("--page", type=int, default=16, help="0: ragged")
    p.add_argument("--index", default="i32")
    p.add_argument("--type", default="bf16")
    p.add_argument("--kv-type", help="e4m3 or e5m2 (that of q, when not given)")
    p.add_argument("--rows", type=int, required=True, help="rows of the tile")
    p.add_argument("--pack", type=int, default=1)
    p.add_argument("--keys", type=int, required=True)
    p.add_argument("--chunk", type=int, default=0, help="keys of a piece: results go to the partial buffers")
    p.add_argument("--merge", help="with --chunk: this kernel folds the pieces, and its results are compared")
    p.add_argument("--base2", action="store_true", help="partial lse in base 2")
    p.add_argument("--requests", default="1x1", help="qo_len x kv_len, comma separated")
    p.add_argument("--one-head", action="store_true", help="only the first (KV) head")
    p.add_argument("--rope", type=float, default=0, help="q and k rotate, first half of the head against the second; values at odd positions are halved")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    kv_type = a.kv_type or a.type
    rng = np.random.default_rng(a.seed)
    requests = [tuple(map(int, r.split("x"))) for r in a.requests.split(",")]
    tokens = sum(q for q, _ in requests)
    scale = 0.7 / np.sqrt(a.dim)

    # Inputs; what nobody owns is NaN.
    q = to_storage(rng.standard_normal((tokens, a.heads_q, a.dim)), a.type)
    ks, vs = [], []
    for _, length in requests:
        ks.append(to_storage(rng.standard_normal((length, a.heads_kv, a.dim)), kv_type))
        vs.append(to_storage(rng.standard_normal((length, a.heads_kv, a.dim)), kv_type))
    nan, kv_nan = 0x7FFF, 0x7F if a.kv_type else 0x7FFF
    kv_bits = np.uint8 if a.kv_type else np.uint16
    if a.page:
        counts = [-(-length // a.page) for _, length in requests]
        order = rng.permutation(sum(counts) + 3)
        k = np.full((sum(counts) + 3, a.page, a.heads_kv, a.dim), kv_nan, kv_bits)
        v = k.copy()
        table, first = np.array(order[: sum(counts)], np.int64 if a.index == "i64" else np.int32), []
        at = 0
        for (kk, vv, count) in zip(ks, vs, counts):
            first.append(at)
            for i in range(count):
                n = min(a.page, len(kk) - i * a.page)
                k[table[at + i], :n] = kk[i * a.page: i * a.page + n]
                v[table[at + i], :n] = vv[i * a.page: i * a.page + n]
            at += count
        table = np.append(table, 1 << 30).astype(table.dtype)  # past the end: must not be looked up
    else:
        gap, first, rows = np.full((5, a.heads_kv, a.dim), kv_nan, kv_bits), [], [np.full((2, a.heads_kv, a.dim), kv_nan, kv_bits)]
        vrows = list(rows)
        at = 2
        for kk, vv in zip(ks, vs):
            first.append(at)
            rows += [kk, gap]
            vrows += [vv, gap]
            at += len(kk) + 5
        k, v, table = np.concatenate(rows), np.concatenate(vrows), np.zeros(1, np.int32)

    # Items.
    items, slots, where = [], 0, []
    tile_tokens = a.rows // a.pack
    token = 0
    for r, (qo, length) in enumerate(requests):
        for head in range(0, a.heads_q, a.pack):
            if a.one_head and head:
                break
            for row0 in range(0, qo, tile_tokens):
                n = min(tile_tokens, qo - row0)
                for lo in range(0, max(length, 1), a.chunk or max(length, 1)):
                    hi = min(length, lo + a.chunk) if a.chunk else length
                    slot = slots if a.chunk else -1
                    items.append((token + row0, n * a.pack, head, r, first[r], length, 0, row0 + length - qo, lo, hi, slot, qo, row0, length, 0))
                    where.append((slot, token + row0, n, head, r, lo, hi, row0 + length - qo))
                    if a.chunk:
                        slots += n * a.pack
        token += qo
    items = np.array(items, ITEM)
    ctas = min(2, len(items))
    bounds = np.array([len(items) * i // ctas for i in range(ctas + 1)], np.int32)
    o = np.full((tokens, a.heads_q, a.dim), nan, np.uint16)
    lse = np.full((tokens, a.heads_q), np.nan, np.float32)
    part_o, part_lse = np.full((slots + 4, a.dim), np.nan, np.float32), np.full(slots + 4, np.nan, np.float32)
    info = np.zeros((tokens, 8), np.int32)  # AttnTokenInfo
    info[:, :5] = [(t + length - qo, r, t, qo, length) for r, (qo, length) in enumerate(requests) for t in range(qo)]
    buffers = {"tokens": info, "q": q, "k": k, "v": v, "o": o, "lse": lse, "pages": table, "part_o": part_o, "part_lse": part_lse, "items": items,
               "cta_indptr": bounds}

    def launch(kernel, ctas):
        with tempfile.TemporaryDirectory() as folder:
            library, words, threads, smem = build(a.file, kernel, folder)
            args = (ctypes.c_uint64 * len(words))()
            for i, word in enumerate(words):
                if word["kind"] == "scale":
                    args[i] = int(np.float32(scale).view(np.uint32))
                elif word["kind"] == "pointer":
                    args[i] = buffers[word["operand"]].ctypes.data
                elif word["kind"] == "stride":
                    b = buffers[word["operand"]]
                    args[i] = b.strides[int(word["dim"])] // b.itemsize
                elif word["kind"] == "size":
                    args[i] = buffers[word["operand"]].shape[int(word["dim"])]
                else:
                    sys.exit("unknown word %r" % word)
            library.emulate.restype = ctypes.c_char_p
            message = library.emulate(library.emu_entry, args, ctas, threads, smem, a.seed)
            if message:
                sys.exit("FAILED: " + message.decode())

    launch(a.kernel, ctas)
    if a.merge:
        # One item a token and KV head: its pieces in key order.
        merges, pieces, spread = [], [], {}
        for slot, token0, n, head, r, lo, hi, qpos0 in where:
            for t in range(n):
                spread.setdefault((token0 + t, head, r, qpos0 + t), []).append(slot + t * a.pack)
        for (t, head, r, qpos), bases in spread.items():
            merges.append((t, a.pack, head, r, len(pieces), 0, 0, qpos, 0, len(bases), -1, requests[r][0], 0, requests[r][1], 0))
            # `base` counts from head 0 of the token
            pieces += [(base - head // a.pack * 7, 7, a.pack, 0) for base in bases]
        buffers["items"], buffers["pieces"] = np.array(merges, ITEM), np.array(pieces, np.int32)
        buffers["cta_indptr"] = np.array([0, len(merges) // 2, len(merges)], np.int32)
        launch(a.merge, 2)
        where = [(-1, t, 1, head, r, 0, requests[r][1], qpos) for t, head, r, qpos in spread]

    # Reference.
    group = a.heads_q // a.heads_kv
    worst, worst_lse, done = 0.0, 0.0, np.zeros((tokens, a.heads_q), bool)
    ln2 = np.log(2.0)
    for slot, token0, n, head, r, lo, hi, qpos0 in where:
        for h in range(head, head + a.pack):
            kk, vv = from_storage(ks[r][lo:hi, h // group], kv_type), from_storage(vs[r][lo:hi, h // group], kv_type)
            if a.rope:
                kk = from_storage(to_storage(rotated(kk, np.arange(lo, hi), a.rope), a.type), a.type)
                vv = vv * np.where(np.arange(lo, hi) % 2, 0.5, 1.0)[:, None]
            for t in range(n):
                qq = from_storage(q[token0 + t, h], a.type)
                if a.rope:
                    qq = from_storage(to_storage(rotated(qq[None], [qpos0 + t], a.rope), a.type), a.type)[0]
                logits = kk @ qq * scale
                seen = lo + np.arange(hi - lo) <= qpos0 + t
                if seen.any():
                    m = logits[seen].max()
                    w = np.where(seen, np.exp(logits - m), 0)
                    want, want_lse = (w @ vv) / w.sum(), m + np.log(w.sum())
                else:
                    want, want_lse = np.zeros(a.dim), -np.inf
                if slot < 0:
                    got, got_lse = from_storage(o[token0 + t, h], a.type), float(lse[token0 + t, h])
                    done[token0 + t, h] = True
                else:
                    row = slot + t * a.pack + h - head
                    got, got_lse = part_o[row].astype(np.float64), float(part_lse[row]) * (ln2 if a.base2 else 1)
                error = np.abs(got - want).max()
                if not error < 0.03:
                    sys.exit("FAILED: request %d token %d head %d: error %g" % (r, token0 + t, h, error))
                worst = max(worst, error)
                if want_lse == -np.inf:
                    if got_lse != -np.inf:
                        sys.exit("FAILED: request %d token %d head %d: lse %g of an empty row" % (r, token0 + t, h, got_lse))
                else:
                    if not abs(got_lse - want_lse) < 2e-3:
                        sys.exit("FAILED: request %d token %d head %d: lse %g, expected %g" % (r, token0 + t, h, got_lse, want_lse))
                    worst_lse = max(worst_lse, abs(got_lse - want_lse))
    if not (from_storage(o[~done], a.type) != from_storage(o[~done], a.type)).all() or not np.isnan(part_o[slots:]).all():
        sys.exit("FAILED: rows written that no item owns")
    print("OK: %d items, error %.2g, lse %.2g" % (len(items), worst, worst_lse))


if __name__ == "__main__":
    main()
