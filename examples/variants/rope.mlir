// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/rope.json --device=cpu --check

// Rotary embedding fused into attention: the cache holds keys as they were projected, and both sides rotate when
// they are read (Llama 3.1: its frequency scaling). So keys can move to other positions without being rewritten.

attn.variant @rope() {
  attn.hook query (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.q_pos %at
    %y = attn.rope %x at %p {theta = 500000.0 : f64, factor = 8.0 : f64, low_freq = 1.0 : f64, high_freq = 4.0 : f64, original = 8192 : i64} : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %y = attn.rope %x at %p {theta = 500000.0 : f64, factor = 8.0 : f64, low_freq = 1.0 : f64, high_freq = 4.0 : f64, original = 8192 : i64} : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x128xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x128xbf16>,
                  %v: memref<?x16x2x128xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x128xbf16>, %lse: memref<?x8xf32>) {
  attn.attention @rope()
    q(%q, %qo_indptr : memref<?x8x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x128xbf16>, memref<?x16x2x128xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x128xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
