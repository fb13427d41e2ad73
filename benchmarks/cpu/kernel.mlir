// Attention over ragged K and V at level L, one query head a tile. cpu-bench replaces the words in capitals.

!mq = memref<?xHEADSxDIMxTYPE, strided<[?, ?, 1]>>
!mk = memref<?xKVHEADSxDIMxTYPE, strided<[?, ?, 1]>>
!ml = memref<?xHEADSxf32, strided<[?, ?]>>
!view = !tile.view<?xDIMxTYPE>
!q = !tile.smem<ROWSxDIMxTYPE>
!kv = !tile.smem<KEYSxDIMxTYPE>
!s = !tile.reg<ROWSxKEYSxf32>
!p = !tile.reg<ROWSxKEYSxTYPE>
!o = !tile.reg<ROWSxDIMxf32>
!ob = !tile.reg<ROWSxDIMxTYPE>
!r = !tile.reg<ROWSxf32>

tile.kernel @attention(%q: !mq {tile.arg = "q"}, %k: !mk {tile.arg = "k"}, %v: !mk {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %group = arith.constant GROUP : index
  %step = arith.constant KEYS : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %log2e = arith.constant 1.44269502 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %table = table, %kv_len = kv_len, %qpos0 = qpos0, %klo = klo, %khi = khi) in %items {
    %kvh = arith.divui %head, %group : index
    %end = arith.minsi %khi, %kv_len : index
    %see_hi = arith.addi %qpos0, %rows : index
    %see_fhi = arith.addi %qpos0, %c1 : index
    %hi = arith.minsi %see_hi, %end : index
    %fhi = arith.minsi %see_fhi, %end : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !view
    %kv = tile.view %k[%table, %kvh] rows(%kv_len) : !mk -> !view
    %vv = tile.view %v[%table, %kvh] rows(%kv_len) : !mk -> !view
    %qs = tile.load %qv[%c0] : !view -> !q
    %m0 = tile.splat %ninf : f32 -> !r
    %l0 = tile.splat %zero : f32 -> !r
    %a0 = tile.splat %zero : f32 -> !o
    %m, %l, %a = scf.for %j = %klo to %hi step %step iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!r, !r, !o) {
      %ks = tile.load %kv[%j] : !view -> !kv
      %vs = tile.load %vv[%j] : !view -> !kv
      %s = tile.dot %qs, %ks transpose_b : (!q, !kv) -> !s
      %x = tile.map (%e = %s : !s) -> !s {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x () at (%i, %c) unless %j in [%klo, %fhi) keys KEYS : !s {
        %key = arith.addi %j, %c : index
        %there = arith.cmpi slt, %key, %end : index
        %qp = arith.addi %qpos0, %i : index
        %seen = arith.cmpi sle, %key, %qp : index
        %in = arith.andi %there, %seen : i1
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
      %pb = tile.map (%e = %pf : !s) -> !p {
        ROUND
      }
      %as = tile.map arith.mulf(%ai : !o, %al[0] : !r) -> !o
      %an = tile.dot %pb, %vs acc %as : (!p, !kv) -> !o
      scf.yield %mn, %ln, %an : !r, !r, !o
    }
    %inv = tile.map (%b = %l : !r) -> !r {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %one, %d : f32
      tile.yield %z : f32
    }
    %on = tile.map (%e = %a : !o, %f = %inv[0] : !r) -> !ob {
      %g = arith.mulf %e, %f : f32
      ROUND_OUT
    }
    %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !view
    tile.store %on, %ov[%c0] : !ob, !view
  }
}
