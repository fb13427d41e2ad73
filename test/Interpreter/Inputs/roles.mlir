// Full attention at level S, small tiles without layouts: two groups of 16 rows, 16 keys, D 16. Comments with a name in
// capitals mark what the tests change.
!m = memref<?x?x16xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x16xbf16>
!tq = !tile.smem<32x16xbf16>
!th = !tile.smem<16x16xbf16>
!t = !tile.smem<16x16xbf16>
!p1 = !tile.pipeline<1 x !t>
!p2 = !tile.pipeline<2 x !t>
!pq = !tile.pipeline<1 x !tq>
!po = !tile.pipeline<1 x !tq>
!s = !tile.reg<16x16xf32>
!p = !tile.reg<16x16xbf16>
!r = !tile.reg<16xf32>
!ps = !tile.pending<!s>
tile.kernel @roles(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<specialized>, config = #attn.config<rows = 32, keys = 16>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %log2e = arith.constant 1.44269502 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  %qp = tile.pipeline consumers 2 : !pq
  %op = tile.pipeline chain %qp : !pq producers 2 : !po
  %kp = tile.pipeline consumers 2 : !p1
  %vp = tile.pipeline consumers 2 : !p1
  tile.roles {
    tile.role @producer warps(1) {
      tile.for_each (%token0 = token0, %head = head, %table = table, %len = kv_len) in %items {
        %qv = tile.view %q[%token0, %head] : !m -> !v
        %kv = tile.view %k[%table, %head] rows(%len) : !m -> !v
        %vv = tile.view %v[%table, %head] rows(%len) : !m -> !v
        %qs = tile.producer_acquire %qp : !pq -> !tq
        tile.load_async %qv[%c0] into %qs signal %qp : !v, !tq, !pq
        %end = arith.addi %len, %c0 : index // END
        scf.for %j = %c0 to %end step %c16 {
          %ks = tile.producer_acquire %kp : !p1 -> !t
          tile.load_async %kv[%j] into %ks signal %kp : !v, !t, !p1
          %vs = tile.producer_acquire %vp : !p1 -> !t
          tile.load_async %vv[%j] into %vs signal %vp : !v, !t, !p1 // LOAD-V
        }
      }
    }
    tile.role @consumer warps(4) groups(2) (%wg) {
      %r0 = arith.muli %wg, %c16 : index
      tile.for_each (%len = kv_len) in %items {
        %qs = tile.consumer_wait %qp : !pq
        %qw = tile.subview %qs[%r0, 0] : !tq -> !th
        %m0 = tile.splat %ninf : f32 -> !r
        %l0 = tile.splat %zero : f32 -> !r
        %a0 = tile.splat %zero : f32 -> !s
        %m, %l, %a = scf.for %j = %c0 to %len step %c16 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!r, !r, !s) {
          %ks = tile.consumer_wait %kp : !p1 // WAIT-K
          %sp = tile.dot_async %qw, %ks transpose_b : (!th, !t) -> !ps
          %s = tile.await %sp : !ps -> !s
          tile.consumer_release %kp : !p1
          %x = tile.map (%e = %s : !s) at (%i, %c) -> !s {
            %key = arith.addi %j, %c : index
            %in = arith.cmpi slt, %key, %len : index
            %y = arith.mulf %e, %scale2 : f32
            %z = arith.select %in, %y, %ninf : f32
            tile.yield %z : f32
          }
          %mn = tile.reduce maximumf %x dim 1 init %mi : !r, : !s -> !r
          %al = tile.map (%e = %mi : !r, %b = %mn : !r) -> !r {
            %d = arith.subf %e, %b : f32
            %z = math.exp2 %d : f32
            tile.yield %z : f32
          }
          %pf = tile.map (%e = %x : !s, %b = %mn[0] : !r) -> !s {
            %d = arith.subf %e, %b : f32
            %z = math.exp2 %d : f32
            tile.yield %z : f32
          }
          %lt = tile.reduce addf %pf dim 1 : !s -> !r
          %ln = tile.map math.fma(%li : !r, %al : !r, %lt : !r) -> !r
          %pb = tile.map arith.truncf(%pf : !s) -> !p
          %as = tile.map arith.mulf(%ai : !s, %al[0] : !r) -> !s
          %vs = tile.consumer_wait %vp : !p1
          %od = tile.dot_async %pb, %vs acc %as : (!p, !t) -> !ps
          %an = tile.await %od : !ps -> !s
          tile.consumer_release %vp : !p1
          scf.yield %mn, %ln, %an : !r, !r, !s
        }
        %ob = tile.map (%e = %a : !s, %b = %l[0] : !r) -> !p {
          %y = arith.divf %e, %b : f32
          %z = arith.truncf %y : f32 to bf16
          tile.yield %z : bf16
        }
        %os = tile.producer_acquire %op : !po -> !tq
        %ow = tile.subview %os[%r0, 0] : !tq -> !th
        tile.local_store %ob, %ow : !p, !th // LOCAL-STORE
        tile.commit %op : !po
      }
    }
    tile.role @store warps(1) {
      tile.for_each (%token0 = token0, %head = head) in %items {
        %ov = tile.view %o[%token0, %head] : !m -> !v // OUT
        %os = tile.consumer_wait %op : !po
        tile.store_async %os, %ov[%c0] : !tq, !v
        tile.consumer_release %op : !po
      }
    }
  }
}
