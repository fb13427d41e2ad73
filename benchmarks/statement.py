"""Attention statements for the benchmarks: one function @attend of a ragged or paged batch."""

CAUSAL = """  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
"""


def statement(name, hooks, heads, kv, d, dv, page=0, params="", attributes="", row_block=0):
    """IR text. page 0: ragged; params: of the variant, as "%x: type"; attributes: more of the op's, as ", a = b"; row_block: a
    bsr of such rows and `page` columns."""
    q, o = f"memref<?x{heads}x{d}xbf16>", f"memref<?x{heads}x{dv}xbf16>"
    k, v = (f"memref<?x{page}x{kv}x{n}xbf16>" if page else f"memref<?x{kv}x{n}xbf16>" for n in (d, dv))
    index, lse = "memref<?xi32>", f"memref<?x{heads}xf32>"
    tables = (f", %pages: {index}, %last: {index}", f" indices(%pages : {index}) last(%last : {index})") if page else ("", "")
    return f"""attn.variant @{name}({params}) {{
{hooks}}}
func.func @attend(%q: {q}, %qo: {index}, %k: {k}, %v: {v}, %indptr: {index}{tables[0]}, %o: {o}, %lse: {lse}{", " if params else ""}{params}) {{
  attn.attention @{name}({params.replace(":", " :")}) q(%q, %qo : {q}, {index}) kv(%k, %v : {k}, {v}) indptr(%indptr : {index}){tables[1]}
    outs(%o : {o}, %lse : {lse}) {{format = #attn.format<{f"bsr, row_block = {row_block}" if row_block else "paged" if page else "ragged"}>{attributes}}}
  return
}}
"""
