// The whole way to one stream of items: after each pass the interpreter compares random batches (whole and split keys, requests
// without keys among them) with a plain softmax.

// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-defer-sums --tile-reverse-keys -o %t.reverse.mlir
// RUN: attn-interpret %t.reverse.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.reverse.mlir --batch=20:0,5:3,0:0 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=REVERSE --input-file=%t.reverse.mlir
// RUN: attn-opt %t.reverse.mlir --tile-skew-dots --tile-peel-masks -o %t.peel.mlir
// RUN: attn-interpret %t.peel.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=PEEL --input-file=%t.peel.mlir
// RUN: attn-opt %t.peel.mlir --tile-warp-specialize --tile-store-role -o %t.store.mlir
// RUN: attn-interpret %t.store.mlir --runs=6 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=STORE --input-file=%t.store.mlir
// RUN: attn-opt %t.store.mlir --tile-stream-items --canonicalize --cse -o %t.stream.mlir
// RUN: attn-interpret %t.stream.mlir --runs=8 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.stream.mlir --runs=6 --split=2 --seed=50 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.stream.mlir --batch=32:64,64:64,20:0,5:3 --ctas=1 | FileCheck %s --check-prefix=RIGHT
// RUN: FileCheck %s --check-prefix=STREAM --input-file=%t.stream.mlir

// The same with Q as fragments, without the store role, with one consumer, and without masks in an interval.
// RUN: sed -e 's/consumers = 2/consumers = 2, q_in_registers = true/' %S/Inputs/hopper.mlir > %t.q.mlir
// RUN: attn-opt %t.q.mlir --tile-assign-layouts --tile-defer-sums --tile-reverse-keys --tile-skew-dots --tile-peel-masks --tile-warp-specialize -o %t.qroles.mlir
// RUN: attn-opt %t.qroles.mlir --tile-store-role --tile-stream-items | attn-interpret --runs=6 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-opt %t.qroles.mlir --tile-stream-items | attn-interpret --runs=6 --seed=9 | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e 's/consumers = 2/consumers = 1/' %S/Inputs/hopper.mlir | attn-opt --tile-assign-layouts --tile-reverse-keys --tile-skew-dots --tile-warp-specialize --tile-store-role --tile-stream-items | attn-interpret --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-opt %S/Inputs/hopper.mlir --tile-assign-layouts --tile-reverse-keys | attn-opt --tile-peel-masks | attn-interpret --runs=4 | FileCheck %s --check-prefix=RIGHT

// The field of 64 bits travels as two words, the upper one times 2^32.
// RUN: attn-opt %t.peel.mlir --tile-warp-specialize | sed -e '/@consumer/,$s/tile.for_each.* \(.arg[0-9]*\) = table,.*/&\n%use = arith.addi \1, \1 : index/' | attn-opt --tile-stream-items -o %t.table.mlir
// RUN: FileCheck %s --check-prefix=TABLE --input-file=%t.table.mlir
// RUN: attn-interpret %t.table.mlir --runs=4 | FileCheck %s --check-prefix=RIGHT
// TABLE: tile.role @producer
// TABLE: %[[UPPER:.*]] = arith.shrsi
// TABLE-NEXT: %[[SHIFTED:.*]] = arith.shli %[[UPPER]]
// TABLE-NEXT: %[[LOWER:.*]] = arith.subi %{{.*}}, %[[SHIFTED]]
// TABLE: tile.send {{.*}}%[[LOWER]], %[[UPPER]]
// TABLE: tile.role @consumer
// TABLE: arith.constant 4294967296

// A store role that frees the stage before the consumers have written it is caught, and so is a stream that nobody ends.
// RUN: sed -e '/tile.commit/d' %t.stream.mlir | not attn-interpret --runs=2 2>&1 | FileCheck %s --check-prefix=STUCK

// RIGHT: @prefill: {{[0-9]+}} rows, largest error of o
// STUCK: error: {{.*}}

// REVERSE: tile.for_each
// REVERSE: %[[LEAST:.*]] = arith.addi %[[LO:.*]], %{{.*}} : index
// REVERSE-NEXT: %[[END:.*]] = arith.maxsi %{{.*}}, %[[LEAST]] : index
// REVERSE: scf.for %[[N:.*]] = %[[LO]] to %[[END]] step
// REVERSE-NEXT: arith.subi %{{.*}}, %[[N]] : index
// REVERSE: {tile.at_least_once, tile.from_interval}

// No branch around the first block; the interval begins with the keys, so nothing comes behind the loop without a mask.
// PEEL-NOT: scf.if
// PEEL: tile.mask
// PEEL: scf.for
// PEEL: tile.mask
// PEEL: scf.for
// PEEL-NOT: tile.mask
// PEEL: tile.whole_blocks
// PEEL-NOT: tile.mask

// STORE: %[[Q:.*]] = tile.pipeline consumers 2
// STORE: %[[O:.*]] = tile.pipeline chain %[[Q]] : {{.*}} producers 2
// STORE: tile.role @store warps(1) registers(40)
// STORE: %[[SLOT:.*]] = tile.consumer_wait %[[O]]
// STORE: scf.if
// STORE: tile.store_async %[[SLOT]]
// STORE: tile.consumer_release %[[O]]
// STORE: tile.role @consumer
// STORE-NOT: tile.consumer_release %[[Q]]
// STORE: tile.local_store
// STORE: } else {
// STORE: tile.store
// STORE: tile.commit %[[O]]

// The producer sends the fields and an end; between items the next Q K and this P V are in flight together.
// STREAM: tile.role @producer
// STREAM: tile.send
// STREAM: tile.send %[[Q:[a-z0-9]+]](%c0{{(, %c0)*}})
// STREAM-NEXT: tile.commit %[[Q]]
// STREAM: tile.role @store
// STREAM: tile.consumer_release %[[O:.*]] :
// STREAM: tile.consumer_wait %[[O]]
// STREAM-NEXT: tile.consumer_release %[[O]]
// STREAM: tile.role @consumer
// STREAM: tile.consumer_wait %[[Q]]
// STREAM: arith.cmpi sgt
// STREAM: scf.if
// STREAM: scf.while
// STREAM: tile.consumer_wait %[[Q]]
// STREAM: scf.condition
// STREAM: %[[S:.*]] = tile.dot_async {{.*}} transpose_b
// STREAM-NEXT: %[[PV:.*]] = tile.dot_async {{.*}} acc
// STREAM: tile.await %[[S]]
// STREAM: tile.reduce maximumf
// STREAM: tile.await %[[PV]]
// STREAM-NEXT: tile.consumer_release
// STREAM-NEXT: tile.map arith.truncf
// STREAM: scf.yield
// STREAM: tile.commit %[[O]]
// STREAM: tile.commit %[[O]]
