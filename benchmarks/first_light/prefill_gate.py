#!/usr/bin/env python3
"""Checks the stream prefill kernels against float64 and times them beside reference kernels, interleaved, in one process.

  prefill_gate.py OURS [--reference DIR] [--sizes 16x16x1024,...] [--rounds N] [--sustained N] [--cudnn]

OURS: what build.py wrote. --reference: a folder of cubins of the hand-driven generator with its manifest.json (symbol "fa",
tensor maps q k v o over (B, S, H, D), counter or list, then seq, q tiles, k tiles, tiles, group, heads, scale).
Sizes are batch x heads x length. Every launch runs under a watchdog: a kernel that hangs ends the process."""
import argparse, ctypes, json, math, os, struct
import torch
import torch.nn.functional as F
from gate import CTAS, D, Ours, add_options, arguments, encode, launcher, load, race, rnd, run, schedule, start, truth, wait


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


def cudnn(q, k, v, B, causal):
    """PyTorch's attention through cuDNN, on whole requests of one length."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    t = [x.view(B, -1, *x.shape[1:]).transpose(1, 2).contiguous() for x in (q, k, v)]

    def launch():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            F.scaled_dot_product_attention(*t, is_causal=bool(causal))

    return {"cudnn": launch}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("ours"); p.add_argument("--reference"); p.add_argument("--cudnn", action="store_true")
    add_options(p, "16x16x1024,4x16x4096,2x16x8192,1x16x16384")
    a = p.parse_args()
    start(f"cudnn {torch.backends.cudnn.version()}")
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
    references = {k.name for k in ks if isinstance(k, Reference)}
    race(a, ks, lambda order: next((n for n in order if n in references), order[0]), rivals=cudnn if a.cudnn else None, slow=("cudnn",))


if __name__ == "__main__":
    main()
