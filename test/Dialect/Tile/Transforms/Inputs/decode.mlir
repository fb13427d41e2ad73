// Decode, level L: 32 query / 8 KV heads, D 128, pages of 16, causal append of up to 4 tokens, K rotated before.
// 16 rows = 4 tokens x 4 heads of one KV head; 4 groups of 32 keys keep their own state.
!mq = memref<?x32x128xbf16, strided<[?, ?, 1], offset: ?>>
!mk = memref<?x16x8x128xbf16, strided<[?, ?, ?, 1], offset: ?>>
!mlse = memref<?x32xf32, strided<[?, ?], offset: ?>>
!mpo = memref<?x128xf32, strided<[?, 1]>>
!mpl = memref<?xf32>
!mt = memref<?xi32>
!qv = !tile.view<?x128xbf16, packed<4>>
!kv = !tile.view<?x128xbf16, paged<16>>
!lv = !tile.view<?xf32, packed<4>>
!pov = !tile.view<?x128xf32>
!plv = !tile.view<?xf32>
!q = !tile.reg<16x128xbf16>
!ks = !tile.smem<4x32x128xbf16>
!s = !tile.reg<4x16x32xf32>
!p = !tile.reg<4x16x32xbf16>
!st = !tile.reg<4x16xf32>
!acc = !tile.reg<4x16x128xf32>
!row = !tile.reg<16xf32>
!rowi = !tile.reg<16xindex>
!o = !tile.reg<16x128xf32>
func.func private @range(%qpos0: index, %rows: index, %len: index, %clo: index, %chi: index) -> (index, index, index, index) {
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %t = arith.addi %rows, %c3 : index
  %c2 = arith.constant 2 : index
  %tokens = arith.shrui %t, %c2 : index
  %last = arith.addi %qpos0, %tokens : index
  %h0 = arith.minsi %chi, %last : index
  %h1 = arith.minsi %h0, %len : index
  %f0 = arith.addi %qpos0, %c1 : index
  %f1 = arith.minsi %f0, %h1 : index
  return %clo, %clo, %f1, %h1 : index, index, index, index
}
tile.kernel @decode(%q: !mq {tile.arg = "q"}, %k: !mk {tile.arg = "k"}, %v: !mk {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !mlse {tile.arg = "lse"}, %pages: !mt {tile.arg = "pages"}, %part: !mpo {tile.arg = "part_o"}, %plse: !mpl {tile.arg = "part_lse"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 16, keys = 128, groups = 4, stages = 2, pack = 4>,
                target = #attn.target<"sm_80">} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %log2e = arith.constant 1.44269502 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %tab = table, %len = kv_len, %qpos0 = qpos0, %clo = klo, %chi = khi, %slot = slot) in %items {
    %lo, %flo, %fhi, %hi = func.call @range(%qpos0, %rows, %len, %clo, %chi) : (index, index, index, index, index) -> (index, index, index, index)
    %kvh = arith.divui %head, %c4 : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !qv
    %kv = tile.view %k[%kvh] rows(%hi) pages(%pages[%tab] : !mt) : !mk -> !kv
    %vv = tile.view %v[%kvh] rows(%hi) pages(%pages[%tab] : !mt) : !mk -> !kv
    %qr = tile.load %qv[%c0] : !qv -> !q
    %qpos = tile.map () at (%r) -> !rowi {
      %t = arith.divui %r, %c4 : index
      %a = arith.addi %qpos0, %t : index
      tile.yield %a : index
    }
    %m0 = tile.splat %ninf : f32 -> !st
    %l0 = tile.splat %zero : f32 -> !st
    %a0 = tile.splat %zero : f32 -> !acc
    %m, %l, %a = scf.for %j = %lo to %hi step %c128 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!st, !st, !acc) {
      %ks = tile.load %kv[%j] : !kv -> !ks
      %vs = tile.load %vv[%j] : !kv -> !ks
      %s = tile.dot %qr, %ks transpose_b : (!q, !ks) -> !s
      %x = tile.map (%e = %s : !s) -> !s {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x (%qp = %qpos[1] : !rowi) at (%g, %r, %i) unless %j in [%flo, %fhi) keys 128 : !s {
        %g0 = arith.muli %g, %c32 : index
        %g1 = arith.addi %g0, %i : index
        %pos = arith.addi %j, %g1 : index
        %in = arith.cmpi sle, %pos, %qp : index
        tile.yield %in : i1
      }
      %mn = tile.reduce maximumf %y dim 2 init %mi : !st, : !s -> !st
      %mz = tile.map (%e = %mn : !st) -> !st {
        %no = arith.cmpf oeq, %e, %ninf : f32
        %z = arith.select %no, %zero, %e : f32
        tile.yield %z : f32
      }
      %al = tile.map (%e = %mi : !st, %b = %mz : !st) -> !st {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %pf = tile.map (%e = %y : !s, %b = %mz[0, 1] : !st) -> !s {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %ps = tile.reduce addf %pf dim 2 : !s -> !st
      %ln = tile.map math.fma(%li : !st, %al : !st, %ps : !st) -> !st
      %pb = tile.map arith.truncf(%pf : !s) -> !p
      %as = tile.map arith.mulf(%ai : !acc, %al[0, 1] : !st) -> !acc
      %an = tile.dot %pb, %vs acc %as : (!p, !ks) -> !acc
      scf.yield %mn, %ln, %an : !st, !st, !acc
    }
    %mm = tile.reduce maximumf %m dim 0 : !st -> !row
    %w = tile.map (%e = %m : !st, %b = %mm[1] : !row) -> !st {
      %no = arith.cmpf oeq, %e, %ninf : f32
      %d = arith.subf %e, %b : f32
      %z = math.exp2 %d fastmath<afn> : f32
      %w0 = arith.select %no, %zero, %z : f32
      tile.yield %w0 : f32
    }
    %lw = tile.map arith.mulf(%l : !st, %w : !st) -> !st
    %aw = tile.map arith.mulf(%a : !acc, %w[0, 1] : !st) -> !acc
    %lt = tile.reduce addf %lw dim 0 : !st -> !row
    %ot = tile.reduce addf %aw dim 0 : !acc -> !o
    %on = tile.map (%e = %ot : !o, %b = %lt[0] : !row) -> !o {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %e, %d fastmath<arcp, afn> : f32
      tile.yield %z : f32
    }
    %ls = tile.map (%e = %mm : !row, %b = %lt : !row) -> !row {
      %g = math.log2 %b fastmath<afn> : f32
      %h = arith.addf %e, %g : f32
      %z = arith.mulf %h, %ln2 : f32
      tile.yield %z : f32
    }
    %whole = arith.cmpi slt, %slot, %c0 : index
    scf.if %whole {
      %ob = tile.map arith.truncf(%on : !o) -> !q
      %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
      %lv = tile.view %lse[%token0, %head] rows(%rows) : !mlse -> !lv
      tile.store %ob, %ov[%c0] : !q, !qv
      tile.store %ls, %lv[%c0] : !row, !lv
    } else {
      %pv = tile.view %part[%slot] rows(%rows) : !mpo -> !pov
      %pl = tile.view %plse[%slot] rows(%rows) : !mpl -> !plv
      tile.store %on, %pv[%c0] : !o, !pov
      tile.store %ls, %pl[%c0] : !row, !plv
    }
  }
}
