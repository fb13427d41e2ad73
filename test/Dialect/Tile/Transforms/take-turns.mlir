// Where a step issues Q K of a block and P V of the one before, the first product takes the group's turn and the second
// passes it on; products that stand alone do not wait. What the kernel means stays.

// RUN: sed -e 's/consumers = 2/consumers = 2, turns = true/' %S/Inputs/hopper.mlir | attn-opt --tile-fold-scale --tile-assign-layouts --tile-defer-sums --tile-reverse-keys --tile-skew-dots --tile-peel-masks --tile-warp-specialize --tile-stream-items --canonicalize -o %t.stream.mlir
// RUN: attn-opt %t.stream.mlir --tile-take-turns -o %t.turns.mlir
// RUN: FileCheck %s --input-file=%t.turns.mlir
// RUN: attn-interpret %t.turns.mlir --runs=4 --against-file=%t.stream.mlir | FileCheck %s --check-prefix=RIGHT
// A second run finds nothing new, and a config without turns has none.
// RUN: attn-opt %t.turns.mlir --tile-take-turns | diff - %t.turns.mlir
// RUN: sed -e 's/, turns = true//' %t.stream.mlir | attn-opt --tile-take-turns | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/consumers = 2/consumers = 2, turns = true/' %S/Inputs/hopper.mlir | not attn-opt --tile-take-turns 2>&1 | FileCheck %s --check-prefix=LEVEL

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o
// NONE-NOT: tile.takes_turn
// LEVEL: is of level logical, expected level specialized: it runs after tile-warp-specialize

// CHECK: tile.role @consumer
// CHECK: tile.dot_async
// CHECK-NOT: tile.takes_turn
// CHECK: scf.while
// CHECK: scf.for
// CHECK: tile.dot_async {{.*}} {tile.takes_turn}
// CHECK: tile.dot_async {{.*}} {tile.passes_turn}
// CHECK: tile.await
// CHECK: scf.condition
// CHECK: tile.dot_async {{.*}} {tile.takes_turn}
// CHECK: tile.dot_async {{.*}} {tile.passes_turn}
// CHECK: scf.yield
// CHECK: tile.dot_async
// CHECK-NOT: tile.passes_turn
