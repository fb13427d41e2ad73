// The wait for P V stays behind the first weights of the block that overlaps with it: one of each row in a key loop, four in
// the step between two items. What the kernel means stays.

// RUN: attn-opt %S/Inputs/hopper.mlir --tile-fold-scale --tile-assign-layouts --tile-defer-sums --tile-reverse-keys --tile-skew-dots --tile-peel-masks --tile-warp-specialize --tile-stream-items --canonicalize -o %t.stream.mlir
// RUN: attn-opt %t.stream.mlir --tile-hold-waits -o %t.held.mlir
// RUN: FileCheck %s --input-file=%t.held.mlir
// RUN: attn-interpret %t.held.mlir --runs=4 --against-file=%t.stream.mlir | FileCheck %s --check-prefix=RIGHT
// A second run finds nothing.
// RUN: attn-opt %t.held.mlir --tile-hold-waits | diff - %t.held.mlir

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o

// The youngest product only, and nothing where no sum stands between.
// CHECK: scf.while
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.dot_async
// CHECK: %[[O:.*]] = tile.dot_async
// CHECK: tile.await %[[S]] :
// CHECK: %[[SUM:.*]] = tile.reduce addf %{{.*}} dim 1 scope thread
// CHECK: tile.await %[[O]] after %[[SUM]] terms 1 :
// CHECK: scf.condition
// CHECK: %[[S2:.*]] = tile.dot_async
// CHECK: %[[O2:.*]] = tile.dot_async
// CHECK: tile.await %[[S2]] :
// CHECK: %[[SUM2:.*]] = tile.reduce addf %{{.*}} dim 1 scope thread
// CHECK: tile.await %[[O2]] after %[[SUM2]] terms 4 :
// CHECK: scf.yield
// CHECK: %[[LAST:.*]] = tile.dot_async
// CHECK: tile.await %[[LAST]] :
