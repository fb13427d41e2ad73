// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu{chip=sm_80})' | FileCheck %s

// Items, control flow, elementwise ops, a mask and predicated rows: no shared memory, no dots.

#acc = #tile.mma<warps = [1, 1]>
#row = #tile.slice<dim = 1, parent = #acc>
!s = !tile.reg<16x16xf32, #acc>
!p = !tile.reg<16x16xbf16, #acc>
!r = !tile.reg<16xf32, #row>
!v = !tile.view<?x16xbf16>

// CHECK: gpu.module @attn_kernels
// CHECK: llvm.func @core(%[[SCALE:.*]]: i64, %[[INDPTR:[^:]*]]: !llvm.ptr<1>
// CHECK-SAME: attn.smem = 0 : i64, attn.threads = 32 : i64
// CHECK-SAME: attn.words = [{kind = "scale"}, {kind = "pointer", operand = "cta_indptr"}, {kind = "pointer", operand = "items"}, {kind = "pointer", operand = "q"}, {kind = "pointer", operand = "o"}]
// CHECK-SAME: nvvm.kernel
tile.kernel @core(%q: memref<?x4x16xbf16> {tile.arg = "q"}, %o: memref<?x4x16xbf16> {tile.arg = "o"}, %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  tile.for_each (%t = token0, %n = rows, %h = head) in %items {
    %qv = tile.view %q[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %ov = tile.view %o[%t, %h] rows(%n) : memref<?x4x16xbf16> -> !v
    %x = tile.load %qv[%c0] : !v -> !p
    %f = tile.map (%e = %x : !p) -> !s {
      %y = arith.extf %e : bf16 to f32
      %z = arith.mulf %y, %scale : f32
      tile.yield %z : f32
    }
    // The comparison is `row - column > constant` with one subtraction for all elements.
    // CHECK: llvm.inline_asm {{.*}}"mov.b32 $0, $1;"
    // CHECK: %[[D:.*]] = llvm.sub
    // CHECK: llvm.icmp "sgt" %[[D]]
    // CHECK: llvm.icmp "sgt" %[[D]]
    %m = tile.mask %f () at (%i, %j) : !s {
      %in = arith.cmpi sle, %j, %i : index
      tile.yield %in : i1
    }
    // CHECK: llvm.intr.maxnum
    // CHECK: nvvm.shfl.sync  bfly
    %mx = tile.reduce maximumf %m dim 1 : !s -> !r
    %d = tile.map (%e = %m : !s, %b = %mx[0] : !r) -> !p {
      %y = arith.subf %e, %b : f32
      %near = math.exp2 %y fastmath<afn> : f32
      %z = math.exp2 %near : f32
      %w = arith.truncf %z : f32 to bf16
      tile.yield %w : bf16
    }
    // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
    // CHECK: llvm.inline_asm {{.*}}"ex2.approx.f32 $0, $1;"
    // CHECK: nvvm.convert.f32x2.to.bf16x2
    // CHECK-NOT: llvm.fptrunc
    tile.store %d, %ov[%c0] : !p, !v
  }
}
