// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

#acc = #tile.mma<warps = [4, 1]>
#row = #tile.slice<dim = 1, parent = #acc>
#part = #tile.slice<dim = 1, parent = #acc, partial = true>
#a = #tile.operand<a, parent = #acc>
#sw = #tile.swizzle<128, panel = 64>

!mq = memref<?x32x128xbf16>
!mk = memref<?x16x8x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!kv = !tile.view<?x128xbf16, paged<16>>
!qv = !tile.view<?x128xbf16, packed<4>>
!t = !tile.smem<128x128xbf16>
!s = !tile.reg<128x128xf32>
!p = !tile.reg<128x128xbf16>
!r = !tile.reg<128xf32>

// CHECK-LABEL: tile.kernel @logical
// CHECK-SAME: level = #tile.level<logical>
tile.kernel @logical(%q: !mq {tile.arg = "q"}, %k: !mk {tile.arg = "k"}, %pages: memref<?xi32> {tile.arg = "pages"}, %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 128, keys = 128, stages = 2, load = tma>} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %ninf = arith.constant 0xFF800000 : f32
  // CHECK: tile.for_each (%[[ROW0:.*]] = token0, %[[ROWS:.*]] = rows, %[[HEAD:.*]] = head, %{{.*}} = table, %{{.*}} = kv_len, %{{.*}} = qpos0, %{{.*}} = klo, %{{.*}} = khi) in %{{.*}} {
  tile.for_each (%row0 = token0, %rows = rows, %head = head, %tab = table, %len = kv_len, %qpos0 = qpos0, %lo = klo, %hi = khi) in %items {
    %kvh = arith.divui %head, %c4 : index
    // CHECK: tile.view %{{.*}}[%[[ROW0]], %[[HEAD]]] rows(%[[ROWS]]) : memref<?x32x128xbf16> -> <?x128xbf16, packed<4>>
    %qv = tile.view %q[%row0, %head] rows(%rows) : !mq -> !qv
    // CHECK: tile.view %{{.*}}[%{{.*}}] rows(%{{.*}}) pages(%{{.*}}[%{{.*}}] : memref<?xi32>) : memref<?x16x8x128xbf16, strided<[?, ?, ?, 1], offset: ?>> -> <?x128xbf16, paged<16>>
    %kv = tile.view %k[%kvh] rows(%len) pages(%pages[%tab] : memref<?xi32>) : !mk -> !kv
    %qs = tile.load %qv[%c0] : !qv -> !t
    %m0 = tile.splat %ninf : f32 -> !r
    %m = scf.for %j = %lo to %hi step %c128 iter_args(%mi = %m0) -> (!r) {
      %ks = tile.load %kv[%j] : !kv -> !t
      // CHECK: tile.dot %{{.*}}, %{{.*}} transpose_b : (!tile.smem<128x128xbf16>, !tile.smem<128x128xbf16>) -> {{.*}}<128x128xf32>
      %s = tile.dot %qs, %ks transpose_b : (!t, !t) -> !s
      // CHECK: tile.map (%{{.*}} = %{{.*}} : !tile.reg<128x128xf32>) -> !tile.reg<128x128xf32> {
      %x = tile.map (%e = %s : !s) -> !s {
        %e1 = arith.mulf %e, %scale : f32
        tile.yield %e1 : f32
      }
      // CHECK: tile.mask %{{.*}} () at (%{{.*}}, %{{.*}}) unless %{{.*}} in [%{{.*}}, %{{.*}}) keys 128 : !tile.reg<128x128xf32> {
      %y = tile.mask %x () at (%i, %c) unless %j in [%lo, %hi) keys 128 : !s {
        %qp = arith.addi %qpos0, %i : index
        %kp = arith.addi %j, %c : index
        %in = arith.cmpi sle, %kp, %qp : index
        tile.yield %in : i1
      }
      // CHECK: tile.reduce maximumf %{{.*}} dim 1 init %{{.*}} : !tile.reg<128xf32>, : <128x128xf32> -> <128xf32>
      %mn = tile.reduce maximumf %y dim 1 init %mi : !r, : !s -> !r
      // CHECK: tile.map arith.subf({{.*}}[0] : !tile.reg<128xf32>) -> !tile.reg<128x128xf32>
      %d = tile.map arith.subf(%y : !s, %mn[0] : !r) -> !s
      %pb = tile.map arith.truncf(%d : !s) -> !p
      // CHECK: tile.slice %{{.*}} [0, 64] :
      %h = tile.slice %pb [0, 64] : !p -> !tile.reg<128x64xbf16>
      // CHECK: tile.concat %{{.*}}, %{{.*}} dim 1 :
      %cc = tile.concat %h, %h dim 1 : !tile.reg<128x64xbf16>, !tile.reg<128x64xbf16> -> !p
      // CHECK: tile.swap_pairs %{{.*}} : {{.*}}<128x128xbf16>
      %sw = tile.swap_pairs %cc : !p
      %an = tile.dot %sw, %ks acc %s : (!p, !t) -> !s
      scf.yield %mn : !r
    }
  }
}

!sw = !tile.smem<128x128xbf16, #sw>
!swq = !tile.smem<64x128xbf16, #sw>
!sa = !tile.reg<64x128xf32, #acc>
!pa = !tile.reg<64x128xbf16, #a>
// CHECK-LABEL: tile.kernel @specialized
tile.kernel @specialized(%q: !mq {tile.arg = "q"}, %items: !tile.items {tile.arg = "items"}) attributes {level = #tile.level<specialized>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: %[[QP:.*]] = tile.pipeline consumers 2 : <2 x !tile.smem<128x128xbf16, {{.*}}>, words = 2>
  %qp = tile.pipeline consumers 2 : !tile.pipeline<2 x !sw, words = 2>
  // CHECK: tile.pipeline chain %[[QP]] : !tile.pipeline<2 x !tile.smem<128x128xbf16, {{.*}}>, words = 2> producers 2 : <2 x
  %op = tile.pipeline chain %qp : !tile.pipeline<2 x !sw, words = 2> producers 2 : !tile.pipeline<2 x !sw>
  // CHECK: tile.roles {
  tile.roles {
    // CHECK: tile.role @producer warps(1) registers(24) {
    tile.role @producer warps(1) registers(24) {
      // CHECK: %{{.*}}, %{{.*}}:3 = tile.next_item %{{.*}} (token0, head, rows)
      %some, %f:3 = tile.next_item %items (token0, head, rows)
      %v = tile.view %q[%f#0, %f#1] rows(%f#2) : !mq -> !tile.view<?x128xbf16>
      %slot = tile.producer_acquire %qp : !tile.pipeline<2 x !sw, words = 2> -> !sw
      tile.send %qp(%f#0, %f#1) : !tile.pipeline<2 x !sw, words = 2>
      tile.load_async %v[%c0] into %slot signal %qp : !tile.view<?x128xbf16>, !sw, !tile.pipeline<2 x !sw, words = 2>
    }
    // CHECK: tile.role @consumer warps(4) groups(2) registers(240) (%[[WG:.*]]) {
    tile.role @consumer warps(4) groups(2) registers(240) (%wg) {
      %r0 = arith.muli %wg, %c64 : index
      // CHECK: %{{.*}}, %{{.*}}:2 = tile.consumer_wait %[[QP]] : !tile.pipeline<2 x
      %qf, %w:2 = tile.consumer_wait %qp : !tile.pipeline<2 x !sw, words = 2>
      %qw = tile.subview %qf[%r0, 0] : !sw -> !swq
      // CHECK: tile.dot_async %{{.*}}, %{{.*}} transpose_b : (!tile.smem<64x128xbf16, {{.*}}>, !tile.smem<128x128xbf16, {{.*}}>) -> {{.*}}<{{.*}}64x128xf32, {{.*}}>>
      %sp = tile.dot_async %qw, %qf transpose_b : (!swq, !sw) -> !tile.pending<!sa>
      %s = tile.await %sp : !tile.pending<!sa> -> !sa
      %l = tile.reduce addf %s dim 1 scope thread : !sa -> !tile.reg<64xf32, #part>
      %lt = tile.reduce addf %l scope lanes : !tile.reg<64xf32, #part> -> !tile.reg<64xf32, #row>
      // The slot leaves with the output; its release by the store role frees it.
      tile.commit %op : !tile.pipeline<2 x !sw>
    }
    tile.role @store warps(1) registers(24) {
      %o = tile.consumer_wait %op : !tile.pipeline<2 x !sw>
      %v = tile.view %q[%c0, %c0] rows(%c64) : !mq -> !tile.view<?x128xbf16>
      // CHECK: tile.store_async
      tile.store_async %o, %v[%c0] : !sw, !tile.view<?x128xbf16>
      tile.consumer_release %op : !tile.pipeline<2 x !sw>
    }
  }
}

// CHECK-LABEL: func.func @transform
func.func @transform(%s: !tile.smem<16x16xf16, #tile.swizzle<32, panel = 16>>) {
  // CHECK: tile.transform %{{.*}} rows 8 : <16x16xf16, #tile.swizzle<32, panel = 16>> -> <16x16xf16, #tile.swizzle<32, panel = 16>> {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: !tile.reg<8x16xf16, #tile.blocked<warps = [1, 1], columns = 16, rows = 8>>, %{{.*}}: index):
  // CHECK-NEXT: tile.yield %[[X]]
  %h = tile.transform %s rows 8 : !tile.smem<16x16xf16, #tile.swizzle<32, panel = 16>> -> !tile.smem<16x16xf16, #tile.swizzle<32, panel = 16>> {
  ^bb0(%x: !tile.reg<8x16xf16, #tile.blocked<warps = [1, 1], columns = 16, rows = 8>>, %first: index):
    tile.yield %x : !tile.reg<8x16xf16, #tile.blocked<warps = [1, 1], columns = 16, rows = 8>>
  }
  return
}

// CHECK-LABEL: func.func @gather
func.func @gather(%v: !tile.view<?x16xf16>, %i: index, %p: !tile.pipeline<2 x !tile.smem<16x16xf16>>) {
  %s = tile.producer_acquire %p : !tile.pipeline<2 x !tile.smem<16x16xf16>> -> !tile.smem<16x16xf16>
  // CHECK: tile.load_async %{{.*}}[%{{.*}}] into %{{.*}} signal %{{.*}} {tile.gather} :
  tile.load_async %v[%i] into %s signal %p {tile.gather} : !tile.view<?x16xf16>, !tile.smem<16x16xf16>, !tile.pipeline<2 x !tile.smem<16x16xf16>>
  return
}

// CHECK-LABEL: func.func @lookups
func.func @lookups(%i8: memref<?xi8>, %i32: memref<64xi32>, %i64: memref<?xi64>, %base: index, %from: index, %to: index, %lo: i64, %hi: i64) {
  // CHECK-NEXT: %[[A:.*]], %[[B:.*]] = tile.extent %{{.*}}[%[[FROM:.*]] to %[[TO:.*]]] : memref<64xi32>
  %a, %b = tile.extent %i32[%from to %to] : memref<64xi32>
  // CHECK-NEXT: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} = tile.scan %{{.*}}[%[[BASE:.*]]] from %[[FROM]] to %[[TO]] some(%[[A]], %[[B]]) all(%[[B]], %[[A]]) : memref<64xi32>
  %0:4 = tile.scan %i32[%base] from %from to %to some(%a, %b) all(%b, %a) : memref<64xi32>
  // CHECK-NEXT: tile.scan %{{.*}}[%[[BASE]]] from %[[FROM]] to %[[TO]] some outside(%[[LO:.*]], %[[HI:.*]]) all(%[[B]], %[[A]]) : memref<?xi8>
  %1:4 = tile.scan %i8[%base] from %from to %to some outside(%lo, %hi) all(%b, %a) : memref<?xi8>
  // CHECK-NEXT: tile.scan %{{.*}} some(%[[LO]], %[[HI]]) all outside(%[[A]], %[[B]]) {tile.lookup = 1 : i64} : memref<?xi64>
  %2:4 = tile.scan %i64[%base] from %from to %to some(%lo, %hi) all outside(%a, %b) {tile.lookup = 1 : i64} : memref<?xi64>
  // CHECK-NEXT: tile.scan %{{.*}} some outside(%[[LO]], %[[HI]]) all outside(%[[A]], %[[B]]) : memref<?xi64>
  %3:4 = tile.scan %i64[%base] from %from to %to some outside(%lo, %hi) all outside(%a, %b) : memref<?xi64>
  return
}

// CHECK-LABEL: tile.kernel @observes
tile.kernel @observes() attributes {level = #tile.level<specialized>} {
  %c0 = arith.constant 0 : index
  %q = tile.pipeline : !tile.pipeline<2 x !t, words = 1>
  tile.roles {
    tile.role @query warps(1) {
      %s = tile.producer_acquire %q : !tile.pipeline<2 x !t, words = 1> -> !t
      tile.send %q(%c0) : !tile.pipeline<2 x !t, words = 1>
      tile.commit %q : !tile.pipeline<2 x !t, words = 1>
    }
    // It gives nothing back.
    // CHECK: tile.role @producer
    // CHECK-NEXT: %{{.*}}, %{{.*}} = tile.consumer_wait %{{.*}} {observes} : !tile.pipeline<2 x {{.*}}, words = 1>
    // CHECK-NEXT: }
    tile.role @producer warps(1) {
      %s, %w = tile.consumer_wait %q {observes} : !tile.pipeline<2 x !t, words = 1>
    }
    tile.role @consumer warps(4) {
      %s, %w = tile.consumer_wait %q : !tile.pipeline<2 x !t, words = 1>
      tile.consumer_release %q : !tile.pipeline<2 x !t, words = 1>
    }
  }
}
