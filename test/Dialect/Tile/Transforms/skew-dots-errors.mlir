// RUN: attn-opt %s --tile-skew-dots --split-input-file --verify-diagnostics

// expected-error @+1 {{is of level pipelined, expected level logical: }}
tile.kernel @level() attributes {level = #tile.level<pipelined>} {
  tile.return
}

// -----
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
tile.kernel @one(%m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !tile.view<?x16xbf16>
  // expected-error @+1 {{cannot be skewed: it has not two products}}
  scf.for %j = %c0 to %n step %c16 {
    %k = tile.load %v[%j] : !tile.view<?x16xbf16> -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
  }
}

// -----
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
tile.kernel @carried(%m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !tile.view<?x16xbf16>
  // expected-error @+1 {{cannot be skewed: its second product is not a carried accumulator}}
  scf.for %j = %c0 to %n step %c16 {
    %k = tile.load %v[%j] : !tile.view<?x16xbf16> -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
    %t = tile.dot %k, %k acc %s : (!t, !t) -> !s
  }
}

// -----
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
!p = !tile.reg<16x16xbf16>
tile.kernel @writes(%m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %o = tile.splat %zero : f32 -> !s
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !tile.view<?x16xbf16>
  // expected-error @+1 {{cannot be skewed: it writes to memory}}
  %r = scf.for %j = %c0 to %n step %c16 iter_args(%a = %o) -> (!s) {
    %k = tile.load %v[%j] : !tile.view<?x16xbf16> -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
    %p = tile.map arith.truncf(%s : !s) -> !p
    tile.store %p, %v[%j] : !p, !tile.view<?x16xbf16>
    %t = tile.dot %p, %k acc %a : (!p, !t) -> !s
    scf.yield %t : !s
  }
}

// -----
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
!p = !tile.reg<16x16xbf16>
tile.kernel @chain(%m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %o = tile.splat %zero : f32 -> !s
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !tile.view<?x16xbf16>
  // expected-error @+1 {{cannot be skewed: its first product needs the accumulator of its second}}
  %r = scf.for %j = %c0 to %n step %c16 iter_args(%a = %o) -> (!s) {
    %k = tile.load %v[%j] : !tile.view<?x16xbf16> -> !t
    %s = tile.dot %k, %k transpose_b acc %a : (!t, !t) -> !s
    %p = tile.map arith.truncf(%s : !s) -> !p
    %t = tile.dot %p, %k acc %s : (!p, !t) -> !s
    scf.yield %t : !s
  }
}

// -----
!t = !tile.smem<16x16xbf16>
!s = !tile.reg<16x16xf32>
!p = !tile.reg<16x16xbf16>
tile.kernel @shared(%m: memref<?x16xbf16>, %n: index) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %o = tile.splat %zero : f32 -> !s
  %v = tile.view %m[%c0] rows(%n) : memref<?x16xbf16> -> !tile.view<?x16xbf16>
  // expected-error @+1 {{cannot be skewed: its second product reads a carried value or shared memory of the step}}
  %r = scf.for %j = %c0 to %n step %c16 iter_args(%a = %o) -> (!s) {
    %k = tile.load %v[%j] : !tile.view<?x16xbf16> -> !t
    %s = tile.dot %k, %k transpose_b : (!t, !t) -> !s
    %p = tile.map arith.truncf(%s : !s) -> !p
    %b = tile.map arith.addf(%a : !s, %s : !s) -> !s
    %t = tile.dot %p, %k acc %b : (!p, !t) -> !s
    scf.yield %t : !s
  }
}
