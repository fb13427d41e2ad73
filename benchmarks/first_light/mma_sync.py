"""Configs of the mma.sync kernels, timed beside torch's flash attention and a read kernel in one process.

mma_sync.py build OUT --compiler build/bin/attn-compile     bundles, one for each config (no GPU needed)
mma_sync.py run OUT [--rounds N]                            checks, then times (needs torch and triton; attn_mlir on the path)

Prefill: 16 384 tokens in all, 16 query and 16 KV heads, D 128, bf16, causal, ragged. Burst: 8 calls after 0.15 s idle, the
last 4 timed. Decode: 32 query and 8 KV heads, D 128, bf16, pages of 16 in random order; a CUDA graph goes round at least
300 MB of distinct K and V. Rounds visit all candidates in turn; median (range).
"""
import argparse
import concurrent.futures
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from statement import CAUSAL, statement

# rows, keys, stages, warps, q_in_registers
PREFILL = [(128, 64, 2, 4, 0), (128, 32, 3, 4, 0), (128, 64, 2, 8, 0), (128, 64, 2, 8, 1), (128, 128, 2, 8, 0), (64, 64, 2, 4, 0), (64, 64, 2, 2, 0),
           (64, 32, 2, 2, 0)]
# keys, groups (and warps), stages
DECODE = [(128, 4, 3), (128, 4, 2), (64, 4, 3), (64, 4, 2), (128, 8, 2)]


def candidates(which):
    for rows, keys, stages, warps, registers in PREFILL if which == "prefill" else ():
        config = f"rows = {rows}, keys = {keys}, stages = {stages}, warps = {warps}"
        yield f"{rows}x{keys} s{stages} w{warps}{' q' if registers else ''}", config + (", q_in_registers = true" if registers else "")
    for keys, groups, stages in DECODE if which == "decode" else ():
        config = f"rows = 16, keys = {keys}, stages = {stages}, warps = {groups}, groups = {groups}, pack = 4, row_table = true"
        yield f"{keys} g{groups} s{stages}", config


def build(args):
    os.makedirs(args.out, exist_ok=True)

    def one(job):
        which, name, config = job
        heads, kv, page = (16, 16, 0) if which == "prefill" else (32, 8, 16)
        text = statement("causal", CAUSAL, heads, kv, 128, 128, page, attributes=f', target = #attn.target<"{args.target}">, configs = [#attn.config<{config}>]')
        path = os.path.join(args.out, f"{which}-{name.replace(' ', '-')}")
        open(path + ".mlir", "w").write(text)
        done = subprocess.run([args.compiler, path + ".mlir", f"--target={args.target}", "-o", path + ".bundle"], capture_output=True, text=True)
        return f"{which} {name}: {done.stderr.strip()[:200] or 'ok'}"

    jobs = [(which, *candidate) for which in ("prefill", "decode") for candidate in candidates(which)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        print("\n".join(pool.map(one, jobs)), flush=True)


def run(args):
    import numpy as np
    import torch
    import triton
    import triton.language as tl
    import attn_mlir as am

    @triton.jit
    def read_kernel(X, Y, ITERS: tl.constexpr, BLOCK: tl.constexpr):
        base = tl.program_id(0).to(tl.int64) * (BLOCK * ITERS)
        acc = tl.zeros([BLOCK], tl.float32)
        for i in range(ITERS):
            acc += tl.load(X + base + i * BLOCK + tl.arange(0, BLOCK))
        tl.store(Y + tl.program_id(0), tl.sum(acc))

    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    load = lambda which, name: am.Executable(os.path.join(args.out, f"{which}-{name.replace(' ', '-')}.bundle"), "cuda")

    def graph(calls):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for call in calls:
                call(stream.cuda_stream)
            stream.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, stream=stream):
                for call in calls:
                    call(stream.cuda_stream)
        return g

    def burst(g):  # one call a graph
        time.sleep(0.1)
        for _ in range(4):
            g.replay()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(4):
            g.replay()
        b.record()
        b.synchronize()
        return a.elapsed_time(b) / 4 * 1e3

    def replay(g, calls, target_us=4000):
        g.replay()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        n = 3
        for _ in range(n):
            g.replay()
        b.record()
        b.synchronize()
        return a.elapsed_time(b) * 1e3 / (n * calls)

    def report(title, times, base, what):
        print(f"== {title}")
        for name, t in times.items():
            m = statistics.median(t)
            ratio = [b / x for b, x in zip(times[base], t)]
            print(f"{name:18} {m:9.2f} us ({min(t):.2f}-{max(t):.2f})  {base} / it {statistics.median(ratio):.3f} ({min(ratio):.3f}-{max(ratio):.3f})  {what(m)}", flush=True)

    # Prefill
    for batch, length in [(2, 8192), (16, 1024)] if "prefill" in args.what else []:
        tokens, heads, dim = batch * length, 16, 128
        q, k, v = (torch.randn(tokens, heads, dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        split = lambda x: x.view(batch, length, heads, dim).transpose(1, 2)
        indptr = np.arange(batch + 1, dtype=np.int32) * length
        graphs, keep = {}, []
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def flash(_):
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)

        graphs["flash"] = graph([flash])
        want = flash(0).transpose(1, 2).reshape(tokens, heads, dim).float()
        for name, _ in candidates("prefill"):
            try:
                plan = load("prefill", name).plan(qo_indptr=indptr, kv_indptr=indptr)
                o, lse = torch.full_like(q, float("nan")), torch.full((tokens, heads), float("nan"), device="cuda")
                call = lambda s, plan=plan, o=o, lse=lse: plan.run(q=q, k=k, v=v, o=o, lse=lse, stream=s)
                call(torch.cuda.current_stream().cuda_stream)
                torch.cuda.synchronize()
                error = ((o.float() - want).norm() / want.norm()).item()
                if not error < 1e-2:
                    print("WRONG", name, error)
                    continue
                graphs[name] = graph([call])
                keep.append((plan, o, lse))
            except Exception as e:  # a candidate that does not build or load
                print("skipped", name, str(e)[:150])
        times = {name: [] for name in graphs}
        for _ in range(args.rounds):
            for name, g in graphs.items():
                times[name].append(burst(g))
        flops = 4 * batch * heads * length * length * dim / 2
        report(f"prefill {batch} x {length} causal", times, "flash", lambda us: f"{flops / us / 1e6:.0f} TFLOP/s")

    # Decode
    shapes = [(64, 8192), (16, 1024), (1, 8192), (16, 8192), (64, 1024)] if "decode" in args.what else []
    for batch, length in shapes:
        heads, group, dim, page = 8, 4, 128, 16
        pages = batch * length // page
        bytes_ = batch * length * heads * dim * 4
        copies = max(1, -(-300_000_000 // bytes_))
        caches = [tuple(torch.randn(pages, page, heads, dim, device="cuda", dtype=torch.bfloat16) for _ in range(2)) for _ in range(copies)]
        q = torch.randn(batch, heads * group, dim, device="cuda", dtype=torch.bfloat16)
        table = torch.randperm(pages, device="cuda").to(torch.int32)
        qo, kv = np.arange(batch + 1, dtype=np.int32), np.arange(batch + 1, dtype=np.int32) * (length // page)
        last = np.full(batch, page, np.int32)
        k, v = (x[table[:length // page].long()].view(length, heads, dim).float() for x in caches[0])
        s = torch.einsum("hgd,lhd->hgl", q[0].view(heads, group, dim).float(), k) / dim**0.5
        want = torch.einsum("hgl,lhd->hgd", s.softmax(-1), v).reshape(heads * group, dim)
        graphs, keep, kept = {}, [], {}
        flat = torch.randn(bytes_ // 4 * copies, device="cuda")
        out = torch.empty(1 << 20, device="cuda")
        best = None
        for block, iters, warps in [(4096, 4, 4), (8192, 4, 8), (4096, 16, 4), (8192, 1, 8), (8192, 16, 8), (2048, 8, 4)]:
            n = bytes_ // 4 // (block * iters)
            calls = [lambda s, i=i: read_kernel[(n,)](flat[i * (bytes_ // 4):], out, ITERS=iters, BLOCK=block, num_warps=warps) for i in range(copies)]
            g = graph(calls)
            t = replay(g, copies) * bytes_ / (n * block * iters * 4)
            if best is None or t < best[0]:
                best = (t, g)
        graphs["read"] = best[1]
        for name, _ in candidates("decode"):
            try:
                plan = load("decode", name).plan(qo_indptr=qo, kv_indptr=kv, kv_last=last, pages=table)
                o, lse = torch.full_like(q, float("nan")), torch.full((batch, heads * group), float("nan"), device="cuda")
                calls = [lambda s, plan=plan, o=o, lse=lse, c=c: plan.run(q=q, k=c[0], v=c[1], o=o, lse=lse, stream=s) for c in caches]
                calls[0](torch.cuda.current_stream().cuda_stream)
                torch.cuda.synchronize()
                error = ((o[0].float() - want).norm() / want.norm()).item()
                if not error < 1e-2 or not torch.isfinite(o).all():
                    print("WRONG", name, error)
                    continue
                graphs[name] = graph(calls)
                keep.append((plan, o, lse))
                d = plan.describe()
                kept[name] = {x: d[x] for x in d if isinstance(d[x], (int, float, str))}
            except Exception as e:
                print("skipped", name, str(e)[:150])
        times = {name: [] for name in graphs}
        for _ in range(args.rounds):
            for name, g in graphs.items():
                times[name].append(replay(g, copies))
        report(f"decode {batch} x {length}", times, "read", lambda us: f"{bytes_ / us / 1e6:.2f} TB/s")
        if args.verbose:
            print(kept)
        del caches, flat
        torch.cuda.empty_cache()


p = argparse.ArgumentParser()
p.add_argument("step", choices=["build", "run"])
p.add_argument("out")
p.add_argument("--compiler", default="attn-compile")
p.add_argument("--target", default="sm_90a")
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--what", default="prefill,decode")
p.add_argument("--verbose", action="store_true")
args = p.parse_args()
build(args) if args.step == "build" else run(args)
