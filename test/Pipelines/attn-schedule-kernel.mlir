// The config says how a kernel goes on: warps that load for themselves, or roles.

// RUN: attn-opt %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir --pass-pipeline='builtin.module(tile.kernel(attn-schedule-kernel))' -o %t.roles.mlir
// RUN: FileCheck %s --check-prefix=ROLES --input-file=%t.roles.mlir
// RUN: attn-interpret %t.roles.mlir --runs=3 | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e 's/, consumers = 2, load = tma//' %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir > %t.gather-l.mlir
// RUN: attn-opt %t.gather-l.mlir --pass-pipeline='builtin.module(tile.kernel(attn-schedule-kernel))' -o %t.gather.mlir
// RUN: FileCheck %s --check-prefix=GATHER --input-file=%t.gather.mlir
// RUN: attn-interpret %t.gather.mlir --runs=3 | FileCheck %s --check-prefix=RIGHT

// ROLES: tile.kernel @prefill
// ROLES-SAME: level = #tile.level<specialized>
// ROLES-SAME: tile.shared_bytes =
// ROLES: tile.role @consumer
// GATHER: tile.kernel @prefill
// GATHER-SAME: level = #tile.level<pipelined>
// GATHER-SAME: tile.shared_bytes =
// GATHER-NOT: tile.role

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o
