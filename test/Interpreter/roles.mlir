// Level S: roles, slots that change use, products in flight; and what the interpreter says of planted bugs.

// RUN: attn-interpret %S/Inputs/roles.mlir --no-causal --whole --batch=32:16,64:40,32:64 --runs=8 | FileCheck %s
// RUN: attn-opt %S/Inputs/roles.mlir | attn-interpret --no-causal --whole --runs=3 | FileCheck %s
// CHECK: @roles: {{[0-9]+}} rows, largest error of o

// The producer loads a block too few: the consumers wait for ever.
// RUN: sed -e 's/%end = .*END/%end = arith.subi %len, %c16 : index/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// DEADLOCK: error: interpreter: waits forever: every role waits
// DEADLOCK: @roles failed, seed 0

// A block too many is never consumed.
// RUN: sed -e 's/%end = .*END/%end = arith.addi %len, %c16 : index/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 --heads=1 --heads-kv=1 2>&1 | FileCheck %s --check-prefix=LEFT
// LEFT: error: interpreter: has a stage that was filled and never consumed by all its consumers

// V is loaded where K belongs: a wrong result.
// RUN: sed -e 's/tile.load_async %kv.%j./tile.load_async %vv[%j]/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: 'tile.kernel' op gives {{.*}}, expected

// V's wait comes before K's in a ring of one stage: each side waits for the other.
// RUN: sed -e 's/%ks = tile.consumer_wait %kp : !p1 .. WAIT-K/%ks = tile.consumer_wait %vp : !p1/; s/%vs = tile.consumer_wait %vp/%vs = tile.consumer_wait %kp/; s/tile.consumer_release %kp/tile.consumer_release %zp/; s/tile.consumer_release %vp/tile.consumer_release %kp/; s/%zp/%vp/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=SWAPPED
// SWAPPED: error: {{.*}}{{waits forever|gives}}

// The output is never written into the slot: Q leaves instead.
// RUN: sed -e '/LOCAL-STORE/d' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=WRONG

// A bulk store of a tile that is not whole.
// RUN: sed -e 's/ : !m -> !v .. OUT/ rows(%c16) : !m -> !v/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=BULK
// BULK: error: interpreter: writes 32 rows of a view of 16; a bulk store is for whole tiles only

// Endless.
// RUN: not attn-interpret %S/Inputs/roles.mlir --no-causal --whole --max-steps=1000 2>&1 | FileCheck %s --check-prefix=ENDLESS
// ENDLESS: error: interpreter: runs endlessly (more steps than the interpreter's limit)
