// The passes of a config one by one, each compared with what the kernel meant before the first.

// RUN: attn-interpret %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir --through --runs=1 | FileCheck %s --check-prefix=ROLES
// RUN: sed -e 's/, consumers = 2, load = tma//' %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir | attn-interpret --through --runs=1 --split=2 | FileCheck %s --check-prefix=GATHER
// ROLES: @prefill: right after {{1[0-9]}} passes
// GATHER: @prefill: right after {{[4-9]}} passes

// A kernel that its passes refuse, and one that comes to mean something else: its mask drops keys that the interval keeps.
// RUN: sed -e 's/warps = 2, consumers = 2/warps = 3, consumers = 2/' %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir | not attn-interpret --through 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: {{.*}}has 32 rows and 3 warps for 2 consumers
// REFUSED: attn-interpret: @prefill is refused by its passes
// RUN: sed -e 's/%f0 = arith.addi %qpos0, %c1/%f0 = arith.addi %qpos0, %rows/' %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir | not attn-interpret --through --batch=64:64 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: attn-interpret: @prefill means something else after {{.*}}, seed 0
