// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu)' | FileCheck %s

// One item at a time, any lengths and positions: causal with a bottom-right diagonal, 32 / 8 heads, D 128, ragged keys.
// The last keys of V are zeroed in shared memory (what stands behind them may be anything), rows leave by predicated
// stores, an empty row gives 0 and -inf.
#acc = #tile.mma<warps = [4, 1]>
#row = #tile.slice<dim = 1, parent = #acc>
#a = #tile.operand<a, parent = #acc>
#sw = #tile.swizzle<128, panel = 64>

!mq = memref<?x32x128xbf16, strided<[?, ?, 1]>>
!mk = memref<?x8x128xbf16, strided<[?, ?, 1]>>
!ml = memref<?x32xf32, strided<[?, ?]>>
!v = !tile.view<?x128xbf16>
!vl = !tile.view<?xf32>
!t = !tile.smem<128x128xbf16, #sw>
!tq = !tile.smem<64x128xbf16, #sw>
!p1 = !tile.pipeline<1 x !t>
!p2 = !tile.pipeline<2 x !t>
!s = !tile.reg<64x128xf32, #acc>
!p = !tile.reg<64x128xbf16, #a>
!ob = !tile.reg<64x128xbf16, #acc>
!r = !tile.reg<64xf32, #row>
!ps = !tile.pending<!s>

func.func private @range(%qpos0: index, %rows: index, %len: index, %clo: index, %chi: index) -> (index, index) {
  %last = arith.addi %qpos0, %rows : index
  %h0 = arith.minsi %chi, %last : index
  %h1 = arith.minsi %h0, %len : index
  return %clo, %h1 : index, index
}

// CHECK: llvm.func @prefill
// CHECK-SAME: attn.maps = [{box = [64, 128, 2, 1], dims = [{extent = 64 : i64}, {extent = {size = 0 : i64}, stride = {stride = 0 : i64}}, {extent = 2 : i64, stride = 128 : i64}, {extent = 32 : i64, stride = {stride = 1 : i64}}], element = "bf16", operand = "q", promotion = 256 : i64, swizzle = 128 : i64},
// CHECK-SAME: attn.threads = 384 : i64
// Q, K and V: 5 stages of 32 KiB, then the barriers.
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: nvvm.elect.sync
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.setmaxregister increase 240
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK: nvvm.barrier id
tile.kernel @prefill(%q: !mq {tile.arg = "q"}, %k: !mk {tile.arg = "k"}, %v: !mk {tile.arg = "v"}, %o: !mq {tile.arg = "o"},
    %lse: !ml {tile.arg = "lse"}, %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<specialized>, target = #attn.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %ln2 = arith.constant 0.693147182 : f32
  %log2e = arith.constant 1.44269502 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  %qp = tile.pipeline consumers 2 : !p1
  %kp = tile.pipeline consumers 2 : !p2
  %vp = tile.pipeline consumers 2 : !p2
  tile.roles {
    tile.role @producer warps(1) registers(24) {
      tile.for_each (%token = token0, %rows = rows, %head = head, %tab = table, %len = kv_len, %qpos = qpos0, %clo = klo, %chi = khi) in %items {
        %lo, %hi = func.call @range(%qpos, %rows, %len, %clo, %chi) : (index, index, index, index, index) -> (index, index)
        %kvh = arith.divui %head, %c4 : index
        %qv = tile.view %q[%token, %head] rows(%rows) : !mq -> !v
        %kv = tile.view %k[%tab, %kvh] rows(%len) : !mk -> !v
        %vv = tile.view %v[%tab, %kvh] rows(%len) : !mk -> !v
        %qd = tile.producer_acquire %qp : !p1 -> !t
        tile.load_async %qv[%c0] into %qd signal %qp : !v, !t, !p1
        scf.for %j = %lo to %hi step %c128 {
          %kd = tile.producer_acquire %kp : !p2 -> !t
          tile.load_async %kv[%j] into %kd signal %kp : !v, !t, !p2
          %vd = tile.producer_acquire %vp : !p2 -> !t
          tile.load_async %vv[%j] into %vd signal %vp : !v, !t, !p2
        }
      }
    }
    tile.role @consumer warps(4) groups(2) registers(240) (%wg) {
      %r0 = arith.muli %wg, %c64 : index
      tile.for_each (%token = token0, %rows = rows, %head = head, %len = kv_len, %qpos = qpos0, %clo = klo, %chi = khi) in %items {
        %lo, %hi = func.call @range(%qpos, %rows, %len, %clo, %chi) : (index, index, index, index, index) -> (index, index)
        %qs = tile.consumer_wait %qp : !p1
        %qw = tile.subview %qs[%r0, 0] : !t -> !tq
        %m0 = tile.splat %ninf : f32 -> !r
        %l0 = tile.splat %zero : f32 -> !r
        %o0 = tile.splat %zero : f32 -> !s
        %m, %l, %a = scf.for %j = %lo to %hi step %c128 iter_args(%mi = %m0, %li = %l0, %oi = %o0) -> (!r, !r, !s) {
          %kf = tile.consumer_wait %kp : !p2
          %sp = tile.dot_async %qw, %kf transpose_b : (!tq, !t) -> !ps
          %s = tile.await %sp : !ps -> !s
          tile.consumer_release %kp : !p2
          %x = tile.mask %s () at (%i, %c) : !s {
            %row = arith.addi %r0, %i : index
            %qp0 = arith.addi %qpos, %row : index
            %kp0 = arith.addi %j, %c : index
            %causal = arith.cmpi sle, %kp0, %qp0 : index
            %inside = arith.cmpi slt, %kp0, %len : index
            %in = arith.andi %causal, %inside : i1
            tile.yield %in : i1
          }
          %mn = tile.reduce maximumf %x dim 1 init %mi : !r, : !s -> !r
          %ms = tile.map (%e = %mn : !r) -> !r {
            %no = arith.cmpf oeq, %e, %ninf : f32
            %y = arith.mulf %e, %scale2 : f32
            %n = arith.negf %y : f32
            %z = arith.select %no, %zero, %n : f32
            tile.yield %z : f32
          }
          %al = tile.map (%e = %mi : !r, %b = %ms : !r) -> !r {
            %y = math.fma %e, %scale2, %b : f32
            %z = math.exp2 %y fastmath<afn> : f32
            tile.yield %z : f32
          }
          %pf = tile.map (%e = %x : !s, %b = %ms[0] : !r) -> !s {
            %y = math.fma %e, %scale2, %b : f32
            %z = math.exp2 %y fastmath<afn> : f32
            tile.yield %z : f32
          }
          %pt = tile.reduce addf %pf dim 1 : !s -> !r
          %ln = tile.map math.fma(%li : !r, %al : !r, %pt : !r) -> !r
          %pb = tile.map arith.truncf(%pf : !s) -> !p
          %os = tile.map arith.mulf(%oi : !s, %al[0] : !r) -> !s
          %vf = tile.consumer_wait %vp : !p2
          %left = arith.subi %len, %j : index
          %tail = arith.cmpi slt, %left, %c128 : index
          scf.if %tail {
            tile.fill_rows %vf from %left : !t
          }
          %op = tile.dot_async %pb, %vf acc %os : (!p, !t) -> !ps
          %on = tile.await %op : !ps -> !s
          tile.consumer_release %vp : !p2
          scf.yield %mn, %ln, %on : !r, !r, !s
        }
        tile.consumer_release %qp : !p1
        %inv = tile.map (%e = %l : !r) -> !r {
          %no = arith.cmpf oeq, %e, %zero : f32
          %d = arith.select %no, %one, %e : f32
          %z = arith.divf %one, %d fastmath<arcp, afn> : f32
          tile.yield %z : f32
        }
        %ob = tile.map (%e = %a : !s, %b = %inv[0] : !r) -> !ob {
          %y = arith.mulf %e, %b : f32
          %z = arith.truncf %y : f32 to bf16
          tile.yield %z : bf16
        }
        %ls = tile.map (%e = %m : !r, %b = %l : !r) -> !r {
          %g = math.log2 %b fastmath<afn> : f32
          %h = math.fma %e, %scale2, %g : f32
          %n = arith.mulf %h, %ln2 : f32
          %no = arith.cmpf oeq, %b, %zero : f32
          %z = arith.select %no, %ninf, %n : f32
          tile.yield %z : f32
        }
        %ov = tile.view %o[%token, %head] rows(%rows) : !mq -> !v
        %lv = tile.view %lse[%token, %head] rows(%rows) : !ml -> !vl
        tile.store %ob, %ov[%r0] : !ob, !v
        tile.store %ls, %lv[%r0] : !r, !vl
      }
    }
  }
}
