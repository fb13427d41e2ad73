// RUN: attn-opt %S/Inputs/prefill.mlir --tile-multibuffer | FileCheck %s
// RUN: sed -e 's/stages = 2/stages = 3/' %S/Inputs/prefill.mlir | attn-opt --tile-multibuffer | FileCheck %s --check-prefix=THREE
// RUN: attn-opt %S/Inputs/prefill.mlir --tile-multibuffer=prefetch=false | FileCheck %s --check-prefix=PLAIN
// RUN: sed -e 's/stages = 2/stages = 1/' %S/Inputs/prefill.mlir | attn-opt --tile-multibuffer | FileCheck %s --check-prefix=PLAIN

// The first loads are issued before the loop and before Q is waited for; each step waits for its tile, then loads into
// the slot of the step before.
// CHECK-LABEL: tile.kernel @prefill
// CHECK-SAME: level = #tile.level<pipelined>
// CHECK: %[[KP:.*]] = tile.pipeline : <2 x !tile.smem<64x128xbf16>>
// CHECK: %[[VP:.*]] = tile.pipeline : <2 x !tile.smem<64x128xbf16>>
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[LO:.*]], %[[HI:.*]] : index
// CHECK: scf.if %[[SOME]] {
// CHECK: %[[K0:.*]] = tile.producer_acquire %[[KP]]
// CHECK: tile.load_async %[[K:.*]][%[[LO]]] into %[[K0]] signal %[[KP]]
// CHECK: scf.if %[[SOME]] {
// CHECK: %[[V0:.*]] = tile.producer_acquire %[[VP]]
// CHECK: tile.load_async %[[V:.*]][%[[LO]]] into %[[V0]] signal %[[VP]]
// CHECK: }
// CHECK: %[[Q:.*]] = tile.load
// CHECK: scf.for %[[J:.*]] = %[[LO]] to %[[HI]]
// CHECK: %[[KS:.*]] = tile.consumer_wait %[[KP]] {tile.in_flight = 1 : i64}
// CHECK: %[[NEXT:.*]] = arith.addi %[[J]]
// CHECK: arith.cmpi slt, %[[NEXT]], %[[HI]]
// CHECK: scf.if
// CHECK: tile.load_async %[[K]][%[[NEXT]]] into %{{.*}} signal %[[KP]]
// CHECK: }
// CHECK: tile.dot %[[Q]], %[[KS]] transpose_b
// CHECK-NEXT: tile.consumer_release %[[KP]]
// CHECK: %[[VS:.*]] = tile.consumer_wait %[[VP]] {tile.in_flight = 1 : i64}
// CHECK: tile.load_async %[[V]]
// CHECK: tile.dot %{{.*}}, %[[VS]] acc
// CHECK-NEXT: tile.consumer_release %[[VP]]

// THREE-COUNT-2: tile.pipeline : <3 x
// THREE-COUNT-4: tile.load_async
// THREE: scf.for
// THREE: tile.consumer_wait {{.*}} {tile.in_flight = 3 : i64}

// PLAIN-NOT: scf.if
// PLAIN: scf.for
// PLAIN: tile.producer_acquire
// PLAIN-NEXT: tile.load_async
// PLAIN-NEXT: %[[KS:.*]] = tile.consumer_wait %{{.*}} : !tile.pipeline
// PLAIN-NEXT: tile.dot %{{.*}}, %[[KS]] transpose_b
// PLAIN-NEXT: tile.consumer_release
