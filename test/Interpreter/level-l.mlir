// Level-L kernels against a plain softmax: pages, packed heads, key groups, split keys, empty and short requests.

// RUN: attn-interpret %S/../Kernels/decode-l.mlir --batch=1:33,4:140,2:1,1:0,3:2 | FileCheck %s --check-prefix=DECODE
// RUN: attn-interpret %S/../Kernels/decode-l.mlir --batch=1:300,2:140 --split=3 --seed=4 | FileCheck %s --check-prefix=DECODE
// DECODE: @decode: {{[0-9]+}} rows, largest error of o {{[0-9.]+}}E-0{{[3-9]}}, of lse {{[0-9.]+}}E-0{{[5-9]}}
// RUN: attn-interpret %S/../Kernels/prefill-l.mlir --kernel=prefill_paged_64 --batch=3:140,5:0,9:4 | FileCheck %s --check-prefix=PREFILL
// RUN: attn-interpret %S/../Kernels/prefill-l.mlir --kernel=prefill_ragged_128 --batch=3:200 --split=2 | FileCheck %s --check-prefix=PREFILL
// PREFILL: @prefill_{{.*}}: {{[0-9]+}} rows

// RUN: not attn-interpret %S/../Kernels/decode-l.mlir --kernel=encode 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: attn-interpret: found 0 kernels of the given names
// RUN: not attn-interpret %S/../Kernels/decode-l.mlir --batch=3 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: attn-interpret: --batch has '3', expected QUERIES:KEYS
// RUN: not attn-interpret %S/../Kernels/merge-l.mlir 2>&1 | FileCheck %s --check-prefix=MERGE
// MERGE: error: 'tile.kernel' op cannot be checked: expected arguments of roles q, k, v, o with ranks of the ABI

// A mask that drops keys of the interval where it says that none are. Their rows are poisoned.
// RUN: sed -e 's/fhi = arith.addi %qpos0, %c1 :/fhi = arith.addi %qpos0, %c128 :/' %S/../Kernels/prefill-l.mlir | not attn-interpret --kernel=prefill_paged_64 --batch=64:256 2>&1 | FileCheck %s --check-prefix=MASK
// MASK: error: {{.*}}gives lse nan for token 0
