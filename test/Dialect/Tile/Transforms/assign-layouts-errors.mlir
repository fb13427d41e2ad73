// RUN: attn-opt %s --tile-assign-layouts=forbid-loop-conversions --split-input-file --verify-diagnostics

// expected-error@+1 {{has no config, expected an attribute 'config' of kind #attn.config}}
tile.kernel @no_config() attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
}

// -----

// expected-error@+1 {{is of level pipelined, expected level logical: }}
tile.kernel @level() attributes {level = #tile.level<pipelined>, config = #attn.config<rows = 16, keys = 64>} {
  %c0 = arith.constant 0 : index
}

// -----

tile.kernel @twice(%f: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64>} {
  // expected-error@+1 {{has a layout already, expected a kernel without layouts}}
  %x = tile.splat %f : f32 -> !tile.reg<64x64xf32, #tile.mma<warps = [4, 1]>>
}

// -----

// expected-error@+1 {{has tiles of 8 rows, expected a multiple of 16: choose another 'rows' in the config}}
tile.kernel @rows(%f: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64>} {
  %x = tile.splat %f : f32 -> !tile.reg<8x64xf32>
}

// -----

// expected-error@+1 {{has tiles with a leading dimension of 2, expected the config's groups, 4}}
tile.kernel @groups(%f: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64, groups = 4>} {
  %x = tile.splat %f : f32 -> !tile.reg<2x16x64xf32>
}

// -----

// expected-error@+1 {{has 4 warps for 3 key groups, expected a multiple}}
tile.kernel @warps(%f: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64, groups = 3>} {
  %x = tile.splat %f : f32 -> !tile.reg<3x16x64xf32>
}

// -----

tile.kernel @rank(%f: f32, %b: bf16) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64, groups = 4>} {
  %x = tile.splat %f : f32 -> !tile.reg<4x16x64xf32>
  %y = tile.splat %b : bf16 -> !tile.reg<64x64xbf16>
  // expected-error@+1 {{has rank 2, expected rank 3 as the kernel's other tiles}}
  %s = tile.dot %y, %y transpose_b : (!tile.reg<64x64xbf16>, !tile.reg<64x64xbf16>) -> !tile.reg<64x64xf32>
}

// -----

tile.kernel @dot_rows(%f: f32, %b: bf16) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64>} {
  %x = tile.splat %b : bf16 -> !tile.reg<64x64xbf16>
  %y = tile.splat %b : bf16 -> !tile.reg<80x64xbf16>
  %s = tile.dot %x, %x transpose_b : (!tile.reg<64x64xbf16>, !tile.reg<64x64xbf16>) -> !tile.reg<64x64xf32>
  // expected-error@+1 {{has 80 rows, expected a multiple of 64 (16 rows a warp)}}
  %t = tile.dot %y, %x transpose_b : (!tile.reg<80x64xbf16>, !tile.reg<64x64xbf16>) -> !tile.reg<80x64xf32>
}

// -----

tile.kernel @dot_columns(%f: f32, %b: bf16) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64>} {
  %x = tile.splat %b : bf16 -> !tile.reg<64x64xbf16>
  %y = tile.splat %b : bf16 -> !tile.reg<4x64xbf16>
  // expected-error@+1 {{has 4 columns, expected a multiple of 8}}
  %s = tile.dot %x, %y transpose_b : (!tile.reg<64x64xbf16>, !tile.reg<4x64xbf16>) -> !tile.reg<64x4xf32>
}

// -----

tile.kernel @dot_depth(%f: f32, %b: bf16) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64>} {
  %x = tile.splat %b : bf16 -> !tile.reg<64x40xbf16>
  // expected-error@+1 {{contracts over 40 elements, expected a multiple of 16: pad the tile with zeros}}
  %s = tile.dot %x, %x transpose_b : (!tile.reg<64x40xbf16>, !tile.reg<64x40xbf16>) -> !tile.reg<64x64xf32>
}

// -----

tile.kernel @smem(%k: memref<?x40xbf16>) attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64>} {
  %c0 = arith.constant 0 : index
  %v = tile.view %k[%c0] rows(%c0) : memref<?x40xbf16> -> !tile.view<?x40xbf16>
  // expected-error@+1 {{has shared-memory rows of 80 bytes, expected a multiple of 32: pad the tile with zeros}}
  %s = tile.load %v[%c0] : !tile.view<?x40xbf16> -> !tile.smem<64x40xbf16>
}

// -----

tile.kernel @unreached(%f: f32) attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 64>} {
  %x = tile.splat %f : f32 -> !tile.reg<64x64xf32>
  // expected-error@+1 {{has a register tile that no layout reaches, expected one used by tile or scf ops only}}
  scf.execute_region {
    cf.br ^bb1(%x : !tile.reg<64x64xf32>)
  ^bb1(%y: !tile.reg<64x64xf32>):
    scf.yield
  }
}

// -----

tile.kernel @loop(%k: memref<?x64xbf16>, %o: memref<?x64xf32>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 64>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xbf16> -> !tile.view<?x64xbf16>
  scf.for %j = %c0 to %n step %c64 {
    %x = tile.load %kv[%j] : !tile.view<?x64xbf16> -> !tile.reg<64x64xbf16>
    // expected-error@+1 {{converts a layout inside a loop, where 'forbid-loop-conversions' allows none}}
    %s = tile.dot %x, %x transpose_b : (!tile.reg<64x64xbf16>, !tile.reg<64x64xbf16>) -> !tile.reg<64x64xf32>
    %ov = tile.view %o[%c0] rows(%n) : memref<?x64xf32> -> !tile.view<?x64xf32>
    tile.store %s, %ov[%j] : !tile.reg<64x64xf32>, !tile.view<?x64xf32>
  }
}
