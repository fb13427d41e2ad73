// RUN: attn-opt %S/../../Dialect/Tile/Transforms/Inputs/decode.mlir --tile-assign-layouts --tile-multibuffer --tile-allocate-shared --convert-tile-to-gpu | FileCheck %s --check-prefix=DECODE
// RUN: attn-opt %S/../../Dialect/Tile/Transforms/Inputs/prefill.mlir --tile-assign-layouts --tile-multibuffer --tile-allocate-shared --convert-tile-to-gpu | FileCheck %s --check-prefix=PREFILL
// RUN: attn-opt %s --convert-tile-to-gpu | FileCheck %s --check-prefix=CONVERT

// Every warp loads and reads its own keys: in the key loop only lanes meet. 16 instructions of 32 x 16 bytes a tile of
// a warp, one table read a row.
// DECODE: llvm.func @decode
// DECODE-SAME: attn.smem = 131072 : i64
// DECODE-SAME: attn.threads = 128 : i64
// The prologue: K, then V, committed behind their guards.
// DECODE: llvm.load {{.*}} invariant
// DECODE: nvvm.shfl.sync idx
// DECODE-COUNT-16: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// DECODE: nvvm.cp.async.commit.group
// DECODE-COUNT-16: nvvm.cp.async.shared.global
// DECODE: nvvm.cp.async.commit.group
// The loop.
// DECODE: nvvm.cp.async.wait.group 1
// DECODE: nvvm.bar.warp.sync
// DECODE: nvvm.ldmatrix {{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4
// DECODE: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// DECODE: nvvm.cp.async.wait.group 1
// DECODE: nvvm.bar.warp.sync
// DECODE: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 4
// Afterwards the groups meet.
// DECODE: nvvm.barrier

// 32 rows a warp: two row blocks meet each B fragment, which is read once.
// PREFILL: llvm.func @prefill
// PREFILL-SAME: attn.threads = 128 : i64
// PREFILL: nvvm.cp.async.wait.group 0
// PREFILL-NEXT: nvvm.barrier
// PREFILL: nvvm.cp.async.wait.group 1
// PREFILL-NEXT: nvvm.barrier
// PREFILL-NOT: nvvm.barrier
// PREFILL: nvvm.ldmatrix
// PREFILL: nvvm.ldmatrix
// PREFILL: nvvm.ldmatrix
// PREFILL: nvvm.mma.sync
// PREFILL-NOT: nvvm.barrier
// PREFILL: nvvm.cp.async.wait.group 1
// PREFILL-NEXT: nvvm.barrier
// PREFILL-NOT: nvvm.barrier
// PREFILL: llvm.return

// A tile as K and as V: one of them goes through shared memory.
// CONVERT: llvm.func @convert
// CONVERT: nvvm.barrier
// CONVERT: llvm.store {{.*}} : bf16, !llvm.ptr<3>
// CONVERT: nvvm.barrier
// CONVERT: llvm.load {{.*}} : !llvm.ptr<3> -> bf16
// CONVERT: nvvm.barrier
#acc = #tile.mma<warps = [4, 1]>
#a = #tile.operand<a, parent = #acc>
#bt = #tile.operand<bt, parent = #acc>
!v = !tile.view<?x64xbf16>
tile.kernel @convert(%k: memref<?x64xbf16> {tile.arg = "k"}, %n: index {tile.arg = "param:n"})
    attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 8192 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xbf16> -> !v
  %x = tile.load %kv[%c0] : !v -> !tile.reg<64x64xbf16, #a>
  %y = tile.convert_layout %x {tile.shared_offset = 0 : i64} : !tile.reg<64x64xbf16, #a> -> !tile.reg<64x64xbf16, #bt>
  %s = tile.dot %x, %y transpose_b : (!tile.reg<64x64xbf16, #a>, !tile.reg<64x64xbf16, #bt>) -> !tile.reg<64x64xf32, #acc>
  %o = tile.map arith.truncf(%s : !tile.reg<64x64xf32, #acc>) -> !tile.reg<64x64xbf16, #acc>
  tile.store %o, %kv[%c0] : !tile.reg<64x64xbf16, #acc>, !v
}
