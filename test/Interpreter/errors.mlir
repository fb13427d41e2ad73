// What the interpreter says of kernels that verify and go wrong when they run.

// RUN: sed -e 's/%in = arith.cmpi slt, %key, %len : index/%bad = arith.divsi %key, %c0 : index\n%in = arith.cmpi slt, %bad, %len : index/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=DIVIDE
// DIVIDE: :61:{{[0-9]+}}: error: interpreter: divides by zero

// A loop of the kernel, and one in the body of a map.
// RUN: sed -e 's/to %len step %c16 iter/to %len step %c0 iter/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: sed -e 's/%key = arith.addi %j, %c : index/%key = scf.for %u = %c0 to %c16 step %c0 iter_args(%w = %j) -> (index) { scf.yield %u : index }/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: error: interpreter: has a step that is not positive

// A call, likewise.
// RUN: sed -e '1i func.func private @outside(index) -> index' -e 's/%key = arith.addi %j, %c : index/%key = func.call @outside(%j) : (index) -> index/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: sed -e '1i func.func private @outside(index) -> index' -e 's/%r0 = arith.muli %wg, %c16 : index/%r0 = func.call @outside(%wg) : (index) -> index/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: error: interpreter: calls a function that has no body of one block

// Loads and stores in front of a view.
// RUN: sed -e 's/tile.load_async %kv.%j./tile.load_async %kv[%neg]/; s/%end = .*/%end = arith.addi %len, %c0 : index\n%neg = arith.subi %c0, %c16 : index/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=ROW
// RUN: sed -e 's/tile.store_async %os, %ov.%c0./tile.store_async %os, %ov[%neg]/; s/%ov = /%neg = arith.subi %c0, %c16 : index\n%ov = /' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=ROW
// ROW: error: interpreter: starts at row -16

// A page that the table does not have: the view is longer than the request.
// RUN: sed -e 's/rows(%kv_len) pages/rows(%far) pages/; s/tile.load %kv.%j./tile.load %kv[%far16]/; s/%kv = tile.view/%far = arith.constant 1048576 : index\n%far16 = arith.constant 1000000 : index\n%kv = tile.view/' %S/../Kernels/decode-l.mlir | not attn-interpret --batch=1:33 2>&1 | FileCheck %s --check-prefix=PAGE
// PAGE: error: interpreter: row 1000000 has no entry in the page table

// A parameter without a value.
// RUN: sed -e 's/{tile.arg = "scale"}/&, %extra: f32 {tile.arg = "param:extra"}/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole 2>&1 | FileCheck %s --check-prefix=PARAM
// PARAM: error: {{.*}}needs a value of parameter 'extra'
