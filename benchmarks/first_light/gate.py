"""What the gates share: launching a cubin with its manifest's words and maps, float64 as the truth, and a race of kernels.

Every launch runs under a watchdog: a kernel that hangs ends the process."""
import ctypes, heapq, json, math, os, statistics, struct, time
import torch
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


def start(versions=""):
    torch.cuda.init(); torch.zeros(1, device="cuda"); torch.manual_seed(0)
    print(torch.cuda.get_device_name(), "torch", torch.__version__, *versions.split(), flush=True)


def add_options(p, sizes):
    p.add_argument("--sizes", default=sizes)
    p.add_argument("--rounds", type=int, default=7); p.add_argument("--sustained", type=int, default=5)
    p.add_argument("--json")


def race(a, ks, base_of=lambda order: order[0], repeats=3, width=16, rivals=None, slow=()):
    """Times kernels on each of a.sizes, round by round in a rotating order; prints a line for each and writes a.json.

    base_of: what the ratios are over, from the names in order. rivals(q, k, v, B, causal): launches of other libraries, by
    name; those of `slow` run in the first two rounds only."""
    rows = []
    for B, H, S in (tuple(map(int, x.split("x"))) for x in a.sizes.split(",") if x):
        q, k, v = rnd(B * S, H)
        for causal in (0, 1):
            flops = 4 * B * H * S * S * D / (2 if causal else 1)
            fns, note, first = {}, {}, None
            for kn in ks:
                if kn.causal != causal:
                    continue
                o = run(kn, q, k, v, [S] * B)
                same = all(torch.equal(run(kn, q, k, v, [S] * B), o) for _ in range(repeats))
                first = o if first is None else first
                note[kn.name] = f"{float((o.float() - first.float()).norm() / first.float().norm()):.1e} {'det' if same else 'NONDET'}"
                fns[kn.name] = kn.prep(q, k, v, torch.empty_like(q), [S] * B)
            if rivals:
                fns.update(rivals(q, k, v, B, causal))
            if not fns:
                continue
            gs = {n: graph(f) for n, f in fns.items()}
            order, rb, rs = list(fns), {n: [] for n in fns}, {n: [] for n in fns}

            def rotated(r):
                o2 = order if r % 2 == 0 else order[::-1]
                return [n for n in o2[r // 2 % len(o2) :] + o2[: r // 2 % len(o2)] if n not in slow or r < 2]

            for r in range(a.rounds):
                for n in rotated(r):
                    rb[n].append(burst(gs[n]))
            for r in range(a.sustained):
                for n in rotated(r):
                    rs[n].append(sustained(gs[n], statistics.median(rb[n])))
            base = base_of(order)
            tf = lambda ts: tuple(flops / t / 1e9 for t in (statistics.median(ts), max(ts), min(ts)))
            for n in fns:
                line = f"{B}x{H}x{S} {'causal' if causal else 'full':6s} {n:{width}s}"
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
