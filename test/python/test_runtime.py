"""Plans and runs from Python on the CPU: values against numpy, every error message."""

import ctypes
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import attn_mlir
from attn_mlir import Bundle, Device, Executable, RuntimeFailure, Tensor

HEADS, HEADS_KV, DIM, PAGE = 4, 2, 16, 4

MASK = """  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
"""


def program(variant="", name=None, params=(), kv="paged", element="f32", lse=True, levels=1, heads=HEADS, scale=False):
    """IR of one attention op over f32 (or other) tensors."""
    q, row = f"memref<?x{heads}x{DIM}x{element}>", f"memref<?x{heads}xf32>"
    cache = f"memref<?x{PAGE}x{HEADS_KV}x{DIM}x{element}>" if kv == "paged" else f"memref<?x{HEADS_KV}x{DIM}x{element}>"
    table = "memref<?xi32>"
    names = [f"%t{i}" for i in range(4 * levels)]
    part = lambda k: f"({', '.join(names[k * levels:(k + 1) * levels])} : {', '.join([table] * levels)})"
    clauses = "indptr" + part(0)
    if kv == "paged":
        clauses += " indices" + part(1) + " last" + part(2)
    if levels > 1:
        clauses += " row_indptr" + part(3)
    values = f"{', '.join('%' + n for n, _ in params)} : {', '.join(t for _, t in params)}" if params else ""
    use = f"@{name}({values})" if name else ""
    arguments = [f"%q: {q}", f"%i: {table}", f"%k: {cache}", f"%v: {cache}", *(f"{n}: {table}" for n in names), f"%o: {q}", f"%l: {row}",
                 *(f"%{n}: {t}" for n, t in params), *(["%scale: f32"] if scale else [])]
    head = f"attn.variant @{name}({', '.join(f'%{n}: {t}' for n, t in params)}) {{\n{variant}}}\n" if name else ""
    return f"""{head}func.func @attend({', '.join(arguments)}) {{
  attn.attention {use} {'scale %scale ' if scale else ''}q(%q, %i : {q}, {table}) kv(%k, %v : {cache}, {cache}) {clauses}
    outs(%o : {q}{f', %l : {row}' if lse else ''}) {{format = #attn.format<{kv}>}}
  return
}}
"""


_cache = {}


def executable(*args, **options):
    """One compilation for each program."""
    ir = program(*args, **options)
    if ir not in _cache:
        _cache[ir] = Executable(attn_mlir.compile(ir))
    return _cache[ir]


def causal(**options):
    return executable(MASK, "causal", **options)


def dense(q, k, v, mask=True, scale=None):
    """o [tokens, heads, d] and lse of one request in double precision; causal, aligned at the bottom right."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group, scale = q.shape[1] // k.shape[1], q.shape[2] ** -0.5 if scale is None else scale
    o, lse = np.zeros(q.shape), np.full(q.shape[:2], -np.inf)
    for i in range(len(q)):
        keys = min(len(k), i + 1 + len(k) - len(q)) if mask else len(k)
        for h in range(q.shape[1]):
            if keys <= 0:
                continue
            s = scale * (k[:keys, h // group] @ q[i, h])
            top = s.max()
            w = np.exp(s - top)
            o[i, h], lse[i, h] = w @ v[:keys, h // group] / w.sum(), top + np.log(w.sum())
    return o, lse


class Paged:
    """Random requests in shuffled pages; what belongs to nobody is NaN."""

    def __init__(self, requests, seed=0, heads=HEADS):
        rng = np.random.default_rng(seed)
        self.requests = requests
        self.qo_indptr = np.cumsum([0] + [qo for qo, _ in requests]).astype(np.int32)
        counts = [-(-kv // PAGE) for _, kv in requests]
        self.kv_indptr = np.cumsum([0] + counts).astype(np.int32)
        self.kv_last = np.array([(kv - 1) % PAGE + 1 if kv else 1 for _, kv in requests], np.int32)
        self.pages = rng.permutation(sum(counts) + 3)[:sum(counts)].astype(np.int32)
        tokens = int(self.qo_indptr[-1])
        self.q = rng.standard_normal((tokens, heads, DIM)).astype(np.float32)
        self.k = np.full((sum(counts) + 3, PAGE, HEADS_KV, DIM), np.nan, np.float32)
        self.v = self.k.copy()
        self.o, self.lse = np.full_like(self.q, 7), np.full((tokens, heads), 7, np.float32)
        self.dense = []
        for r, (qo, kv) in enumerate(requests):
            k, v = rng.standard_normal((2, kv, HEADS_KV, DIM)).astype(np.float32)
            for j in range(kv):
                page, slot = self.pages[self.kv_indptr[r] + j // PAGE], j % PAGE
                self.k[page, slot], self.v[page, slot] = k[j], v[j]
            self.dense.append((self.q[self.qo_indptr[r]:self.qo_indptr[r + 1]], k, v))

    def batch(self):
        return dict(qo_indptr=self.qo_indptr, kv_indptr=self.kv_indptr, kv_last=self.kv_last, pages=self.pages)

    def tensors(self):
        return dict(q=self.q, k=self.k, v=self.v, o=self.o, lse=self.lse)

    def check(self, **options):
        for r, request in enumerate(self.dense):
            rows = slice(self.qo_indptr[r], self.qo_indptr[r + 1])
            o, lse = dense(*request, **options)
            np.testing.assert_allclose(self.o[rows], o, atol=1e-4, rtol=1e-4)
            np.testing.assert_allclose(self.lse[rows], lse, atol=1e-3)


MIXED = [(1, 30), (9, 9), (0, 5), (3, 0), (4, 2), (17, 33)]


@pytest.mark.parametrize("options", [{}, {"policy": "none"}, {"policy": "chunk", "chunk": 64}, {"policy": "batch-invariant"},
                                     {"ctas": 3}, {"fixed_grid": True, "maxima": {"requests": 8, "tokens": 64, "kv_len": 64}}])
def test_paged_causal(options):
    data = Paged(MIXED)
    plan = causal().plan(**options, **data.batch())
    plan.run(**data.tensors())
    data.check()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 150)), max_size=6), st.sampled_from(["auto", "none", "chunk"]), st.integers(0, 9))
def test_random_batches(requests, policy, seed):
    data = Paged(requests, seed)
    causal().plan(policy=policy, chunk=64 if policy == "chunk" else 0, **data.batch()).run(**data.tensors())
    data.check()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 200)), min_size=1, max_size=5))
def test_same_plan_same_bits(requests):
    data = Paged(requests)
    plan = causal().plan(policy="chunk", chunk=64, **data.batch())
    plan.run(**data.tensors())
    first = data.o.copy(), data.lse.copy()
    data.o[:], data.lse[:] = 0, 0
    plan.run(**data.tensors())
    assert np.array_equal(first[0], data.o) and np.array_equal(first[1], data.lse)


def test_a_plan_is_made_again_for_other_lengths():
    plan = causal().plan(maxima={"requests": 6, "tokens": 64, "kv_len": 64}, fixed_grid=True)
    for requests in (MIXED, [(1, 64)], [], [(5, 20), (1, 1)]):
        data = Paged(requests)
        plan.plan(**data.batch())
        plan.run(**data.tensors())
        data.check()


def test_ragged_levels_and_scale():
    run = causal(kv="ragged", levels=2, scale=True)
    rng = np.random.default_rng(3)
    prefix, own = 24, [(1, 9), (5, 5), (2, 7)]  # keys of their own
    k, v = rng.standard_normal((2, prefix + 21, HEADS_KV, DIM)).astype(np.float32)
    q = rng.standard_normal((8, HEADS, DIM)).astype(np.float32)
    o, lse = np.zeros_like(q), np.zeros((8, HEADS), np.float32)
    starts = np.cumsum([prefix] + [kv for _, kv in own])
    plan = run.plan(qo_indptr=[0, 1, 6, 8], levels=[dict(kv_indptr=[0, prefix], row_indptr=[0, 3]),
                                                    dict(kv_indptr=starts, row_indptr=[0, 1, 2, 3])])
    plan.run(q=q, k=k, v=v, o=o, lse=lse, scale=-0.5)
    for r, (qo, kv) in enumerate(own):
        rows = slice([0, 1, 6][r], [1, 6, 8][r])
        keys = lambda x: np.concatenate([x[:prefix], x[starts[r]:starts[r + 1]]])
        want = dense(q[rows], keys(k), keys(v), scale=-0.5)
        np.testing.assert_allclose(o[rows], want[0], atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(lse[rows], want[1], atol=1e-3)


WINDOW = """  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %b = memref.load %bias[%h] : memref<?xf32>
    %y = arith.addf %x, %b : f32
    %z = arith.divf %y, %temperature : f32
    attn.yield %z : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %c = arith.cmpi sle, %k, %q : index
    %w = arith.cmpi sle, %d, %left : index
    %in = arith.andi %c, %w : i1
    attn.yield %in : i1
  }
"""
PARAMS = [("bias", "memref<?xf32>"), ("temperature", "f32"), ("left", "index")]


def test_parameters():
    run = executable(WINDOW, "window", PARAMS)
    data = Paged([(6, 40)])
    bias = np.array([0, 3, -2, 1], np.float32)
    params = {"bias": bias, "temperature": 2.0, "left": 10}
    plan = run.plan(params=params, **data.batch())
    plan.run(params=params, **data.tensors())
    q, k, v = data.dense[0]
    for i in range(6):
        seen = slice(max(0, 34 + i - 10), 34 + i + 1)
        o, lse = dense(q[i:i + 1], k[seen], v[seen], scale=DIM ** -0.5 / 2)
        np.testing.assert_allclose(data.o[i:i + 1], o, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(data.lse[i], lse[0] + bias / 2, atol=1e-3)


def test_bf16_as_bits():
    run = causal(element="bf16")
    data = Paged([(3, 20)])
    bits = lambda x: (x.view(np.uint32) >> 16).astype(np.uint16)
    rounded = lambda x: (bits(x).astype(np.uint32) << 16).view(np.float32)
    o = np.zeros(data.o.shape, np.uint16)
    run.plan(**data.batch()).run(q=Tensor(bits(data.q), "bf16"), k=Tensor(bits(data.k), "bf16"), v=Tensor(bits(data.v), "bf16"),
                                 o=Tensor(o, "bf16"), lse=data.lse)
    want, _ = dense(*(rounded(x) for x in data.dense[0]))
    np.testing.assert_allclose((o.astype(np.uint32) << 16).view(np.float32), want, atol=1e-2, rtol=1e-2)


class OnlyDLPack:
    """What jax or a framework without data_ptr looks like."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_and_strides():
    data = Paged([(3, 20), (1, 7)])
    # Heads before tokens in memory (HND), and a head vector that starts in the middle of a wider row.
    wide = np.full((len(data.q), HEADS, 3 * DIM), np.nan, np.float32)
    wide[..., DIM:2 * DIM] = data.q
    hnd = lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    tensors = {"q": wide[..., DIM:2 * DIM], "k": hnd(data.k), "v": hnd(data.v), "o": data.o, "lse": data.lse}
    causal().plan(**data.batch()).run(**{name: OnlyDLPack(tensor) for name, tensor in tensors.items()})
    data.check()


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    data = Paged(MIXED)
    tensors = {name: torch.from_numpy(tensor) for name, tensor in data.tensors().items()}
    batch = {name: torch.from_numpy(array) for name, array in data.batch().items()}
    causal().plan(**batch).run(**tensors)
    data.check()


@pytest.mark.parametrize("graph", [False, True])
def test_torch_cuda(graph):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or attn_mlir.cuda_devices() == 0:
        pytest.skip("no CUDA device")
    major, minor = torch.cuda.get_device_capability()
    target = "sm_90a" if major == 9 else "sm_100a" if major == 10 else f"sm_{major}{minor}"
    run = Executable(attn_mlir.compile(program(MASK, "causal", element="f16"), target=target), "cuda")
    plan = run.plan(maxima={"requests": 8, "tokens": 64, "kv_len": 128}, fixed_grid=graph)
    captured = None
    place = {name: torch.zeros(shape, dtype=kind, device="cuda") for name, shape, kind in (
        ("q", (64, HEADS, DIM), torch.float16), ("o", (64, HEADS, DIM), torch.float16), ("lse", (64, HEADS), torch.float32),
        ("k", (64, PAGE, HEADS_KV, DIM), torch.float16), ("v", (64, PAGE, HEADS_KV, DIM), torch.float16))}
    pages = torch.zeros(64, dtype=torch.int32, device="cuda")
    for requests in (MIXED, [(1, 100), (5, 20)], [(1, 3)]):
        data = Paged(requests)
        tensors = data.tensors()
        for name in ("q", "k", "v"):
            place[name][:len(tensors[name])].copy_(torch.from_numpy(tensors[name]))
        pages[:len(data.pages)].copy_(torch.from_numpy(data.pages))
        plan.plan(**{**data.batch(), "pages": pages}, stream=torch.cuda.current_stream())
        torch.cuda.synchronize()
        if graph and captured is None:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                plan.run(**place, stream=torch.cuda.current_stream())
        if graph:
            captured.replay()
        else:
            plan.run(**place, stream=torch.cuda.current_stream())
        torch.cuda.synchronize()
        for r, request in enumerate(data.dense):
            rows = slice(data.qo_indptr[r], data.qo_indptr[r + 1])
            o, lse = dense(*(x.astype(np.float16).astype(np.float32) for x in request))
            np.testing.assert_allclose(place["o"].float().cpu().numpy()[rows], o, atol=2e-3, rtol=2e-3)


def test_workspace_of_the_caller():
    data = Paged([(1, 300), (1, 200)])
    plan = causal().plan(policy="chunk", chunk=64, maxima={"requests": 2, "tokens": 2, "kv_len": 300})
    size = plan.workspace_size(requests=2, tokens=2, kv_len=300)
    space = np.zeros(size + 256, np.uint8)
    start = -space.ctypes.data % 256
    plan.set_workspace(space[start:start + size])
    plan.plan(**data.batch()).run(**data.tensors())
    data.check()
    with pytest.raises(RuntimeFailure, match="workspace"):
        plan.set_workspace(space[start:start + size // 2])
        plan.plan(**data.batch())


def test_describe_and_picture():
    data = Paged([(1, 30), (4, 40)])
    plan = causal().plan(**data.batch())
    described = plan.describe()
    assert described["requests"] == 2 and described["tokens"] == 5 and described["kernels"]
    assert plan.svg().startswith("<svg") and plan.svg().rstrip().endswith("</svg>")


def test_handles_keep_what_they_need():
    data = Paged([(2, 9)])
    plan = Executable(attn_mlir.compile(program(MASK, "causal"))).plan(**data.batch())  # the executable has no other owner
    plan.executable = None
    plan.run(**data.tensors())
    data.check()


def test_bundle_from_a_file(tmp_path):
    file = tmp_path / "causal.attn"
    file.write_bytes(attn_mlir.compile(program(MASK, "causal")))
    assert Bundle(file).manifest["name"] == "causal"
    with pytest.raises(RuntimeFailure, match="cannot be opened|cannot open|No such file"):
        Bundle(tmp_path / "none.attn")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RuntimeFailure, match="bundle"):
        Bundle(file)


# Errors: the text names the argument, the rule and the remedy.


@pytest.mark.parametrize("change, error, text", [
    ({"q": np.zeros((1, HEADS, DIM), np.float16)}, RuntimeFailure, "operand 'q': expected element type f32, got f16"),
    ({"q": np.zeros((1, HEADS + 1, DIM), np.float32)}, RuntimeFailure, "operand 'q': dimension 1: expected 4, got 5"),
    ({"q": np.zeros((1, DIM), np.float32)}, RuntimeFailure, "operand 'q': expected rank 3"),
    ({"q": np.zeros((1, HEADS, DIM), np.complex64)}, TypeError, "operand 'q': element type complex64 is not supported"),
    ({"q": [1, 2]}, TypeError, "operand 'q': expected a numpy array, a torch tensor, .* got list"),
    ({"q": np.zeros((1,) * 9, np.float32)}, TypeError, "operand 'q': expected at most 8 dimensions, got 9"),
    ({"k": np.zeros((9, PAGE, HEADS_KV, DIM, 2), np.float32)[..., 0]}, RuntimeFailure, "operand 'k': expected a contiguous last dimension"),
    ({"v": np.zeros((9, PAGE + 1, HEADS_KV, DIM), np.float32)}, RuntimeFailure, "operand 'v': dimension 1: expected 4, got 5"),
    ({"o": np.zeros((0, HEADS, DIM), np.float32)}, RuntimeFailure, "operand 'o': the plan has 1 query tokens, but the tensor only 0"),
    ({"lse": None}, RuntimeFailure, "operand 'lse' is missing"),
    ({"scale": 2.0}, RuntimeFailure, "run: scale: this bundle's attention has no scale operand and uses 1 / sqrt.*got 2.0"),
    ({"params": {"cap": 1.0}}, TypeError, "unknown parameter 'cap'; the variant has none"),
])
def test_run_errors(change, error, text):
    data = Paged([(1, 5)])
    plan = causal().plan(**data.batch())
    with pytest.raises(error, match=text):
        plan.run(**{**data.tensors(), **change})
    plan.run(**data.tensors(), scale=DIM ** -0.5)  # a failed call leaves the plan as it was; the default scale is no error
    data.check()


def test_strides_that_are_no_elements():
    record = np.zeros((1, HEADS, DIM), np.dtype([("a", np.float32), ("b", np.int8)]))["a"]
    data = Paged([(1, 5)])
    with pytest.raises(TypeError, match="operand 'q': its strides are not multiples of its element size"):
        causal().plan(**data.batch()).run(**{**data.tensors(), "q": record})


class OnCuda(OnlyDLPack):
    def __dlpack_device__(self):
        return (2, 0)


def test_tensors_of_another_device():
    data = Paged([(1, 5)])
    plan = causal().plan(**data.batch())
    with pytest.raises(TypeError, match="operand 'k': is on cuda, but the executable runs on cpu; move the tensor there"):
        plan.run(**{**data.tensors(), "k": OnCuda(data.k)})


def test_parameter_errors():
    run = executable(WINDOW, "window", PARAMS)
    data = Paged([(1, 5)])
    plan = run.plan(**data.batch())
    good = {"bias": np.zeros(HEADS, np.float32), "temperature": 1.0, "left": 3}
    for change, error, text in [
        ({"left": None}, TypeError, "missing parameter 'left'; pass it in params"),
        ({"bias": np.zeros(HEADS, np.float64)}, TypeError, "operand 'bias': element type float64 is not supported"),
        ({"bias": np.zeros(HEADS, np.int32)}, RuntimeFailure, "parameter 'bias': expected element type f32, got i32"),
        ({"bias": np.zeros((HEADS, 1), np.float32)}, RuntimeFailure, "parameter 'bias': expected rank 1, got 2"),
    ]:
        params = {name: value for name, value in {**good, **change}.items() if value is not None}
        with pytest.raises(error, match=text):
            plan.run(params=params, **data.tensors())


@pytest.mark.parametrize("change, error, text", [
    ({"qo_indptr": [0, 2, 1]}, RuntimeFailure, "qo_indptr"),
    ({"qo_indptr": [0.5, 1]}, TypeError, "'qo_indptr': expected integers, got float64"),
    ({"kv_last": [PAGE + 1]}, RuntimeFailure, "request 0"),
    ({"kv_last": None}, RuntimeFailure, "kv_last"),
    ({"pages": np.zeros(2, np.int64)}, TypeError, "pages of level 0: expected a contiguous int32 array of rank 1"),
    ({"pages": None}, RuntimeFailure, "pages"),
    ({"kv_indptr": [0]}, RuntimeFailure, "kv_indptr"),
])
def test_plan_errors(change, error, text):
    data = Paged([(1, 5)])
    with pytest.raises(error, match=text):
        causal().plan(**{**data.batch(), **change})


def test_option_errors():
    run = causal()
    with pytest.raises(ValueError, match="policy 'fast': expected one of auto, none, chunk, batch-invariant"):
        run.plan(policy="fast")
    with pytest.raises(TypeError, match="unknown maximum 'batch'; expected levels, requests, tokens or kv_len"):
        run.plan(maxima={"batch": 3})
    with pytest.raises(ValueError, match="device 'tpu': expected \"cpu\", \"cuda\" or \"cuda:N\""):
        Device("tpu")
    with pytest.raises(ValueError, match="device 'cuda:x'"):
        Device("cuda:x")
    with pytest.raises(ValueError, match="unknown element type 'f64'; expected one of f32, bf16"):
        Tensor(np.zeros(3), "f64")
    with pytest.raises(RuntimeFailure, match="call plan first"):
        run.plan().run(**Paged([(1, 5)]).tensors())
    with pytest.raises(RuntimeFailure, match="call plan first"):
        run.plan().describe()
    with pytest.raises(RuntimeFailure, match="maxim"):
        run.plan(maxima={"requests": 1, "tokens": 4, "kv_len": 16}, **Paged([(1, 5), (1, 5)]).batch())


def test_no_gpu_is_an_error_with_a_reason():
    if attn_mlir.cuda_devices():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeFailure, match="libcuda|CUDA"):
        Device("cuda")


def test_library_not_found(tmp_path, monkeypatch):
    from attn_mlir import _library
    monkeypatch.setenv("ATTN_LIB_DIR", str(tmp_path))
    with pytest.raises(ImportError, match="libNone.so not found in .*; build the project .* or set ATTN_LIB_DIR"):
        _library.load("None")


def test_structs_are_as_large_as_in_c(tmp_path):
    compiler = shutil.which("clang-22") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    from attn_mlir import _compiler, _runtime
    names = {"AttnRt" + n.lstrip("_"): getattr(_runtime, n) for n in ("_Maxima", "_Indices", "_Level", "_PlanParam", "_Batch", "_Tensor",
                                                                      "_Param", "_Operands")}
    names |= {"AttnRtPlanOptions": _runtime._Options, "AttnCompileOptions": _compiler._Options}
    source = tmp_path / "sizes.c"
    source.write_text('#include "attn-c/Compiler.h"\n#include "attn-c/Runtime.h"\n#include <stdio.h>\nint main(void) {\n' +
                      "".join(f'  printf("%zu\\n", sizeof({name}));\n' for name in names) + "}\n")
    include = pathlib.Path(__file__).resolve().parents[2] / "include"
    subprocess.run([compiler, "-I", str(include), str(source), "-o", str(tmp_path / "sizes")], check=True)
    printed = subprocess.run([str(tmp_path / "sizes")], capture_output=True, text=True, check=True).stdout.split()
    assert [int(size) for size in printed] == [ctypes.sizeof(struct) for struct in names.values()]
