"""The runtime on a GPU, from torch: values, streams, a captured graph replayed after lengths changed, several devices.

Skipped where there is no GPU. Everything that needs no device is in test_runtime.py.
"""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import attn_mlir

HEADS, KV_HEADS, DIM, PAGE = 8, 2, 128, 16
Q = f"memref<?x{HEADS}x{DIM}xbf16>"
KV = f"memref<?x{PAGE}x{KV_HEADS}x{DIM}xbf16>"
IR = f"""
attn.variant @causal() {{
  attn.hook mask (%at: !attn.coord) {{
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }}
}}
func.func @attend(%q: {Q}, %qo: memref<?xi32>, %k: {KV}, %v: {KV}, %indptr: memref<?xi32>, %pages: memref<?xi32>,
                  %last: memref<?xi32>, %o: {Q}, %lse: memref<?x{HEADS}xf32>) {{
  attn.attention @causal() q(%q, %qo : {Q}, memref<?xi32>) kv(%k, %v : {KV}, {KV}) indptr(%indptr : memref<?xi32>)
    indices(%pages : memref<?xi32>) last(%last : memref<?xi32>) outs(%o : {Q}, %lse : memref<?x{HEADS}xf32>)
    {{format = #attn.format<paged>}}
  return
}}
"""


def target():
    major, minor = torch.cuda.get_device_capability()
    return {90: "sm_90a", 100: "sm_100a"}.get(10 * major + minor, f"sm_{major}{minor}")


@pytest.fixture(scope="module")
def bundle():
    return attn_mlir.compile(IR, target=target())


class Batch:
    """Random requests over random pages, on one device."""

    def __init__(self, requests, device="cuda", seed=0, pages=512, tokens=None):
        self.device = device
        generator = torch.Generator(device="cpu").manual_seed(seed)
        make = lambda *shape: torch.randn(*shape, generator=generator).to(torch.bfloat16).to(device)
        self.k, self.v = make(pages, PAGE, KV_HEADS, DIM), make(pages, PAGE, KV_HEADS, DIM)
        tokens = tokens or sum(q for q, _ in requests)
        self.q, self.o = make(tokens, HEADS, DIM), torch.full((tokens, HEADS, DIM), float("nan"), dtype=torch.bfloat16, device=device)
        self.lse = torch.full((tokens, HEADS), float("nan"), device=device)
        self.pages = torch.zeros(pages, dtype=torch.int32, device=device)
        self.generator = generator
        self.set(requests)

    def set(self, requests):
        self.requests = requests
        counts = [-(-kv // PAGE) for _, kv in requests]
        self.qo_indptr = np.cumsum([0] + [q for q, _ in requests]).astype(np.int32)
        self.kv_indptr = np.cumsum([0] + counts).astype(np.int32)
        self.kv_last = np.array([kv - (count - 1) * PAGE if count else 0 for (_, kv), count in zip(requests, counts)], np.int32)
        table = torch.randperm(len(self.pages), generator=self.generator)[: sum(counts)].to(torch.int32)
        self.pages[: len(table)].copy_(table)

    def plan_arguments(self):
        return dict(qo_indptr=self.qo_indptr, kv_indptr=self.kv_indptr, kv_last=self.kv_last, pages=self.pages)

    def operands(self):
        return dict(q=self.q, k=self.k, v=self.v, o=self.o, lse=self.lse)

    def check(self):
        for r, (rows, length) in enumerate(self.requests):
            at, ids = self.qo_indptr[r], self.pages[self.kv_indptr[r]: self.kv_indptr[r + 1]].long()
            flat = lambda x: x[ids].reshape(-1, KV_HEADS, DIM)[:length].double().repeat_interleave(HEADS // KV_HEADS, 1)
            logits = torch.einsum("qhd,khd->hqk", self.q[at: at + rows].double(), flat(self.k)) / DIM ** 0.5
            key, row = torch.arange(length, device=self.device), torch.arange(rows, device=self.device)
            logits.masked_fill_(key > row[:, None] + length - rows, float("-inf"))
            want = torch.einsum("hqk,khd->qhd", logits.softmax(-1), flat(self.v))
            torch.testing.assert_close(self.o[at: at + rows].double(), want, atol=2e-2, rtol=2e-2)
            torch.testing.assert_close(self.lse[at: at + rows].double(), logits.logsumexp(-1).T, atol=2e-3, rtol=2e-3)


MIXED = [(1, 700), (1, 33), (40, 200), (5, 5), (130, 300), (1, 1)]


def test_values(bundle):
    batch = Batch(MIXED)
    plan = attn_mlir.Executable(bundle).plan(**batch.plan_arguments())
    plan.run(**batch.operands())
    torch.cuda.synchronize()
    batch.check()


def test_stream_of_torch(bundle):
    stream = torch.cuda.Stream()
    batch = Batch(MIXED, seed=1)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        plan = attn_mlir.Executable(bundle).plan(stream=stream, **batch.plan_arguments())
        plan.run(stream=stream, **batch.operands())
    stream.synchronize()
    batch.check()


def test_workspace_of_torch(bundle):
    batch = Batch([(1, 4000), (1, 20)], seed=2)
    executable = attn_mlir.Executable(bundle)
    plan = executable.plan()
    need = plan.workspace_size(requests=2, tokens=2, kv_len=4000, levels=1)
    plan.set_workspace(torch.empty(need, dtype=torch.uint8, device="cuda"))
    plan.plan(**batch.plan_arguments()).run(**batch.operands())
    torch.cuda.synchronize()
    batch.check()


def test_graph_replayed_after_lengths_changed(bundle):
    """One captured run serves later batches: the plan is rewritten in place, the launches stay."""
    maxima = dict(requests=8, tokens=200, kv_len=2000, levels=1)
    batch = Batch(MIXED, seed=3, tokens=200)
    plan = attn_mlir.Executable(bundle).plan(maxima=maxima, fixed_grid=True)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    plan.plan(stream=stream, **batch.plan_arguments()).run(stream=stream, **batch.operands())  # loads the code
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        plan.run(stream=stream, **batch.operands())
    for requests in ([(1, 1999)] * 2, [(3, 1000), (150, 160), (1, 0), (0, 5)], [(1, 64)] * 8, MIXED):
        batch.set(requests)
        batch.o.fill_(float("nan"))
        torch.cuda.synchronize()
        plan.plan(stream=stream, **batch.plan_arguments())
        with torch.cuda.stream(stream):
            graph.replay()
        stream.synchronize()
        rows = sum(q for q, _ in requests)
        assert not batch.o[:rows].isnan().any() and batch.o[rows:].isnan().all()
        batch.requests = [(q, kv) for q, kv in requests]
        if all(kv for _, kv in requests):
            batch.check()


def test_threads_with_their_own_plans(bundle):
    executable = attn_mlir.Executable(bundle)
    batches = [Batch([(1, 100 * (i + 1)), (9, 50)], seed=10 + i) for i in range(4)]
    torch.cuda.synchronize()
    failures = []

    def work(batch):
        try:
            stream = torch.cuda.Stream()
            plan = executable.plan(stream=stream, **batch.plan_arguments())
            for _ in range(20):
                plan.run(stream=stream, **batch.operands())
            stream.synchronize()
        except Exception as error:  # noqa: BLE001 (the main thread reports it)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for batch in batches:
        batch.check()


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_second_device(bundle):
    batch = Batch(MIXED, device="cuda:1", seed=5)
    plan = attn_mlir.Executable(bundle, "cuda:1").plan(**batch.plan_arguments())  # while device 0 is current
    plan.run(**batch.operands())
    torch.cuda.synchronize(1)
    batch.check()


def test_refusals(bundle):
    batch = Batch(MIXED)
    executable = attn_mlir.Executable(bundle)
    plan = executable.plan(**batch.plan_arguments())
    with pytest.raises(attn_mlir.RuntimeFailure, match="expected element type bf16, got f32"):
        plan.run(**dict(batch.operands(), q=batch.q.float()))
    with pytest.raises(TypeError, match="is on cpu, but the executable runs on cuda"):
        plan.run(**dict(batch.operands(), q=batch.q.cpu()))
    with pytest.raises(attn_mlir.RuntimeFailure, match="does not run on device"):
        attn_mlir.Executable(bundle, "cpu")
