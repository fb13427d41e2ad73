// What roles, their pipelines, tensor copies and warpgroup products have no code for.

// RUN: attn-opt %s --pass-pipeline='builtin.module(convert-tile-to-gpu{chip=sm_90a})' --split-input-file --verify-diagnostics

!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
tile.kernel @outside() attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !tile.pipeline<2 x !t>
  %s = tile.consumer_wait %p : !tile.pipeline<2 x !t>
  // expected-error @+1 {{is outside the roles of a specialised kernel}}
  tile.consumer_release %p : !tile.pipeline<2 x !t>
}

// -----

!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
tile.kernel @acquire_of_chain() attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  %c = tile.pipeline chain %p : !p {tile.shared_offset = 0, tile.barrier_offset = 16448} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @middle warps(1) {
      %s = tile.consumer_wait %p : !p
      // expected-error @+1 {{is of a chained pipeline, whose stages come from waiting for the one it is chained to}}
      %o = tile.producer_acquire %c : !p -> !t
      tile.commit %c : !p
    }
    tile.role @consumer warps(1) {
      %s = tile.consumer_wait %c : !p
      tile.consumer_release %c : !p
    }
  }
}

// -----

!t = !tile.smem<64x64xbf16>
!p = !tile.pipeline<1 x !t>
!m = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x64xbf16>
tile.kernel @swizzle(%k: !m {tile.arg = "k"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %kv = tile.view %k[%c0, %c0] rows(%c0) : !m -> !v
      %s = tile.producer_acquire %p : !p -> !t
      // expected-error @+1 {{copies to a stage without #tile.swizzle}}
      tile.load_async %kv[%c0] into %s signal %p : !v, !t, !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!m = memref<?x64xbf16>
!v = !tile.view<?x64xbf16>
tile.kernel @dense_buffer(%k: !m {tile.arg = "k"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %kv = tile.view %k[%c0] rows(%c0) : !m -> !v
      %s = tile.producer_acquire %p : !p -> !t
      // expected-error @+1 {{expected a buffer of tokens, heads and vectors with two offsets}}
      tile.load_async %kv[%c0] into %s signal %p : !v, !t, !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!m = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x64xbf16, packed<4>>
tile.kernel @packed_row(%k: !m {tile.arg = "q"}, %row: index {tile.arg = "param:row"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %kv = tile.view %k[%c0, %c0] rows(%c0) : !m -> !v
      %s = tile.producer_acquire %p : !p -> !t
      // expected-error @+1 {{copies packed rows from a row that is not a constant multiple of 4}}
      tile.load_async %kv[%row] into %s signal %p : !v, !t, !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!m = memref<?x4x2x64xbf16, strided<[?, ?, ?, 1]>>
!v = !tile.view<?x64xbf16, paged<4>>
tile.kernel @many_warps(%k: !m {tile.arg = "k"}, %pages: memref<?xi32> {tile.arg = "pages"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(2) {
      %kv = tile.view %k[%c0] rows(%c0) pages(%pages[%c0] : memref<?xi32>) : !m -> !v
      %s = tile.producer_acquire %p : !p -> !t
      // expected-error @+1 {{is run by 2 warps, tensor copies are issued by one; use 'tile.gather' or a role of one warp}}
      tile.load_async %kv[%c0] into %s signal %p : !v, !t, !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x64xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!m = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x64xbf16>
tile.kernel @wide_store(%o: !m {tile.arg = "o"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @store warps(4) {
      %ov = tile.view %o[%c0, %c0] rows(%c0) : !m -> !v
      %s = tile.consumer_wait %p : !p
      // expected-error @+1 {{has code in roles of one warp and to dense views only}}
      tile.store_async %s, %ov[%c0] : !t, !v
      tile.consumer_release %p : !p
    }
  }
}

// -----

#sw = #tile.swizzle<128, panel = 64>
!t = !tile.smem<264x64xbf16, #sw>
!a = !tile.smem<64x64xbf16, #sw>
!p = !tile.pipeline<1 x !t>
#acc = #tile.mma<warps = [4, 1]>
!s = !tile.reg<64x264xf32, #acc>
tile.kernel @product_shape() attributes {level = #tile.level<specialized>, tile.shared_bytes = 40000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 34816} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @consumer warps(4) {
      %k = tile.consumer_wait %p : !p
      %q = tile.subview %k[%c0, 0] : !t -> !a
      // expected-error @+1 {{is 64 x 264 x 64, expected rows in 64s, at most 256 columns in 8s and a contraction in 16s}}
      %d = tile.dot_async %q, %k transpose_b : (!a, !t) -> !tile.pending<!s>
      %r = tile.await %d : !tile.pending<!s> -> !s
      tile.consumer_release %p : !p
    }
  }
}

// -----

#sw = #tile.swizzle<128, panel = 64>
!t = !tile.smem<64x64xbf16, #sw>
!a = !tile.smem<16x64xbf16, #sw>
!p = !tile.pipeline<1 x !t>
tile.kernel @fill_part() attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @consumer warps(4) {
      %k = tile.consumer_wait %p : !p
      %q = tile.subview %k[%c0, 0] : !t -> !a
      // expected-error @+1 {{fills part of a stage or one of rank other than 2}}
      tile.fill_rows %q from %c0 : !a
      tile.consumer_release %p : !p
    }
  }
}

// -----

#sw = #tile.swizzle<128, panel = 64>
!t = !tile.smem<64x64xbf16, #sw>
!h = !tile.smem<16x64xbf16, #sw>
!p = !tile.pipeline<1 x !t>
!m = memref<?x8x64xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x64xbf16>
tile.kernel @store_part(%o: !m {tile.arg = "o"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @store warps(1) {
      %ov = tile.view %o[%c0, %c0] rows(%c0) : !m -> !v
      %s = tile.consumer_wait %p : !p
      %h = tile.subview %s[%c0, 0] : !t -> !h
      // expected-error @+1 {{expected whole stages of rank 2}}
      tile.store_async %h, %ov[%c0] : !h, !v
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x64xbf16>
!p = !tile.pipeline<1 x !t>
!m = memref<?x4x2x64xbf16, strided<[?, ?, ?, 1]>>
!v = !tile.view<?x64xbf16, paged<4>>
tile.kernel @gather_layout(%k: !m {tile.arg = "k"}, %pages: memref<?xi32> {tile.arg = "pages"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @gather warps(2) {
      %kv = tile.view %k[%c0] rows(%c0) pages(%pages[%c0] : memref<?xi32>) : !m -> !v
      %s = tile.producer_acquire %p : !p -> !t
      // expected-error @+1 {{copies to shared memory without a layout, run tile-assign-layouts first}}
      tile.load_async %kv[%c0] into %s signal %p {tile.gather} : !v, !t, !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x128xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!m = memref<?x4x2x128xbf16, strided<[?, ?, ?, 1]>>
!v = !tile.view<?x128xbf16, paged<4>>
tile.kernel @group_pages(%k: !m {tile.arg = "k"}, %pages: memref<?xi32> {tile.arg = "pages"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline {tile.row_groups, tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %kv = tile.view %k[%c0] rows(%c0) pages(%pages[%c0] : memref<?xi32>) : !m -> !v
      %s = tile.producer_acquire %p : !p -> !t
      // expected-error @+1 {{copies pages of 4 rows and panels of 128 bytes to a stage by groups of rows, expected multiples of 8 rows and whole panels of 128 bytes}}
      tile.load_async %kv[%c0] into %s signal %p : !v, !t, !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x128xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
!r = !tile.reg<64x128xbf16, #tile.operand<a, parent = #tile.mma<warps = [4, 1]>>>
tile.kernel @group_fragments() attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %p = tile.pipeline {tile.row_groups, tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      // expected-error @+1 {{reads or writes a stage by groups of rows, expected whole panels; drop 'tile.row_groups' of its pipeline}}
      %r = tile.local_load %s : !t -> !r
      tile.consumer_release %p : !p
    }
  }
}

// -----

!t = !tile.smem<64x128xbf16, #tile.swizzle<128, panel = 64>>
!p = !tile.pipeline<1 x !t>
tile.kernel @group_carried(%n: index {tile.arg = "param:n"}) attributes {level = #tile.level<specialized>, tile.shared_bytes = 20000} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tile.pipeline {tile.row_groups, tile.shared_offset = 0, tile.barrier_offset = 16384} : !p
  tile.roles {
    tile.role @producer warps(1) {
      %s = tile.producer_acquire %p : !p -> !t
      tile.commit %p : !p
    }
    tile.role @consumer warps(4) {
      %s = tile.consumer_wait %p : !p
      // expected-error @+1 {{a stage by groups of rows cannot be carried through control flow; drop 'tile.row_groups'}}
      %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %s) -> (!t) {
        tile.fill_rows %x from %i : !t
        scf.yield %x : !t
      }
      tile.consumer_release %p : !p
    }
  }
}
