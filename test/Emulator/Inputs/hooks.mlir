// Hooks on q, k and v over the pages of attention.mlir: rotary embeddings, and values at odd positions halved.
!q = memref<?x8x128xbf16>
!kv = memref<?x16x2x128xbf16>
!i = memref<?xi32>

attn.variant @hooks() {
  attn.hook query (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.q_pos %at
    %y = attn.rope %x at %p {theta = 100.0 : f64} : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %y = attn.rope %x at %p {theta = 100.0 : f64} : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook value (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %two = arith.constant 2 : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %odd = arith.remui %p, %two : index
    %even = arith.cmpi eq, %odd, %zero : index
    %f = arith.select %even, %one, %half : f32
    %v = vector.broadcast %f : f32 to vector<128xf32>
    %y = arith.mulf %x, %v : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: !q, %qo_indptr: !i, %k: !kv, %v: !kv, %kv_indptr: !i, %kv_indices: !i, %last: !i, %o: !q, %lse: memref<?x8xf32>,
                  %scale: f32) {
  attn.attention @hooks() scale %scale
    q(%q, %qo_indptr : !q, !i) kv(%k, %v : !kv, !kv) indptr(%kv_indptr : !i) indices(%kv_indices : !i) last(%last : !i)
    outs(%o : !q, %lse : memref<?x8xf32>)
    {format = #attn.format<paged>, target = #attn.target<"sm_80">, configs = [
      #attn.config<rows = 16, keys = 64, stages = 2, warps = 4, groups = 4, pack = 4, row_table = true>,
      #attn.config<rows = 64, keys = 32, stages = 2, warps = 4, pack = 4, row_table = true>]}
  return
}
