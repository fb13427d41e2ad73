// Hooks on k and v that read tables by the position of a key; tests change the format by sed.
!q = memref<?x8x128xbf16>
!kv = memref<?x16x2x128xbf16>
!i = memref<?xi32>
!t = memref<?xf32>

attn.variant @lookup(%table: !t) {
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %f = memref.load %table[%p] : !t
    %v = vector.broadcast %f : f32 to vector<128xf32>
    %y = arith.mulf %x, %v : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook value (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %f = memref.load %table[%p] : !t
    %v = vector.broadcast %f : f32 to vector<128xf32>
    %y = arith.addf %x, %v : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %f = memref.load %table[%p] : !t
    %y = arith.addf %x, %f : f32
    attn.yield %y : f32
  }
}

func.func @attend(%q: !q, %qo_indptr: !i, %k: !kv, %v: !kv, %kv_indptr: !i, %kv_indices: !i, %last: !i, %o: !q, %lse: memref<?x8xf32>,
                  %table: !t) {
  attn.attention @lookup(%table : !t)
    q(%q, %qo_indptr : !q, !i) kv(%k, %v : !kv, !kv) indptr(%kv_indptr : !i) indices(%kv_indices : !i) last(%last : !i)
    outs(%o : !q, %lse : memref<?x8xf32>)
    {format = #attn.format<paged>, target = #attn.target<"sm_80">, configs = [
      #attn.config<rows = 16, keys = 64, stages = 2, warps = 4, groups = 4, pack = 4, row_table = true>,
      #attn.config<rows = 64, keys = 32, stages = 2, warps = 4, pack = 4, row_table = true>]}
  return
}
