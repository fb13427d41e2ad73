// Without `peel` a key loop stays one, whose mask is branched around in whole blocks.

// RUN: sed -e 's/load = tma/load = tma, peel = false/' %S/Inputs/hopper.mlir > %t.mlir
// RUN: attn-opt %t.mlir --tile-assign-layouts --tile-defer-sums --tile-reverse-keys --tile-skew-dots --tile-peel-masks -o %t.one.mlir
// RUN: FileCheck %s --check-prefix=ONE --input-file=%t.one.mlir
// RUN: attn-interpret %t.one.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.mlir --through --runs=2 | FileCheck %s --check-prefix=THROUGH
// RUN: attn-interpret %t.mlir --through --runs=2 --split=2 | FileCheck %s --check-prefix=THROUGH
// RUN: sed -e 's/, consumers = 2, load = tma/, peel = false/' %S/Inputs/hopper.mlir | attn-interpret --through --runs=1 --split=2 | FileCheck %s --check-prefix=THROUGH

// ONE: scf.for
// ONE: tile.mask {{.*}} attributes {tile.skips_whole}
// ONE-NOT: scf.for
// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o
// THROUGH: @prefill: right after
