// Roles whose keys are gathered by threads: a role of four warps beside the producer of Q. Rows that do not exist are zero in
// the stage, so that nobody fills them; the interpreter leaves anything there when a tensor copy did it.

// RUN: sed -e 's/load = tma/load = gather/' %S/Inputs/hopper.mlir > %t.mlir
// RUN: attn-opt %t.mlir --tile-assign-layouts --tile-defer-sums --tile-reverse-keys --tile-skew-dots --tile-peel-masks --tile-warp-specialize -o %t.roles.mlir
// RUN: attn-interpret %t.roles.mlir --runs=6 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.roles.mlir --runs=4 --split=2 --seed=50 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=ROLES --input-file=%t.roles.mlir
// RUN: attn-opt %t.roles.mlir --tile-store-role --tile-stream-items --canonicalize --cse -o %t.stream.mlir
// RUN: attn-interpret %t.stream.mlir --runs=8 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.stream.mlir --batch=32:64,64:64,20:0,5:3 --ctas=1 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=STREAM --input-file=%t.stream.mlir

// Pages of every kind, after each pass; one consumer.
// RUN: sed -e 's/load = tma/load = gather/;s/x4x2x32xbf16/x1x2x32xbf16/;s/paged<4>/paged<1>/' %S/Inputs/hopper.mlir | attn-interpret --through --runs=2 | FileCheck %s --check-prefix=THROUGH
// RUN: sed -e 's/load = tma/load = gather/;s/x4x2x32xbf16/x5x2x32xbf16/;s/paged<4>/paged<5>/;s/consumers = 2/consumers = 1/' %S/Inputs/hopper.mlir | attn-interpret --through --runs=2 | FileCheck %s --check-prefix=THROUGH
// RUN: sed -e 's/x4x2x32xbf16/x12x2x32xbf16/;s/paged<4>/paged<12>/' %S/Inputs/hopper.mlir | attn-interpret --through --runs=2 --split=2 | FileCheck %s --check-prefix=THROUGH

// Without the zeros, that is with tensor copies in the place of the gathers, the weights of rows that do not exist meet anything.
// RUN: sed -e 's/{tile.gather}//' %t.roles.mlir | not attn-interpret --batch=20:21 2>&1 | FileCheck %s --check-prefix=TAIL

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o {{[0-9.]+}}E-0{{[3-9]}}
// THROUGH: @prefill: right after {{1[0-9]}} passes
// TAIL: error: {{.*}}nan

// ROLES: tile.role @producer warps(1) registers(24)
// ROLES-NOT: tile.gather
// ROLES: tile.load_async %
// ROLES-NOT: tile.load_async
// ROLES: tile.role @gather warps(4) registers(24)
// ROLES: %[[KS:.*]] = tile.producer_acquire %[[K:.*]] :
// ROLES-NEXT: tile.load_async %{{.*}} into %[[KS]] signal %[[K]] {tile.gather}
// ROLES: scf.for
// ROLES: tile.load_async %{{.*}} signal %[[K]] {tile.gather}
// ROLES: tile.load_async %{{.*}} signal %[[V:[0-9]+]] {tile.gather}
// ROLES: tile.role @consumer
// ROLES-NOT: tile.fill_rows

// STREAM: tile.role @producer
// STREAM: tile.send
// STREAM: tile.role @gather
// STREAM: tile.for_each
// STREAM-NOT: tile.send
// STREAM: tile.role @store warps(1) registers(24)
// STREAM: tile.role @consumer
