// Whole output tiles leave through the stage that held Q. What the kernel means stays: the interpreter runs it.

// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-warp-specialize -o %t.roles.mlir
// RUN: attn-opt %t.roles.mlir --tile-store-role -o %t.store.mlir
// RUN: FileCheck %s --input-file=%t.store.mlir
// RUN: attn-interpret %t.store.mlir --runs=4 --against-file=%t.roles.mlir | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.store.mlir --batch=32:16,31:40,64:0 --against-file=%t.roles.mlir | FileCheck %s --check-prefix=RIGHT

// One consumer group writes the whole stage.
// RUN: sed -e 's/consumers = 2/consumers = 1/' %S/Inputs/hopper.mlir | attn-opt --tile-assign-layouts --tile-warp-specialize --tile-store-role -o %t.one.mlir
// RUN: FileCheck %s --check-prefix=ONE --input-file=%t.one.mlir
// RUN: attn-interpret %t.one.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT

// Left alone: one stage of query tiles (of an unknown machine; the next one would be waited for in vain), and an output
// of another type than the queries.
// RUN: sed -e 's/, target = #attn.target<"sm_90a">//; s/^ *target = #attn.target<"sm_90a">} {/} {/; s/load = tma>,/load = tma>/' %S/Inputs/hopper.mlir | attn-opt --tile-assign-layouts --tile-warp-specialize --tile-store-role | FileCheck %s --check-prefix=SAME
// RUN: sed -e 's/%o: !mq/%o: !mo/; /%ov = /s/!mq -> !qv/!mo -> !ov/; /tile.store %ob/s/!qv/!ov/; s/^!ob = .*/!ob = !tile.reg<32x32xf16>\n!mo = memref<?x4x32xf16, strided<[?, ?, 1]>>\n!ov = !tile.view<?x32xf16>/' %S/Inputs/hopper.mlir | attn-opt --tile-assign-layouts --tile-warp-specialize --tile-store-role | FileCheck %s --check-prefix=SAME

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o


// CHECK: %[[Q:.*]] = tile.pipeline consumers 2 : <3 x
// CHECK-NEXT: %[[O:.*]] = tile.pipeline chain %[[Q]] : {{.*}} producers 2
// CHECK: tile.role @producer
// CHECK: tile.role @store warps(1)
// CHECK: tile.for_each
// CHECK: %[[SLOT:.*]] = tile.consumer_wait %[[O]]
// CHECK: %[[ALL:.*]] = arith.cmpi sge, %{{.*}}, %{{c32.*}}
// CHECK: %[[BOTH:.*]] = arith.andi %[[ALL]], %{{.*}} : i1
// CHECK: scf.if %[[BOTH]] {
// CHECK: tile.store_async %[[SLOT]]
// CHECK: }
// CHECK: tile.consumer_release %[[O]]
// CHECK: tile.role @consumer {{.*}} (%[[GROUP:.*]])
// CHECK: tile.consumer_wait %[[Q]]
// CHECK-NOT: tile.consumer_release %[[Q]]
// CHECK: scf.if
// CHECK: scf.if
// CHECK: %[[ROW0:.*]] = arith.muli %[[GROUP]], %{{.*}}
// CHECK: %[[PART:.*]] = tile.subview %{{.*}}[%[[ROW0]], 0]
// CHECK: tile.local_store %{{.*}}, %[[PART]]
// CHECK: } else {
// CHECK-NEXT: tile.store
// CHECK: tile.commit %[[O]]

// ONE: tile.role @store
// ONE: tile.role @consumer
// ONE-NOT: tile.subview
// ONE: tile.local_store

// SAME: tile.pipeline
// SAME-NOT: tile.role @store
// SAME-NOT: tile.local_store
// SAME: tile.consumer_release
