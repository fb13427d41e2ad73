// RUN: attn-opt %S/Inputs/decode.mlir --tile-assign-layouts | FileCheck %s --check-prefix=DECODE
// RUN: attn-opt %S/Inputs/prefill.mlir --tile-assign-layouts=forbid-loop-conversions | FileCheck %s --check-prefix=PREFILL
// RUN: sed -e 's/warps = 4/warps = 8/' %S/Inputs/prefill.mlir | attn-opt --tile-assign-layouts | FileCheck %s --check-prefix=WIDE
// RUN: sed -e 's/128x128/128x96/g;s/64x128/64x96/g;s/x128xbf16/x96xbf16/g;s/x128xf32/x96xf32/g' %S/Inputs/prefill.mlir | attn-opt --tile-assign-layouts | FileCheck %s --check-prefix=D96
// RUN: attn-opt %s --tile-assign-layouts | FileCheck %s

// Key groups: one a warp. Q lacks the group dimension and is shared; rows and results of group reductions are slices.
// DECODE: tile.load {{.*}} -> !tile.reg<16x128xbf16, #tile.operand<a, parent = #tile.mma<warps = [4, 1, 1]>>>
// DECODE: tile.map () at {{.*}} -> !tile.reg<16xindex, #tile.slice<dim = 0, parent = #tile.slice<dim = 2, parent = #tile.mma<warps = [4, 1, 1]>>>>
// DECODE: tile.load {{.*}} -> !tile.smem<4x32x128xbf16, #tile.swizzle<128, panel = 64>>
// DECODE: tile.dot {{.*}} -> !tile.reg<4x16x32xf32, #tile.mma<warps = [4, 1, 1]>>
// DECODE: tile.reduce maximumf {{.*}} dim 2 {{.*}} -> <4x16xf32, #tile.slice<dim = 2, parent = #tile.mma<warps = [4, 1, 1]>>>
// DECODE: arith.truncf({{.*}}) -> !tile.reg<4x16x32xbf16, #tile.operand<a, parent = #tile.mma<warps = [4, 1, 1]>>>
// DECODE-NOT: convert_layout
// DECODE: tile.reduce addf {{.*}} dim 0 : {{.*}} -> <16x128xf32, #tile.slice<dim = 0, parent = #tile.mma<warps = [4, 1, 1]>>>

// PREFILL: tile.load {{.*}} -> !tile.smem<128x128xbf16, #tile.swizzle<128, panel = 64>>
// PREFILL: tile.dot {{.*}} -> !tile.reg<128x64xf32, #tile.mma<warps = [4, 1]>>
// PREFILL: tile.dot {{.*}} -> !tile.reg<128x128xf32, #tile.mma<warps = [4, 1]>>
// WIDE: tile.dot {{.*}} -> !tile.reg<128x64xf32, #tile.mma<warps = [8, 1]>>
// 192 bytes a row: two 64-byte panels would do for 128, three for 192.
// D96: tile.load {{.*}} -> !tile.smem<128x96xbf16, #tile.swizzle<64, panel = 32>>

!kv = !tile.view<?x64xbf16>
!ks = !tile.smem<32x64xbf16>
!kr = !tile.reg<32x64xbf16>
!q = !tile.reg<64x64xbf16>
!s = !tile.reg<64x32xf32>
!p = !tile.reg<64x32xbf16>
!o = !tile.reg<64x64xf32>
// Key and value hooks: K and V pass through registers. Both are B fragments, [n, k] and [k, n].
// CHECK-LABEL: tile.kernel @hooks
tile.kernel @hooks(%k: memref<?x64xbf16>, %q: memref<?x64xbf16>, %o: memref<?x64xf32>, %n: index)
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 32>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %qv = tile.view %q[%c0] rows(%n) : memref<?x64xbf16> -> !kv
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xbf16> -> !kv
  %qr = tile.load %qv[%c0] : !kv -> !q
  %o0 = tile.splat %zero : f32 -> !o
  %r = scf.for %j = %c0 to %n step %c32 iter_args(%a = %o0) -> (!o) {
    %ks = tile.load %kv[%j] : !kv -> !ks
    // CHECK: tile.local_load {{.*}} -> <32x64xbf16, #tile.operand<bt, parent = #tile.mma<warps = [4, 1]>>>
    %kr = tile.local_load %ks : !ks -> !kr
    // CHECK: tile.slice {{.*}} -> <32x32xbf16, #tile.operand<bt, parent = #tile.mma<warps = [4, 1]>>>
    %lo = tile.slice %kr [0, 0] : !kr -> !tile.reg<32x32xbf16>
    %hi = tile.slice %kr [0, 32] : !kr -> !tile.reg<32x32xbf16>
    %kk = tile.concat %hi, %lo dim 1 : !tile.reg<32x32xbf16>, !tile.reg<32x32xbf16> -> !kr
    %s = tile.dot %qr, %kk transpose_b : (!q, !kr) -> !s
    %p = tile.map arith.truncf(%s : !s) -> !p
    // CHECK: tile.local_load {{.*}} -> <32x64xbf16, #tile.operand<b, parent = #tile.mma<warps = [4, 1]>>>
    %vr = tile.local_load %ks : !ks -> !kr
    %v2 = tile.map arith.addf(%vr : !kr, %vr : !kr) -> !kr
    %an = tile.dot %p, %v2 acc %a : (!p, !kr) -> !o
    scf.yield %an : !o
  }
  %ov = tile.view %o[%c0] rows(%n) : memref<?x64xf32> -> !tile.view<?x64xf32>
  tile.store %r, %ov[%c0] : !o, !tile.view<?x64xf32>
}

// One register tile as K and as V: one of the uses converts.
// CHECK-LABEL: tile.kernel @conflict
tile.kernel @conflict(%k: memref<?x64xbf16>, %o: memref<?x64xf32>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 64>} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xbf16> -> !kv
  %x = tile.load %kv[%c0] : !kv -> !q
  %s = tile.dot %x, %x transpose_b : (!q, !q) -> !o
  // CHECK: tile.convert_layout {{.*}} : <64x64xbf16, #tile.operand<a, parent = #tile.mma<warps = [4, 1]>>> -> <64x64xbf16, #tile.operand<bt, parent = #tile.mma<warps = [4, 1]>>>
  %ov = tile.view %o[%c0] rows(%n) : memref<?x64xf32> -> !tile.view<?x64xf32>
  tile.store %s, %ov[%c0] : !o, !tile.view<?x64xf32>
}

// No dot: rows side by side over as many warps as they fill.
// CHECK-LABEL: tile.kernel @merge
tile.kernel @merge(%k: memref<?x64xf32>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 64>} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xf32> -> !tile.view<?x64xf32>
  // CHECK: tile.load {{.*}} -> !tile.reg<32x64xf32, #tile.mma<warps = [2, 1]>>
  %x = tile.load %kv[%c0] : !tile.view<?x64xf32> -> !tile.reg<32x64xf32>
  // CHECK: tile.reduce {{.*}} -> <32xf32, #tile.slice<dim = 1, parent = #tile.mma<warps = [2, 1]>>>
  %m = tile.reduce maximumf %x dim 1 : !tile.reg<32x64xf32> -> !tile.reg<32xf32>
  %y = tile.map arith.mulf(%x : !tile.reg<32x64xf32>, %m[0] : !tile.reg<32xf32>) -> !tile.reg<32x64xf32>
  tile.store %y, %kv[%c0] : !tile.reg<32x64xf32>, !tile.view<?x64xf32>
}
