// RUN: attn-opt %s | attn-opt | FileCheck %s

// Causal prefill at level L: 32 query and 8 KV heads, D 128, one query head a tile, tiles of 128 and 64 rows x 128 keys,
// pages of 16 and ragged K and V. This is the form that attn-to-tile emits.

!mq = memref<?x32x128xbf16, strided<[?, ?, 1]>>
!mkp = memref<?x16x8x128xbf16, strided<[?, ?, ?, 1]>>
!mkr = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!ml = memref<?x32xf32, strided<[?, ?]>>
!mi = memref<?xi32>
!mpo = memref<?x128xf32>
!mpl = memref<?xf32>
!qv = !tile.view<?x128xbf16>
!lv = !tile.view<?xf32>
!kvp = !tile.view<?x128xbf16, paged<16>>
!kvr = !tile.view<?x128xbf16>
!pov = !tile.view<?x128xf32>
!plv = !tile.view<?xf32>
!t = !tile.smem<128x128xbf16>
!q128 = !tile.smem<128x128xbf16>
!s128 = !tile.reg<128x128xf32>
!p128 = !tile.reg<128x128xbf16>
!o128 = !tile.reg<128x128xf32>
!ob128 = !tile.reg<128x128xbf16>
!r128 = !tile.reg<128xf32>
!q64 = !tile.smem<64x128xbf16>
!s64 = !tile.reg<64x128xf32>
!p64 = !tile.reg<64x128xbf16>
!o64 = !tile.reg<64x128xf32>
!ob64 = !tile.reg<64x128xbf16>
!r64 = !tile.reg<64xf32>

// CHECK-LABEL: tile.kernel @prefill_paged_128
tile.kernel @prefill_paged_128(%q: !mq {tile.arg = "q"}, %k: !mkp {tile.arg = "k"}, %v: !mkp {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !ml {tile.arg = "lse"}, %pages: !mi {tile.arg = "pages"}, %part_o: !mpo {tile.arg = "part_o"}, %part_lse: !mpl {tile.arg = "part_lse"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 128, keys = 128, stages = 2, warps = 8>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %log2e = arith.constant 1.44269502 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %table = table, %kv_len = kv_len, %kpos0 = kpos0, %qpos0 = qpos0, %klo = klo,
                 %khi = khi, %slot = slot) in %items {
    %kvh = arith.divui %head, %c4 : index
    // Row i sees keys 0 .. qpos0 + i; all rows see 0 .. qpos0. Keys of the level: minus kpos0, cut with the chunk.
    %end = arith.minsi %khi, %kv_len : index
    %see_hi = arith.addi %qpos0, %rows : index
    %see_fhi = arith.addi %qpos0, %c1 : index
    %hi_l = arith.subi %see_hi, %kpos0 : index
    %fhi_l = arith.subi %see_fhi, %kpos0 : index
    %hi = arith.minsi %hi_l, %end : index
    %fhi = arith.minsi %fhi_l, %end : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !qv
    %kv = tile.view %k[%kvh] rows(%kv_len) pages(%pages[%table] : !mi) : !mkp -> !kvp
    %vv = tile.view %v[%kvh] rows(%kv_len) pages(%pages[%table] : !mi) : !mkp -> !kvp
    %qs = tile.load %qv[%c0] : !qv -> !q128
    %m0 = tile.splat %ninf : f32 -> !r128
    %l0 = tile.splat %zero : f32 -> !r128
    %a0 = tile.splat %zero : f32 -> !o128
    %m, %l, %a = scf.for %j = %klo to %hi step %c128 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!r128, !r128, !o128) {
      %ks = tile.load %kv[%j] : !kvp -> !t
      %vs = tile.load %vv[%j] : !kvp -> !t
      %s = tile.dot %qs, %ks transpose_b : (!q128, !t) -> !s128
      %x = tile.map (%e = %s : !s128) -> !s128 {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x () at (%i, %c) unless %j in [%klo, %fhi) keys 128 : !s128 {
        %key = arith.addi %j, %c : index
        %there = arith.cmpi slt, %key, %end : index
        %pos = arith.addi %kpos0, %key : index
        %qp = arith.addi %qpos0, %i : index
        %seen = arith.cmpi sle, %pos, %qp : index
        %in = arith.andi %there, %seen : i1
        tile.yield %in : i1
      }
      %mn = tile.reduce maximumf %y dim 1 init %mi : !r128, : !s128 -> !r128
      %mz = tile.map (%e = %mn : !r128) -> !r128 {
        %no = arith.cmpf oeq, %e, %ninf : f32
        %z = arith.select %no, %zero, %e : f32
        tile.yield %z : f32
      }
      %al = tile.map (%e = %mi : !r128, %b = %mz : !r128) -> !r128 {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %pf = tile.map (%e = %y : !s128, %b = %mz[0] : !r128) -> !s128 {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %ps = tile.reduce addf %pf dim 1 : !s128 -> !r128
      %ln = tile.map math.fma(%li : !r128, %al : !r128, %ps : !r128) -> !r128
      %pb = tile.map arith.truncf(%pf : !s128) -> !p128
      %as = tile.map arith.mulf(%ai : !o128, %al[0] : !r128) -> !o128
      %an = tile.dot %pb, %vs acc %as : (!p128, !t) -> !o128
      scf.yield %mn, %ln, %an : !r128, !r128, !o128
    }
    // Normalise; an empty row is (0, -inf). The state's lse is in base 2.
    %inv = tile.map (%b = %l : !r128) -> !r128 {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %one, %d : f32
      tile.yield %z : f32
    }
    %on = tile.map arith.mulf(%a : !o128, %inv[0] : !r128) -> !o128
    %l2 = tile.map (%e = %m : !r128, %b = %l : !r128) -> !r128 {
      %g = math.log2 %b fastmath<afn> : f32
      %z = arith.addf %e, %g : f32
      tile.yield %z : f32
    }
    %whole = arith.cmpi slt, %slot, %c0 : index
    scf.if %whole {
      %ln2r = tile.map (%e = %l2 : !r128) -> !r128 {
        %z = arith.mulf %e, %ln2 : f32
        tile.yield %z : f32
      }
      %ob = tile.map arith.truncf(%on : !o128) -> !ob128
      %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
      tile.store %ob, %ov[%c0] : !ob128, !qv
      %lv = tile.view %lse[%token0, %head] rows(%rows) : !ml -> !lv
      tile.store %ln2r, %lv[%c0] : !r128, !lv
    } else {
      %pov = tile.view %part_o[%slot] rows(%rows) : !mpo -> !pov
      tile.store %on, %pov[%c0] : !o128, !pov
      %plv = tile.view %part_lse[%slot] rows(%rows) : !mpl -> !plv
      tile.store %l2, %plv[%c0] : !r128, !plv
    }
  }
}

// CHECK-LABEL: tile.kernel @prefill_ragged_128
tile.kernel @prefill_ragged_128(%q: !mq {tile.arg = "q"}, %k: !mkr {tile.arg = "k"}, %v: !mkr {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !ml {tile.arg = "lse"}, %part_o: !mpo {tile.arg = "part_o"}, %part_lse: !mpl {tile.arg = "part_lse"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 128, keys = 128, stages = 2, warps = 8>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %log2e = arith.constant 1.44269502 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %table = table, %kv_len = kv_len, %kpos0 = kpos0, %qpos0 = qpos0, %klo = klo,
                 %khi = khi, %slot = slot) in %items {
    %kvh = arith.divui %head, %c4 : index
    // Row i sees keys 0 .. qpos0 + i; all rows see 0 .. qpos0. Keys of the level: minus kpos0, cut with the chunk.
    %end = arith.minsi %khi, %kv_len : index
    %see_hi = arith.addi %qpos0, %rows : index
    %see_fhi = arith.addi %qpos0, %c1 : index
    %hi_l = arith.subi %see_hi, %kpos0 : index
    %fhi_l = arith.subi %see_fhi, %kpos0 : index
    %hi = arith.minsi %hi_l, %end : index
    %fhi = arith.minsi %fhi_l, %end : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !qv
    %kv = tile.view %k[%table, %kvh] rows(%kv_len) : !mkr -> !kvr
    %vv = tile.view %v[%table, %kvh] rows(%kv_len) : !mkr -> !kvr
    %qs = tile.load %qv[%c0] : !qv -> !q128
    %m0 = tile.splat %ninf : f32 -> !r128
    %l0 = tile.splat %zero : f32 -> !r128
    %a0 = tile.splat %zero : f32 -> !o128
    %m, %l, %a = scf.for %j = %klo to %hi step %c128 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!r128, !r128, !o128) {
      %ks = tile.load %kv[%j] : !kvr -> !t
      %vs = tile.load %vv[%j] : !kvr -> !t
      %s = tile.dot %qs, %ks transpose_b : (!q128, !t) -> !s128
      %x = tile.map (%e = %s : !s128) -> !s128 {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x () at (%i, %c) unless %j in [%klo, %fhi) keys 128 : !s128 {
        %key = arith.addi %j, %c : index
        %there = arith.cmpi slt, %key, %end : index
        %pos = arith.addi %kpos0, %key : index
        %qp = arith.addi %qpos0, %i : index
        %seen = arith.cmpi sle, %pos, %qp : index
        %in = arith.andi %there, %seen : i1
        tile.yield %in : i1
      }
      %mn = tile.reduce maximumf %y dim 1 init %mi : !r128, : !s128 -> !r128
      %mz = tile.map (%e = %mn : !r128) -> !r128 {
        %no = arith.cmpf oeq, %e, %ninf : f32
        %z = arith.select %no, %zero, %e : f32
        tile.yield %z : f32
      }
      %al = tile.map (%e = %mi : !r128, %b = %mz : !r128) -> !r128 {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %pf = tile.map (%e = %y : !s128, %b = %mz[0] : !r128) -> !s128 {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %ps = tile.reduce addf %pf dim 1 : !s128 -> !r128
      %ln = tile.map math.fma(%li : !r128, %al : !r128, %ps : !r128) -> !r128
      %pb = tile.map arith.truncf(%pf : !s128) -> !p128
      %as = tile.map arith.mulf(%ai : !o128, %al[0] : !r128) -> !o128
      %an = tile.dot %pb, %vs acc %as : (!p128, !t) -> !o128
      scf.yield %mn, %ln, %an : !r128, !r128, !o128
    }
    // Normalise; an empty row is (0, -inf). The state's lse is in base 2.
    %inv = tile.map (%b = %l : !r128) -> !r128 {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %one, %d : f32
      tile.yield %z : f32
    }
    %on = tile.map arith.mulf(%a : !o128, %inv[0] : !r128) -> !o128
    %l2 = tile.map (%e = %m : !r128, %b = %l : !r128) -> !r128 {
      %g = math.log2 %b fastmath<afn> : f32
      %z = arith.addf %e, %g : f32
      tile.yield %z : f32
    }
    %whole = arith.cmpi slt, %slot, %c0 : index
    scf.if %whole {
      %ln2r = tile.map (%e = %l2 : !r128) -> !r128 {
        %z = arith.mulf %e, %ln2 : f32
        tile.yield %z : f32
      }
      %ob = tile.map arith.truncf(%on : !o128) -> !ob128
      %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
      tile.store %ob, %ov[%c0] : !ob128, !qv
      %lv = tile.view %lse[%token0, %head] rows(%rows) : !ml -> !lv
      tile.store %ln2r, %lv[%c0] : !r128, !lv
    } else {
      %pov = tile.view %part_o[%slot] rows(%rows) : !mpo -> !pov
      tile.store %on, %pov[%c0] : !o128, !pov
      %plv = tile.view %part_lse[%slot] rows(%rows) : !mpl -> !plv
      tile.store %l2, %plv[%c0] : !r128, !plv
    }
  }
}

// CHECK-LABEL: tile.kernel @prefill_paged_64
tile.kernel @prefill_paged_64(%q: !mq {tile.arg = "q"}, %k: !mkp {tile.arg = "k"}, %v: !mkp {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !ml {tile.arg = "lse"}, %pages: !mi {tile.arg = "pages"}, %part_o: !mpo {tile.arg = "part_o"}, %part_lse: !mpl {tile.arg = "part_lse"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 128, stages = 2, warps = 4>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %log2e = arith.constant 1.44269502 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  tile.for_each (%token0 = token0, %rows = rows, %head = head, %table = table, %kv_len = kv_len, %kpos0 = kpos0, %qpos0 = qpos0, %klo = klo,
                 %khi = khi, %slot = slot) in %items {
    %kvh = arith.divui %head, %c4 : index
    // Row i sees keys 0 .. qpos0 + i; all rows see 0 .. qpos0. Keys of the level: minus kpos0, cut with the chunk.
    %end = arith.minsi %khi, %kv_len : index
    %see_hi = arith.addi %qpos0, %rows : index
    %see_fhi = arith.addi %qpos0, %c1 : index
    %hi_l = arith.subi %see_hi, %kpos0 : index
    %fhi_l = arith.subi %see_fhi, %kpos0 : index
    %hi = arith.minsi %hi_l, %end : index
    %fhi = arith.minsi %fhi_l, %end : index
    %qv = tile.view %q[%token0, %head] rows(%rows) : !mq -> !qv
    %kv = tile.view %k[%kvh] rows(%kv_len) pages(%pages[%table] : !mi) : !mkp -> !kvp
    %vv = tile.view %v[%kvh] rows(%kv_len) pages(%pages[%table] : !mi) : !mkp -> !kvp
    %qs = tile.load %qv[%c0] : !qv -> !q64
    %m0 = tile.splat %ninf : f32 -> !r64
    %l0 = tile.splat %zero : f32 -> !r64
    %a0 = tile.splat %zero : f32 -> !o64
    %m, %l, %a = scf.for %j = %klo to %hi step %c128 iter_args(%mi = %m0, %li = %l0, %ai = %a0) -> (!r64, !r64, !o64) {
      %ks = tile.load %kv[%j] : !kvp -> !t
      %vs = tile.load %vv[%j] : !kvp -> !t
      %s = tile.dot %qs, %ks transpose_b : (!q64, !t) -> !s64
      %x = tile.map (%e = %s : !s64) -> !s64 {
        %z = arith.mulf %e, %scale2 : f32
        tile.yield %z : f32
      }
      %y = tile.mask %x () at (%i, %c) unless %j in [%klo, %fhi) keys 128 : !s64 {
        %key = arith.addi %j, %c : index
        %there = arith.cmpi slt, %key, %end : index
        %pos = arith.addi %kpos0, %key : index
        %qp = arith.addi %qpos0, %i : index
        %seen = arith.cmpi sle, %pos, %qp : index
        %in = arith.andi %there, %seen : i1
        tile.yield %in : i1
      }
      %mn = tile.reduce maximumf %y dim 1 init %mi : !r64, : !s64 -> !r64
      %mz = tile.map (%e = %mn : !r64) -> !r64 {
        %no = arith.cmpf oeq, %e, %ninf : f32
        %z = arith.select %no, %zero, %e : f32
        tile.yield %z : f32
      }
      %al = tile.map (%e = %mi : !r64, %b = %mz : !r64) -> !r64 {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %pf = tile.map (%e = %y : !s64, %b = %mz[0] : !r64) -> !s64 {
        %d = arith.subf %e, %b : f32
        %z = math.exp2 %d fastmath<afn> : f32
        tile.yield %z : f32
      }
      %ps = tile.reduce addf %pf dim 1 : !s64 -> !r64
      %ln = tile.map math.fma(%li : !r64, %al : !r64, %ps : !r64) -> !r64
      %pb = tile.map arith.truncf(%pf : !s64) -> !p64
      %as = tile.map arith.mulf(%ai : !o64, %al[0] : !r64) -> !o64
      %an = tile.dot %pb, %vs acc %as : (!p64, !t) -> !o64
      scf.yield %mn, %ln, %an : !r64, !r64, !o64
    }
    // Normalise; an empty row is (0, -inf). The state's lse is in base 2.
    %inv = tile.map (%b = %l : !r64) -> !r64 {
      %some = arith.cmpf ogt, %b, %zero : f32
      %d = arith.select %some, %b, %one : f32
      %z = arith.divf %one, %d : f32
      tile.yield %z : f32
    }
    %on = tile.map arith.mulf(%a : !o64, %inv[0] : !r64) -> !o64
    %l2 = tile.map (%e = %m : !r64, %b = %l : !r64) -> !r64 {
      %g = math.log2 %b fastmath<afn> : f32
      %z = arith.addf %e, %g : f32
      tile.yield %z : f32
    }
    %whole = arith.cmpi slt, %slot, %c0 : index
    scf.if %whole {
      %ln2r = tile.map (%e = %l2 : !r64) -> !r64 {
        %z = arith.mulf %e, %ln2 : f32
        tile.yield %z : f32
      }
      %ob = tile.map arith.truncf(%on : !o64) -> !ob64
      %ov = tile.view %o[%token0, %head] rows(%rows) : !mq -> !qv
      tile.store %ob, %ov[%c0] : !ob64, !qv
      %lv = tile.view %lse[%token0, %head] rows(%rows) : !ml -> !lv
      tile.store %ln2r, %lv[%c0] : !r64, !lv
    } else {
      %pov = tile.view %part_o[%slot] rows(%rows) : !mpo -> !pov
      tile.store %on, %pov[%c0] : !o64, !pov
      %plv = tile.view %part_lse[%slot] rows(%rows) : !mpl -> !plv
      tile.store %l2, %plv[%c0] : !r64, !plv
    }
  }
}
