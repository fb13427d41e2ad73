// Lookups of tables: the role that loads the query tile does them and sends what they find as words behind the fields. The interpreter compares
// with the same mask written so that no table is looked up (its entries are subtracted first).

// RUN: attn-opt %s --attn-to-tile -o %t.logical.mlir
// RUN: attn-opt %t.logical.mlir --pass-pipeline='builtin.module(tile.kernel(attn-schedule-kernel))' -o %t.stream.mlir
// RUN: FileCheck %s --input-file=%t.stream.mlir
// RUN: sed -e 's/= arith.cmpi eq, %%qd, %%kd/= arith.cmpi eq, %%apart, %%none/; s/= arith.cmpi eq, %%valid, %%one/= arith.cmpi eq, %%off, %%none/' %s | attn-opt --attn-to-tile -o %t.plain.mlir
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t.plain.mlir
// RUN: attn-interpret %t.stream.mlir --against-file=%t.plain.mlir --kernel=two_r32 --runs=4 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-interpret %t.stream.mlir --against-file=%t.plain.mlir --kernel=two_r32 --batch=40:100,1:40,0:30,1:0,20:17,33:33 --split=2 | FileCheck %s --check-prefix=RIGHT
// PLAIN-NOT: tile.scan
// RIGHT: @two_r32: {{[0-9]+}} rows, largest error of o

// A scan for other keys is caught.
// RUN: sed -e 's/\(tile.scan.* some\)(/\1 outside(/' %t.stream.mlir | not attn-interpret --against-file=%t.plain.mlir --kernel=two_r32 --batch=40:100,33:33 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: {{.*}}gives o = {{.*}}, expected

// A query ring of a single stage: its words come when the consumers are done with the item before, so the producer of keys looks them up itself.
// RUN: sed -e 's/x32xbf16/x256xbf16/g; s/rows = 32, keys = 16, stages = 2, warps = 2/rows = 128, keys = 64, stages = 2, warps = 8/' %s | attn-opt --pass-pipeline='builtin.module(attn-to-tile,tile.kernel(attn-schedule-kernel))' | FileCheck %s --check-prefix=SINGLE

// The second scan looks between the bounds that the first has found.
// CHECK-LABEL: tile.kernel @two_r32(
// CHECK: %[[Q:.*]] = tile.pipeline consumers 2 {{.*}}<3 x {{.*}}, words = 18>
// CHECK: tile.role @producer
// CHECK: %{{.*}}, %[[WORDS:.*]]:18 = tile.consumer_wait %[[Q]] {observes}
// CHECK-NOT: tile.scan
// CHECK-NOT: tile.extent
// CHECK-NOT: tile.consumer_release
// CHECK: arith.index_cast %[[WORDS]]#17
// CHECK: tile.role @query
// CHECK: tile.extent
// CHECK-NEXT: %[[FIRST:.*]], %[[LAST:.*]], %[[AFIRST:.*]], %[[ALAST:.*]] = tile.scan {{.*}}{tile.lookup = 0 : i64}
// CHECK: arith.index_cast %[[FIRST]]
// CHECK: arith.index_cast %[[LAST]]
// CHECK: %[[FIRST2:.*]], %[[LAST2:.*]], %[[AFIRST2:.*]], %[[ALAST2:.*]] = tile.scan {{.*}}{tile.lookup = 1 : i64}
// CHECK: tile.producer_acquire %[[Q]]
// CHECK-NEXT: tile.send %[[Q]]({{.*}}, %[[FIRST]], %[[LAST]], %[[AFIRST]], %[[ALAST]], %[[FIRST2]], %[[LAST2]], %[[AFIRST2]], %[[ALAST2]]) :
// CHECK: tile.role @consumer
// CHECK-NOT: tile.scan
// CHECK-NOT: tile.extent
// CHECK-NOT: observes
// CHECK-LABEL: tile.kernel @two_merge(

// SINGLE-LABEL: tile.kernel @two_r128(
// SINGLE: %[[Q:.*]] = tile.pipeline consumers 2 {{.*}}<1 x {{.*}}, words = 18>
// SINGLE-NOT: observes
// SINGLE: tile.role @producer
// SINGLE: tile.scan {{.*}}{tile.lookup = 0 : i64}
// SINGLE: tile.scan {{.*}}{tile.lookup = 1 : i64}
// SINGLE-NOT: observes
// SINGLE: tile.role @query
// SINGLE: tile.scan {{.*}}{tile.lookup = 0 : i64}
// SINGLE: tile.scan {{.*}}{tile.lookup = 1 : i64}
// SINGLE: tile.send %[[Q]](
// SINGLE: tile.role @consumer
// SINGLE-NOT: tile.scan
// SINGLE-LABEL: tile.kernel @two_merge(

attn.variant @two(%doc: memref<?xi32>, %used: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %apart = arith.subi %qd, %kd : i32
    %same = arith.cmpi eq, %qd, %kd : i32
    %valid = memref.load %used[%k] : memref<?xi32>
    %off = arith.subi %valid, %one : i32
    %there = arith.cmpi eq, %valid, %one : i32
    %causal = arith.cmpi sle, %k, %q : index
    %seen = arith.andi %same, %causal : i1
    %in = arith.andi %seen, %there : i1
    attn.yield %in : i1
  }
}

func.func @attend(%q: memref<?x8x32xbf16>, %qo: memref<?xi32>, %k: memref<?x2x32xbf16>, %v: memref<?x2x32xbf16>, %kv: memref<?xi32>,
                  %o: memref<?x8x32xbf16>, %doc: memref<?xi32>, %used: memref<?xi32>) {
  attn.attention @two(%doc, %used : memref<?xi32>, memref<?xi32>) q(%q, %qo : memref<?x8x32xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x2x32xbf16>, memref<?x2x32xbf16>) indptr(%kv : memref<?xi32>) outs(%o : memref<?x8x32xbf16>)
    {format = #attn.format<ragged>, target = #attn.target<"sm_90a">,
     configs = [#attn.config<rows = 32, keys = 16, stages = 2, warps = 2, consumers = 2, load = tma>]}
  return
}
