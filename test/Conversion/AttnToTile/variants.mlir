// Every example variant, for the host and for GPUs, gives kernels that verify and read back.

// RUN: for t in host sm_80 sm_90a; do for f in %attn_src_root/examples/variants/*.mlir; do \
// RUN:   attn-opt $f --attn-select-config=target=$t --attn-to-tile | attn-opt -o /dev/null || exit 1; done; done

// RUN: attn-opt %attn_src_root/examples/variants/all_hooks.mlir --attn-select-config=target=sm_80 --attn-to-tile | FileCheck %s

// Query hook: in registers for 16 rows; rotary on the first 32 elements, the rest joined on.
// CHECK-LABEL: tile.kernel @all_hooks_r16(
// CHECK-SAME: f32 {tile.arg = "scale"}, %{{.*}}: f32 {tile.arg = "param:cap"}, %{{.*}}: memref<8xf32> {tile.arg = "param:slopes"}
// CHECK-SAME: index {tile.arg = "param:left"}, %{{.*}}: memref<?xf32> {tile.arg = "param:sinks"}
// The range of a causal window, token by token.
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: tile.slice %{{.*}} [0, 0]
// CHECK: tile.slice %{{.*}} [0, 16]
// CHECK: tile.slice %{{.*}} [0, 32]
// CHECK: tile.concat %{{.*}}, %{{.*}}, %{{.*}} dim 1 : {{.*}}16x64xbf16
// CHECK: scf.for
// Key hook on registers, value hook with rows past the end zeroed.
// CHECK: tile.local_load
// CHECK: tile.concat
// CHECK: tile.local_load
// CHECK: arith.cmpi slt
// CHECK: tile.dot {{.*}} transpose_b
// Logits: the natural logit goes in, base 2 comes out.
// CHECK: math.tanh
// CHECK: tile.mask
// CHECK: tile.dot
// Sink, output hook.
// CHECK: scf.if
// CHECK: memref.load
// CHECK: math.exp
// CHECK: tile.store
// CHECK: else

// The larger class rewrites Q in shared memory.
// CHECK-LABEL: tile.kernel @all_hooks_r128(
// CHECK: tile.local_store

// Finalise stands in the merge kernel too.
// CHECK-LABEL: tile.kernel @all_hooks_merge(
// CHECK: math.exp
// lse is in base 2: no factor.
// CHECK-NOT: 0.693147182
// CHECK: func.func @all_hooks_range
