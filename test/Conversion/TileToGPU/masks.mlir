// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu{chip=sm_80})' | FileCheck %s

// Masks of several terms: comparisons of positions become one wherever they stand among the terms, and an element is selected once.

#acc = #tile.mma<warps = [1, 1]>
!s = !tile.reg<16x16xf32, #acc>
!p = !tile.reg<16x16xbf16, #acc>
!v = !tile.view<?x16xbf16>

// The term that merges is the second of two.
// CHECK-LABEL: llvm.func @left(
// CHECK: %[[SAME:.*]] = llvm.icmp "eq"
// CHECK-NOT: llvm.icmp
// CHECK: %[[LESS:.*]] = llvm.icmp "slt" %[[A:.*]], %[[B:.*]] : i32
// CHECK-NEXT: %[[BOTH:.*]] = llvm.select %[[LESS]], %[[A]], %[[B]] : i1, i32
// CHECK-NEXT: %[[PLACE:.*]] = llvm.icmp "sgt" %[[BOTH]], %{{.*}} : i32
// CHECK-NEXT: %[[IN:.*]] = llvm.and %[[SAME]], %[[PLACE]] : i1
// CHECK-NEXT: llvm.inline_asm {{.*}}"selp.f32 $0, $1, $2, $3;", "=f,f,f,b" %{{.*}}, %{{.*}}, %[[IN]] : (f32, f32, i1) -> f32
// CHECK-NOT: llvm.select {{.*}} f32
// CHECK-COUNT-7: selp.f32
// CHECK-NOT: selp.f32
tile.kernel @left(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"},
                  %doc: memref<?xi32> {tile.arg = "param:doc"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head, %len = khi) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map arith.extf(%x : !p) -> !s
    %m = tile.mask %f () at (%i, %j) : !s {
      %d = memref.load %doc[%j] : memref<?xi32>
      %two = arith.constant 2 : i32
      %same = arith.cmpi eq, %d, %two : i32
      %causal = arith.cmpi sle, %j, %i : index
      %there = arith.cmpi slt, %j, %len : index
      %seen = arith.andi %same, %causal : i1
      %in = arith.andi %seen, %there : i1
      tile.yield %in : i1
    }
    %y = tile.map arith.truncf(%m : !s) -> !p
    tile.store %y, %ov[%c0] : !p, !v
  }
}

// It is the first of two, which come last.
// CHECK-LABEL: llvm.func @right(
// CHECK: %[[SAME:.*]] = llvm.icmp "eq"
// CHECK-NOT: llvm.icmp
// CHECK: %[[LESS:.*]] = llvm.icmp "slt" %[[A:.*]], %[[B:.*]] : i32
// CHECK-NEXT: %[[BOTH:.*]] = llvm.select %[[LESS]], %[[A]], %[[B]] : i1, i32
// CHECK-NEXT: %[[PLACE:.*]] = llvm.icmp "sgt" %[[BOTH]], %{{.*}} : i32
// CHECK-NEXT: %[[IN:.*]] = llvm.and %[[PLACE]], %[[SAME]] : i1
// CHECK-NEXT: llvm.inline_asm {{.*}}"selp.f32 $0, $1, $2, $3;", "=f,f,f,b" %{{.*}}, %{{.*}}, %[[IN]] : (f32, f32, i1) -> f32
// CHECK-NOT: llvm.select {{.*}} f32
// CHECK-COUNT-7: selp.f32
// CHECK-NOT: selp.f32
tile.kernel @right(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"},
                  %doc: memref<?xi32> {tile.arg = "param:doc"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head, %len = khi) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map arith.extf(%x : !p) -> !s
    %m = tile.mask %f () at (%i, %j) : !s {
      %d = memref.load %doc[%j] : memref<?xi32>
      %two = arith.constant 2 : i32
      %same = arith.cmpi eq, %d, %two : i32
      %causal = arith.cmpi sle, %j, %i : index
      %there = arith.cmpi slt, %j, %len : index
      %seen = arith.andi %causal, %same : i1
      %in = arith.andi %there, %seen : i1
      tile.yield %in : i1
    }
    %y = tile.map arith.truncf(%m : !s) -> !p
    tile.store %y, %ov[%c0] : !p, !v
  }
}

// A single term is a select, which LLVM may fold.
// CHECK-LABEL: llvm.func @single(
// CHECK-NOT: selp
// CHECK-COUNT-8: llvm.select {{.*}} : i1, f32
tile.kernel @single(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"},
                  %doc: memref<?xi32> {tile.arg = "param:doc"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head, %len = khi) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map arith.extf(%x : !p) -> !s
    %m = tile.mask %f () at (%i, %j) : !s {
      %causal = arith.cmpi sle, %j, %i : index
      tile.yield %causal : i1
    }
    %y = tile.map arith.truncf(%m : !s) -> !p
    tile.store %y, %ov[%c0] : !p, !v
  }
}
