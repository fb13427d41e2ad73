"""Offsets beyond 32 bits, in buffers of which few pages are ever touched."""

import numpy as np
import pytest

import attn_mlir

HEAD = 64
PAGE = 16


def attention(k_type, extra="", arguments="", call="", variant=""):
    q = f"memref<?x1x{HEAD}xf16>"
    return f"""{variant}
func.func @attend(%q: {q}, %qo: memref<?xi32>, %k: {k_type}, %v: {k_type}, %ind: memref<?xi32>{extra}, %o: {q}{arguments}) {{
  attn.attention {call} q(%q, %qo : {q}, memref<?xi32>) kv(%k, %v : {k_type}, {k_type}) indptr(%ind : memref<?xi32>)
    {"indices(%pages : memref<?xi32>) last(%last : memref<?xi32>)" if extra else ""} outs(%o : {q})
    {{format = #attn.format<{"paged" if extra else "ragged"}>}}
  return
}}
"""


def softmax_attention(q, k, v, bias=0.0):
    logits = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(q.shape[-1]) + bias
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v.astype(np.float64)


def sparse(shape, dtype):
    """Zeros that take no memory until they are written."""
    try:
        return np.zeros(shape, dtype)
    except MemoryError:
        pytest.skip("no address space for a large buffer")


@pytest.mark.parametrize("elements", [1 << 31, 1 << 32])
def test_pages_beyond(elements):
    """Pages on both sides of the 2^31st, 2^32nd element of the cache."""
    pages = elements // (PAGE * HEAD) + 4
    k, v = sparse((pages, PAGE, 1, HEAD), np.float16), sparse((pages, PAGE, 1, HEAD), np.float16)
    rng = np.random.default_rng(1)
    table = np.array([pages - 1, 0, pages - 5, pages - 3], np.int32)
    for page in table:
        k[page], v[page] = rng.standard_normal((2, PAGE, 1, HEAD)).astype(np.float16)
    q = rng.standard_normal((1, 1, HEAD)).astype(np.float16)
    o = np.full_like(q, np.nan)
    text = attention(f"memref<?x{PAGE}x1x{HEAD}xf16>", ", %pages: memref<?xi32>, %last: memref<?xi32>")
    executable = attn_mlir.Executable(attn_mlir.compile(text))
    plan = executable.plan(qo_indptr=[0, 1], kv_indptr=[0, 4], kv_last=[7], pages=table)
    plan.run(q=q, k=k, v=v, o=o)
    keys, values = (np.concatenate([x[page, :, 0] for page in table])[: 3 * PAGE + 7] for x in (k, v))
    np.testing.assert_allclose(o[0], softmax_attention(q[0], keys, values), atol=2e-3, rtol=2e-3)


def test_table_beyond_46341_squared():
    """A captured table of more than 2^31 elements, indexed by data: the product of two indices is 64 bits wide."""
    side = 46_500
    variant = """attn.variant @lookup(%table: memref<?xi8>, %place: memref<?xi32>, %side: index) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %p = memref.load %place[%k] : memref<?xi32>
    %i = arith.index_cast %p : i32 to index
    %row = arith.muli %i, %side : index
    %at1 = arith.addi %row, %i : index
    %b = memref.load %table[%at1] : memref<?xi8>
    %f = arith.sitofp %b : i8 to f32
    %y = arith.addf %x, %f : f32
    attn.yield %y : f32
  }
}"""
    table = sparse((side * side,), np.int8)
    place = np.array([side - 1, 0, side - 2, 5, side - 200, 46_341], np.int32)
    bias = np.array([3, -2, 1, 2, -1, 4], np.int8)
    table[place.astype(np.int64) * side + place] = bias
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((n, 1, HEAD)).astype(np.float16) for n in (1, 6, 6))
    o = np.full_like(q, np.nan)
    text = attention(f"memref<?x1x{HEAD}xf16>", variant=variant, arguments=", %table: memref<?xi8>, %place: memref<?xi32>, %side: index",
                     call="@lookup(%table, %place, %side : memref<?xi8>, memref<?xi32>, index)")
    plan = attn_mlir.Executable(attn_mlir.compile(text)).plan(qo_indptr=[0, 1], kv_indptr=[0, 6], params={"side": side})
    plan.run(q=q, k=k, v=v, o=o, params={"table": table, "place": place, "side": side})
    np.testing.assert_allclose(o[0], softmax_attention(q[0], k[:, 0], v[:, 0], bias.astype(np.float64)), atol=2e-3, rtol=2e-3)


def test_bad_tables_are_refused():
    text = attention(f"memref<?x{PAGE}x1x{HEAD}xf16>", ", %pages: memref<?xi32>, %last: memref<?xi32>")
    executable = attn_mlir.Executable(attn_mlir.compile(text))
    for kv_last in ([0], [PAGE + 1]):
        with pytest.raises(attn_mlir.RuntimeFailure, match="kv_last"):
            executable.plan(qo_indptr=[0, 1], kv_indptr=[0, 1], kv_last=kv_last, pages=np.zeros(1, np.int32))
    with pytest.raises(attn_mlir.RuntimeFailure, match="indptr"):
        executable.plan(qo_indptr=[0, 1, 0], kv_indptr=[0, 1, 2], kv_last=[1, 1], pages=np.zeros(2, np.int32))
