// RUN: attn-opt %s --tile-reverse-keys --split-input-file | FileCheck %s
// What the loop means stays: hopper.mlir and stream-items.mlir run it.

// The counter goes up as before; the key is what is left of lo + last. An interval that begins with the loop says so.

// CHECK-LABEL: tile.kernel @keys
// CHECK-SAME: %{{.*}}: memref<?x16xbf16>, %[[LO:.*]]: index, %[[HI:.*]]: index)
// CHECK: %[[STEP:.*]] = arith.constant 16 : index
// CHECK: %[[LEAST:.*]] = arith.addi %[[LO]], %{{.*}}
// CHECK: %[[END:.*]] = arith.maxsi %[[HI]], %[[LEAST]]
// CHECK: %[[DISTANCE:.*]] = arith.subi %[[END]], %[[LO]]
// CHECK: %[[LESS:.*]] = arith.subi %[[DISTANCE]], %{{.*}}
// CHECK: %[[STEPS:.*]] = arith.divui %[[LESS]], %[[STEP]]
// CHECK: %[[LENGTH:.*]] = arith.muli %[[STEPS]], %[[STEP]]
// CHECK: %[[LAST:.*]] = arith.addi %[[LO]], %[[LENGTH]]
// CHECK: %[[C:.*]] = arith.addi %[[LO]], %[[LAST]]
// CHECK: scf.for %[[N:.*]] = %[[LO]] to %[[END]] step %[[STEP]] {
// CHECK-NEXT: %[[KEY:.*]] = arith.subi %[[C]], %[[N]]
// CHECK-NEXT: tile.load %{{.*}}[%[[KEY]]]
// CHECK: tile.mask {{.*}} unless %[[KEY]] in [%[[LO]], %[[HI]])
// CHECK: } {tile.at_least_once, tile.from_interval}

!v = !tile.view<?x16xbf16>
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
tile.kernel @keys(%m: memref<?x16xbf16>, %lo: index, %hi: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = tile.view %m[%c0] rows(%hi) : memref<?x16xbf16> -> !v
  scf.for %j = %lo to %hi step %c16 {
    %k = tile.load %v[%j] : !v -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
    %y = tile.mask %s () at (%i, %c) unless %j in [%lo, %hi) keys 16 : !s {
      %p = arith.addi %j, %c : index
      %in = arith.cmpi slt, %p, %hi : index
      tile.yield %in : i1
    }
    %m1 = tile.reduce maximumf %y dim 1 : !s -> !tile.reg<16xf32>
  }
}

// -----

// An interval that begins elsewhere is no reason to leave out the blocks behind it; a loop without products stays.

// CHECK-LABEL: tile.kernel @other_interval
// CHECK: scf.for
// CHECK: } {tile.at_least_once}
// CHECK: scf.for %[[J:.*]] = {{.*}}
// CHECK-NEXT: tile.load %{{.*}}[%[[J]]]
// CHECK-NOT: tile.at_least_once
// CHECK: tile.return
!v = !tile.view<?x16xbf16>
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
tile.kernel @other_interval(%m: memref<?x16xbf16>, %lo: index, %first: index, %hi: index)
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = tile.view %m[%c0] rows(%hi) : memref<?x16xbf16> -> !v
  scf.for %j = %lo to %hi step %c16 {
    %k = tile.load %v[%j] : !v -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
    %y = tile.mask %s () at (%i, %c) unless %j in [%first, %hi) keys 16 : !s {
      %p = arith.addi %j, %c : index
      %in = arith.cmpi slt, %p, %hi : index
      tile.yield %in : i1
    }
    %m1 = tile.reduce maximumf %y dim 1 : !s -> !tile.reg<16xf32>
  }
  scf.for %j = %lo to %hi step %c16 {
    %k = tile.load %v[%j] : !v -> !t
    %r = tile.local_load %k : !t -> !tile.reg<16x16xbf16>
    tile.store %r, %v[%j] : !tile.reg<16x16xbf16>, !v
  }
}
