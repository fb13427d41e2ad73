// RUN: attn-opt %s --tile-reverse-keys --split-input-file --verify-diagnostics

// expected-error @+1 {{is of level pipelined, expected level logical: }}
tile.kernel @level() attributes {level = #tile.level<pipelined>} {
  tile.return
}

// -----
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
tile.kernel @bare(%m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !tile.view<?x16xbf16>
  // expected-error @+1 {{has products and no tile.mask: what an empty range visits would count}}
  scf.for %j = %c0 to %n step %c16 {
    %k = tile.load %v[%j] : !tile.view<?x16xbf16> -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
  }
}
