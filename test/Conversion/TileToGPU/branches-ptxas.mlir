// REQUIRES: ptxas
// RUN: attn-compile %s --target=sm_90a --emit=cubin --kernel=branch_r128 -o %t.cubin

// A hook with a branch beside a product in flight assembles without spills and without serialised products.

attn.variant @branch(%table: memref<?xf32>) {
  %zero = arith.constant 0 : index
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %k = attn.kv_pos %at
    %h = attn.q_head %at
    %some = arith.cmpi sgt, %k, %h : index
    %y = scf.if %some -> f32 {
      %b = memref.load %table[%k] : memref<?xf32>
      %s = arith.addf %x, %b : f32
      scf.yield %s : f32
    } else {
      scf.yield %x : f32
    }
    attn.yield %y : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}
func.func @attend(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %indptr: memref<?xi32>, %indices: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x64xbf16>, %table: memref<?xf32>) {
  attn.attention @branch(%table : memref<?xf32>) q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>) indptr(%indptr : memref<?xi32>) indices(%indices : memref<?xi32>) last(%last : memref<?xi32>) outs(%o : memref<?x8x64xbf16>) {format = #attn.format<paged>}
  return
}
