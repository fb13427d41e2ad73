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

// Sums not taken yet, used as if they were; a wait for nobody; memory of no pipeline.
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=read --batch=16:16 2>&1 | FileCheck %s --check-prefix=READ
// READ: error: interpreter: reads a partial sum as if it were one
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=map --batch=16:16 2>&1 | FileCheck %s --check-prefix=MAP
// MAP: error: interpreter: uses a partial sum for a result that is none
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=both --batch=16:16 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: interpreter: has partial and whole results
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=mask --batch=16:16 2>&1 | FileCheck %s --check-prefix=MASK
// MASK: error: interpreter: masks a partial sum
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=all --batch=16:16 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: interpreter: has a partial result but combines all lanes
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=columns --batch=16:16 2>&1 | FileCheck %s --check-prefix=COLUMNS
// COLUMNS: error: interpreter: combines what a thread holds along another dimension than the columns
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=other --batch=16:16 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: interpreter: reduces a partial sum along another dimension
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=forever --batch=16:16 2>&1 | FileCheck %s --check-prefix=FOREVER
// FOREVER: error: interpreter: waits forever: nothing else runs that could signal it
// RUN: not attn-interpret %S/Inputs/refused.mlir --kernel=unowned --batch=16:16 2>&1 | FileCheck %s --check-prefix=UNOWNED
// UNOWNED: error: interpreter: stores from memory that no pipeline owns

// Stages in the wrong order: handed on before they are held, filled before they are acquired, words sent likewise or not at all.
// RUN: sed -e '/%os = tile.producer_acquire/d; s/%qs = tile.consumer_wait %qp : !pq/%os = tile.producer_acquire %op : !po -> !tq\n&/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=HAND-ON
// HAND-ON: error: interpreter: takes a slot to hand on without holding one
// RUN: sed -e '/tile.load_async %kv/d; s/%ks = tile.producer_acquire/tile.commit %kp : !p1\n&/' %S/Inputs/roles.mlir | not attn-interpret --no-causal --whole --batch=32:64 2>&1 | FileCheck %s --check-prefix=COMMIT
// COMMIT: error: interpreter: commits a stage that it has not acquired
// RUN: attn-opt %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir --tile-assign-layouts --tile-reverse-keys --tile-skew-dots --tile-warp-specialize --tile-stream-items -o %t.stream.mlir
// RUN: sed -e '/tile.send/d' %t.stream.mlir | not attn-interpret --runs=2 2>&1 | FileCheck %s --check-prefix=UNSENT
// UNSENT: error: interpreter: reads words that nobody has sent
// RUN: sed -e '/= tile.producer_acquire.*words/{N;s/\(.*\)\n\(.*tile.send.*\)/\2\n\1/;}' %t.stream.mlir | not attn-interpret --runs=2 2>&1 | FileCheck %s --check-prefix=SEND
// SEND: error: interpreter: sends words with a stage that it has not acquired

// A buffer that the kernel's types do not fit: q has 4 heads.
// RUN: sed -e 's/^!ml = .*/!ml = memref<?x8xf32, strided<[?, ?]>>/' %S/../Dialect/Tile/Transforms/Inputs/hopper.mlir | not attn-interpret 2>&1 | FileCheck %s --check-prefix=FITS
// FITS: error: {{.*}}is run with a buffer that does not fit the type of argument 4
