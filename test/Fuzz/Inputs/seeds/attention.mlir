
// Names of parameters are kept: the ABI uses them.
attn.variant @gemma2(%cap: f32, %left: index) {
  %zero = arith.constant 0 : index
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %0 = arith.divf %x, %cap : f32
    %1 = math.tanh %0 fastmath<afn> : f32
    %2 = arith.mulf %1, %cap : f32
    attn.yield %2 : f32
  }
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %c = arith.cmpi sge, %d, %zero : index
    %w = arith.cmpi sle, %d, %left : index
    %in = arith.andi %c, %w : i1
    attn.yield %in : i1
  }
}

attn.variant @sigmoid() normalizer(none) {
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %y = attn.rope %x at %p {theta = 10000.0 : f64} : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
}

func.func @decode(%q: memref<?x32x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x128xbf16>, %v: memref<?x16x8x128xbf16>,
                  %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x32x128xbf16>, %lse: memref<?x32xf32>,
                  %cap: f32, %left: index, %s: f32) {
  attn.attention @gemma2(%cap, %left : f32, index) scale %s
    q(%q, %qo : memref<?x32x128xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x32x128xbf16>, %lse : memref<?x32xf32>) {format = #attn.format<paged>}
  return
}

func.func @tensors(%q: tensor<?x8x64xf16>, %qo: tensor<?xi64>, %k: tensor<?x2x64xf8E5M2>, %ind: tensor<?xi32>, %o: tensor<?x8x64xf16>,
                   %lse: tensor<?x8xf32>) -> (tensor<?x8x64xf16>, tensor<?x8xf32>) {
  %r:2 = attn.attention q(%q, %qo : tensor<?x8x64xf16>, tensor<?xi64>) kv(%k, %k : tensor<?x2x64xf8E5M2>, tensor<?x2x64xf8E5M2>)
    indptr(%ind : tensor<?xi32>) outs(%o : tensor<?x8x64xf16>, %lse : tensor<?x8xf32>)
    {format = #attn.format<ragged>, lse_base = #attn.lse_base<base2>} -> tensor<?x8x64xf16>, tensor<?x8xf32>
  return %r#0, %r#1 : tensor<?x8x64xf16>, tensor<?x8xf32>
}

func.func @levels(%q: memref<?x6x192xf16, strided<[2000, 300, 1], offset: ?>>, %t: memref<?xi32>, %k: memref<?x5x3x192xf16>, %v: memref<?x5x3x128xf16>,
                  %o: memref<?x6x128xf16>) {
  attn.attention q(%q, %t : memref<?x6x192xf16, strided<[2000, 300, 1], offset: ?>>, memref<?xi32>) kv(%k, %v : memref<?x5x3x192xf16>, memref<?x5x3x128xf16>)
    indptr(%t, %t : memref<?xi32>, memref<?xi32>) indices(%t, %t : memref<?xi32>, memref<?xi32>) last(%t, %t : memref<?xi32>, memref<?xi32>)
    row_indptr(%t, %t : memref<?xi32>, memref<?xi32>) outs(%o : memref<?x6x128xf16>) {format = #attn.format<bsr, row_block = 64>}
  return
}

func.func @merge(%a: memref<?x8x64xf32>, %la: memref<?x8xf32>, %o: memref<?x8x64xbf16>, %n: memref<?x2x64xbf16>, %t: memref<?xi32>, %k: memref<?x16x2x64xbf16>) {
  attn.merge states(%a, %a : memref<?x8x64xf32>, memref<?x8x64xf32>) lse(%la, %la : memref<?x8xf32>, memref<?x8xf32>)
    outs(%o : memref<?x8x64xbf16>, %la : memref<?x8xf32>)
  attn.append (%n, %n, %t : memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?xi32>) into (%k, %k : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>)
    table (%t, %t, %t : memref<?xi32>, memref<?xi32>, memref<?xi32>)
  return
}
