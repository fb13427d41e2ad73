// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: attn.variant @gemma2(%{{.*}}: f32, %{{.*}}: index) {
attn.variant @gemma2(%cap: f32, %left: index) {
  %zero = arith.constant 0 : index
  // CHECK: attn.hook logits (%{{.*}}: f32, %{{.*}}: !attn.coord) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %0 = arith.divf %x, %cap : f32
    %1 = math.tanh %0 fastmath<afn> : f32
    %2 = arith.mulf %1, %cap : f32
    // CHECK: attn.yield %{{.*}} : f32
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

// CHECK-LABEL: attn.variant @sigmoid() normalizer(none) {
attn.variant @sigmoid() normalizer(none) {
  attn.hook key (%x: vector<128xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    // CHECK: attn.rope %{{.*}} at %{{.*}} {theta = 1.000000e+04 : f64} : vector<128xf32>
    %y = attn.rope %x at %p {theta = 10000.0 : f64} : vector<128xf32>
    attn.yield %y : vector<128xf32>
  }
}

func.func @decode(%q: memref<?x32x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x128xbf16>, %v: memref<?x16x8x128xbf16>,
                  %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x32x128xbf16>, %lse: memref<?x32xf32>,
                  %cap: f32, %left: index, %s: f32) {
  // CHECK: attn.attention @gemma2(%{{.*}}, %{{.*}} : f32, index) scale %{{.*}} q(%{{.*}}, %{{.*}} : memref<?x32x128xbf16>, memref<?xi32>) kv(%{{.*}}, %{{.*}} : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>) indptr(%{{.*}} : memref<?xi32>) indices(%{{.*}} : memref<?xi32>) last(%{{.*}} : memref<?xi32>) outs(%{{.*}} : memref<?x32x128xbf16>, %{{.*}} : memref<?x32xf32>) {format = #attn.format<paged>}
  attn.attention @gemma2(%cap, %left : f32, index) scale %s
    q(%q, %qo : memref<?x32x128xbf16>, memref<?xi32>) kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x32x128xbf16>, %lse : memref<?x32xf32>) {format = #attn.format<paged>}
  return
}
