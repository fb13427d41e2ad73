// RUN: attn-opt %s --tile-warp-specialize --split-input-file --verify-diagnostics

// expected-error @+1 {{is of level pipelined, expected level logical: }}
tile.kernel @level() attributes {level = #tile.level<pipelined>} {
  tile.return
}

// -----
// expected-error @+1 {{has no config, expected an attribute 'config' of kind #attn.config}}
tile.kernel @config() attributes {level = #tile.level<logical>} {
  tile.return
}

// -----
// expected-error @+1 {{has no tile.for_each}}
tile.kernel @items() attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.return
}

// -----
tile.kernel @two(%items: !tile.items) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
  }
  // expected-error @+1 {{is the second of its kernel, expected one to specialise}}
  tile.for_each () in %items {
  }
}

// -----
tile.kernel @beside(%items: !tile.items, %c: i1) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  // expected-error @+1 {{stands beside tile.for_each, expected scalars only}}
  scf.if %c {
  }
  tile.for_each () in %items {
  }
}

// -----
// expected-error @+1 {{has no consumers, expected their number in the config}}
tile.kernel @consumers(%items: !tile.items) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2>} {
  tile.for_each () in %items {
  }
}

// -----
// expected-error @+1 {{has 32 rows and 4 warps for 2 consumers, expected multiples of 16 rows a warp}}
tile.kernel @rows(%items: !tile.items) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 4, consumers = 2>} {
  tile.for_each () in %items {
  }
}

// -----
// expected-error @+1 {{loads nothing to shared memory, so there is no work for a producer}}
tile.kernel @nothing(%items: !tile.items) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
  }
}

// -----
tile.kernel @layouts(%items: !tile.items, %x: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
    // expected-error @+1 {{has a register tile without layout; run tile-assign-layouts first}}
    %0 = tile.splat %x : f32 -> !tile.reg<32x16xf32>
  }
}

// -----
tile.kernel @hook(%items: !tile.items, %x: bf16) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
    // expected-error @+1 {{computes K or V in registers, which needs a role of its own}}
    %0 = tile.splat %x : bf16 -> !tile.reg<16x32xbf16, #tile.operand<bt, parent = #tile.mma<warps = [2, 1]>>>
  }
}

// -----
tile.kernel @groups(%items: !tile.items, %x: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
    // expected-error @+1 {{has key groups, which warp specialisation does not split}}
    %0 = tile.splat %x : f32 -> !tile.reg<2x32x16xf32, #tile.mma<warps = [2, 1, 1]>>
  }
}

// -----
tile.kernel @height(%items: !tile.items, %x: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
    // expected-error @+1 {{has a tile of 64 rows, expected the 32 of the config}}
    %0 = tile.splat %x : f32 -> !tile.reg<64x16xf32, #tile.mma<warps = [2, 1]>>
  }
}

// -----
#acc = #tile.mma<warps = [2, 1]>
tile.kernel @mixes(%items: !tile.items, %x: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  tile.for_each () in %items {
    %0 = tile.splat %x : f32 -> !tile.reg<32x16xf32, #acc>
    // expected-error @+1 {{mixes rows that different consumers hold}}
    %1 = tile.reduce addf %0 dim 0 : !tile.reg<32x16xf32, #acc> -> !tile.reg<16xf32, #tile.slice<dim = 0, parent = #acc>>
  }
}

// -----
!v = !tile.view<?x16xbf16>
!t = !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @outside(%items: !tile.items, %m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
  // expected-error @+1 {{stands beside tile.for_each, expected scalars only}}
  %t = tile.load %v[%c0] : !v -> !t
  tile.for_each () in %items {
  }
}

// -----
!v = !tile.view<?x16xbf16>
!t = !tile.smem<16x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @use(%items: !tile.items, %m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
    %t = tile.load %v[%c0] : !v -> !t
    // expected-error @+1 {{uses a loaded tile, expected tile.dot or tile.local_load only}}
    tile.store %t, %v[%c0] : !t, !v
  }
}

// -----
#acc = #tile.mma<warps = [2, 1]>
#b = #tile.blocked<warps = [4, 1], columns = 32, rows = 4>
!v = !tile.view<?x32xf8E5M2>
!t = !tile.smem<32x32xf8E5M2, #tile.swizzle<32, panel = 32>>
!h = !tile.smem<32x32xf16, #tile.swizzle<64, panel = 32>>
tile.kernel @type(%items: !tile.items, %m: memref<?x32xf8E5M2>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x32xf8E5M2> -> !v
    %t = tile.load %v[%c0] : !v -> !t
    // expected-error @+1 {{makes 'f16' of a query tile of 'f8E5M2', expected the same elements: no role does that}}
    %h = tile.transform %t rows 16 : !t -> !h {
    ^bb0(%x: !tile.reg<16x32xf8E5M2, #b>, %first: index):
      %y = tile.map arith.extf(%x : !tile.reg<16x32xf8E5M2, #b>) -> !tile.reg<16x32xf16, #b>
      tile.yield %y : !tile.reg<16x32xf16, #b>
    }
    %q = tile.local_load %h : !h -> !tile.reg<32x32xf16, #tile.operand<a, parent = #acc>>
  }
}

// -----
#acc = #tile.mma<warps = [2, 1]>
!v = !tile.view<?x16xbf16>
!t = !tile.smem<32x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @both(%items: !tile.items, %m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 32, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
    // expected-error @+1 {{loads a tile for rows and for keys}}
    %t = tile.load %v[%c0] : !v -> !t
    %s = tile.dot %t, %t transpose_b : (!t, !t) -> !tile.reg<32x32xf32, #acc>
  }
}

// -----
#acc = #tile.mma<warps = [2, 1]>
!v = !tile.view<?x16xbf16>
!t = !tile.smem<32x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @kinds(%items: !tile.items, %m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 32, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
    %t = tile.load %v[%c0] : !v -> !t
    // expected-error @+1 {{loads another kind of tile from a view than the loads before}}
    %u = tile.load %v[%c0] : !v -> !t
    %s = tile.dot %t, %u transpose_b : (!t, !t) -> !tile.reg<32x32xf32, #acc>
  }
}

// -----
!v = !tile.view<?x16xbf16>
!t = !tile.smem<32x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @while(%items: !tile.items, %m: memref<?x16xbf16>, %n: index, %c: i1) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 32, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
    // expected-error @+1 {{holds a load, expected scf.for and scf.if around it}}
    scf.while : () -> () {
      %t = tile.load %v[%c0] : !v -> !t
      scf.condition(%c)
    } do {
      scf.yield
    }
  }
}

// -----
!v = !tile.view<?x16xbf16>
!t = !tile.smem<32x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @depends(%items: !tile.items, %m: memref<?x16xbf16>, %n: index, %x: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 32, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
    // expected-error @+1 {{a load depends on a value of type '!tile.reg<32x32xf32, #tile.mma<warps = [2, 1]>>', which the producer does not have}}
    %r = tile.splat %x : f32 -> !tile.reg<32x32xf32, #tile.mma<warps = [2, 1]>>
    %i = builtin.unrealized_conversion_cast %r : !tile.reg<32x32xf32, #tile.mma<warps = [2, 1]>> to index
    %t = tile.load %v[%i] : !v -> !t
  }
}

// -----
!v = !tile.view<?x16xbf16>
!t = !tile.smem<32x16xbf16, #tile.swizzle<32, panel = 16>>
tile.kernel @parallel(%items: !tile.items, %m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 32, warps = 2, consumers = 2>} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  tile.for_each () in %items {
    %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !v
    // expected-error @+1 {{holds a load, expected scf.for and scf.if around it}}
    scf.parallel (%j) = (%c0) to (%n) step (%c32) {
      %t = tile.load %v[%j] : !v -> !t
    }
  }
}
