// RUN: attn-opt %s --tile-skew-dots | FileCheck %s
// What the skewed loop means is run by hopper.mlir.

// A hook that reads a table on one side of a branch does not keep the loop from being skewed.

// CHECK-LABEL: tile.kernel @branch
// CHECK: scf.if
// CHECK: tile.dot {{.*}} transpose_b
// CHECK: scf.for
// CHECK: tile.dot {{.*}} transpose_b
// CHECK: tile.dot {{.*}} acc
// CHECK: memref.load
// CHECK: scf.yield
// CHECK: tile.dot {{.*}} acc
!v = !tile.view<?x16xbf16>
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
!p = !tile.reg<16x16xbf16>
tile.kernel @branch(%m: memref<?x16xbf16>, %table: memref<?xf32>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %a0 = tile.splat %zero : f32 -> !s
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
  %q = tile.load %v[%c0] : !v -> !p
  %a = scf.for %j = %c0 to %n step %c16 iter_args(%ai = %a0) -> (!s) {
    %k = tile.load %v[%j] : !v -> !t
    %s = tile.dot %q, %k transpose_b : (!p, !t) -> !s
    %x = tile.map (%e = %s : !s) at (%r, %c) -> !s {
      %first = arith.cmpi eq, %c, %c0 : index
      %y = scf.if %first -> f32 {
        %b = memref.load %table[%r] : memref<?xf32>
        scf.yield %b : f32
      } else {
        scf.yield %e : f32
      }
      tile.yield %y : f32
    }
    %pb = tile.map arith.truncf(%x : !s) -> !p
    %w = tile.load %v[%j] : !v -> !t
    %an = tile.dot %pb, %w acc %ai : (!p, !t) -> !s
    scf.yield %an : !s
  }
}
