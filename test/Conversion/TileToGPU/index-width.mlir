// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu{chip=sm_80})' | FileCheck %s

// Products of two variables have 64 bits within hooks: directly, under scf.if, in a function that the hook calls.

#acc = #tile.mma<warps = [1, 1]>
!p = !tile.reg<16x16xbf16, #acc>
!v = !tile.view<?x16xbf16>

func.func private @product(%a: index, %b: index) -> i1 {
  %c9 = arith.constant 9 : index
  %0 = arith.muli %a, %b : index
  %1 = arith.cmpi slt, %0, %c9 : index
  return %1 : i1
}

// CHECK-LABEL: llvm.func @direct
// CHECK: llvm.icmp "slt" {{.*}} : i64
// CHECK-LABEL: llvm.func @nested
// CHECK: llvm.icmp "slt" {{.*}} : i64
// CHECK-LABEL: llvm.func @called
// CHECK: llvm.icmp "slt" {{.*}} : i64

tile.kernel @direct(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map arith.extf(%x : !p) -> !tile.reg<16x16xf32, #acc>
    %m = tile.mask %f () at (%i, %j) : !tile.reg<16x16xf32, #acc> {
      %0 = arith.muli %i, %n : index
      %in = arith.cmpi slt, %0, %j : index
      tile.yield %in : i1
    }
    %y = tile.map arith.truncf(%m : !tile.reg<16x16xf32, #acc>) -> !p
    tile.store %y, %ov[%c0] : !p, !v
  }
}

tile.kernel @nested(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map arith.extf(%x : !p) -> !tile.reg<16x16xf32, #acc>
    %m = tile.mask %f () at (%i, %j) : !tile.reg<16x16xf32, #acc> {
      %some = arith.cmpi slt, %j, %n : index
      %in = scf.if %some -> i1 {
        %0 = arith.muli %i, %n : index
        %1 = arith.cmpi slt, %0, %j : index
        scf.yield %1 : i1
      } else {
        scf.yield %some : i1
      }
      tile.yield %in : i1
    }
    %y = tile.map arith.truncf(%m : !tile.reg<16x16xf32, #acc>) -> !p
    tile.store %y, %ov[%c0] : !p, !v
  }
}

tile.kernel @called(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map arith.extf(%x : !p) -> !tile.reg<16x16xf32, #acc>
    %m = tile.mask %f () at (%i, %j) : !tile.reg<16x16xf32, #acc> {
      %in = func.call @product(%i, %n) : (index, index) -> i1
      tile.yield %in : i1
    }
    %y = tile.map arith.truncf(%m : !tile.reg<16x16xf32, #acc>) -> !p
    tile.store %y, %ov[%c0] : !p, !v
  }
}
