// RUN: attn-opt %s | attn-opt | FileCheck %s

// Paged decode at level L: 32 query and 8 KV heads, D 128, pages of 16, causal. The 16 rows of a tile are
// tokens x 4 heads of one KV head (row r: token token0 + r / 4, head head + r mod 4); rows may belong to several
// requests (`tokens` says which). 4 key groups of 32 keys keep a softmax state each, merged once an item.
// This is the form that attn-to-tile emits; names and comments are all that it lacks.

!mq = memref<?x32x128xbf16, strided<[?, ?, 1]>>
!mk = memref<?x16x8x128xbf16, strided<[?, ?, ?, 1]>>
!ml = memref<?x32xf32, strided<[?, ?]>>
!mi = memref<?xi32>
!mpo = memref<?x128xf32>
!mpl = memref<?xf32>
!mt = memref<?x8xi32>
!qv = !tile.view<?x128xbf16, packed<4>>
!lv = !tile.view<?xf32, packed<4>>
!kv = !tile.view<?x128xbf16, paged<16>>
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

// CHECK-LABEL: tile.kernel @decode
// CHECK: scf.for
// CHECK: tile.dot {{.*}} transpose_b : (!tile.reg<16x128xbf16>, !tile.smem<4x32x128xbf16>) -> {{.*}}<4x16x32xf32>
tile.kernel @decode(%q: !mq {tile.arg = "q"}, %k: !mk {tile.arg = "k"}, %v: !mk {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !ml {tile.arg = "lse"}, %pages: !mi {tile.arg = "pages"}, %part_o: !mpo {tile.arg = "part_o"}, %part_lse: !mpl {tile.arg = "part_lse"},
    %items: !tile.items {tile.arg = "items"}, %tokens: !mt {tile.arg = "tokens"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>,
                config = #attn.config<rows = 16, keys = 128, stages = 3, warps = 4, groups = 4, pack = 4, row_table = true>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %log2e = arith.constant 1.44269502 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %table = table, %kv_len = kv_len, %kpos0 = kpos0, %klo = klo, %khi = khi,
                 %slot = slot) in %items {
    %kvh = arith.divui %head, %c4 : index
    %last_row = arith.subi %rows, %c1 : index
    // The keys this item may see: its chunk, cut with the hull of what its tokens see.
    %end = arith.minsi %khi, %kv_len : index
    %rows_up = arith.addi %rows, %c3 : index
    %tok_n = arith.divui %rows_up, %c4 : index
    %first_hi = arith.constant -9223372036854775808 : index
    %first_fhi = arith.constant 9223372036854775807 : index
    %see_hi, %see_fhi = scf.for %t = %c0 to %tok_n step %c1 iter_args(%h = %first_hi, %f = %first_fhi) -> (index, index) {
      %tok = arith.addi %token0, %t : index
      %p32 = memref.load %tokens[%tok, %c0] : !mt
      %pos = arith.index_cast %p32 : i32 to index
      %past = arith.addi %pos, %c1 : index
      %h1 = arith.maxsi %h, %past : index
      %f1 = arith.minsi %f, %past : index
      scf.yield %h1, %f1 : index, index
    }
    %hi_l = arith.subi %see_hi, %kpos0 : index
    %fhi_l = arith.subi %see_fhi, %kpos0 : index
    %hi = arith.minsi %hi_l, %end : index
    %fhi = arith.minsi %fhi_l, %end : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !qv
    %kv = tile.view %k[%kvh] rows(%kv_len) pages(%pages[%table] : !mi) : !mk -> !kv
    %vv = tile.view %v[%kvh] rows(%kv_len) pages(%pages[%table] : !mi) : !mk -> !kv
    %qr = tile.load %qv[%c0] : !qv -> !q
    %qpos = tile.map () at (%r) -> !rowi {
      %rc = arith.minsi %r, %last_row : index
      %t = arith.divui %rc, %c4 : index
      %tok = arith.addi %token0, %t : index
      %p32 = memref.load %tokens[%tok, %c0] : !mt
      %pos = arith.index_cast %p32 : i32 to index
      tile.yield %pos : index
    }
    %m0 = tile.splat %ninf : f32 -> !st
    %l0 = tile.splat %zero : f32 -> !st
    %a0 = tile.splat %zero : f32 -> !acc
    %m, %l, %a = scf.for %j = %klo to %hi step %c128 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!st, !st, !acc) {
      %ks = tile.load %kv[%j] : !kv -> !ks
      %vs = tile.load %vv[%j] : !kv -> !ks
      %s = tile.dot %qr, %ks transpose_b : (!q, !ks) -> !s
      %x = tile.map (%e = %s : !s) -> !s {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x (%qp = %qpos[1] : !rowi) at (%g, %r, %i) unless %j in [%klo, %fhi) keys 128 : !s {
        %g0 = arith.muli %g, %c32 : index
        %g1 = arith.addi %g0, %i : index
        %key = arith.addi %j, %g1 : index
        %there = arith.cmpi slt, %key, %end : index
        %pos = arith.addi %kpos0, %key : index
        %seen = arith.cmpi sle, %pos, %qp : index
        %in = arith.andi %there, %seen : i1
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
    // One state from the groups' states.
    %mm = tile.reduce maximumf %m dim 0 : !st -> !row
    %mmz = tile.map (%e = %mm : !row) -> !row {
      %no = arith.cmpf oeq, %e, %ninf : f32
      %z = arith.select %no, %zero, %e : f32
      tile.yield %z : f32
    }
    %w = tile.map (%e = %m : !st, %b = %mmz[1] : !row) -> !st {
      %d = arith.subf %e, %b : f32
      %z = math.exp2 %d fastmath<afn> : f32
      tile.yield %z : f32
    }
    %lw = tile.map arith.mulf(%l : !st, %w : !st) -> !st
    %aw = tile.map arith.mulf(%a : !acc, %w[0, 1] : !st) -> !acc
    %lt = tile.reduce addf %lw dim 0 : !st -> !row
    %ot = tile.reduce addf %aw dim 0 : !acc -> !o
    // Normalise; an empty row is (0, -inf). The state's lse is in base 2.
    %inv = tile.map (%b = %lt : !row) -> !row {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %one, %d : f32
      tile.yield %z : f32
    }
    %on = tile.map arith.mulf(%ot : !o, %inv[0] : !row) -> !o
    %l2 = tile.map (%e = %mmz : !row, %b = %lt : !row) -> !row {
      %g = math.log2 %b fastmath<afn> : f32
      %z = arith.addf %e, %g : f32
      tile.yield %z : f32
    }
    %whole = arith.cmpi slt, %slot, %c0 : index
    scf.if %whole {
      // Finalise: sink, output hook, rounding (none here but the last); the merge kernel holds the only other copy.
      %ln2r = tile.map (%e = %l2 : !row) -> !row {
        %z = arith.mulf %e, %ln2 : f32
        tile.yield %z : f32
      }
      %ob = tile.map arith.truncf(%on : !o) -> !q
      %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
      tile.store %ob, %ov[%c0] : !q, !qv
      %lv = tile.view %lse[%token0, %head] rows(%rows) : !ml -> !lv
      tile.store %ln2r, %lv[%c0] : !row, !lv
    } else {
      %pov = tile.view %part_o[%slot] rows(%rows) : !mpo -> !pov
      tile.store %on, %pov[%c0] : !o, !pov
      %plv = tile.view %part_lse[%slot] rows(%rows) : !mpl -> !plv
      tile.store %l2, %plv[%c0] : !row, !plv
    }
  }
}
