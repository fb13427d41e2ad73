// From level L to roles, one pass after the other; after each the interpreter compares a few random batches (whole and
// split keys) with a plain softmax.

// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-defer-sums -o %t.sums.mlir
// RUN: attn-interpret %t.sums.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=SUMS --input-file=%t.sums.mlir
// RUN: attn-opt %t.sums.mlir --tile-skew-dots -o %t.skew.mlir
// RUN: attn-interpret %t.skew.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=SKEW --input-file=%t.skew.mlir
// RUN: attn-opt %t.skew.mlir --tile-peel-masks -o %t.peel.mlir
// RUN: attn-interpret %t.peel.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=PEEL --input-file=%t.peel.mlir
// RUN: attn-opt %t.peel.mlir --tile-warp-specialize -o %t.roles.mlir
// RUN: attn-interpret %t.roles.mlir --runs=6 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.roles.mlir --runs=4 --split=2 --seed=50 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=ROLES --input-file=%t.roles.mlir

// Each pass alone, three consumers' rows in one group, and Q as fragments.
// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-warp-specialize | attn-interpret --runs=3 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-peel-masks | attn-interpret --runs=3 | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e 's/consumers = 2/consumers = 1/' %S/Inputs/hopper.mlir | attn-opt --tile-assign-layouts --tile-skew-dots --tile-warp-specialize | attn-interpret --runs=3 | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e 's/consumers = 2/consumers = 2, q_in_registers = true/' %S/Inputs/hopper.mlir | attn-opt --tile-assign-layouts --tile-defer-sums --tile-skew-dots --tile-peel-masks --tile-warp-specialize -o %t.q.mlir
// RUN: attn-interpret %t.q.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=QREG --input-file=%t.q.mlir

// A producer that loads V one block late is caught.
// RUN: sed -e 's/%chi/%chi/' %t.roles.mlir | sed -e '/@producer/,/@consumer/s/arith.subi %arg19, %c16/arith.addi %arg19, %c0/' | not attn-interpret --runs=4 2>&1 | FileCheck %s --check-prefix=LATE

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o
// LATE: error: {{.*}}

// SUMS: %[[ZERO:.*]] = tile.splat {{.*}} -> <32xf32, #tile.slice<dim = 1, parent = #tile.mma<warps = [2, 1]>, partial = true>>
// SUMS: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args({{.*}}, %{{.*}} = %[[ZERO]],
// SUMS: tile.reduce addf {{.*}} dim 1 scope thread
// SUMS: tile.reduce addf %[[LOOP]]#1 scope lanes

// SKEW: scf.if
// SKEW: tile.dot {{.*}} transpose_b
// SKEW: tile.mask
// SKEW: scf.for
// SKEW: tile.dot {{.*}} transpose_b
// SKEW-NEXT: arith.subi
// SKEW-NEXT: tile.load
// SKEW-NEXT: tile.dot {{.*}} acc
// SKEW: tile.mask
// SKEW: scf.yield
// SKEW: tile.dot {{.*}} acc

// The first block, then masked, not masked, masked.
// PEEL: tile.mask
// PEEL: scf.for
// PEEL: tile.mask
// PEEL: scf.for
// PEEL-NOT: tile.mask
// PEEL: scf.for
// PEEL: tile.mask

// ROLES: level = #tile.level<specialized>
// ROLES-DAG: %[[Q:.*]] = tile.pipeline consumers 2 : <3 x !tile.smem<32x32xbf16
// ROLES-DAG: %[[K:.*]] = tile.pipeline consumers 2 : <2 x !tile.smem<16x32xbf16
// ROLES-DAG: %[[V:.*]] = tile.pipeline consumers 2 : <2 x !tile.smem<16x32xbf16
// ROLES: tile.role @producer warps(1) registers(40)
// ROLES-NOT: tile.producer_acquire %[[Q]]
// ROLES: scf.if
// ROLES: tile.producer_acquire %[[KP:.*]] : <2
// ROLES-NOT: tile.dot
// Pages of V have a producer of their own.
// ROLES: tile.role @producer2 warps(1) registers(40)
// ROLES: tile.producer_acquire %[[V]]
// The query tile too: its role has three stages to run ahead.
// ROLES: tile.role @query warps(1) registers(40)
// ROLES: tile.producer_acquire %[[Q]]
// ROLES-NOT: tile.producer_acquire
// ROLES: tile.role @consumer warps(1) groups(2) registers(232)
// ROLES: %[[QS:.*]] = tile.consumer_wait %[[Q]]
// ROLES: tile.subview %[[QS]]
// ROLES: scf.for
// ROLES: tile.consumer_wait %[[KP]]
// ROLES: tile.consumer_wait
// ROLES: tile.fill_rows
// ROLES: %[[S:.*]] = tile.dot_async
// ROLES-NEXT: %[[PV:.*]] = tile.dot_async
// ROLES-NEXT: tile.await %[[S]]
// ROLES-NEXT: tile.consumer_release %[[KP]]
// ROLES: tile.reduce maximumf
// ROLES: tile.await %[[PV]]
// ROLES-NEXT: tile.consumer_release
// ROLES-NOT: tile.await
// ROLES: arith.truncf
// ROLES: scf.yield
// ROLES: tile.consumer_release %[[Q]]

// The product in front of the loops reads Q from shared memory, those of the loops have it as fragments.
// QREG: %[[QS:.*]] = tile.subview
// QREG-NEXT: %[[QF:.*]] = tile.local_load %[[QS]] : {{.*}} -> <16x32xbf16, #tile.operand<a, parent = #tile.mma<warps = [1, 1]>>>
// QREG: tile.dot_async %[[QS]],
// QREG: tile.consumer_release
// QREG: tile.dot_async %[[QF]],

// V's last rows may be anything: they are zeroed, but not in the loop over whole blocks.
// RUN: FileCheck %s --check-prefix=TAIL --input-file=%t.roles.mlir
// RUN: sed -e '/tile.fill_rows/d' %t.roles.mlir | not attn-interpret --batch=20:37 2>&1 | FileCheck %s --check-prefix=NAN
// TAIL: tile.role @consumer
// TAIL: tile.mask
// TAIL: scf.for
// TAIL: tile.fill_rows
// TAIL: scf.for
// TAIL-NOT: tile.fill_rows
// TAIL: } {tile.whole_blocks}
// TAIL: scf.for
// TAIL: tile.fill_rows
// NAN: error: 'tile.kernel' op gives o = nan
