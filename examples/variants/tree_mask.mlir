// RUN: attn-opt %s | attn-opt
// RUN: attn-run %s --batch=%S/Inputs/tree_mask.json --device=cpu --check

// A tree of draft tokens (speculative decoding): one bit for each query and key, rows of kv_len bits one after
// another, little bit order, every request starts on a byte of its own at offset[request].

attn.variant @tree_mask(%bits: memref<?xi8>, %offset: memref<?xi64>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : i32
    %three = arith.constant 3 : index
    %seven = arith.constant 7 : index
    %r = attn.request %at
    %base64 = memref.load %offset[%r] : memref<?xi64>
    %base = arith.index_cast %base64 : i64 to index
    %row = attn.row %at
    %n = attn.kv_len %at
    %k = attn.kv_pos %at
    %start = arith.muli %row, %n : index
    %bit = arith.addi %start, %k : index
    %byte = arith.shrui %bit, %three : index
    %address = arith.addi %base, %byte : index
    %value = memref.load %bits[%address] : memref<?xi8>
    %word = arith.extui %value : i8 to i32
    %rest = arith.andi %bit, %seven : index
    %amount = arith.index_cast %rest : index to i32
    %one = arith.constant 1 : i32
    %moved = arith.shrui %word, %amount : i32
    %low = arith.andi %moved, %one : i32
    %in = arith.cmpi ne, %low, %zero : i32
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x64xf16>, %qo_indptr: memref<?xi32>, %k: memref<?x16x2x64xf16>,
                  %v: memref<?x16x2x64xf16>, %kv_indptr: memref<?xi32>, %kv_indices: memref<?xi32>,
                  %last_page_len: memref<?xi32>, %o: memref<?x8x64xf16>, %lse: memref<?x8xf32>,
                  %bits: memref<?xi8>, %offset: memref<?xi64>) {
  attn.attention @tree_mask(%bits, %offset : memref<?xi8>, memref<?xi64>)
    q(%q, %qo_indptr : memref<?x8x64xf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xf16>, memref<?x16x2x64xf16>)
    indptr(%kv_indptr : memref<?xi32>) indices(%kv_indices : memref<?xi32>) last(%last_page_len : memref<?xi32>)
    outs(%o : memref<?x8x64xf16>, %lse : memref<?x8xf32>) {format = #attn.format<paged>}
  return
}
