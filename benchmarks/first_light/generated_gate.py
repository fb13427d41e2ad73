#!/usr/bin/env python3
"""Checks what generate.py compiled against float64 on any lengths, and times the class of 128 rows beside the hand-written kernels
of build.py, interleaved, in one process.
  generated_gate.py GENERATED [--hand DIR] [--sizes 16x16x1024,...] [--rounds N] [--sustained N] [--json F]
Every launch runs under a watchdog. Ratios are hand-written over generated time: below 1 the generated kernel is slower."""
import argparse, json, os, struct
import torch
from gate import CTAS, D, Ours, add_options, arguments, load, race, schedule, start, wait


class Generated:
    def __init__(s, name, m, folder):
        s.name, s.m, s.causal = name, m, m["causal"]
        s.fn = load(os.path.join(folder, m["cubin"]), name, m["smem"])

    def tensors(s, q, k, v, o, lse, recs, ptr, pages, tokens=None):
        t = dict(q=q, k=k, v=v, o=o, lse=lse, cta_indptr=torch.tensor(ptr, dtype=torch.int32, device="cuda"),
                 items=torch.frombuffer(bytearray(b"".join(recs)), dtype=torch.uint8).cuda(),
                 part_o=torch.empty(1, s.m["dv"], device="cuda"), part_lse=torch.empty(1, device="cuda"))
        if pages is not None:
            t["pages"] = pages
        t["tokens"] = tokens if tokens is not None else torch.zeros(1, 8, dtype=torch.int32, device="cuda")
        return t

    def paginate(s, x, starts, lens, fill=0.0):
        """Rows of requests into shuffled pages: (pages, table, first entry of each request)."""
        P = s.m["page"]
        counts = [-(-n // P) for n in lens]
        perm = torch.randperm(sum(counts) + 2, generator=torch.Generator().manual_seed(1))[: sum(counts)]
        out = torch.full((sum(counts) + 2, P, *x.shape[1:]), fill, device="cuda", dtype=x.dtype)
        at, first = 0, []
        for st, n, c in zip(starts, lens, counts):
            first.append(at)
            pad = torch.full((c * P, *x.shape[1:]), fill, device="cuda", dtype=x.dtype)
            pad[:n] = x[st : st + n]
            out[perm[at : at + c].cuda()] = pad.view(c, P, *x.shape[1:])
            at += c
        return out, perm.to(torch.int32).cuda(), first

    def prep(s, q, k, v, o, lens):
        H = q.shape[1]
        sec = max(1, int(32 * 2**20 // (max(lens) * D * 4))) if s.causal else 1
        starts = [sum(lens[:i]) for i in range(len(lens))]
        pages, table = None, starts
        if s.m["page"]:
            k, pages, table = s.paginate(k, starts, lens)
            v, _, _ = s.paginate(v, starts, lens)
        recs, ptr = [], [0]
        for items in schedule(lens, H, s.causal, sec):
            for r, qt, h in items:
                n = lens[r]
                recs.append(struct.pack("<4iq10i", starts[r] + 128 * qt, 128, h, r, table[r], n, 0, 128 * qt, 0, n, -1, n, 128 * qt, n, 0))
            ptr.append(len(recs))
        lse = torch.empty(q.shape[:2], device="cuda")
        return arguments(s.m, s.fn, s.tensors(q, k, v, o, lse, recs, ptr, pages))

    def check(s, requests):
        """requests: (query rows, keys); what stands behind a request's keys is NaN."""
        m, gap = s.m, 3
        H, kv, rows, pack = m["heads"], m["kv"], m["rows"], m["pack"]
        G, per, d, dv = H // kv, rows // pack, m["d"], m["dv"]
        tok, kt = sum(a for a, _ in requests), sum(b + gap for _, b in requests)
        q = torch.randn(tok, H, d, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.full((kt, kv, n), float("nan"), device="cuda", dtype=torch.bfloat16) for n in (d, dv))
        o, lse = torch.full((tok + 1, H, dv), float("nan"), device="cuda", dtype=torch.bfloat16), torch.full((tok + 1, H), float("nan"), device="cuda")
        ro, rl = torch.zeros(tok, H, dv, device="cuda", dtype=torch.float64), torch.zeros(tok, H, device="cuda", dtype=torch.float64)
        tokens, starts, at = torch.zeros(tok, 8, dtype=torch.int32), [], 0
        for _, b in requests:
            starts.append(at)
            at += b + gap
        tq = 0
        for r, (n, b) in enumerate(requests):
            for x in (k, v):
                x[starts[r] : starts[r] + b] = torch.randn(b, kv, x.shape[2], device="cuda", dtype=torch.bfloat16)
            kk, vv = (x[starts[r] : starts[r] + b].repeat_interleave(G, 1).transpose(0, 1).double() for x in (k, v))
            z = q[tq : tq + n].transpose(0, 1).double() @ kk.transpose(-1, -2) / d**0.5
            if s.causal:
                z = z.masked_fill(torch.arange(b, device="cuda")[None] > torch.arange(n, device="cuda")[:, None] + b - n, float("-inf"))
            rl[tq : tq + n] = torch.logsumexp(z, -1).T
            ro[tq : tq + n] = (torch.nan_to_num(z.softmax(-1)) @ vv).transpose(0, 1)
            i = torch.arange(n, dtype=torch.int32)
            tokens[tq : tq + n, :5] = torch.stack([i + b - n, torch.full_like(i, r), i, torch.full_like(i, n), torch.full_like(i, b)], 1)
            tq += n
        pages, table = None, starts
        if m["page"]:
            lens = [b for _, b in requests]
            k, pages, table = s.paginate(k, starts, lens, float("nan"))
            v, _, _ = s.paginate(v, starts, lens, float("nan"))
        recs, tq = [], 0
        for r, (n, b) in enumerate(requests):
            for h in range(0, H, pack):
                for a in range(0, n, per):
                    c = min(per, n - a)
                    recs.append(struct.pack("<4iq10i", tq + a, c * pack, h, r, table[r], b, 0, a + b - n, 0, b, -1, n, a, b, 0))
            tq += n
        each = -(-len(recs) // CTAS)
        ptr = [min(i * each, len(recs)) for i in range(CTAS + 1)]
        arguments(m, s.fn, s.tensors(q, k, v, o, lse, recs, ptr, pages, tokens.cuda()))()
        wait(s.name)
        spill = bool(torch.isfinite(o[tok:].float()).any() or torch.isfinite(lse[tok:]).any())
        e = float((o[:tok].double() - ro).norm() / ro.norm())
        f = torch.isfinite(rl)
        le = float((lse[:tok].double() - rl)[f].abs().max()) if torch.equal(f, torch.isfinite(lse[:tok])) else float("nan")
        ok = e < 4e-3 and le < 1e-3 and not spill
        print(f"check {s.name:34s} {requests} o {e:.2e} lse {le:.1e}{' WROTE PAST THE END' if spill else ''}", "OK" if ok else "BAD", flush=True)
        return ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("generated"); p.add_argument("--hand")
    add_options(p, "16x16x1024,8x16x2048,4x16x4096,1x16x16384")
    a = p.parse_args()
    start()
    built = [Generated(n, m, a.generated) for n, m in json.load(open(f"{a.generated}/generated.json")).items()]
    bad = False
    for kn in built:
        for requests in ([(128, 128)], [(300, 300), (1, 777), (129, 1000), (200, 50), (17, 0)], [(1, 1), (127, 127), (2, 65), (1000, 2500)]):
            bad |= not kn.check(requests)
    hand = []
    if a.hand:
        hand = [Ours(n, m, a.hand) for n, m in json.load(open(f"{a.hand}/kernels.json")).items() if not m["any_length"]]
    ks = hand + [k for k in built if k.m["rows"] == 128 and k.m["heads"] == k.m["kv"] and k.m["d"] == k.m["dv"] == D]
    race(a, ks, repeats=2, width=34)
    return bad


if __name__ == "__main__":
    raise SystemExit(main())
