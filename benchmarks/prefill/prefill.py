#!/usr/bin/env python3
"""Prefill beside other libraries, in one process: dense, ragged, paged and variants, burst and sustained.

  prefill.py build OUT --compiler build/bin/attn-compile [--target sm_90a]    bundles (no GPU needed)
  prefill.py run OUT [--rounds N] [--sustained N] [--only WORD,...] [--peers fa3,vllm,flashinfer,cudnn,flash,flex] [--json F]

`run` needs torch, and attn_mlir on the path; peers that are not installed are left out (fa3: the wheel fa3-fwd; vllm: its build of
FlashAttention-3, which has pages: a library named by $VLLM_FA3; flashinfer: the package, with modules built before). Random normal
bf16; a CUDA graph of four calls; burst: 8 calls after 0.15 s idle, the last 4 timed; sustained: 0.35 s back to back, the second half.
Every row is compared with float32 arithmetic on one head before it is timed. FLOPs: 2 x heads x (pairs that the mask keeps) x (Dqk + Dvo).
Ratios are peer's time over ours, round by round: above 1 ours is faster."""
import argparse, concurrent.futures, json, math, os, random, statistics, subprocess, sys, time

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(_here, ".."), os.path.join(_here, "..", "first_light")]
from statement import statement
from variants import PARAMS, VARIANTS

PREFIX_LENGTH = 2048  # keys of every request that all of its queries see, in the rows `prefix`
# Lengths of the documents that a request of `packed` holds.
DOCUMENTS = [1792, 256, 1024, 640, 1536, 384, 1152, 896, 512]

# name: query heads, KV heads, Dqk, Dvo, page (0: ragged), variant, requests (query rows, keys)
ROWS = {}


def add(title, heads, kv, d, dv, page, variant, requests, attributes="", **more):
    """more, of a bsr: row_block, and density, the part of the column blocks that a row block lists"""
    ROWS[title] = dict(heads=heads, kv=kv, d=d, dv=dv, page=page, variant=variant, requests=requests, attributes=attributes, row_block=0)
    ROWS[title].update(more)


def trace_lengths(name, tokens):
    """Prompts of a trace in order of arrival, until they have that many tokens; the last one is cut."""
    lengths = []
    for line in open(os.path.join(_here, "..", "..", "test", "Inputs", "traces", name)):
        if line.startswith("{"):
            lengths.append(json.loads(line)["input_length"])
        elif not line.startswith("TIMESTAMP") and line.strip():
            lengths.append(int(line.split(",")[1]))
        if sum(lengths) >= tokens:
            break
    return lengths[:-1] + [lengths[-1] - max(0, sum(lengths) - tokens)]


for _s in (1024, 2048, 4096, 8192, 16384):
    for _v in ("full", "causal"):
        add(f"dense-{_s // 1024}k-{_v}", 16, 16, 128, 128, 0, _v, [(_s, _s)] * (16384 // _s))
for _s in (4096, 8192):
    add(f"gqa-{_s // 1024}k-causal", 32, 8, 128, 128, 0, "causal", [(_s, _s)] * (16384 // _s))
for _h, _d, _dv in ((32, 64, 64), (16, 96, 96), (8, 256, 256), (16, 192, 128)):
    for _v in ("full", "causal"):
        add(f"d{_d}-4k-{_v}", _h, _h, _d, _dv, 0, _v, [(4096, 4096)] * 4)
for _page in (1, 2, 4, 5, 8, 12, 16, 24, 64, 128):
    add(f"page{_page}-4k-causal", 32, 8, 128, 128, _page, "causal", [(4096, 4096)] * 4)
# The other way to load than the chooser's.
_config = ', target = #attn.target<"sm_90a">, configs = [#attn.config<rows = 128, keys = 128, warps = 8, consumers = 2, q_in_registers = true, load = LOAD>]'
for _page, _load in ((12, "tma"), (8, "gather"), (16, "gather")):
    add(f"page{_page}-{_load}-4k-causal", 32, 8, 128, 128, _page, "causal", [(4096, 4096)] * 4, _config.replace("LOAD", _load))
add("page16-8k-causal", 32, 8, 128, 128, 16, "causal", [(8192, 8192)] * 2)
add("page16-append-causal", 32, 8, 128, 128, 16, "causal", [(512, 8192)] * 8)
add("skewed-causal", 32, 8, 128, 128, 0, "causal", [(8192, 8192)] + [(512 + 64 * i, 512 + 64 * i) for i in range(12)])
for _name, _file in (("conv", "azure_conv_2023.csv"), ("long", "mooncake_conversation.jsonl")):
    _lengths = trace_lengths(_file, 32768)
    add(f"trace-{_name}-causal", 32, 8, 128, 128, 0, "causal", [(n, n) for n in _lengths])
    add(f"trace-{_name}-page16-causal", 32, 8, 128, 128, 16, "causal", [(n, n) for n in _lengths])
for _block in (64, 128):
    for _density in (5, 20, 50):
        add(f"sparse{_block}-{_density}", 16, 16, 128, 128, _block, "full", [(8192, 8192)] * 2, row_block=_block, density=_density / 100)
for _v in ("softcap", "softcap-exact", "window", "alibi", "document", "packed", "prefix"):
    add(f"{_v}-8k", 16, 16, 128, 128, 0, _v, [(8192, 8192)] * 2)
# The documents of `packed` as requests of their own, without a hook but the causal one.
add("packed-ragged-causal", 16, 16, 128, 128, 0, "causal", [(n, n) for n in DOCUMENTS] * 2)


def text_of(row):
    return statement("variant", VARIANTS[row["variant"]], row["heads"], row["kv"], row["d"], row["dv"], row["page"], PARAMS.get(row["variant"], ""),
                     row["attributes"], row_block=row["row_block"])


def chosen(args):
    words = args.only.split(",") if args.only else []
    return {n: r for n, r in ROWS.items() if not words or any(w in n for w in words)}


def build(args):
    os.makedirs(args.out, exist_ok=True)
    made = {}  # rows of the same statement share a bundle

    def one(item):
        text, names = item
        path = os.path.join(args.out, names[0])
        open(path + ".mlir", "w").write(text)
        done = subprocess.run([args.compiler, path + ".mlir", f"--target={args.target}", "-o", path + ".bundle"], capture_output=True, text=True)
        return f"{' '.join(names)}: {done.stderr.strip()[:200] or 'ok'}"

    for name, row in chosen(args).items():
        made.setdefault(text_of(row), []).append(name)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        print("\n".join(pool.map(one, made.items())), flush=True)
    json.dump({n: names[0] for names in made.values() for n in names}, open(os.path.join(args.out, "bundles.json"), "w"))


def kept(row):
    """Pairs of query and key that the mask keeps, of all requests."""
    total = 0
    for r, (n, keys) in enumerate(row["requests"]):
        if row["row_block"]:
            total += sum(len(blocks) for blocks in listed(row, r)) * row["row_block"] * row["page"]
        elif row["variant"] == "full":
            total += n * keys
        elif row["variant"] == "window":
            total += sum(min(1024, keys - n + i + 1) for i in range(n))
        elif row["variant"] == "packed":
            total += sum(m * (m + 1) // 2 for m in DOCUMENTS)
        elif row["variant"] == "prefix":
            total += sum(max(PREFIX_LENGTH, keys - n + i + 1) for i in range(n))
        else:
            total += n * keys - n * (n - 1) // 2
    return total


def listed(row, request):
    """Column blocks that each row block of a request of a bsr lists: the diagonal and random ones."""
    n, keys = row["requests"][request]
    count = keys // row["page"]
    random_ = random.Random(request)
    take = max(1, round(row["density"] * count))
    out = []
    for i in range(n // row["row_block"]):
        mine = i * row["row_block"] // row["page"] % count
        out.append(sorted([mine] + random_.sample([j for j in range(count) if j != mine], take - 1)))
    return out


class Case:
    def __init__(self, row, torch):
        self.row, self.torch = row, torch
        h, kv, d, dv, page = (row[x] for x in ("heads", "kv", "d", "dv", "page"))
        make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        self.lens, self.keys = [n for n, _ in row["requests"]], [n for _, n in row["requests"]]
        self.q, self.k, self.v = make(sum(self.lens), h, d), make(sum(self.keys), kv, d), make(sum(self.keys), kv, dv)
        self.slopes = torch.exp2(-8.0 * (torch.arange(h, device="cuda") + 1) / h)
        ints = lambda n, value: torch.full((n,), value, device="cuda", dtype=torch.int32)
        # `document`: a request is one, the mask drops only what is in the future. `packed`: each request has the documents of DOCUMENTS.
        self.doc = torch.repeat_interleave(torch.arange(len(DOCUMENTS)), torch.tensor(DOCUMENTS)).to(torch.int32).cuda()
        self.params = {"alibi": {"slopes": self.slopes}, "document": {"doc": ints(max(self.keys), 7)}, "packed": {"doc": self.doc},
                       "prefix": {"prefix": ints(len(self.keys), PREFIX_LENGTH)}}
        self.o = torch.full((sum(self.lens), h, dv), float("nan"), device="cuda", dtype=torch.bfloat16)
        self.lse = torch.empty(sum(self.lens), h, device="cuda")
        if row["row_block"]:  # one cache of blocks in order; each request names its own
            self.lists = [[sum(self.keys[:r]) // page + j for j in blocks] for r in range(len(self.lens)) for blocks in listed(row, r)]
            self.table = torch.tensor(sum(self.lists, []), dtype=torch.int32, device="cuda")
            self.counts = [len(blocks) for blocks in self.lists]
            self.pk, self.pv = (x.view(-1, page, *x.shape[1:]) for x in (self.k, self.v))
        elif page:
            counts = [-(-n // page) for n in self.keys]
            self.table = torch.randperm(sum(counts), device="cuda").to(torch.int32)
            self.counts = counts
            spread = lambda x: self.paginate(x, page)
            self.pk, self.pv = spread(self.k), spread(self.v)

    def paginate(self, x, page):
        out = self.torch.zeros(sum(self.counts), page, *x.shape[1:], device="cuda", dtype=x.dtype)
        at = first = 0
        for n, count in zip(self.keys, self.counts):
            padded = self.torch.zeros(count * page, *x.shape[1:], device="cuda", dtype=x.dtype)
            padded[:n] = x[at : at + n]
            out[self.table[first : first + count].long()] = padded.view(count, page, *x.shape[1:])
            at, first = at + n, first + count
        return out

    def ours(self, am, bundle):
        import numpy as np
        page = self.row["page"]
        offsets = lambda x: np.cumsum([0] + list(x)).astype(np.int32)
        how = dict(qo_indptr=offsets(self.lens), kv_indptr=offsets(self.counts if page else self.keys))
        if self.row["row_block"]:
            how.update(kv_last=np.full(len(self.counts), page, np.int32), pages=self.table, kv_total=np.array(self.keys, np.int32))
        elif page:
            how.update(kv_last=np.array([n - (c - 1) * page for n, c in zip(self.keys, self.counts)], np.int32), pages=self.table)
        params = self.params.get(self.row["variant"])
        if params and self.row["variant"] != "alibi":  # tables that the mask reads: a plan balances by them
            how["params"] = {name: value.cpu().numpy() for name, value in params.items()}
        plan = am.Executable(bundle, "cuda").plan(**how)
        k, v = (self.pk, self.pv) if page else (self.k, self.v)
        self.plan = plan
        return lambda: plan.run(q=self.q, k=k, v=v, o=self.o, lse=self.lse, params=params, stream=self.torch.cuda.current_stream().cuda_stream)

    def check(self, out, who):
        """One head of the first and the last request against float32; "" when it is right."""
        torch, row = self.torch, self.row
        for r in {0, len(self.lens) - 1}:
            a, b = sum(self.lens[:r]), sum(self.keys[:r])
            n, keys = self.lens[r], self.keys[r]
            h = row["heads"] - 1
            q = self.q[a + n - min(n, 512) : a + n, h].float()
            k, v = (x[b : b + keys, h // (row["heads"] // row["kv"])].float() for x in (self.k, self.v))
            s = q @ k.T / math.sqrt(row["d"])
            at = torch.arange(keys - len(q), keys, device="cuda")[:, None]
            key = torch.arange(keys, device="cuda")[None]
            if row["variant"].startswith("softcap"):
                s = 50 * torch.tanh(s / 50)
            if row["variant"] == "alibi":
                s = s + self.slopes[h] * (key - at)
            if row["variant"] != "full":
                s = s.masked_fill((key > at) & (key >= (PREFIX_LENGTH if row["variant"] == "prefix" else 0)), float("-inf"))
            if row["variant"] == "window":
                s = s.masked_fill(at - key >= 1024, float("-inf"))
            if row["variant"] == "packed":
                s = s.masked_fill(self.doc[at] != self.doc[key], float("-inf"))
            if row["row_block"]:
                s = s.masked_fill(~self.blocks(r)[(at - keys + n) // row["row_block"], key // row["page"]], float("-inf"))
            want, got = s.softmax(-1) @ v, out[a + n - len(q) : a + n, h].float()
            error = ((got - want).norm() / want.norm()).item()
            if not error < 1e-2:
                return f"WRONG {who}: relative error {error:.2e} in request {r}"
        return ""

    def sparse_peers(self, names):
        """FlexAttention with a mask of blocks; all requests are of one length."""
        if "flex" not in names:
            return {}
        torch, row = self.torch, self.row
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        grid = torch.stack([self.blocks(r) for r in range(len(self.lens))])
        size = (row["row_block"], row["page"])
        mask = create_block_mask(lambda b, h, i, j: grid[b, i // size[0], j // size[1]], len(self.lens), None, self.lens[0], self.keys[0],
                                 device="cuda", BLOCK_SIZE=size)
        q, k, v = (x.view(len(self.lens), -1, *x.shape[1:]).transpose(1, 2) for x in (self.q, self.k, self.v))
        flex = torch.compile(flex_attention, dynamic=False)
        tiles = {"BLOCK_M": 64, "BLOCK_N": 64} if min(size) == 64 else None  # its own choice must divide the blocks
        return {"flex": lambda: flex(q, k, v, block_mask=mask, kernel_options=tiles)}

    def packed_peers(self, names):
        """FlashAttention-3 with a sequence for each document; FlexAttention with the mask."""
        torch, out = self.torch, {}
        if "fa3" in names:
            try:
                import fa3_fwd_interface as fa3
                cu = torch.tensor([0, *DOCUMENTS * len(self.lens)], device="cuda").cumsum(0).to(torch.int32)
                out["fa3"] = lambda: fa3.flash_attn_varlen_func(self.q, self.k, self.v, cu, cu, max(DOCUMENTS), max(DOCUMENTS), causal=True)
            except ImportError:
                pass
        if "flex" in names:
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            doc = self.doc
            mask = create_block_mask(lambda b, h, i, j: (i >= j) & (doc[i] == doc[j]), None, None, self.lens[0], self.lens[0], device="cuda")
            q, k, v = (x.view(len(self.lens), -1, *x.shape[1:]).transpose(1, 2) for x in (self.q, self.k, self.v))
            flex = torch.compile(flex_attention, dynamic=False)
            out["flex"] = lambda: flex(q, k, v, block_mask=mask)
        return out

    def blocks(self, r):
        """Which column blocks the row blocks of request r list."""
        lists = listed(self.row, r)
        grid = self.torch.zeros(len(lists), self.keys[r] // self.row["page"], dtype=self.torch.bool)
        for i, blocks in enumerate(lists):
            grid[i, blocks] = True
        return grid.cuda()

    def rows_of(self, out):
        """(tokens, heads, Dvo) of what a peer returned: that, or with a dimension of requests, heads before or behind the length."""
        out = out[0] if isinstance(out, tuple) else out
        if out.dim() == 4 and out.shape[1] != self.lens[0]:
            out = out.transpose(1, 2)
        return out.reshape(self.o.shape)

    def peers(self, names):
        torch, row = self.torch, self.row
        causal, same = row["variant"] != "full", len({*self.lens}) == 1 and self.lens == self.keys
        equal = lambda x: x.view(len(self.lens), self.lens[0], *x.shape[1:])
        out = {}
        if row["variant"] == "packed":
            return self.packed_peers(names)
        if "fa3" in names and row["variant"] not in ("alibi", "softcap-exact", "document", "prefix"):
            try:
                import fa3_fwd_interface as fa3
                more = dict(causal=causal, window_size=(1023, 0) if row["variant"] == "window" else (-1, -1), softcap=50.0 if row["variant"] == "softcap" else 0.0)
                if same and not row["page"]:
                    out["fa3"] = lambda: fa3.flash_attn_func(equal(self.q), equal(self.k), equal(self.v), **more)
                elif not row["page"]:  # the wheel has no paged kernels
                    cu = [torch.tensor([sum(x[:i]) for i in range(len(x) + 1)], dtype=torch.int32, device="cuda") for x in (self.lens, self.keys)]
                    out["fa3"] = lambda cu=cu: fa3.flash_attn_varlen_func(self.q, self.k, self.v, *cu, max(self.lens), max(self.keys), **more)
            except ImportError:
                pass
        if row["row_block"]:
            return self.sparse_peers(names)
        cumulative = lambda x, device="cuda": torch.tensor([0, *x], device=device).cumsum(0).to(torch.int32)
        page, scale = row["page"], row["d"] ** -0.5
        if "vllm" in names and os.environ.get("VLLM_FA3") and row["variant"] in ("full", "causal", "softcap", "window"):
            torch.ops.load_library(os.environ["VLLM_FA3"])
            window, cap = ((1023, 0) if row["variant"] == "window" else (-1, -1)), 50.0 if row["variant"] == "softcap" else 0.0
            cu, used, table = cumulative(self.lens), None, None
            if page:
                table = torch.zeros(len(self.counts), max(self.counts), dtype=torch.int32, device="cuda")
                for i, n in enumerate(self.counts):
                    table[i, :n] = self.table[sum(self.counts[:i]) :][:n]
                used = torch.tensor(self.keys, dtype=torch.int32, device="cuda")
            k, v = (self.pk, self.pv) if page else (self.k, self.v)
            first = None if page else cumulative(self.keys)
            # The arguments of its operator, in order (flash_attn_interface.py of that package).
            out["vllm"] = lambda k=k, v=v: torch.ops._vllm_fa3_C.fwd(
                self.q, k, v, None, None, None, None, cu, first, None, None, used, max(self.lens), max(self.keys), table, None, None, None, None, None,
                None, None, None, scale, causal, *window, cap, True, None, 0, None, 0, None, 1, 0, None)[0]
        if "flashinfer" in names and row["variant"] in ("full", "causal", "softcap", "window"):
            try:
                import flashinfer
                space = torch.zeros(512 << 20, dtype=torch.uint8, device="cuda")
                how = dict(causal=causal, q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16, logits_soft_cap=50.0 if row["variant"] == "softcap" else 0.0,
                           window_left=1023 if row["variant"] == "window" else -1)
                if page:
                    w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(space, "NHD", backend="fa3")
                    last = torch.tensor([n - (c - 1) * page for n, c in zip(self.keys, self.counts)], dtype=torch.int32)
                    w.plan(cumulative(self.lens, "cpu"), cumulative(self.counts, "cpu"), self.table, last, row["heads"], row["kv"], row["d"], page, **how)
                    out["flashinfer"] = lambda: w.run(self.q, (self.pk, self.pv))
                else:
                    w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(space, "NHD", backend="fa3")
                    w.plan(cumulative(self.lens, "cpu"), cumulative(self.keys, "cpu"), row["heads"], row["kv"], row["d"], head_dim_vo=row["dv"], **how)
                    out["flashinfer"] = lambda: w.run(self.q, self.k, self.v)
            except (ImportError, OSError, RuntimeError, ValueError) as e:  # not here, or no module for this row
                print(f"{'':22s} flashinfer: {str(e).splitlines()[0][:100]}", flush=True)
        from torch.nn.attention import SDPBackend, sdpa_kernel
        for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
            if name in names and same and row["variant"] in ("full", "causal"):
                q, k, v = (equal(x).transpose(1, 2) for x in (self.q, self.k, self.v))

                def call(backend=backend, q=q, k=k, v=v):
                    with sdpa_kernel(backend):
                        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=row["heads"] != row["kv"])

                out[name] = call
        if "flex" in names and same and row["variant"] in ("window", "alibi", "softcap", "softcap-exact"):
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            far = 1024 if row["variant"] == "window" else 1 << 30
            mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < far), None, None, self.lens[0], self.lens[0], device="cuda")
            slopes = self.slopes
            score = {"alibi": lambda s, b, h, i, j: s + slopes[h] * (j - i), "window": None}.get(row["variant"], lambda s, b, h, i, j: 50 * torch.tanh(s / 50))
            q, k, v = (equal(x).transpose(1, 2) for x in (self.q, self.k, self.v))
            flex = torch.compile(flex_attention, dynamic=False)
            out["flex"] = lambda: flex(q, k, v, score_mod=score, block_mask=mask)
        return out


def run(args):
    import torch
    import attn_mlir as am
    from gate import burst, graph, sustained
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    bundles = json.load(open(os.path.join(args.out, "bundles.json")))
    rows = []
    for name, row in chosen(args).items():
        if name not in bundles:
            continue
        try:
            case = Case(row, torch)
            call = case.ours(am, os.path.join(args.out, bundles[name] + ".bundle"))
            call()
            torch.cuda.synchronize()
        except Exception as e:  # a bundle that was not built or does not load
            print(f"{name:22s} {str(e)[:150]}", flush=True)
            continue
        wrong = case.check(case.o, "ours")
        if wrong:
            print(f"{name:22s} {wrong}", flush=True)
            continue
        fns = {"ours": call}
        for peer, f in case.peers(args.peers.split(",")).items():
            try:
                wrong = case.check(case.rows_of(f()), peer)
                if wrong:
                    print(f"{name:22s} {wrong}", flush=True)
                else:
                    fns[peer] = f
            except Exception as e:
                print(f"{name:22s} {peer}: {str(e).splitlines()[0][:120]}", flush=True)
        gs = {n: graph(f) for n, f in fns.items()}
        rb, rs = ({n: [] for n in fns} for _ in range(2))
        for times, count, time_one in ((rb, args.rounds, burst), (rs, args.sustained, lambda g: sustained(g, est))):
            for r in range(count):
                order = list(gs)[r % len(gs) :] + list(gs)[: r % len(gs)]
                for n in order if r % 2 == 0 else order[::-1]:
                    est = statistics.median(rb[n]) if rb[n] else 1.0
                    times[n].append(time_one(gs[n]))
        flops = 2 * row["heads"] * kept(row) * (row["d"] + row["dv"])
        line = f"{name:22s}"
        for n in fns:
            tf = [flops / statistics.median(t[n]) / 1e9 if t[n] else 0 for t in (rb, rs)]
            line += f" | {n} {tf[0]:5.1f}/{tf[1]:5.1f}"
            if n != "ours":
                for t in (rb, rs):
                    each = sorted(p / o for p, o in zip(t[n], t["ours"]))
                    line += f" {statistics.median(each):.3f} ({each[0]:.3f}-{each[-1]:.3f})" if each else ""
        print(line, flush=True)
        rows.append(dict(name=name, burst=rb, sustained=rs, flops=flops))
        del gs, fns, case
        torch.cuda.empty_cache()
    if args.json:
        json.dump(rows, open(args.json, "w"))


p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("step", choices=["build", "run"])
p.add_argument("out")
p.add_argument("--compiler", default="attn-compile"); p.add_argument("--target", default="sm_90a")
p.add_argument("--rounds", type=int, default=7); p.add_argument("--sustained", type=int, default=3)
p.add_argument("--only"); p.add_argument("--peers", default="fa3,cudnn"); p.add_argument("--json")
args = p.parse_args()
build(args) if args.step == "build" else run(args)
