// RUN: attn-opt %s --pass-pipeline='builtin.module(convert-tile-to-gpu{chip=sm_90a})' -split-input-file -verify-diagnostics

// expected-error @+1 {{has no 'tile.shared_bytes', run tile-allocate-shared first}}
tile.kernel @places() attributes {level = #tile.level<logical>} {
}

// -----

// expected-error @+1 {{has target 'host', expected a GPU out of host, sm_80}}
tile.kernel @host() attributes {level = #tile.level<logical>, tile.shared_bytes = 0, target = #attn.target<"host">} {
}

// -----

// expected-error @+1 {{is specialised for tensor copies and wgmma, which sm_80 does not have}}
tile.kernel @old() attributes {level = #tile.level<specialized>, tile.shared_bytes = 0, target = #attn.target<"sm_80">} {
}

// -----

// expected-error @+1 {{argument 0 has no 'tile.arg' attribute that names its role}}
tile.kernel @role(%a: index) attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
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
