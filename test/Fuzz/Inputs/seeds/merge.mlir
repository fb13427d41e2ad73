
// The merge kernel at level L: one token, up to 16 heads an item; its partial states (o normalised, lse in base 2)
// are folded in order, then finalised. `table` is the first AttnMergePiece, `khi` their number; head h of a piece
// is row base + (h / pack) * stride + h mod pack.

!mq = memref<?x32x128xbf16, strided<[?, ?, 1]>>
!ml = memref<?x32xf32, strided<[?, ?]>>
!mpo = memref<?x128xf32>
!mpl = memref<?xf32>
!mp = memref<?x4xi32>
!qv = !tile.view<?x128xbf16, packed<16>>
!lv = !tile.view<?xf32, packed<16>>
!row = !tile.reg<16xf32>
!rowi = !tile.reg<16xindex>
!o = !tile.reg<16x128xf32>
!ob = !tile.reg<16x128xbf16>

tile.kernel @merge(%o: !mq {tile.arg = "o"}, %lse: !ml {tile.arg = "lse"}, %part_o: !mpo {tile.arg = "part_o"},
    %part_lse: !mpl {tile.arg = "part_lse"}, %items: !tile.items {tile.arg = "items"}, %pieces: !mp {tile.arg = "pieces"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 1, stages = 1, warps = 4, pack = 16>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %ln2 = arith.constant 0.693147182 : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %first = table, %count = khi) in %items {
    %last_row = arith.subi %rows, %c1 : index
    %m0 = tile.splat %ninf : f32 -> !row
    %l0 = tile.splat %zero : f32 -> !row
    %a0 = tile.splat %zero : f32 -> !o
    %m, %l, %a = scf.for %n = %c0 to %count step %c1 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!row, !row, !o) {
      %piece = arith.addi %first, %n : index
      %base32 = memref.load %pieces[%piece, %c0] : !mp
      %stride32 = memref.load %pieces[%piece, %c1] : !mp
      %pack32 = memref.load %pieces[%piece, %c2] : !mp
      %base = arith.index_cast %base32 : i32 to index
      %stride = arith.index_cast %stride32 : i32 to index
      %pack = arith.index_cast %pack32 : i32 to index
      %at = tile.map () at (%r) -> !rowi {
        %rc = arith.minsi %r, %last_row : index
        %h = arith.addi %head, %rc : index
        %hq = arith.divui %h, %pack : index
        %hr = arith.remui %h, %pack : index
        %hs = arith.muli %hq, %stride : index
        %b0 = arith.addi %base, %hs : index
        %b1 = arith.addi %b0, %hr : index
        tile.yield %b1 : index
      }
      %lp = tile.map (%b = %at : !rowi) -> !row {
        %e = memref.load %part_lse[%b] : !mpl
        tile.yield %e : f32
      }
      %mn = tile.map arith.maximumf(%mi : !row, %lp : !row) -> !row
      %mz = tile.map (%e = %mn : !row) -> !row {
        %no = arith.cmpf oeq, %e, %ninf : f32
        %z = arith.select %no, %zero, %e : f32
        tile.yield %z : f32
      }
      %al = tile.map (%e = %mi : !row, %b = %mz : !row) -> !row {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %w = tile.map (%e = %lp : !row, %b = %mz : !row) -> !row {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %ln = tile.map math.fma(%li : !row, %al : !row, %w : !row) -> !row
      %an = tile.map (%e = %ai : !o, %f = %al[0] : !row, %g = %w[0] : !row, %b = %at[0] : !rowi) at (%r, %d) -> !o {
        %x = memref.load %part_o[%b, %d] : !mpo
        %y = arith.mulf %x, %g : f32
        %z = math.fma %e, %f, %y : f32
        tile.yield %z : f32
      }
      scf.yield %mn, %ln, %an : !row, !row, !o
    }
    %inv = tile.map (%b = %l : !row) -> !row {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %one, %d : f32
      tile.yield %z : f32
    }
    %on = tile.map arith.mulf(%a : !o, %inv[0] : !row) -> !o
    %l2 = tile.map (%e = %m : !row, %b = %l : !row) -> !row {
      %g = math.log2 %b fastmath<afn> : f32
      %z = arith.addf %e, %g : f32
      tile.yield %z : f32
    }
    // Finalise, as in the attention kernels.
    %ln2r = tile.map (%e = %l2 : !row) -> !row {
      %z = arith.mulf %e, %ln2 : f32
      tile.yield %z : f32
    }
    %ob = tile.map arith.truncf(%on : !o) -> !ob
    %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
    tile.store %ob, %ov[%c0] : !ob, !qv
    %lv = tile.view %lse[%token0, %head] rows(%rows) : !ml -> !lv
    tile.store %ln2r, %lv[%c0] : !row, !lv
  }
}
