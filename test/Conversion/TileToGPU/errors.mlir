// RUN: attn-opt %s --pass-pipeline='builtin.module(convert-tile-to-gpu{chip=sm_90a})' -split-input-file -verify-diagnostics

// expected-error @+1 {{has no 'tile.shared_bytes', run tile-allocate-shared first}}
tile.kernel @places() attributes {level = #tile.level<logical>} {
  tile.return
}

// -----

// expected-error @+1 {{has target 'host', expected a GPU out of host, sm_80}}
tile.kernel @host() attributes {level = #tile.level<logical>, tile.shared_bytes = 0, target = #attn.target<"host">} {
  tile.return
}

// -----

// expected-error @+1 {{is specialised for tensor copies and wgmma, which sm_80 does not have}}
tile.kernel @old() attributes {level = #tile.level<specialized>, tile.shared_bytes = 0, target = #attn.target<"sm_80">} {
  tile.return
}

// -----

// expected-error @+1 {{argument 0 has no 'tile.arg' attribute that names its role}}
tile.kernel @role(%a: index) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  tile.return
}

// -----

tile.kernel @approximation(%s: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{'math.tanh' without fastmath<afn> has no code here: legalise math first}}
  %t = math.tanh %s : f32
}

// -----

tile.kernel @unknown(%s: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{'math.erf' has no code on sm_90a at level logical}}
  %t = math.erf %s : f32
}

// -----

#acc = #tile.mma<warps = [4, 1]>
tile.kernel @layout(%s: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{has extent 32 in dimension 0, expected a multiple of 64}}
  %t = tile.splat %s : f32 -> !tile.reg<32x16xf32, #acc>
}

// -----

tile.kernel @nolayout(%s: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{has no layout, run tile-assign-layouts first}}
  %t = tile.splat %s : f32 -> !tile.reg<64x16xf32>
}

// -----

func.func private @outside(index) -> index
tile.kernel @call() attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{calls 'outside', which has no body here}}
  %r = func.call @outside(%c0) : (index) -> index
}

// -----

tile.kernel @budget() attributes {level = #tile.level<specialized>, tile.shared_bytes = 0} {
  // expected-error @+1 {{asks for 65536 registers in all, more than the 64512 that a launch of 384 threads allots (168 a thread): the kernel would hang; ask for fewer 'registers'}}
  tile.roles {
    tile.role @producer warps(1) registers(32) {
    }
    tile.role @consumer warps(4) groups(2) registers(240) (%wg) {
    }
  }
}

// -----

tile.kernel @shared_warpgroup() attributes {level = #tile.level<specialized>, tile.shared_bytes = 0} {
  tile.roles {
    tile.role @producer warps(1) registers(24) {
    }
    // expected-error @+1 {{asks for 40 registers and shares a warpgroup with a role that asks for 24, expected the same number}}
    tile.role @store warps(1) registers(40) {
    }
    tile.role @consumer warps(4) groups(2) registers(240) (%wg) {
    }
  }
}

// -----

#sw = #tile.swizzle<128, panel = 64>
tile.kernel @place() attributes {level = #tile.level<specialized>, tile.shared_bytes = 0} {
  // expected-error @+1 {{has no place in shared memory, run tile-allocate-shared first}}
  %p = tile.pipeline : !tile.pipeline<2 x !tile.smem<64x64xbf16, #sw>>
}

// -----

#sw = #tile.swizzle<64, panel = 32>
!t = !tile.smem<16x64xbf16, #sw>
!h = !tile.smem<16x16xbf16, #sw>
!m = memref<?x64xbf16>
!v = !tile.view<?x64xbf16>
tile.kernel @columns(%k: !m {tile.arg = "k"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 4096, config = #attn.config<rows = 16, keys = 16>} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : !m -> !v
  %s = tile.load %kv[%c0] {tile.shared_offset = 0} : !v -> !t
  // expected-error @+1 {{cuts columns at other places than whole panels of 32}}
  %h = tile.subview %s[0, 16] : !t -> !h
}

// -----

func.func private @f0(%x: index) -> index {
  return %x : index
}
func.func private @f1(%x: index) -> index {
  %y = func.call @f0(%x) : (index) -> index
  return %y : index
}
func.func private @f2(%x: index) -> index {
  // expected-error @+1 {{calls 'f1' more than 32 levels deep}}
  %y = func.call @f1(%x) : (index) -> index
  return %y : index
}
func.func private @f3(%x: index) -> index {
  %y = func.call @f2(%x) : (index) -> index
  return %y : index
}
func.func private @f4(%x: index) -> index {
  %y = func.call @f3(%x) : (index) -> index
  return %y : index
}
func.func private @f5(%x: index) -> index {
  %y = func.call @f4(%x) : (index) -> index
  return %y : index
}
func.func private @f6(%x: index) -> index {
  %y = func.call @f5(%x) : (index) -> index
  return %y : index
}
func.func private @f7(%x: index) -> index {
  %y = func.call @f6(%x) : (index) -> index
  return %y : index
}
func.func private @f8(%x: index) -> index {
  %y = func.call @f7(%x) : (index) -> index
  return %y : index
}
func.func private @f9(%x: index) -> index {
  %y = func.call @f8(%x) : (index) -> index
  return %y : index
}
func.func private @f10(%x: index) -> index {
  %y = func.call @f9(%x) : (index) -> index
  return %y : index
}
func.func private @f11(%x: index) -> index {
  %y = func.call @f10(%x) : (index) -> index
  return %y : index
}
func.func private @f12(%x: index) -> index {
  %y = func.call @f11(%x) : (index) -> index
  return %y : index
}
func.func private @f13(%x: index) -> index {
  %y = func.call @f12(%x) : (index) -> index
  return %y : index
}
func.func private @f14(%x: index) -> index {
  %y = func.call @f13(%x) : (index) -> index
  return %y : index
}
func.func private @f15(%x: index) -> index {
  %y = func.call @f14(%x) : (index) -> index
  return %y : index
}
func.func private @f16(%x: index) -> index {
  %y = func.call @f15(%x) : (index) -> index
  return %y : index
}
func.func private @f17(%x: index) -> index {
  %y = func.call @f16(%x) : (index) -> index
  return %y : index
}
func.func private @f18(%x: index) -> index {
  %y = func.call @f17(%x) : (index) -> index
  return %y : index
}
func.func private @f19(%x: index) -> index {
  %y = func.call @f18(%x) : (index) -> index
  return %y : index
}
func.func private @f20(%x: index) -> index {
  %y = func.call @f19(%x) : (index) -> index
  return %y : index
}
func.func private @f21(%x: index) -> index {
  %y = func.call @f20(%x) : (index) -> index
  return %y : index
}
func.func private @f22(%x: index) -> index {
  %y = func.call @f21(%x) : (index) -> index
  return %y : index
}
func.func private @f23(%x: index) -> index {
  %y = func.call @f22(%x) : (index) -> index
  return %y : index
}
func.func private @f24(%x: index) -> index {
  %y = func.call @f23(%x) : (index) -> index
  return %y : index
}
func.func private @f25(%x: index) -> index {
  %y = func.call @f24(%x) : (index) -> index
  return %y : index
}
func.func private @f26(%x: index) -> index {
  %y = func.call @f25(%x) : (index) -> index
  return %y : index
}
func.func private @f27(%x: index) -> index {
  %y = func.call @f26(%x) : (index) -> index
  return %y : index
}
func.func private @f28(%x: index) -> index {
  %y = func.call @f27(%x) : (index) -> index
  return %y : index
}
func.func private @f29(%x: index) -> index {
  %y = func.call @f28(%x) : (index) -> index
  return %y : index
}
func.func private @f30(%x: index) -> index {
  %y = func.call @f29(%x) : (index) -> index
  return %y : index
}
func.func private @f31(%x: index) -> index {
  %y = func.call @f30(%x) : (index) -> index
  return %y : index
}
func.func private @f32(%x: index) -> index {
  %y = func.call @f31(%x) : (index) -> index
  return %y : index
}
func.func private @f33(%x: index) -> index {
  %y = func.call @f32(%x) : (index) -> index
  return %y : index
}
tile.kernel @deep() attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  %c0 = arith.constant 0 : index
  %y = func.call @f33(%c0) : (index) -> index
}

// -----

#bad = #tile.mma<warps = [1, 2]>
tile.kernel @last_warps(%s: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{has a layout whose last number of warps is not 1}}
  %t = tile.splat %s : f32 -> !tile.reg<64x16xf32, #bad>
}

// -----

#three = #tile.mma<warps = [1, 1, 1]>
tile.kernel @layout_rank(%s: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{has a layout of rank 3}}
  %t = tile.splat %s : f32 -> !tile.reg<64x16xf32, #three>
}

// -----

#acc = #tile.mma<warps = [1, 1]>
tile.kernel @bytes(%s: i8 {tile.arg = "param:s"}) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  // expected-error @+1 {{has 8-bit integers, which have no register layout; extend them to 32 bits when they are loaded}}
  %t = tile.splat %s : i8 -> !tile.reg<16x16xi8, #acc>
}
