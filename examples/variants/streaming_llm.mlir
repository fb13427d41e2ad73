// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/streaming_llm.json --device=cpu --check

// StreamingLLM: the first `sinks` keys and a window of `window` keys stay visible, and positions are those in the
// rolling cache, not in the text: the window keeps its distances, the sinks stand right before it. Keys are stored
// unrotated and rotated when read. Exact for decode (the query is the last position); the older rows of a longer query
// see the sinks where the last row sees them.

attn.variant @streaming_llm(%sinks: index, %window: index) {
  attn.hook query (%x: vector<64xf32>, %at: !attn.coord) {
    %p = attn.q_pos %at
    %y = attn.rope %x at %p {theta = 10000.0 : f64} : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    %zero = arith.constant 0 : index
    %k = attn.kv_pos %at
    %n = attn.kv_len %at
    %kept = arith.addi %sinks, %window : index
    %over = arith.subi %n, %kept : index
    %shift = arith.maxsi %over, %zero : index
    %moved = arith.addi %k, %shift : index
    %is_sink = arith.cmpi slt, %k, %sinks : index
    %p = arith.select %is_sink, %moved, %k : index
    %y = attn.rope %x at %p {theta = 10000.0 : f64} : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %causal = arith.cmpi sle, %k, %q : index
    %near = arith.cmpi slt, %d, %window : index
    %is_sink = arith.cmpi slt, %k, %sinks : index
    %seen = arith.ori %near, %is_sink : i1
    %in = arith.andi %causal, %seen : i1
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xbf16>,
                  %v: memref<?x16x2x64xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>, %sinks: index,
                  %window: index) {
  attn.attention @streaming_llm(%sinks, %window : index, index)
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
