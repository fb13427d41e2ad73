// RUN: attn-opt %s --convert-tile-to-gpu --split-input-file --verify-diagnostics

#acc = #tile.mma<warps = [4, 1]>
!s = !tile.smem<64x64xf32, #tile.swizzle<128, panel = 32>>
tile.kernel @floats(%k: memref<?x64xf32> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xf32> -> !tile.view<?x64xf32>
  %x = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !tile.view<?x64xf32> -> !s
  // expected-error@+1 {{multiplies 'f32' by 'f32', expected bf16 or f16 on both sides: load 8-bit operands into registers and extend them}}
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

// -----

// 8-bit floats.
#acc = #tile.mma<warps = [4, 1]>
!s = !tile.smem<64x64xf8E4M3FN, #tile.swizzle<64, panel = 64>>
!v = !tile.view<?x64xf8E4M3FN>
tile.kernel @registers(%k: memref<?x64xf8E4M3FN> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xf8E4M3FN> -> !v
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !v -> !s
  // expected-error@+1 {{read as an accumulator or an operand; 8-bit tiles go through tile.transform}}
  %r = tile.local_load %s : !s -> !tile.reg<64x64xf8E4M3FN, #acc>
}

// -----

#b = #tile.blocked<warps = [4, 1], columns = 64, rows = 4>
!s = !tile.smem<64x64xf8E4M3FN, #tile.swizzle<64, panel = 64>>
!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!v = !tile.view<?x64xf8E4M3FN>
tile.kernel @place(%k: memref<?x64xf8E4M3FN> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xf8E4M3FN> -> !v
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !v -> !s
  // expected-error@+1 {{has no 'tile.shared_offset', run tile-allocate-shared first}}
  %h = tile.transform %s rows 16 : !s -> !t {
  ^bb0(%x: !tile.reg<16x64xf8E4M3FN, #b>, %first: index):
    %y = tile.map arith.extf(%x : !tile.reg<16x64xf8E4M3FN, #b>) -> !tile.reg<16x64xbf16, #b>
    tile.yield %y : !tile.reg<16x64xbf16, #b>
  }
}

// -----

#b = #tile.blocked<warps = [4, 1], columns = 64, rows = 4>
!s = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!h = !tile.smem<32x64xbf16, #tile.swizzle<128, panel = 64>>
!v = !tile.view<?x64xbf16>
tile.kernel @part(%k: memref<?x64xbf16> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xbf16> -> !v
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !v -> !s
  %h = tile.subview %s[32, 0] : !s -> !h
  // expected-error@+1 {{expected a whole stage with a layout and rows with #tile.blocked}}
  %r = tile.transform %h rows 16 : !h -> !h {
  ^bb0(%x: !tile.reg<16x64xbf16, #b>, %first: index):
    tile.yield %x : !tile.reg<16x64xbf16, #b>
  }
}

// -----

#b = #tile.blocked<warps = [4, 1], columns = 32, rows = 8>
!s = !tile.smem<64x32xf32, #tile.swizzle<128, panel = 32>>
!v = !tile.view<?x32xf32>
tile.kernel @wide(%k: memref<?x32xf32> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x32xf32> -> !v
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !v -> !s
  // expected-error@+1 {{makes 'f32' of 'f32', expected bf16 or f16 of 16-bit or 8-bit floats}}
  %r = tile.transform %s rows 32 : !s -> !s {
  ^bb0(%x: !tile.reg<32x32xf32, #b>, %first: index):
    tile.yield %x : !tile.reg<32x32xf32, #b>
  }
}

// -----

// A layout of more lanes than a warp has.
!s = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!r = !tile.reg<16x64xbf16, #tile.blocked<warps = [4, 1], columns = 64, rows = 8>>
!v = !tile.view<?x64xbf16>
tile.kernel @lanes(%k: memref<?x64xbf16> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xbf16> -> !v
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !v -> !s
  %h = tile.transform %s rows 16 : !s -> !s {
  ^bb0(%x: !r, %first: index):
    // expected-error@+1 {{has runs of 8 x 64 elements in a warp, expected columns in 8s and at most 32 runs of 8}}
    tile.yield %x : !r
  }
}

// -----

#acc = #tile.mma<warps = [4, 1]>
!v = !tile.view<?x64xf8E4M3FN>
tile.kernel @direct(%k: memref<?x64xf8E4M3FN> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xf8E4M3FN> -> !v
  // expected-error@+1 {{loads 'f8E4M3FN' into registers, which has code through shared memory only}}
  %r = tile.load %kv[%c0] : !v -> !tile.reg<64x64xf8E4M3FN, #acc>
}

// -----

#acc = #tile.mma<warps = [4, 1]>
tile.kernel @narrow(%f: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 0 : i64} {
  %x = tile.splat %f : f32 -> !tile.reg<64x64xf32, #acc>
  // expected-error@+1 {{makes 8-bit floats, which has no code: they are only read}}
  %y = tile.map (%e = %x : !tile.reg<64x64xf32, #acc>) -> !tile.reg<64x64xf8E4M3FN, #acc> {
    %n = arith.truncf %e : f32 to f8E4M3FN
    tile.yield %n : f8E4M3FN
  }
}

// -----

// Columns beside a view's come and go by eights.
#acc = #tile.mma<warps = [4, 1]>
tile.kernel @columns(%k: memref<?x4xf32> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x4xf32> -> !tile.view<?x4xf32>
  // expected-error@+1 {{loads rows of 4 columns, expected a multiple of 8}}
  %x = tile.load %kv[%c0] : !tile.view<?x4xf32> -> !tile.reg<64x8xf32, #acc>
}

// -----

#acc = #tile.mma<warps = [4, 1]>
tile.kernel @columns(%k: memref<?x4xf32> {tile.arg = "k"}, %f: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 0 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x4xf32> -> !tile.view<?x4xf32>
  %x = tile.splat %f : f32 -> !tile.reg<64x8xf32, #acc>
  // expected-error@+1 {{stores rows of 4 columns, expected a multiple of 8}}
  tile.store %x, %kv[%c0] : !tile.reg<64x8xf32, #acc>, !tile.view<?x4xf32>
}

// -----

!s = !tile.smem<64x32xbf16, #tile.swizzle<64, panel = 32>>
tile.kernel @bytes(%k: memref<?x30xbf16> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 4096 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x30xbf16> -> !tile.view<?x30xbf16>
  // expected-error@+1 {{copies rows of 60 bytes, expected a multiple of 8}}
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !tile.view<?x30xbf16> -> !s
}

// -----

#acc = #tile.mma<warps = [4, 1]>
!s = !tile.smem<64x64xf32, #tile.swizzle<128, panel = 32>>
tile.kernel @wide(%k: memref<?x64xf32> {tile.arg = "k"}) attributes {level = #tile.level<logical>, target = #attn.target<"sm_80">, tile.shared_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x64xf32> -> !tile.view<?x64xf32>
  %s = tile.load %kv[%c0] {tile.shared_offset = 0 : i64} : !tile.view<?x64xf32> -> !s
  // expected-error@+1 {{expected a 16-bit tile with a layout, read as an accumulator or an operand}}
  %r = tile.local_load %s : !s -> !tile.reg<64x64xf32, #acc>
}
