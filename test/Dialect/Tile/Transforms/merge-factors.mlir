// Products marked `reassoc` are the softmax's own: they join constant and uniform factors beside them and move out of sums. The
// author's products keep their order.

// RUN: attn-opt %s --tile-merge-factors | FileCheck %s
// RUN: sed -e 's/#tile.level<logical>/#tile.level<pipelined>/' %s | not attn-opt --tile-merge-factors 2>&1 | FileCheck %s --check-prefix=LEVEL

// LEVEL: is of level pipelined, expected level logical: it runs before

!s = !tile.reg<16x16xf32>

// CHECK-LABEL: tile.kernel @merge
tile.kernel @merge(%slopes: memref<?xf32> {tile.arg = "param:slopes"}, %cap: f32 {tile.arg = "param:cap"},
                   %out: memref<?x16xf32> {tile.arg = "o"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %scale = arith.constant 0.25 : f32
  %inverse = arith.constant 0.5 : f32
  %log2e = arith.constant 1.5 : f32
  %tiny = arith.constant 1.0e-30 : f32
  %x = tile.splat %scale : f32 -> <16x16xf32>
  // On both sides of a function: 0.25 * 0.5 and 0.5 * 1.5.
  // CHECK-DAG: %[[IN:.*]] = arith.constant 1.250000e-01 : f32
  // CHECK-DAG: %[[BEHIND:.*]] = arith.constant 7.500000e-01 : f32
  // CHECK: tile.map
  // CHECK-NEXT: %[[A:.*]] = arith.mulf %{{.*}}, %[[IN]] fastmath<reassoc> : f32
  // CHECK-NEXT: %[[T:.*]] = math.tanh %[[A]] fastmath<afn> : f32
  // CHECK-NEXT: %[[B:.*]] = arith.mulf %[[T]], %[[BEHIND]] fastmath<reassoc> : f32
  // CHECK-NEXT: tile.yield %[[B]]
  %softcap = tile.map (%e = %x : !s) -> !s {
    %0 = arith.mulf %e, %scale fastmath<reassoc> : f32
    %1 = arith.mulf %0, %inverse : f32
    %2 = math.tanh %1 fastmath<afn> : f32
    %3 = arith.mulf %2, %inverse : f32
    %4 = arith.mulf %3, %log2e fastmath<reassoc> : f32
    tile.yield %4 : f32
  }
  // Out of a sum: the slope, the same for all elements, takes 1 / 0.25; 0.25 * 1.5 stands at the end.
  // CHECK: tile.map
  // CHECK: %[[SLOPE:.*]] = memref.load
  // CHECK: %[[D:.*]] = arith.sitofp
  // CHECK: %[[STEEP:.*]] = arith.mulf %[[SLOPE]], %{{.*}} : f32
  // CHECK: %[[SUM:.*]] = math.fma %[[STEEP]], %[[D]], %{{[a-z0-9]+}} : f32
  // CHECK: %[[Y:.*]] = arith.mulf %[[SUM]], %{{.*}} fastmath<reassoc> : f32
  // CHECK-NEXT: tile.yield %[[Y]]
  %alibi = tile.map (%e = %x : !s) at (%i, %j) -> !s {
    %0 = arith.mulf %e, %scale fastmath<reassoc> : f32
    %slope = memref.load %slopes[%c0] : memref<?xf32>
    %k = arith.index_cast %j : index to i32
    %d = arith.sitofp %k : i32 to f32
    %1 = math.fma %slope, %d, %0 : f32
    %2 = arith.mulf %1, %log2e fastmath<reassoc> : f32
    tile.yield %2 : f32
  }
  // Into a sum with constants that is the softmax's own: 1.5 (2 x + 0.5), not into the author's.
  // CHECK: tile.map
  // CHECK: math.fma %{{.*}}, %{{.*}}, %[[BEHIND]] fastmath<reassoc> : f32
  // CHECK-NEXT: tile.yield
  // CHECK: tile.map
  // CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : f32
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: tile.yield
  %two = arith.constant 2.0 : f32
  %ownsum = tile.map (%e = %x : !s) -> !s {
    %0 = math.fma %e, %two, %inverse fastmath<reassoc> : f32
    %1 = arith.mulf %0, %log2e fastmath<reassoc> : f32
    tile.yield %1 : f32
  }
  %authorssum = tile.map (%e = %x : !s) -> !s {
    %0 = math.fma %e, %two, %inverse : f32
    %1 = arith.mulf %0, %log2e fastmath<reassoc> : f32
    tile.yield %1 : f32
  }
  // A division by what all elements share, where `arcp` allows it.
  // CHECK: tile.map
  // CHECK: %[[ONE:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
  // CHECK: %[[F:.*]] = arith.mulf %[[ONE]], %{{.*}} : f32
  // CHECK: arith.mulf %{{[a-z0-9]+}}, %[[F]] fastmath<reassoc> : f32
  %divided = tile.map (%e = %x : !s) -> !s {
    %0 = arith.mulf %e, %scale fastmath<reassoc> : f32
    %1 = arith.divf %0, %cap fastmath<arcp> : f32
    tile.yield %1 : f32
  }
  // The author's own stay: two products, a precise division, a slope that differs between elements, and factors whose
  // product f32 does not hold.
  // CHECK: tile.map
  // CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK-NEXT: arith.divf
  // CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
  // CHECK-NEXT: math.fma
  // CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK-NEXT: arith.mulf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
  // CHECK-NEXT: tile.yield
  %own = tile.map (%e = %x : !s) -> !s {
    %0 = arith.mulf %e, %scale : f32
    %1 = arith.mulf %0, %inverse : f32
    %2 = arith.divf %1, %cap : f32
    %3 = arith.mulf %2, %scale fastmath<reassoc> : f32
    %4 = math.fma %e, %e, %3 : f32
    %5 = arith.mulf %4, %tiny : f32
    %6 = arith.mulf %5, %tiny fastmath<reassoc> : f32
    tile.yield %6 : f32
  }
  %view = tile.view %out[%c0] rows(%c0) : memref<?x16xf32> -> <?x16xf32>
  tile.store %softcap, %view[%c0] : !s, <?x16xf32>
  tile.store %alibi, %view[%c0] : !s, <?x16xf32>
  tile.store %divided, %view[%c0] : !s, <?x16xf32>
  tile.store %ownsum, %view[%c0] : !s, <?x16xf32>
  tile.store %authorssum, %view[%c0] : !s, <?x16xf32>
  tile.store %own, %view[%c0] : !s, <?x16xf32>
  tile.return
}
