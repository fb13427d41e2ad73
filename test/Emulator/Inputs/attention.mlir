// Causal attention over pages, 8 query and 2 KV heads; tests change types, head dim and config by sed.
!q = memref<?x8x128xbf16>
!kv = memref<?x16x2x128xbf16>
!i = memref<?xi32>

attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: !q, %qo_indptr: !i, %k: !kv, %v: !kv, %kv_indptr: !i, %kv_indices: !i, %last: !i, %o: !q, %lse: memref<?x8xf32>,
                  %scale: f32) {
  attn.attention @causal() scale %scale
    q(%q, %qo_indptr : !q, !i) kv(%k, %v : !kv, !kv) indptr(%kv_indptr : !i) indices(%kv_indices : !i) last(%last : !i)
    outs(%o : !q, %lse : memref<?x8xf32>)
    {format = #attn.format<paged>, target = #attn.target<"sm_80">, configs = [
      #attn.config<rows = 16, keys = 64, stages = 2, warps = 4, groups = 4, pack = 4, row_table = true>,
      #attn.config<rows = 64, keys = 32, stages = 2, warps = 4, pack = 4, row_table = true>]}
  return
}
