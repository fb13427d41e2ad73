// RUN: attn-opt %s --convert-tile-to-gpu --split-input-file --verify-diagnostics

#acc = #tile.mma<warps = [4, 1]>
!s = !tile.smem<64x64xf32, #tile.swizzle<128, panel = 32>>
tile.kernel @floats(%k: memref<?x64xf32> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xf32> -> !tile.view<?x64xf32>
  %x = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !tile.view<?x64xf32> -> !s
  // expected-error@+1 {{multiplies 'f32' by 'f32', expected bf16 or f16 on both sides: convert fp8 operands in registers}}
  %s = tile.dot %x, %x transpose_b : (!s, !s) -> !tile.reg<64x64xf32, #acc>
}

// -----

#sw = #tile.swizzle<128, panel = 64>
!s = !tile.smem<64x64xbf16, #sw>
tile.kernel @words(%f: f32 {tile.arg = "scale"}) attributes {level = #tile.level<pipelined>, target = #attn.target<"sm_80">, tile.shared_bytes = 0 : i64} {
  // expected-error@+1 {{is chained, carries words or has several groups of producers or consumers, which sm_80 has no code for}}
  %p = tile.pipeline : !tile.pipeline<2 x !s, words = 2>
}

// -----

!s = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
tile.kernel @offset(%f: f32 {tile.arg = "scale"}) attributes {level = #tile.level<pipelined>, target = #attn.target<"sm_80">, tile.shared_bytes = 0 : i64} {
  // expected-error@+1 {{has no 'tile.shared_offset', run tile-allocate-shared first}}
  %p = tile.pipeline : !tile.pipeline<2 x !s>
}

// -----

#acc = #tile.mma<warps = [4, 1]>
!s = !tile.smem<64x40xbf16>
!v = !tile.view<?x40xbf16>
tile.kernel @layout(%k: memref<?x40xbf16> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 8192 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x40xbf16> -> !v
  // expected-error@+1 {{copies to shared memory without a layout, run tile-assign-layouts first}}
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !v -> !s
}

// -----

#acc = #tile.mma<warps = [4, 1]>
!a = !tile.reg<64x64xf32, #acc>
tile.kernel @rows(%f: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 65536 : i64} {
  %x = tile.splat %f : f32 -> !a
  // expected-error@+1 {{reduces over rows of several warps, expected the dimension of key groups or the columns}}
  %s = tile.reduce addf %x dim 0 {tile.shared_offset = 0 : i64} : !a -> !tile.reg<64xf32, #tile.slice<dim = 0, parent = #acc>>
}
