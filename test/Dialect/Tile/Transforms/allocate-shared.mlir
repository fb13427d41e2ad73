// RUN: attn-opt %S/Inputs/decode.mlir --tile-assign-layouts --tile-multibuffer --tile-allocate-shared | FileCheck %s
// RUN: attn-opt %S/Inputs/prefill.mlir --tile-assign-layouts --tile-multibuffer --tile-allocate-shared | FileCheck %s --check-prefix=PREFILL
// RUN: not attn-opt %S/Inputs/decode.mlir --tile-assign-layouts --tile-multibuffer --tile-allocate-shared=limit=131000 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: sed -e 's/sm_80/sm_86/' %S/Inputs/decode.mlir | not attn-opt --tile-assign-layouts --tile-multibuffer --tile-allocate-shared 2>&1 | FileCheck %s --check-prefix=SM86
// RUN: sed -e 's/sm_80/sm_81/' %S/Inputs/decode.mlir | not attn-opt --tile-assign-layouts --tile-multibuffer --tile-allocate-shared 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// The merge of the groups (4 x 16 x 128 floats) uses the memory of the pipelines, idle by then.
// CHECK: tile.shared_bytes = 131072 : i64
// CHECK: tile.pipeline {tile.shared_offset = 0 : i64}
// CHECK: tile.pipeline {tile.shared_offset = 65536 : i64}
// CHECK: tile.reduce maximumf {{.*}} dim 2 init {{.*}}, : <
// CHECK: tile.reduce addf {{.*}} dim 0 {tile.shared_offset = 0 : i64}

// PREFILL: tile.shared_bytes = 98304 : i64
// PREFILL: tile.load {{.*}} {tile.shared_offset = 65536 : i64}

// LIMIT: error: 'tile.kernel' op needs 131072 bytes of shared memory, 72 more than the 131000 of the option: choose fewer 'stages', 'keys' or 'rows'
// SM86: error: 'tile.kernel' op needs 131072 bytes of shared memory, 29696 more than the 101376 of sm_86: choose fewer 'stages', 'keys' or 'rows'
// UNKNOWN: error: 'tile.kernel' op has unknown target 'sm_81', expected one of host, sm_80, sm_86, sm_89, sm_90a, sm_100a
