#!/usr/bin/env python3
"""Checks the stream prefill kernels against float64 and times them beside reference kernels, interleaved, in one process.

  prefill_gate.py OURS [--reference DIR] [--sizes 16x16x1024,...] [--rounds N] [--sustained N] [--cudnn]

OURS: what build.py wrote. --reference: a folder of cubins of the hand-driven generator with its manifest.json (symbol "fa",
tensor maps q k v o over (B, S, H, D), counter or list, then seq, q tiles, k tiles, tiles, group, heads, scale).
Sizes are batch x heads x length. Every launch runs under a watchdog: a kernel that hangs ends the process."""
import argparse, ctypes, heapq, json, math, os, statistics, struct, time
import torch
import torch.nn.functional as F
from cuda.bindings import driver as cu

D, CTAS = 128, 132


def ck(r):
    if r[0] != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(r[0]))
    return r[1] if len(r) == 2 else r[1:]


def encode(pointer, dims, strides, box):
    u64, u32 = cu.cuuint64_t, cu.cuuint32_t
    return ck(cu.cuTensorMapEncodeTiled(
        cu.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, len(dims), pointer, [u64(x) for x in dims], [u64(x) for x in strides],
        [u32(x) for x in box], [u32(1)] * len(dims), cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        cu.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B, cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))


def launcher(fn, grid, threads, smem, maps, vals, tys, order, keep):
    """order: 'maps first' or 'words first'"""
    m = [(ctypes.c_char * 128).from_buffer_copy(bytes(ctypes.string_at(int(x.getPtr()), 128))) for x in maps]
    w = [ty(x) for ty, x in zip(tys, vals)]
    objs = m + w if order == "maps first" else w + m
    arr = (ctypes.c_void_p * len(objs))(*[ctypes.addressof(x) for x in objs])

    def go(keep=(objs, keep)):
        ck(cu.cuLaunchKernel(fn, grid, 1, 1, threads, 1, 1, smem, torch.cuda.current_stream().cuda_stream, ctypes.addressof(arr), 0))

    return go


def load(path, symbol, smem):
    mod = ck(cu.cuModuleLoadData(open(path, "rb").read()))
    fn = ck(cu.cuModuleGetFunction(mod, symbol.encode()))
    ck(cu.cuFuncSetAttribute(fn, cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem))
    return fn


def schedule(lens, heads, causal, section, n=CTAS):
    """Longest first, to whoever is free first, in sections of heads whose K and V fit the L2: (request, q tile, head) per CTA."""
    heap, out = [(0.0, i) for i in range(n)], [[] for _ in range(n)]
    pairs = [(r, h) for r in range(len(lens)) for h in range(heads)]
    for p0 in range(0, len(pairs), section):
        part = pairs[p0 : p0 + section]
        for q in range(max(lens) // 128 - 1, -1, -1):
            for r, h in part:
                if q >= lens[r] // 128:
                    continue
                t, i = heapq.heappop(heap)
                out[i].append((r, q, h))
                heapq.heappush(heap, (t + (q + 1 if causal else lens[r] // 128) + 0.6, i))
    return out


class Ours:
    def __init__(s, name, m, folder):
        s.name, s.m, s.causal = name, m, m["causal"]
        s.fn = load(os.path.join(folder, m["cubin"]), name, m["smem"])

    def prep(s, q, k, v, o, lens):
        """q, k, v, o: (tokens, heads, D); lens: multiples of 128"""
        H = q.shape[1]
        sec = max(1, int(32 * 2**20 // (max(lens) * D * 4))) if s.causal else 1
        starts = [sum(lens[:i]) for i in range(len(lens))]
        recs, ptr = [], [0]
        for items in schedule(lens, H, s.causal, sec):
            for r, qt, h in items:
                # AttnWorkItem: token0 rows head request | table | kv_len kpos0 qpos0 klo khi slot qo_len row0 kv_total reserved
                n = lens[r]
                recs.append(struct.pack("<4iq10i", starts[r] + 128 * qt, 128, h, r, starts[r], n, 0, 128 * qt, 0, n, -1, n, 128 * qt, n, 0))
            ptr.append(len(recs))
        items = torch.frombuffer(bytearray(b"".join(recs)), dtype=torch.uint8).cuda()
        indptr = torch.tensor(ptr, dtype=torch.int32, device="cuda")
        return arguments(s.m, s.fn, dict(q=q, k=k, v=v, o=o, items=items, cta_indptr=indptr))


class Reference:
    CNT = None

    def __init__(s, name, m, folder):
        s.name, s.m, s.causal = name, m, m["causal"]
        s.fn = load(f"{folder}/{name}.cubin", "fa", m["smem"])
        Reference.CNT = torch.zeros(64, dtype=torch.int32, device="cuda")

    def prep(s, q, k, v, o, lens):
        m, S, B, H = s.m, lens[0], len(lens), q.shape[1]
        assert len(set(lens)) == 1
        sh = lambda t: (t.data_ptr(), [64, S, 2, H, B], [H * D * 2, 128, D * 2, S * H * D * 2])
        maps = [encode(*sh(t), [64, rows, 2, 1, 1]) for t, rows in ((q, m["qt"]), (k, m["kvt"]), (v, m["kvt"]), (o, m["qt"]))]
        nq, nkv, hg = -(-S // m["qt"]), -(-S // m["kvt"]), 1
        sec = max(1, int(32 * 2**20 // (S * D * 4))) if s.causal else 1
        if s.causal:
            hg = max(d for d in range(1, min(sec, B * H) + 1) if B * H % d == 0)
        first, grid, keep = Reference.CNT, min(nq * B * H, CTAS), None
        if m.get("list"):
            out = schedule([S] * B, H, s.causal, sec)
            hg = max(map(len, out)) + 1
            first = keep = torch.tensor([[qt | (r * H + h) << 16 for r, qt, h in x] + [-1] * (hg - len(x)) for x in out], dtype=torch.int32, device="cuda")
            grid = CTAS
        vals = [first.data_ptr(), S, nq, nkv, nq * B * H, hg, H, 1 / math.sqrt(D) * math.log2(math.e)]
        tys = [ctypes.c_void_p] + [ctypes.c_int] * 6 + [ctypes.c_float]
        return launcher(s.fn, grid, m["nt"], m["smem"], maps, vals, tys, "maps first", (keep, q, k, v, o))


def wait(what):
    e = torch.cuda.Event()
    e.record()
    t = time.time()
    while not e.query():
        if time.time() - t > 5:
            print("HANG", what, flush=True)
            os._exit(3)
        time.sleep(0.0002)


def rnd(tokens, heads):
    return [torch.randn(tokens, heads, D, device="cuda", dtype=torch.bfloat16) for _ in range(3)]


def truth(q, k, v, lens, causal):
    outs, at = [], 0
    for n in lens:
        a, b, c = (x[at : at + n].transpose(0, 1).double() for x in (q, k, v))
        s = a @ b.transpose(-1, -2) / D**0.5
        if causal:
            s = s.masked_fill(torch.ones(n, n, dtype=torch.bool, device=s.device).triu(1), float("-inf"))
        outs.append((s.softmax(-1) @ c).transpose(0, 1))
        at += n
    return torch.cat(outs)


class AnyLength:
    """The one-item-at-a-time kernel: 32 / 8 heads, any lengths, queries at the end of their keys."""

    def __init__(s, name, m, folder):
        s.name, s.m = name, m
        s.fn = load(os.path.join(folder, m["cubin"]), name, m["smem"])

    def check(s, requests):
        """requests: (query rows, keys); what stands behind a request's keys is NaN"""
        H, G, gap = 32, 4, 3
        tok = sum(a for a, _ in requests)
        kt = sum(b + gap for _, b in requests)
        q = torch.randn(tok, H, D, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.full((kt, H // G, D), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in range(2))
        o, lse = torch.full_like(q, float("nan")), torch.full((tok, H), float("nan"), device="cuda")
        ro, rl = torch.zeros(tok, H, D, device="cuda", dtype=torch.float64), torch.zeros(tok, H, device="cuda", dtype=torch.float64)
        recs, tq, tk = [], 0, 0
        for r, (n, m) in enumerate(requests):
            for x in (k, v):
                x[tk : tk + m] = torch.randn(m, H // G, D, device="cuda", dtype=torch.bfloat16)
            for h in range(H):
                for a in range(0, n, 128):
                    recs.append(struct.pack("<4iq10i", tq + a, min(128, n - a), h, r, tk, m, 0, a + m - n, 0, m, -1, n, a, m, 0))
            kk, vv = (x[tk : tk + m].repeat_interleave(G, 1).transpose(0, 1).double() for x in (k, v))
            s_ = q[tq : tq + n].transpose(0, 1).double() @ kk.transpose(-1, -2) / D**0.5
            hidden = torch.arange(m, device="cuda")[None] > torch.arange(n, device="cuda")[:, None] + m - n
            s_ = s_.masked_fill(hidden, float("-inf"))
            rl[tq : tq + n] = torch.logsumexp(s_, -1).T
            ro[tq : tq + n] = (torch.nan_to_num(s_.softmax(-1)) @ vv).transpose(0, 1)
            tq, tk = tq + n, tk + m + gap
        each = -(-len(recs) // CTAS)
        ptr = [min(i * each, len(recs)) for i in range(CTAS + 1)]
        items = torch.frombuffer(bytearray(b"".join(recs)), dtype=torch.uint8).cuda()
        indptr = torch.tensor(ptr, dtype=torch.int32, device="cuda")
        arguments(s.m, s.fn, dict(q=q, k=k, v=v, o=o, lse=lse, items=items, cta_indptr=indptr))()
        wait(s.name)
        e = float((o.double() - ro).norm() / ro.norm())
        f = torch.isfinite(rl)
        le = float((lse.double() - rl)[f].abs().max()) if torch.equal(f, torch.isfinite(lse)) else float("nan")
        return e, le


def arguments(m, fn, ten):
    """A launch with the manifest's words and maps over named tensors."""
    vals, tys, maps = [], [], []
    for w in m["words"]:
        if w["kind"] == "scale":
            vals.append(struct.unpack("<q", struct.pack("<f4x", 1 / math.sqrt(D)))[0])
        elif w["kind"] == "pointer":
            vals.append(ten[w["operand"]].data_ptr())
        elif w["kind"] == "stride":
            vals.append(ten[w["operand"]].stride(w["dim"]))
        else:
            vals.append(ten[w["operand"]].shape[w["dim"]])
        tys.append(ctypes.c_uint64)
    for mp in m["maps"]:
        t = ten[mp["operand"]]
        ext = [d["extent"] if isinstance(d["extent"], int) else t.shape[d["extent"]["size"]] for d in mp["dims"]]
        st = [d["stride"] if isinstance(d["stride"], int) else t.stride(d["stride"]["stride"]) * 2 for d in mp["dims"][1:]]
        maps.append(encode(t.data_ptr(), ext, st, mp["box"]))
    return launcher(fn, CTAS, m["threads"], m["smem"], maps, vals, tys, "words first", list(ten.values()))


def run(kn, q, k, v, lens):
    o = torch.full_like(q, float("nan"))
    kn.prep(q, k, v, o, lens)()
    wait(kn.name)
    return o


def check(kn, ragged):
    res = []
    cases = [([128], 2), ([256], 2), ([512] * 2, 3), ([1024] * 2, 16), ([2048], 1), ([640] * 7, 11)]
    if ragged:
        cases += [([128, 1024, 256, 384], 5), ([2048, 128, 128, 896, 640], 16)]
    for lens, heads in cases:
        q, k, v = rnd(sum(lens), heads)
        o, r = run(kn, q, k, v, lens), truth(q, k, v, lens, kn.causal)
        res.append(float((o.double() - r).norm() / r.norm()))
    ok = all(x < 4e-3 for x in res)
    print(f"check {kn.name:16s}", " ".join(f"{x:.2e}" for x in res), "OK" if ok else "BAD", flush=True)
    return ok


def graph(f, calls=4):
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        f()
        f()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(calls):
            f()
    return g


def event():
    return torch.cuda.Event(enable_timing=True)


def burst(g, calls=4):
    torch.cuda.synchronize()
    time.sleep(0.15)
    a, b = event(), event()
    g.replay(); a.record(); g.replay(); b.record()
    torch.cuda.synchronize()
    return a.elapsed_time(b) / calls


def sustained(g, est, calls=4, ms=350.0):
    n = max(2, int(ms / est / calls))
    a, b = event(), event()
    for _ in range(n // 2):
        g.replay()
    a.record()
    for _ in range(n // 2):
        g.replay()
    b.record()
    torch.cuda.synchronize()
    return a.elapsed_time(b) / (n // 2) / calls


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ours"); p.add_argument("--reference"); p.add_argument("--cudnn", action="store_true")
    p.add_argument("--sizes", default="16x16x1024,4x16x4096,2x16x8192,1x16x16384")
    p.add_argument("--rounds", type=int, default=7); p.add_argument("--sustained", type=int, default=5)
    p.add_argument("--json")
    a = p.parse_args()
    torch.cuda.init(); torch.zeros(1, device="cuda"); torch.manual_seed(0)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cudnn", torch.backends.cudnn.version(), flush=True)
    built = json.load(open(f"{a.ours}/kernels.json"))
    ks = [Ours(n, m, a.ours) for n, m in built.items() if not m["any_length"]]
    for n, m in built.items():
        if m["any_length"]:
            kn = AnyLength(n, m, a.ours)
            for requests in ([(128, 128)], [(300, 300), (1, 777), (129, 1000), (200, 50), (17, 0)], [(1, 1), (127, 127), (2, 65), (1000, 2500)]):
                e, le = kn.check(requests)
                print(f"check {n:16s} {requests} o {e:.2e} lse {le:.1e}", "OK" if e < 4e-3 and le < 1e-3 else "BAD", flush=True)
    if a.reference:
        ks += [Reference(n, m, a.reference) for n, m in json.load(open(f"{a.reference}/manifest.json")).items()]
    ks = [k for k in ks if check(k, isinstance(k, Ours))]
    rows = []
    for B, H, S in (tuple(map(int, x.split("x"))) for x in a.sizes.split(",")):
        q, k, v = rnd(B * S, H)
        for causal in (0, 1):
            flops = 4 * B * H * S * S * D / (2 if causal else 1)
            fns, note, first = {}, {}, None
            for kn in ks:
                if kn.causal != causal:
                    continue
                o = run(kn, q, k, v, [S] * B)
                same = all(torch.equal(run(kn, q, k, v, [S] * B), o) for _ in range(3))
                first = o if first is None else first
                note[kn.name] = f"{float((o.float() - first.float()).norm() / first.float().norm()):.1e} {'det' if same else 'NONDET'}"
                fns[kn.name] = kn.prep(q, k, v, torch.empty_like(q), [S] * B)
            if a.cudnn:
                from torch.nn.attention import SDPBackend, sdpa_kernel
                t = [x.view(B, S, H, D).transpose(1, 2).contiguous() for x in (q, k, v)]

                def cudnn(t=t, causal=causal):
                    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                        F.scaled_dot_product_attention(*t, is_causal=bool(causal))

                fns["cudnn"] = cudnn
            gs = {n: graph(f) for n, f in fns.items()}
            order, rb, rs = list(fns), {n: [] for n in fns}, {n: [] for n in fns}

            def rotated(r):
                o2 = order if r % 2 == 0 else order[::-1]
                return [n for n in o2[r // 2 % len(o2) :] + o2[: r // 2 % len(o2)] if n != "cudnn" or r < 2]

            for r in range(a.rounds):
                for n in rotated(r):
                    rb[n].append(burst(gs[n]))
            for r in range(a.sustained):
                for n in rotated(r):
                    rs[n].append(sustained(gs[n], statistics.median(rb[n])))
            base = next((n for n in order if n in {k.name for k in ks if isinstance(k, Reference)}), order[0])
            tf = lambda ts: tuple(flops / t / 1e9 for t in (statistics.median(ts), max(ts), min(ts)))
            for n in fns:
                line = f"{B}x{H}x{S} {'causal' if causal else 'full':6s} {n:16s}"
                for what, d in (("burst", rb), ("sustained", rs)):
                    if d[n]:
                        x = tf(d[n])
                        # Ratio round by round, so that drift of the clock cancels.
                        each = sorted(y / x2 for x2, y in zip(d[n], d[base]))
                        line += f" | {what} {x[0]:6.1f} ({x[1]:.0f}-{x[2]:.0f}) x {statistics.median(each):.3f} ({each[0]:.3f}-{each[-1]:.3f})"
                print(line + " | " + note.get(n, ""), flush=True)
                rows.append(dict(B=B, H=H, S=S, causal=causal, name=n, base=base, burst=rb[n], sustained=rs[n]))
            del gs
    if a.json:
        json.dump(rows, open(a.json, "w"))


if __name__ == "__main__":
    main()
