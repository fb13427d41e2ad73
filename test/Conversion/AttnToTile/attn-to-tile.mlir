// RUN: attn-opt %s --attn-to-tile | attn-opt | FileCheck %s

attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

// CHECK: attn.attention @causal
// CHECK-SAME: attn.kernels = [@causal_r16, @causal_r128], attn.merge = @causal_merge, attn.range = @causal_range
func.func @paged(%q: memref<?x32x128xbf16>, %qo: memref<?xi32>, %k: memref<?x16x8x128xbf16>, %v: memref<?x16x8x128xbf16>,
                 %ind: memref<?xi32>, %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x32x128xbf16>, %lse: memref<?x32xf32>, %s: f32) {
  attn.attention @causal() scale %s q(%q, %qo : memref<?x32x128xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x8x128xbf16>, memref<?x16x8x128xbf16>)
    indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>) last(%last : memref<?xi32>)
    outs(%o : memref<?x32x128xbf16>, %lse : memref<?x32xf32>)
    {format = #attn.format<paged>, configs = [
      #attn.config<rows = 16, keys = 128, stages = 3, groups = 4, pack = 4, row_table = true>,
      #attn.config<rows = 128, keys = 128, warps = 8>]}
  return
}

// Decode class: packed rows, key groups, positions from the token table.
// CHECK-LABEL: tile.kernel @causal_r16(
// CHECK-SAME: memref<?x32x128xbf16, strided<[?, ?, 1]>> {tile.arg = "q"}
// CHECK-SAME: memref<?x16x8x128xbf16, strided<[?, ?, ?, 1]>> {tile.arg = "k"}
// CHECK-SAME: {tile.arg = "v"}
// CHECK-SAME: {tile.arg = "o"}
// CHECK-SAME: memref<?x32xf32, strided<[?, ?]>> {tile.arg = "lse"}
// CHECK-SAME: memref<?xi32> {tile.arg = "pages"}
// CHECK-SAME: memref<?x128xf32> {tile.arg = "part_o"}
// CHECK-SAME: memref<?xf32> {tile.arg = "part_lse"}
// CHECK-SAME: !tile.items {tile.arg = "items"}
// CHECK-SAME: memref<?x8xi32> {tile.arg = "tokens"}
// CHECK-SAME: f32 {tile.arg = "scale"}
// CHECK: tile.for_each
// CHECK: tile.view {{.*}} -> {{.*}}<?x128xbf16, paged<16>>
// CHECK: tile.load {{.*}} -> !tile.reg<16x128xbf16>
// CHECK: %[[QPOS:.*]] = tile.map () at (%{{.*}}) -> !tile.reg<16xindex>
// CHECK: scf.for
// CHECK: tile.load {{.*}}4x32x128xbf16
// CHECK: tile.dot {{.*}} transpose_b {{.*}}4x16x32xf32
// CHECK: tile.mask {{.*}} = %[[QPOS]][1] : !tile.reg<16xindex>
// CHECK: tile.reduce maximumf {{.*}} dim 2
// CHECK: tile.dot {{.*}} acc
// CHECK: tile.reduce addf {{.*}} dim 0
// CHECK: scf.if
// CHECK: tile.store
// CHECK: else
// CHECK: tile.store

// Prefill class: one head a tile, Q in shared memory, positions by arithmetic.
// CHECK-LABEL: tile.kernel @causal_r128(
// CHECK-NOT: tokens
// CHECK: tile.load {{.*}} -> !tile.smem<128x128xbf16>
// CHECK: tile.dot {{.*}} transpose_b
// CHECK: tile.mask %{{.*}} () at

// CHECK-LABEL: tile.kernel @causal_merge(
// CHECK: arith.maximumf
// CHECK: tile.store

// CHECK-LABEL: func.func @causal_range(
