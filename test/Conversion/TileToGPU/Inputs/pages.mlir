// Attention over pages, 8 query and 2 KV heads: PAGE, DQK and DVO are for sed, and so is the mask (NONE, or what is visible).
!q = memref<?x8xDQKxbf16>
!k = memref<?xPAGEx2xDQKxbf16>
!v = memref<?xPAGEx2xDVOxbf16>
!o = memref<?x8xDVOxbf16>
!i = memref<?xi32>

attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

attn.variant @window() {
  attn.hook mask (%at: !attn.coord) {
    %left = arith.constant 300 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %in = arith.cmpi ule, %d, %left : index
    attn.yield %in : i1
  }
}

attn.variant @full() {
}

func.func @attend(%q: !q, %qo_indptr: !i, %k: !k, %v: !v, %kv_indptr: !i, %kv_indices: !i, %last: !i, %o: !o, %lse: memref<?x8xf32>) {
  attn.attention @VARIANT()
    q(%q, %qo_indptr : !q, !i) kv(%k, %v : !k, !v) indptr(%kv_indptr : !i) indices(%kv_indices : !i) last(%last : !i)
    outs(%o : !o, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
