// RUN: not attn-translate --kernels-to-ptx %s 2>&1 | FileCheck %s
// CHECK: error: {{.*}}has no attribute 'attn.chip' that names a GPU out of {{.*}}sm_80
// RUN: echo "module {}" | not attn-translate --kernels-to-ptx 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}has no gpu.module, run convert-tile-to-gpu first

gpu.module @kernels {
}
