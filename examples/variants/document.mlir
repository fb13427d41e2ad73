// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/document.json --device=cpu --check

// Packed documents: a query sees the keys of its own document, causally. doc[offset[request] + position] is the
// number of the document of a token. A query before the first key (more queries than keys) sees nothing.

attn.variant @document(%doc: memref<?xi32>, %offset: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %r = attn.request %at
    %base32 = memref.load %offset[%r] : memref<?xi32>
    %base = arith.index_cast %base32 : i32 to index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qi = arith.addi %base, %inside : index
    %ki = arith.addi %base, %k : index
    %qd = memref.load %doc[%qi] : memref<?xi32>
    %kd = memref.load %doc[%ki] : memref<?xi32>
    %same = arith.cmpi eq, %qd, %kd : i32
    %causal = arith.cmpi sle, %k, %q : index
    %in = arith.andi %same, %causal : i1
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x64xbf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xbf16>,
                  %v: memref<?x16x2x64xbf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x64xbf16>, %lse: memref<?x8xf32>,
                  %doc: memref<?xi32>, %offset: memref<?xi32>) {
  attn.attention @document(%doc, %offset : memref<?xi32>, memref<?xi32>)
    q(%q, %qo_indptr : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x64xbf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
