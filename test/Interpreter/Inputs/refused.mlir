// Kernels that verify and that the interpreter refuses: sums not taken yet used as if they were, waits for nobody, memory of
// no pipeline. errors.mlir runs them by name.
#acc = #tile.mma<warps = [1, 1]>
#rows = #tile.slice<dim = 1, parent = #acc>
#part = #tile.slice<dim = 1, parent = #acc, partial = true>
#col = #tile.slice<dim = 0, parent = #acc>
#colpart = #tile.slice<dim = 0, parent = #acc, partial = true>
!m = memref<?x2x16xbf16>
!r = !tile.reg<16xf32, #rows>
!p = !tile.reg<16xf32, #part>
!t = !tile.reg<16x16xf32, #acc>
tile.kernel @read(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"}, %l: memref<?xf32> {tile.arg = "part_lse"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %p = tile.splat %zero : f32 -> !p
  %w = tile.view %l[%c0] rows(%c1) : memref<?xf32> -> !tile.view<?xf32>
  tile.store %p, %w[%c0] : !p, !tile.view<?xf32>
}
tile.kernel @map(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<logical>} {
  %zero = arith.constant 0.0 : f32
  %p = tile.splat %zero : f32 -> !p
  %r = tile.map (%e = %p : !p) -> !r {
    tile.yield %e : f32
  }
}
tile.kernel @both(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<logical>} {
  %zero = arith.constant 0.0 : f32
  %p = tile.splat %zero : f32 -> !r
  %r, %s = tile.map (%e = %p : !r) -> (!r, !p) {
    tile.yield %e, %e : f32, f32
  }
}
tile.kernel @mask(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %p = tile.splat %zero : f32 -> !p
  %r = tile.mask %p () at (%i) unless %c0 in [%c0, %c0) keys 1 : !p {
    %in = arith.constant true
    tile.yield %in : i1
  }
}
tile.kernel @all(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<logical>} {
  %zero = arith.constant 0.0 : f32
  %t = tile.splat %zero : f32 -> !t
  %r = tile.reduce addf %t dim 1 : !t -> !p
}
tile.kernel @columns(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<logical>} {
  %zero = arith.constant 0.0 : f32
  %t = tile.splat %zero : f32 -> !t
  %r = tile.reduce addf %t dim 0 scope thread : !t -> !tile.reg<16xf32, #colpart>
}
#g = #tile.mma<warps = [1, 1, 1]>
#gp = #tile.slice<dim = 2, parent = #g, partial = true>
tile.kernel @other(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<logical>} {
  %zero = arith.constant 0.0 : f32
  %t = tile.splat %zero : f32 -> !tile.reg<1x16xf32, #gp>
  %r = tile.reduce addf %t dim 0 : !tile.reg<1x16xf32, #gp> -> !tile.reg<16xf32, #tile.slice<dim = 0, parent = #gp>>
}
tile.kernel @forever(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !tile.pipeline<1 x !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>>
  %w = tile.consumer_wait %p : !tile.pipeline<1 x !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>>
  tile.consumer_release %p : !tile.pipeline<1 x !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>>
}
tile.kernel @unowned(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"})
    attributes {level = #tile.level<specialized>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = tile.view %q[%c0, %c0] rows(%c1) : !m -> !tile.view<?x16xbf16>
  %s = tile.load %w[%c0] : !tile.view<?x16xbf16> -> !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>
  tile.store_async %s, %w[%c0] : !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>, !tile.view<?x16xbf16>
}
