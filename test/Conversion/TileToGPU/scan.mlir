// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu{chip=sm_80})' | attn-translate --kernels-to-ptx > %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx

// A warp looks up the entries of a table, eight loads in flight, then reduces what its lanes have found.

#acc = #tile.mma<warps = [1, 1]>
!p = !tile.reg<16x16xbf16, #acc>
!v = !tile.view<?x16xbf16>

// The queries' entries one by one. The keys': what lies in front of the first 16 bytes and behind the last, then 16 bytes a lane.
// CHECK-LABEL: .entry i32(
// CHECK-COUNT-8: ld.global.b32
// CHECK: redux.sync.min.s32
// CHECK: redux.sync.max.s32
// CHECK-NOT: ld.global.nc.v4
// CHECK: ld.global.b32
// CHECK-COUNT-8: ld.global.nc.v4.b32
// CHECK-NOT: ld.global.nc.v4
// CHECK: redux.sync.add.s32
// CHECK: redux.sync.min.s32
// CHECK: redux.sync.max.s32
// CHECK: redux.sync.min.s32
// CHECK: redux.sync.max.s32
tile.kernel @i32(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"},
                   %doc: memref<?xi32> {tile.arg = "param:doc"})
    attributes {level = #tile.level<logical>} {
  tile.for_each (%t = token0, %n = rows, %h = head, %lo = klo, %hi = khi) in %items {
    %least, %most = tile.extent %doc[%t to %n] : memref<?xi32>
    %0:4 = tile.scan %doc[%h] from %lo to %hi some(%least, %most) all outside(%least, %most) : memref<?xi32>
    %qv = tile.view %q[%0#0, %h] rows(%0#1) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%0#2, %h] rows(%0#3) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%lo] : !v -> !p
    tile.store %x, %ov[%lo] : !p, !v
  }
}

// Bytes are compared as 32 bits.
// CHECK-LABEL: .entry i8(
// CHECK-COUNT-8: ld.global.s8
// CHECK: redux.sync.min.s32
// CHECK: redux.sync.max.s32
// CHECK-COUNT-8: ld.global.s8
// CHECK-NOT: ld.global.s8
// CHECK: redux.sync.add.s32
tile.kernel @i8(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"},
                   %doc: memref<?xi8> {tile.arg = "param:doc"})
    attributes {level = #tile.level<logical>} {
  tile.for_each (%t = token0, %n = rows, %h = head, %lo = klo, %hi = khi) in %items {
    %least, %most = tile.extent %doc[%t to %n] : memref<?xi8>
    %0:4 = tile.scan %doc[%h] from %lo to %hi some(%least, %most) all outside(%least, %most) : memref<?xi8>
    %qv = tile.view %q[%0#0, %h] rows(%0#1) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%0#2, %h] rows(%0#3) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%lo] : !v -> !p
    tile.store %x, %ov[%lo] : !p, !v
  }
}

// 64 bits have no redux.sync: five steps of two shuffles each for the least and for the greatest. Numbers of keys have 32.
// CHECK-LABEL: .entry i64(
// CHECK-COUNT-8: ld.global.b64
// CHECK-NOT: redux.sync
// CHECK-COUNT-20: shfl.sync.bfly.b32
// CHECK-NOT: shfl.sync.bfly.b32
// CHECK-COUNT-8: ld.global.b64
// CHECK-NOT: ld.global.b64
// CHECK: redux.sync.add.s32
// CHECK: redux.sync.min.s32
tile.kernel @i64(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"},
                   %doc: memref<?xi64> {tile.arg = "param:doc"})
    attributes {level = #tile.level<logical>} {
  tile.for_each (%t = token0, %n = rows, %h = head, %lo = klo, %hi = khi) in %items {
    %least, %most = tile.extent %doc[%t to %n] : memref<?xi64>
    %0:4 = tile.scan %doc[%h] from %lo to %hi some(%least, %most) all outside(%least, %most) : memref<?xi64>
    %qv = tile.view %q[%0#0, %h] rows(%0#1) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%0#2, %h] rows(%0#3) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%lo] : !v -> !p
    tile.store %x, %ov[%lo] : !p, !v
  }
}
