// RUN: attn-opt %s --tile-multibuffer --split-input-file --verify-diagnostics

// expected-error@+1 {{has no config, expected an attribute 'config' of kind #attn.config}}
tile.kernel @no_config() attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
}

// -----

// expected-error@+1 {{is of level pipelined, expected level logical: its loads are in pipelines already}}
tile.kernel @level() attributes {level = #tile.level<pipelined>, config = #attn.config<rows = 16, keys = 64>} {
  %c0 = arith.constant 0 : index
}

// -----

// expected-error@+1 {{has 9 stages, expected 1 to 8}}
tile.kernel @stages() attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 64, stages = 9>} {
  %c0 = arith.constant 0 : index
}

// -----

!v = !tile.view<?x64xbf16>
!s = !tile.smem<64x64xbf16>
tile.kernel @carried(%k: memref<?x64xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 64>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xbf16> -> !v
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%at = %c0) -> (index) {
    // expected-error@+1 {{has a row that depends on carried values or memory, expected arithmetic on the loop's counter: it cannot be loaded ahead}}
    %s = tile.load %kv[%at] : !v -> !s
    %x = tile.local_load %s : !s -> !tile.reg<64x64xbf16>
    tile.store %x, %kv[%j] : !tile.reg<64x64xbf16>, !v
    %next = arith.addi %at, %c64 : index
    scf.yield %next : index
  }
}

// -----

!v = !tile.view<?x64xbf16>
!s = !tile.smem<64x64xbf16>
tile.kernel @handed_on(%k: memref<?x64xbf16>, %n: index) attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 64>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %kv = tile.view %k[%c0] rows(%n) : memref<?x64xbf16> -> !v
  %s0 = tile.load %kv[%c0] : !v -> !s
  %r = scf.for %j = %c0 to %n step %c64 iter_args(%old = %s0) -> (!s) {
    // expected-error@+1 {{hands its tile to the next step of the loop, expected one that is used within its step}}
    %s = tile.load %kv[%j] : !v -> !s
    scf.yield %s : !s
  }
}
