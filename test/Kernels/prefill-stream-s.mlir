// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared),convert-tile-to-gpu)' | FileCheck %s

// One stream of key blocks across items, 128 rows x 128 keys: the boundary step issues the next item's first Q K beside
// this item's last P V. Q is read into fragments once per item, O leaves through the Q slot, the store role writes it.
// Ragged layout, as many KV as query heads, D 128; query rows, lengths and positions are multiples of 128. K and V of an
// item start at token `table`. @causal masks the item's first block only (its diagonal), @full none.

// CHECK-LABEL: llvm.func @prefill_full
// CHECK-SAME: attn.smem = {{[0-9]+}} : i64, attn.threads = 384 : i64, attn.words = [{kind = "scale"}, {kind = "pointer", operand = "cta_indptr"}, {kind = "pointer", operand = "items"}]
// Arrivals: one that announces the bytes of a load, four warps of each of two warpgroups, the thread of the store role.
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ONE]]
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ONE]]
// CHECK: %[[EIGHT:.*]] = llvm.mlir.constant(8 : i32) : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[EIGHT]]
// CHECK: nvvm.barrier0
// CHECK: nvvm.setmaxregister decrease 24
// CHECK: nvvm.elect.sync
// The store role.
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.wait_group  0 {read}
// The consumers' key loop: one header that carries O, P, the row state and one counter for K and V.
// CHECK: nvvm.setmaxregister increase 240
// CHECK: nvvm.ldmatrix
// CHECK: "wgmma.fence.sync.aligned;", ""
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: "wgmma.fence.sync.aligned;", "=f,
// CHECK: setp.ne.b32 p, 1, 0; .reg .b64 b; .reg .pred q; setp.ne.b32 q, 0, 0;
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{[^;]*}}, b, {{[pq]}}, 1, 1, 0;
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{[^;]*}}, b, p, 1, 1, 1;
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: mbarrier.arrive.shared.b64 _, [$0];
// CHECK-COUNT-64: llvm.nvvm.ex2.approx.ftz.f
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-COUNT-32: nvvm.convert.f32x2.to.bf16x2
// CHECK: llvm.br ^{{.*}} {loop_annotation = #loop_annotation}

#acc = #tile.mma<warps = [4, 1]>
#row = #tile.slice<dim = 1, parent = #acc>
#part = #tile.slice<dim = 1, parent = #acc, partial = true>
#a = #tile.operand<a, parent = #acc>
#sw = #tile.swizzle<128, panel = 64>

!m = memref<?x?x128xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x128xbf16>
!v1 = !tile.view<128x128xbf16>
!t = !tile.smem<128x128xbf16, #sw>
!tq = !tile.smem<64x128xbf16, #sw>
!q2 = !tile.pipeline<2 x !t, words = 1>
!p2 = !tile.pipeline<2 x !t>
!s = !tile.reg<64x128xf32, #acc>
!p = !tile.reg<64x128xbf16, #a>
!r = !tile.reg<64xf32, #row>
!l = !tile.reg<64xf32, #part>
!ps = !tile.pending<!s>

tile.kernel @prefill_full(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<specialized>, target = #attn.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %false = arith.constant false
  %true = arith.constant true
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %log2e = arith.constant 1.44269502 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  %qp = tile.pipeline consumers 2 : !q2
  %op = tile.pipeline chain %qp : !q2 producers 2 : !p2
  %kp = tile.pipeline consumers 2 : !p2
  %vp = tile.pipeline consumers 2 : !p2
  tile.roles {
    // K of an item's last block comes before the last V of the item before it: the order of the consumers' waits.
    tile.role @producer warps(1) registers(24) {
      %some0, %f:4 = tile.next_item %items (token0, head, table, kv_len)
      %e:7 = scf.while (%some = %some0, %row = %f#0, %head = %f#1, %tab = %f#2, %len = %f#3, %more = %false, %ptab = %c0, %phead = %c0)
          : (i1, index, index, index, index, i1, index, index) -> (index, index, index, index, i1, index, index) {
        scf.condition(%some) %row, %head, %tab, %len, %more, %ptab, %phead : index, index, index, index, i1, index, index
      } do {
      ^bb0(%row: index, %head: index, %tab: index, %len: index, %more: i1, %ptab: index, %phead: index):
        %nsome, %nf:4 = tile.next_item %items (token0, head, table, kv_len)
        %n1 = arith.divui %len, %c128 : index
        %n = arith.subi %n1, %c1 : index
        %last = arith.muli %n, %c128 : index
        %end = arith.addi %last, %c128 : index
        %kv = tile.view %k[%tab, %head] rows(%end) : !m -> !v
        %vv = tile.view %v[%tab, %head] rows(%end) : !m -> !v
        %k0 = tile.producer_acquire %kp : !p2 -> !t
        tile.load_async %kv[%last] into %k0 signal %kp : !v, !t, !p2
        scf.if %more {
          %pv = tile.view %v[%ptab, %phead] : !m -> !v1
          %v0 = tile.producer_acquire %vp : !p2 -> !t
          tile.load_async %pv[%c0] into %v0 signal %vp : !v1, !t, !p2
        }
        %qv = tile.view %q[%row, %head] : !m -> !v1
        %qs = tile.producer_acquire %qp : !q2 -> !t
        tile.send %qp(%n) : !q2
        tile.load_async %qv[%c0] into %qs signal %qp : !v1, !t, !q2
        scf.for %j = %c0 to %n step %c1 {
          %b = arith.subi %n, %j : index
          %vrow = arith.muli %b, %c128 : index
          %krow = arith.subi %vrow, %c128 : index
          %kd = tile.producer_acquire %kp : !p2 -> !t
          tile.load_async %kv[%krow] into %kd signal %kp : !v, !t, !p2
          %vd = tile.producer_acquire %vp : !p2 -> !t
          tile.load_async %vv[%vrow] into %vd signal %vp : !v, !t, !p2
        }
        scf.yield %nsome, %nf#0, %nf#1, %nf#2, %nf#3, %true, %tab, %head : i1, index, index, index, index, i1, index, index
      }
      scf.if %e#4 {
        %pv = tile.view %v[%e#5, %e#6] : !m -> !v1
        %v0 = tile.producer_acquire %vp : !p2 -> !t
        tile.load_async %pv[%c0] into %v0 signal %vp : !v1, !t, !p2
      }
      // The end travels like an item, without data: the consumers hand it on, the store role frees it.
      %end = tile.producer_acquire %qp : !q2 -> !t
      tile.send %qp(%cm1) : !q2
      tile.commit %qp : !q2
    }
    tile.role @store warps(1) registers(24) {
      tile.for_each (%row = token0, %head = head) in %items {
        %os = tile.consumer_wait %op : !p2
        %ov = tile.view %o[%row, %head] : !m -> !v1
        tile.store_async %os, %ov[%c0] : !t, !v1
        tile.consumer_release %op : !p2
      }
      %end = tile.consumer_wait %op : !p2
      tile.consumer_release %op : !p2
    }
    tile.role @consumer warps(4) groups(2) registers(240) (%wg) {
      %r0 = arith.muli %wg, %c64 : index
      %qs, %w = tile.consumer_wait %qp : !q2
      %some = arith.cmpi sge, %w, %c0 : index
      scf.if %some {
        %qw = tile.subview %qs[%r0, 0] : !t -> !tq
        %k0 = tile.consumer_wait %kp : !p2
        %q0 = tile.local_load %qw : !tq -> !p
        %sp0 = tile.dot_async %q0, %k0 transpose_b : (!p, !t) -> !ps
        %s0 = tile.await %sp0 : !ps -> !s
        tile.consumer_release %kp : !p2
        %m0 = tile.reduce maximumf %s0 dim 1 : !s -> !r
        %ms0 = tile.map (%e = %m0 : !r) -> !r {
          %y = arith.mulf %e, %scale2 : f32
          %z = arith.negf %y : f32
          tile.yield %z : f32
        }
        %pf0 = tile.map (%e = %s0 : !s, %b = %ms0[0] : !r) -> !s {
          %y = math.fma %e, %scale2, %b : f32
          %z = math.exp2 %y fastmath<afn> : f32
          tile.yield %z : f32
        }
        %l0 = tile.reduce addf %pf0 dim 1 scope thread : !s -> !l
        %zeros = tile.splat %zero : f32 -> !s
        %p0 = tile.map arith.truncf(%pf0 : !s) -> !p
        // The item's remaining blocks, then the next item's words: they decide whether there is a boundary step.
        %n:6 = scf.while (%o0 = %zeros, %p1 = %p0, %m1 = %m0, %l1 = %l0, %qf = %q0, %left = %w, %mine = %qs)
            : (!s, !p, !r, !l, !p, index, !t) -> (!s, !p, !l, !t, !t, index) {
          %b:4 = scf.for %j = %c0 to %left step %c1 iter_args(%oi = %o0, %pi = %p1, %mi = %m1, %li = %l1) -> (!s, !p, !r, !l) {
            %kf = tile.consumer_wait %kp : !p2
            %sp = tile.dot_async %qf, %kf transpose_b : (!p, !t) -> !ps
            %vf = tile.consumer_wait %vp : !p2
            %opd = tile.dot_async %pi, %vf acc %oi : (!p, !t) -> !ps
            %sn = tile.await %sp : !ps -> !s
            tile.consumer_release %kp : !p2
            %mn = tile.reduce maximumf %sn dim 1 init %mi : !r, : !s -> !r
            %ms = tile.map (%e = %mn : !r) -> !r {
              %y = arith.mulf %e, %scale2 : f32
              %z = arith.negf %y : f32
              tile.yield %z : f32
            }
            %al = tile.map (%e = %mi : !r, %b = %ms : !r) -> !r {
              %y = math.fma %e, %scale2, %b : f32
              %z = math.exp2 %y fastmath<afn> : f32
              tile.yield %z : f32
            }
            %pf = tile.map (%e = %sn : !s, %b = %ms[0] : !r) -> !s {
              %y = math.fma %e, %scale2, %b : f32
              %z = math.exp2 %y fastmath<afn> : f32
              tile.yield %z : f32
            }
            %pt = tile.reduce addf %pf dim 1 scope thread : !s -> !l
            %ln = tile.map math.fma(%li : !l, %al : !r, %pt : !l) -> !l
            %ov = tile.await %opd : !ps -> !s
            tile.consumer_release %vp : !p2
            %on = tile.map arith.mulf(%ov : !s, %al[0] : !r) -> !s
            %pb = tile.map arith.truncf(%pf : !s) -> !p
            scf.yield %on, %pb, %mn, %ln : !s, !p, !r, !l
          }
          %nq, %nw = tile.consumer_wait %qp : !q2
          %more = arith.cmpi sge, %nw, %c0 : index
          scf.condition(%more) %b#0, %b#1, %b#3, %mine, %nq, %nw : !s, !p, !l, !t, !t, index
        } do {
        ^bb0(%oi: !s, %pi: !p, %li: !l, %slot: !t, %nq: !t, %left: index):
          %kf = tile.consumer_wait %kp : !p2
          %nqw = tile.subview %nq[%r0, 0] : !t -> !tq
          %qn = tile.local_load %nqw : !tq -> !p
          %sp = tile.dot_async %qn, %kf transpose_b : (!p, !t) -> !ps
          %vf = tile.consumer_wait %vp : !p2
          %opd = tile.dot_async %pi, %vf acc %oi : (!p, !t) -> !ps
          %lt = tile.reduce addf %li scope lanes : !l -> !r
          %inv = tile.map (%e = %lt : !r) -> !r {
            %z = arith.divf %one, %e fastmath<arcp, afn> : f32
            tile.yield %z : f32
          }
          %sn = tile.await %sp : !ps -> !s
          tile.consumer_release %kp : !p2
          %mn = tile.reduce maximumf %sn dim 1 : !s -> !r
          %msn = tile.map (%e = %mn : !r) -> !r {
            %y = arith.mulf %e, %scale2 : f32
            %z = arith.negf %y : f32
            tile.yield %z : f32
          }
          %pfn = tile.map (%e = %sn : !s, %b = %msn[0] : !r) -> !s {
            %y = math.fma %e, %scale2, %b : f32
            %z = math.exp2 %y fastmath<afn> : f32
            tile.yield %z : f32
          }
          %ln = tile.reduce addf %pfn dim 1 scope thread : !s -> !l
          %ov = tile.await %opd : !ps -> !s
          tile.consumer_release %vp : !p2
          %ob = tile.map (%e = %ov : !s, %b = %inv[0] : !r) -> !p {
            %y = arith.mulf %e, %b : f32
            %z = arith.truncf %y : f32 to bf16
            tile.yield %z : bf16
          }
          %ow = tile.subview %slot[%r0, 0] : !t -> !tq
          tile.local_store %ob, %ow : !p, !tq
          tile.commit %op : !p2
          %pn = tile.map arith.truncf(%pfn : !s) -> !p
          scf.yield %zeros, %pn, %mn, %ln, %qn, %left, %nq : !s, !p, !r, !l, !p, index, !t
        }
        %vl = tile.consumer_wait %vp : !p2
        %oe = tile.dot_async %n#1, %vl acc %n#0 : (!p, !t) -> !ps
        %lte = tile.reduce addf %n#2 scope lanes : !l -> !r
        %inve = tile.map (%e = %lte : !r) -> !r {
          %z = arith.divf %one, %e fastmath<arcp, afn> : f32
          tile.yield %z : f32
        }
        %ove = tile.await %oe : !ps -> !s
        tile.consumer_release %vp : !p2
        %obe = tile.map (%e = %ove : !s, %b = %inve[0] : !r) -> !p {
          %y = arith.mulf %e, %b : f32
          %z = arith.truncf %y : f32 to bf16
          tile.yield %z : bf16
        }
        %owe = tile.subview %n#3[%r0, 0] : !t -> !tq
        tile.local_store %obe, %owe : !p, !tq
        tile.commit %op : !p2
        tile.commit %op : !p2
      } else {
        tile.commit %op : !p2
      }
    }
  }
}

tile.kernel @prefill_causal(%q: !m {tile.arg = "q"}, %k: !m {tile.arg = "k"}, %v: !m {tile.arg = "v"}, %o: !m {tile.arg = "o"},
    %items: !tile.items {tile.arg = "items"}, %scale: f32 {tile.arg = "scale"})
    attributes {level = #tile.level<specialized>, target = #attn.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cm1 = arith.constant -1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %false = arith.constant false
  %true = arith.constant true
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %log2e = arith.constant 1.44269502 : f32
  %scale2 = arith.mulf %scale, %log2e : f32
  %qp = tile.pipeline consumers 2 : !q2
  %op = tile.pipeline chain %qp : !q2 producers 2 : !p2
  %kp = tile.pipeline consumers 2 : !p2
  %vp = tile.pipeline consumers 2 : !p2
  tile.roles {
    // K of an item's last block comes before the last V of the item before it: the order of the consumers' waits.
    tile.role @producer warps(1) registers(24) {
      %some0, %f:4 = tile.next_item %items (token0, head, table, qpos0)
      %e:7 = scf.while (%some = %some0, %row = %f#0, %head = %f#1, %tab = %f#2, %len = %f#3, %more = %false, %ptab = %c0, %phead = %c0)
          : (i1, index, index, index, index, i1, index, index) -> (index, index, index, index, i1, index, index) {
        scf.condition(%some) %row, %head, %tab, %len, %more, %ptab, %phead : index, index, index, index, i1, index, index
      } do {
      ^bb0(%row: index, %head: index, %tab: index, %len: index, %more: i1, %ptab: index, %phead: index):
        %nsome, %nf:4 = tile.next_item %items (token0, head, table, qpos0)
        %n = arith.divui %len, %c128 : index
        %last = arith.muli %n, %c128 : index
        %end = arith.addi %last, %c128 : index
        %kv = tile.view %k[%tab, %head] rows(%end) : !m -> !v
        %vv = tile.view %v[%tab, %head] rows(%end) : !m -> !v
        %k0 = tile.producer_acquire %kp : !p2 -> !t
        tile.load_async %kv[%last] into %k0 signal %kp : !v, !t, !p2
        scf.if %more {
          %pv = tile.view %v[%ptab, %phead] : !m -> !v1
          %v0 = tile.producer_acquire %vp : !p2 -> !t
          tile.load_async %pv[%c0] into %v0 signal %vp : !v1, !t, !p2
        }
        %qv = tile.view %q[%row, %head] : !m -> !v1
        %qs = tile.producer_acquire %qp : !q2 -> !t
        tile.send %qp(%n) : !q2
        tile.load_async %qv[%c0] into %qs signal %qp : !v1, !t, !q2
        scf.for %j = %c0 to %n step %c1 {
          %b = arith.subi %n, %j : index
          %vrow = arith.muli %b, %c128 : index
          %krow = arith.subi %vrow, %c128 : index
          %kd = tile.producer_acquire %kp : !p2 -> !t
          tile.load_async %kv[%krow] into %kd signal %kp : !v, !t, !p2
          %vd = tile.producer_acquire %vp : !p2 -> !t
          tile.load_async %vv[%vrow] into %vd signal %vp : !v, !t, !p2
        }
        scf.yield %nsome, %nf#0, %nf#1, %nf#2, %nf#3, %true, %tab, %head : i1, index, index, index, index, i1, index, index
      }
      scf.if %e#4 {
        %pv = tile.view %v[%e#5, %e#6] : !m -> !v1
        %v0 = tile.producer_acquire %vp : !p2 -> !t
        tile.load_async %pv[%c0] into %v0 signal %vp : !v1, !t, !p2
      }
      // The end travels like an item, without data: the consumers hand it on, the store role frees it.
      %end = tile.producer_acquire %qp : !q2 -> !t
      tile.send %qp(%cm1) : !q2
      tile.commit %qp : !q2
    }
    tile.role @store warps(1) registers(24) {
      tile.for_each (%row = token0, %head = head) in %items {
        %os = tile.consumer_wait %op : !p2
        %ov = tile.view %o[%row, %head] : !m -> !v1
        tile.store_async %os, %ov[%c0] : !t, !v1
        tile.consumer_release %op : !p2
      }
      %end = tile.consumer_wait %op : !p2
      tile.consumer_release %op : !p2
    }
    tile.role @consumer warps(4) groups(2) registers(240) (%wg) {
      %r0 = arith.muli %wg, %c64 : index
      %qs, %w = tile.consumer_wait %qp : !q2
      %some = arith.cmpi sge, %w, %c0 : index
      scf.if %some {
        %qw = tile.subview %qs[%r0, 0] : !t -> !tq
        %k0 = tile.consumer_wait %kp : !p2
        %q0 = tile.local_load %qw : !tq -> !p
        %sp0 = tile.dot_async %q0, %k0 transpose_b : (!p, !t) -> !ps
        %s0 = tile.await %sp0 : !ps -> !s
        tile.consumer_release %kp : !p2
        %x0 = tile.mask %s0 () at (%i, %c) : !s {
          %ri = arith.addi %r0, %i : index
          %in = arith.cmpi sle, %c, %ri : index
          tile.yield %in : i1
        }
        %m0 = tile.reduce maximumf %x0 dim 1 : !s -> !r
        %ms0 = tile.map (%e = %m0 : !r) -> !r {
          %y = arith.mulf %e, %scale2 : f32
          %z = arith.negf %y : f32
          tile.yield %z : f32
        }
        %pf0 = tile.map (%e = %x0 : !s, %b = %ms0[0] : !r) -> !s {
          %y = math.fma %e, %scale2, %b : f32
          %z = math.exp2 %y fastmath<afn> : f32
          tile.yield %z : f32
        }
        %l0 = tile.reduce addf %pf0 dim 1 scope thread : !s -> !l
        %zeros = tile.splat %zero : f32 -> !s
        %p0 = tile.map arith.truncf(%pf0 : !s) -> !p
        // The item's remaining blocks, then the next item's words: they decide whether there is a boundary step.
        %n:6 = scf.while (%o0 = %zeros, %p1 = %p0, %m1 = %m0, %l1 = %l0, %qf = %q0, %left = %w, %mine = %qs)
            : (!s, !p, !r, !l, !p, index, !t) -> (!s, !p, !l, !t, !t, index) {
          %b:4 = scf.for %j = %c0 to %left step %c1 iter_args(%oi = %o0, %pi = %p1, %mi = %m1, %li = %l1) -> (!s, !p, !r, !l) {
            %kf = tile.consumer_wait %kp : !p2
            %sp = tile.dot_async %qf, %kf transpose_b : (!p, !t) -> !ps
            %vf = tile.consumer_wait %vp : !p2
            %opd = tile.dot_async %pi, %vf acc %oi : (!p, !t) -> !ps
            %sn = tile.await %sp : !ps -> !s
            tile.consumer_release %kp : !p2
            %mn = tile.reduce maximumf %sn dim 1 init %mi : !r, : !s -> !r
            %ms = tile.map (%e = %mn : !r) -> !r {
              %y = arith.mulf %e, %scale2 : f32
              %z = arith.negf %y : f32
              tile.yield %z : f32
            }
            %al = tile.map (%e = %mi : !r, %b = %ms : !r) -> !r {
              %y = math.fma %e, %scale2, %b : f32
              %z = math.exp2 %y fastmath<afn> : f32
              tile.yield %z : f32
            }
            %pf = tile.map (%e = %sn : !s, %b = %ms[0] : !r) -> !s {
              %y = math.fma %e, %scale2, %b : f32
              %z = math.exp2 %y fastmath<afn> : f32
              tile.yield %z : f32
            }
            %pt = tile.reduce addf %pf dim 1 scope thread : !s -> !l
            %ln = tile.map math.fma(%li : !l, %al : !r, %pt : !l) -> !l
            %ov = tile.await %opd : !ps -> !s
            tile.consumer_release %vp : !p2
            %on = tile.map arith.mulf(%ov : !s, %al[0] : !r) -> !s
            %pb = tile.map arith.truncf(%pf : !s) -> !p
            scf.yield %on, %pb, %mn, %ln : !s, !p, !r, !l
          }
          %nq, %nw = tile.consumer_wait %qp : !q2
          %more = arith.cmpi sge, %nw, %c0 : index
          scf.condition(%more) %b#0, %b#1, %b#3, %mine, %nq, %nw : !s, !p, !l, !t, !t, index
        } do {
        ^bb0(%oi: !s, %pi: !p, %li: !l, %slot: !t, %nq: !t, %left: index):
          %kf = tile.consumer_wait %kp : !p2
          %nqw = tile.subview %nq[%r0, 0] : !t -> !tq
          %qn = tile.local_load %nqw : !tq -> !p
          %sp = tile.dot_async %qn, %kf transpose_b : (!p, !t) -> !ps
          %vf = tile.consumer_wait %vp : !p2
          %opd = tile.dot_async %pi, %vf acc %oi : (!p, !t) -> !ps
          %lt = tile.reduce addf %li scope lanes : !l -> !r
          %inv = tile.map (%e = %lt : !r) -> !r {
            %z = arith.divf %one, %e fastmath<arcp, afn> : f32
            tile.yield %z : f32
          }
          %sn = tile.await %sp : !ps -> !s
          tile.consumer_release %kp : !p2
          %xn = tile.mask %sn () at (%i, %c) : !s {
            %ri = arith.addi %r0, %i : index
            %in = arith.cmpi sle, %c, %ri : index
            tile.yield %in : i1
          }
          %mn = tile.reduce maximumf %xn dim 1 : !s -> !r
          %msn = tile.map (%e = %mn : !r) -> !r {
            %y = arith.mulf %e, %scale2 : f32
            %z = arith.negf %y : f32
            tile.yield %z : f32
          }
          %pfn = tile.map (%e = %xn : !s, %b = %msn[0] : !r) -> !s {
            %y = math.fma %e, %scale2, %b : f32
            %z = math.exp2 %y fastmath<afn> : f32
            tile.yield %z : f32
          }
          %ln = tile.reduce addf %pfn dim 1 scope thread : !s -> !l
          %ov = tile.await %opd : !ps -> !s
          tile.consumer_release %vp : !p2
          %ob = tile.map (%e = %ov : !s, %b = %inv[0] : !r) -> !p {
            %y = arith.mulf %e, %b : f32
            %z = arith.truncf %y : f32 to bf16
            tile.yield %z : bf16
          }
          %ow = tile.subview %slot[%r0, 0] : !t -> !tq
          tile.local_store %ob, %ow : !p, !tq
          tile.commit %op : !p2
          %pn = tile.map arith.truncf(%pfn : !s) -> !p
          scf.yield %zeros, %pn, %mn, %ln, %qn, %left, %nq : !s, !p, !r, !l, !p, index, !t
        }
        %vl = tile.consumer_wait %vp : !p2
        %oe = tile.dot_async %n#1, %vl acc %n#0 : (!p, !t) -> !ps
        %lte = tile.reduce addf %n#2 scope lanes : !l -> !r
        %inve = tile.map (%e = %lte : !r) -> !r {
          %z = arith.divf %one, %e fastmath<arcp, afn> : f32
          tile.yield %z : f32
        }
        %ove = tile.await %oe : !ps -> !s
        tile.consumer_release %vp : !p2
        %obe = tile.map (%e = %ove : !s, %b = %inve[0] : !r) -> !p {
          %y = arith.mulf %e, %b : f32
          %z = arith.truncf %y : f32 to bf16
          tile.yield %z : bf16
        }
        %owe = tile.subview %n#3[%r0, 0] : !t -> !tq
        tile.local_store %obe, %owe : !p, !tq
        tile.commit %op : !p2
        tile.commit %op : !p2
      } else {
        tile.commit %op : !p2
      }
    }
  }
}
