// Prefill at level L, small: 4 query and 2 KV heads, D 32, 32 rows x 16 keys, pages of 4, causal, two consumers.
!mq = memref<?x4x32xbf16, strided<[?, ?, 1]>>
!mk = memref<?x4x2x32xbf16, strided<[?, ?, ?, 1]>>
!ml = memref<?x4xf32, strided<[?, ?]>>
!mpo = memref<?x32xf32>
!mpl = memref<?xf32>
!mi = memref<?xi32>
!qv = !tile.view<?x32xbf16>
!kv = !tile.view<?x32xbf16, paged<4>>
!fv = !tile.view<?xf32>
!pov = !tile.view<?x32xf32>
!q = !tile.smem<32x32xbf16>
!t = !tile.smem<16x32xbf16>
!s = !tile.reg<32x16xf32>
!p = !tile.reg<32x16xbf16>
!o = !tile.reg<32x32xf32>
!ob = !tile.reg<32x32xbf16>
!r = !tile.reg<32xf32>
func.func private @range(%qpos0: index, %rows: index, %len: index, %clo: index, %chi: index) -> (index, index, index) {
  %c1 = arith.constant 1 : index
  %last = arith.addi %qpos0, %rows : index
  %h0 = arith.minsi %chi, %last : index
  %h1 = arith.minsi %h0, %len : index
  %f0 = arith.addi %qpos0, %c1 : index
  %f1 = arith.minsi %f0, %h1 : index
  return %clo, %f1, %h1 : index, index, index
}
tile.kernel @prefill(%q: !mq {tile.arg = "q"}, %k: !mk {tile.arg = "k"}, %v: !mk {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !ml {tile.arg = "lse"}, %pages: !mi {tile.arg = "pages"}, %part: !mpo {tile.arg = "part_o"}, %plse: !mpl {tile.arg = "part_lse"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 32, keys = 16, stages = 2, warps = 2, consumers = 2, load = tma>,
                target = #attn.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %log2e = arith.constant 1.44269502 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %tab = table, %len = kv_len, %qpos0 = qpos0, %clo = klo, %chi = khi, %slot = slot) in %items {
    %lo, %fhi, %hi = func.call @range(%qpos0, %rows, %len, %clo, %chi) : (index, index, index, index, index) -> (index, index, index)
    %kvh = arith.divui %head, %c2 : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !qv
    %kv = tile.view %k[%kvh] rows(%len) pages(%pages[%tab] : !mi) : !mk -> !kv
    %vv = tile.view %v[%kvh] rows(%len) pages(%pages[%tab] : !mi) : !mk -> !kv
    %qs = tile.load %qv[%c0] : !qv -> !q
    %m0 = tile.splat %ninf : f32 -> !r
    %l0 = tile.splat %zero : f32 -> !r
    %a0 = tile.splat %zero : f32 -> !o
    %m, %l, %a = scf.for %j = %lo to %hi step %c16 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!r, !r, !o) {
      %ks = tile.load %kv[%j] : !kv -> !t
      %vs = tile.load %vv[%j] : !kv -> !t
      %s = tile.dot %qs, %ks transpose_b : (!q, !t) -> !s
      %x = tile.map (%e = %s : !s) -> !s {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x () at (%i, %c) unless %j in [%lo, %fhi) keys 16 : !s {
        %qp = arith.addi %qpos0, %i : index
        %kp = arith.addi %j, %c : index
        %seen = arith.cmpi sle, %kp, %qp : index
        %there = arith.cmpi slt, %kp, %hi : index
        %in = arith.andi %seen, %there : i1
        tile.yield %in : i1
      }
      %mn = tile.reduce maximumf %y dim 1 init %mi : !r, : !s -> !r
      %mz = tile.map (%e = %mn : !r) -> !r {
        %no = arith.cmpf oeq, %e, %ninf : f32
        %z = arith.select %no, %zero, %e : f32
        tile.yield %z : f32
      }
      %al = tile.map (%e = %mi : !r, %b = %mz : !r) -> !r {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %pf = tile.map (%e = %y : !s, %b = %mz[0] : !r) -> !s {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %ps = tile.reduce addf %pf dim 1 : !s -> !r
      %ln = tile.map math.fma(%li : !r, %al : !r, %ps : !r) -> !r
      %pb = tile.map arith.truncf(%pf : !s) -> !p
      %as = tile.map arith.mulf(%ai : !o, %al[0] : !r) -> !o
      %an = tile.dot %pb, %vs acc %as : (!p, !t) -> !o
      scf.yield %mn, %ln, %an : !r, !r, !o
    }
    %on = tile.map (%e = %a : !o, %b = %l[0] : !r) -> !o {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %e, %d fastmath<arcp, afn> : f32
      tile.yield %z : f32
    }
    %l2 = tile.map (%e = %m : !r, %b = %l : !r) -> !r {
      %g = math.log2 %b fastmath<afn> : f32
      %h = arith.addf %e, %g : f32
      tile.yield %h : f32
    }
    %whole = arith.cmpi slt, %slot, %c0 : index
    scf.if %whole {
      %ls = tile.map (%e = %l2 : !r) -> !r {
        %z = arith.mulf %e, %ln2 : f32
        tile.yield %z : f32
      }
      %ob = tile.map arith.truncf(%on : !o) -> !ob
      %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
      %lv = tile.view %lse[%token0, %head] rows(%rows) : !ml -> !fv
      tile.store %ob, %ov[%c0] : !ob, !qv
      tile.store %ls, %lv[%c0] : !r, !fv
    } else {
      %pv = tile.view %part[%slot] rows(%rows) : !mpo -> !pov
      %pl = tile.view %plse[%slot] rows(%rows) : !mpl -> !fv
      tile.store %on, %pv[%c0] : !o, !pov
      tile.store %l2, %pl[%c0] : !r, !fv
    }
  }
}
