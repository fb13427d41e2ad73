// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/sliding_window.json --device=cpu --check

// A window of `left` keys behind the query and `right` ahead of it, -1 for no limit on that side.

attn.variant @sliding_window(%left: index, %right: index) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %back = arith.subi %q, %k : index
    %ahead = arith.subi %k, %q : index
    %near = arith.cmpi sle, %back, %left : index
    %far = arith.cmpi slt, %left, %zero : index
    %in_left = arith.ori %near, %far : i1
    %before = arith.cmpi sle, %ahead, %right : index
    %open = arith.cmpi slt, %right, %zero : index
    %in_right = arith.ori %before, %open : i1
    %in = arith.andi %in_left, %in_right : i1
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x64xf16>, %qo_indptr: memref<?xi32>, %k: memref<?x2x64xf16>,
                  %v: memref<?x2x64xf16>, %kv_indptr: memref<?xi32>, %o: memref<?x8x64xf16>,
                  %lse: memref<?x8xf32>, %left: index, %right: index) {
  attn.attention @sliding_window(%left, %right : index, index)
    q(%q, %qo_indptr : memref<?x8x64xf16>, memref<?xi32>)
    kv(%k, %v : memref<?x2x64xf16>, memref<?x2x64xf16>)
    indptr(%kv_indptr : memref<?xi32>)
    outs(%o : memref<?x8x64xf16>, %lse : memref<?x8xf32>) {format = #attn.format<ragged>}
  return
}
