// A constant last factor of the logits moves into the exponents; a factor of unknown sign stays. The interpreter agrees.

// RUN: sed -e '/mulf .scale, /s/arith.mulf.*/arith.constant 0.255034864 : f32/' %S/Inputs/hopper.mlir | attn-opt --canonicalize --cse --tile-fold-scale -o %t.mlir
// RUN: attn-interpret %t.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: attn-opt %S/Inputs/hopper.mlir --canonicalize --cse -o %t.plain.mlir
// RUN: attn-opt %t.plain.mlir --tile-fold-scale | diff - %t.plain.mlir
// RUN: sed -e '/mulf .scale, /s/arith.mulf.*/arith.constant -0.25 : f32/' %S/Inputs/hopper.mlir | attn-opt --canonicalize --cse -o %t.minus.mlir
// RUN: attn-opt %t.minus.mlir --tile-fold-scale | diff - %t.minus.mlir
// RUN: sed -e 's/#tile.level<logical>/#tile.level<pipelined>/' %S/Inputs/hopper.mlir | not attn-opt --tile-fold-scale 2>&1 | FileCheck %s --check-prefix=LEVEL

// LEVEL: error: 'tile.kernel' op is of level pipelined, expected level logical: it runs before
// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o

// CHECK: %[[LOOP:.*]]:3 = scf.for
// CHECK: %[[S:.*]] = tile.dot {{.*}} transpose_b
// CHECK-NOT: arith.mulf
// CHECK: tile.mask %[[S]]
// CHECK: %[[MAX:.*]] = tile.reduce maximumf
// CHECK: arith.select
// CHECK: %[[BIAS:.*]] = tile.map
// CHECK-NEXT: arith.mulf %{{.*}}, %[[C:.*]] : f32
// CHECK-NEXT: arith.negf
// CHECK: tile.map {{.*}} %[[BIAS]]
// CHECK-NEXT: math.fma %{{.*}}, %[[C]], %{{.*}} : f32
// CHECK-NEXT: math.exp2
// CHECK: tile.map {{.*}} %[[BIAS]][0]
// CHECK-NEXT: math.fma
// CHECK-NEXT: math.exp2
// CHECK: scf.yield %[[MAX]],
// CHECK: tile.map (%{{.*}} = %[[LOOP]]#0
// CHECK-NEXT: arith.mulf %{{.*}}, %[[C]] : f32
