// A role that gathers LOADS stages of KEYS rows of WIDTH elements (COLUMNS in memory) of head 1 from pages of PAGE rows.
!t = !tile.smem<KEYSxCOLUMNSxTYPE, #tile.swizzle<128, panel = PANEL>>
!p = !tile.pipeline<LOADS x !t>
!m = memref<?xPAGEx2xWIDTHxTYPE, strided<[?, ?, ?, 1]>>
!v = !tile.view<?xWIDTHxTYPE, paged<PAGE>>
tile.kernel @gather(%k: !m {tile.arg = "k"}, %pages: memref<?xi32> {tile.arg = "pages"}, %rows: index {tile.arg = "param:rows"})
    attributes {level = #tile.level<specialized>, tile.shared_bytes = 200000} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %loads = arith.constant LOADS : index
  %keys = arith.constant KEYS : index
  %p = tile.pipeline {tile.shared_offset = 0, tile.barrier_offset = 199000} : !p
  tile.roles {
    tile.role @gather warps(WARPS) {
      %kv = tile.view %k[%c1] rows(%rows) pages(%pages[%c0] : memref<?xi32>) : !m -> !v
      scf.for %i = %c0 to %loads step %c1 {
        %row = arith.muli %i, %keys : index
        %s = tile.producer_acquire %p : !p -> !t
        tile.load_async %kv[%row] into %s signal %p {tile.gather} : !v, !t, !p
      }
    }
    tile.role @consumer warps(4) {
      scf.for %i = %c0 to %loads step %c1 {
        %s = tile.consumer_wait %p : !p
        tile.consumer_release %p : !p
      }
    }
  }
}
