// RUN: attn-opt %s --tile-transform-stages --split-input-file | FileCheck %s
// RUN: attn-opt %s --tile-transform-stages --tile-assign-layouts --split-input-file | FileCheck %s --check-prefix=LAYOUT
// RUN: attn-opt %s --tile-transform-stages --tile-assign-layouts --tile-multibuffer --tile-allocate-shared --split-input-file | FileCheck %s --check-prefix=PLACE

// What lies between the stage and the product moves into the transform; the coordinate of the row starts at the step's
// first one, coordinates of other rows are computed again. A slice at 32 leaves 4 lanes for a row.
// CHECK-LABEL: tile.kernel @key
// CHECK: %[[S:.*]] = tile.load %{{.*}} : {{.*}} -> !tile.smem<32x64xbf16>
// CHECK-NOT: tile.local_load
// CHECK: %[[H:.*]] = tile.transform %[[S]] rows 32 : <32x64xbf16> -> <32x64xbf16> {
// CHECK: ^bb0(%[[X:.*]]: !tile.reg<32x64xbf16>, %[[FIRST:.*]]: index):
// CHECK: tile.slice %[[X]] [0, 32]
// CHECK: %[[AT:.*]] = tile.map () at (%[[T:.*]]) -> !tile.reg<32xindex>
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[T]] : index
// CHECK: tile.concat
// CHECK: tile.yield
// CHECK: tile.dot %{{.*}}, %[[H]] transpose_b

// LAYOUT: tile.transform %{{.*}} rows 32
// LAYOUT: ^bb0(%{{.*}}: !tile.reg<32x64xbf16, #tile.blocked<warps = [4, 1], columns = 32, rows = 8>>
// LAYOUT: tile.map () {{.*}} -> !tile.reg<32xindex, #tile.slice<dim = 1, parent = #tile.blocked<warps = [4, 1], columns = 32, rows = 8>>>

// In place: the stage is released behind the product; no memory of its own.
// PLACE-LABEL: tile.kernel @key
// PLACE-SAME: tile.shared_bytes = 16384
// PLACE: %[[W:.*]] = tile.consumer_wait
// PLACE: %[[R:.*]] = tile.transform %[[W]] rows 32 : {{.*}} {
// PLACE: tile.dot %{{.*}}, %[[R]]
// PLACE-NEXT: tile.consumer_release
!m = memref<?x64xbf16>
!v = !tile.view<?x64xbf16>
!q = !tile.reg<64x64xbf16>
!k = !tile.smem<32x64xbf16>
!r = !tile.reg<32x64xbf16>
!h = !tile.reg<32x32xbf16>
!s = !tile.reg<64x32xf32>
tile.kernel @key(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %o: memref<?x32xf32> {tile.arg = "o"}) attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 32, stages = 4, warps = 4>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %qv = tile.view %q[%c0] rows(%c64) : !m -> !v
  %kv = tile.view %k[%c0] rows(%c64) : !m -> !v
  %ov = tile.view %o[%c0] rows(%c64) : memref<?x32xf32> -> !tile.view<?x32xf32>
  %qr = tile.load %qv[%c0] : !v -> !q
  %s0 = tile.splat %zero : f32 -> !s
  %at = tile.map () at (%t) -> !tile.reg<32xindex> {
    %p = arith.addi %t, %c1 : index
    tile.yield %p : index
  }
  %sum = scf.for %j = %c0 to %c64 step %c32 iter_args(%si = %s0) -> (!s) {
    %at2 = tile.map () at (%t) -> !tile.reg<32xindex> {
      %p = arith.addi %t, %j : index
      tile.yield %p : index
    }
    %ks = tile.load %kv[%j] : !v -> !k
    %x = tile.local_load %ks : !k -> !r
    %l = tile.slice %x [0, 0] : !r -> !h
    %u = tile.slice %x [0, 32] : !r -> !h
    %a, %b = tile.map (%e = %l : !h, %f = %u : !h, %p = %at2[0] : !tile.reg<32xindex>) -> (!h, !h) {
      %i = arith.index_cast %p : index to i32
      %g = arith.sitofp %i : i32 to bf16
      %y = arith.mulf %f, %g : bf16
      tile.yield %y, %e : bf16, bf16
    }
    %z = tile.concat %a, %b dim 1 : !h, !h -> !r
    %s = tile.dot %qr, %z transpose_b acc %si : (!q, !r) -> !s
    scf.yield %s : !s
  }
  tile.store %sum, %ov[%c0] : !s, !tile.view<?x32xf32>
}

// -----

// A stage that is stored back, one that others read as it was (it stays in registers), and 8 bits, which get memory of
// their own: one place for both, as the second is made behind the last use of the first.
// CHECK-LABEL: tile.kernel @others
// CHECK: %[[Q:.*]] = tile.load %{{.*}} : {{.*}} -> !tile.smem<16x64xbf16>
// CHECK: %[[QH:.*]] = tile.transform %[[Q]] rows 4 : <16x64xbf16> -> <16x64xbf16>
// CHECK-NOT: tile.local_store
// CHECK: %[[K:.*]] = tile.transform %{{.*}} rows 4 : <16x64xf8E4M3FN> -> <16x64xbf16>
// CHECK: tile.dot %[[QH]], %[[K]] transpose_b
// CHECK: tile.transform %{{.*}} rows 4 : <16x64xf8E4M3FN> -> <16x64xbf16>
// CHECK: tile.local_load
// CHECK: tile.local_load

// PLACE-LABEL: tile.kernel @others
// PLACE-COUNT-2: tile.transform %{{.*}} rows 4 {tile.shared_offset = 6144 : i64} : {{.*}}f8E4M3FN
!m = memref<?x64xbf16>
!m8 = memref<?x64xf8E4M3FN>
!v = !tile.view<?x64xbf16>
!v8 = !tile.view<?x64xf8E4M3FN>
!t = !tile.smem<16x64xbf16>
!t8 = !tile.smem<16x64xf8E4M3FN>
!r = !tile.reg<16x64xbf16>
!r8 = !tile.reg<16x64xf8E4M3FN>
!s = !tile.reg<16x16xf32>
tile.kernel @others(%q: !m {tile.arg = "q"}, %k: !m8 {tile.arg = "k"}) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 16, warps = 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %qv = tile.view %q[%c0] rows(%c16) : !m -> !v
  %kv = tile.view %k[%c0] rows(%c16) : !m8 -> !v8
  %qs = tile.load %qv[%c0] : !v -> !t
  %q0 = tile.local_load %qs : !t -> !r
  %q1 = tile.swap_pairs %q0 : !r
  tile.local_store %q1, %qs : !r, !t
  %k0 = tile.load %kv[%c0] : !v8 -> !t8
  %k1 = tile.local_load %k0 : !t8 -> !r8
  %k2 = tile.map arith.extf(%k1 : !r8) -> !r
  %k3 = tile.load %kv[%c0] : !v8 -> !t8
  %k4 = tile.local_load %k3 : !t8 -> !r8
  %k5 = tile.map arith.extf(%k4 : !r8) -> !r
  %s0 = tile.dot %qs, %k2 transpose_b : (!t, !r) -> !s
  %s1 = tile.dot %qs, %k5 transpose_b acc %s0 : (!t, !r) -> !s
  %p0 = tile.load %qv[%c0] : !v -> !t
  %p1 = tile.local_load %p0 : !t -> !r
  %p2 = tile.local_load %p0 : !t -> !r
  %s2 = tile.dot %p1, %p2 transpose_b acc %s1 : (!r, !r) -> !s
}
