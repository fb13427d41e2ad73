// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu{chip=sm_80})' | FileCheck %s

// Quotients without a call for rare operands: within 2 ulp; with `arcp` by the reciprocal, with `afn` by the one that
// flushes subnormals.

#acc = #tile.mma<warps = [1, 1]>
!s = !tile.reg<16x16xf32, #acc>
!v = !tile.view<?x16xf32>

// CHECK-LABEL: llvm.func @division
// CHECK-NOT: llvm.fdiv
tile.kernel @division(%q: memref<?x4x16xf32> {tile.arg = "q"}, %o: memref<?x4x16xf32> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"}, %by: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  tile.for_each (%t = token0, %n = rows, %h = head) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xf32> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xf32> -> !v
    %x = tile.load %qv[%c0] : !v -> !s
    %y = tile.map (%e = %x : !s) -> !s {
      // CHECK: %[[A:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%[[X:.*]], %[[BY:.*]]) :
      %a = arith.divf %e, %by : f32
      // CHECK: %[[B:.*]] = llvm.inline_asm {{.*}}"rcp.approx.f32 $0, $1;", "=f,f" %[[A]]
      %b = arith.divf %one, %a : f32
      // CHECK: %[[I:.*]] = llvm.inline_asm {{.*}}"rcp.approx.ftz.f32 $0, $1;", "=f,f" %[[BY]]
      // CHECK: %[[C:.*]] = llvm.fmul %[[B]], %[[I]]
      %c = arith.divf %b, %by fastmath<afn> : f32
      // CHECK: llvm.inline_asm {{.*}}"rcp.approx.ftz.f32 $0, $1;", "=f,f" %[[C]]
      %d = arith.divf %one, %c fastmath<afn> : f32
      tile.yield %d : f32
    }
    tile.store %y, %ov[%c0] : !s, !v
  }
}

// What all elements are divided by has one reciprocal.
// CHECK-LABEL: llvm.func @shared
// CHECK: %[[I:.*]] = llvm.inline_asm {{.*}}"rcp.approx.f32 $0, $1;"
// CHECK: llvm.fmul %{{.*}}, %[[I]]
// CHECK-NOT: rcp.approx
// CHECK-NOT: div.full
// CHECK: llvm.return
tile.kernel @shared(%q: memref<?x4x16xf32> {tile.arg = "q"}, %o: memref<?x4x16xf32> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"}, %by: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%t = token0, %n = rows, %h = head) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xf32> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xf32> -> !v
    %x = tile.load %qv[%c0] : !v -> !s
    %y = tile.map (%e = %x : !s) -> !s {
      %a = arith.divf %e, %by fastmath<arcp> : f32
      tile.yield %a : f32
    }
    tile.store %y, %ov[%c0] : !s, !v
  }
}
