// RUN: attn-opt %s --attn-select-config --attn-to-tile | FileCheck %s
// RUN: attn-run %s --batch=%S/Inputs/defined-integers.json --device=cpu --check | FileCheck %s --check-prefix=PASSED
// RUN: attn-run %s --batch=%S/Inputs/defined-integers-range.json --device=cpu --check | FileCheck %s --check-prefix=PASSED
// RUN: attn-opt %s --attn-select-config=target=sm_80 --attn-to-tile --attn-gpu-pipeline=chip=sm_80 -o /dev/null

// Division by zero, the lowest number by -1, shifts by the width or more and conversions out of range have a result in
// hooks, the same on every path; what cannot go wrong costs nothing. The sum of all of them makes the logit.

// PASSED: check passed

// CHECK: attn.variant @integers
// CHECK-NOT: arith.select
// CHECK-LABEL: tile.kernel @integers_r
// CHECK: tile.map
// The divisor 0 becomes 1 and the dividend 0; so does -1 under the lowest number.
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// CHECK: %[[A:.*]] = arith.select %[[NONE]], %{{.*}}, %{{.*}} : i32
// CHECK: %[[BAD:.*]] = arith.ori %[[NONE]], %{{.*}} : i1
// CHECK: %[[B:.*]] = arith.select %[[BAD]], %{{.*}}, %{{.*}} : i32
// CHECK: arith.divsi %[[A]], %[[B]] : i32
// CHECK: arith.minui %{{.*}}, %{{.*}} : i32
// CHECK: arith.shli
// CHECK: arith.cmpf ord
// CHECK: arith.maxnumf
// CHECK: arith.minnumf
// CHECK: arith.fptosi

attn.variant @integers(%table: memref<?xi32>, %floats: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %n = arith.constant 8 : index
    %k = attn.kv_pos %at
    %q = attn.q_pos %at
    // A constant divisor: as written.
    %i = arith.remui %k, %n : index
    %row = attn.row %at
    %j = arith.remui %row, %n : index
    %a = memref.load %table[%i] : memref<?xi32>
    %b = memref.load %table[%j] : memref<?xi32>
    %f = memref.load %floats[%i] : memref<?xf32>
    %r0 = arith.divsi %a, %b : i32
    %r1 = arith.remsi %a, %b : i32
    %r2 = arith.divui %a, %b : i32
    %r3 = arith.remui %a, %b : i32
    %r4 = arith.shli %a, %b : i32
    %r5 = arith.shrsi %a, %b : i32
    %r6 = arith.shrui %a, %b : i32
    %r7 = arith.fptosi %f : f32 to i32
    %r8 = arith.fptoui %f : f32 to i32
    %h = arith.fptosi %f : f32 to i8
    %r9 = arith.extsi %h : i8 to i32
    %u = arith.fptoui %f : f32 to i16
    %r10 = arith.extui %u : i16 to i32
    %w = arith.fptosi %f : f32 to i64
    %r11 = arith.trunci %w : i64 to i32
    // Index: unsigned ops on negative positions, shifts beyond 32 bits.
    %d = arith.subi %q, %k : index
    %x0 = arith.shrui %d, %n : index
    %wide = arith.index_cast %x0 : index to i64
    %c40 = arith.constant 40 : i64
    %top = arith.shrui %wide, %c40 : i64
    %r12 = arith.trunci %top : i64 to i32
    %dw = arith.index_cast %d : index to i64
    %bw = arith.extsi %b : i32 to i64
    %q64 = arith.divsi %dw, %bw : i64
    %r13 = arith.trunci %q64 : i64 to i32
    %t = arith.cmpi slt, %a, %b : i32
    %v = arith.cmpi sgt, %a, %r0 : i32
    %bit = arith.divsi %t, %v : i1
    %r14 = arith.extsi %bit : i1 to i32
    // Mixed, so that one wrong result shows: 7 bits of a hash.
    %m = arith.constant -1640531527 : i32
    %s0 = arith.xori %r0, %r1 : i32
    %p0 = arith.muli %s0, %m : i32
    %s1 = arith.addi %p0, %r2 : i32
    %p1 = arith.muli %s1, %m : i32
    %s2 = arith.xori %p1, %r3 : i32
    %p2 = arith.muli %s2, %m : i32
    %s3 = arith.addi %p2, %r4 : i32
    %p3 = arith.muli %s3, %m : i32
    %s4 = arith.xori %p3, %r5 : i32
    %p4 = arith.muli %s4, %m : i32
    %s5 = arith.addi %p4, %r6 : i32
    %p5 = arith.muli %s5, %m : i32
    %s6 = arith.xori %p5, %r7 : i32
    %p6 = arith.muli %s6, %m : i32
    %s7 = arith.addi %p6, %r8 : i32
    %p7 = arith.muli %s7, %m : i32
    %s8 = arith.xori %p7, %r9 : i32
    %p8 = arith.muli %s8, %m : i32
    %s9 = arith.addi %p8, %r10 : i32
    %p9 = arith.muli %s9, %m : i32
    %s10 = arith.xori %p9, %r11 : i32
    %p10 = arith.muli %s10, %m : i32
    %s11 = arith.addi %p10, %r12 : i32
    %p11 = arith.muli %s11, %m : i32
    %s12 = arith.xori %p11, %r13 : i32
    %p12 = arith.muli %s12, %m : i32
    %s13 = arith.addi %p12, %r14 : i32
    %p13 = arith.muli %s13, %m : i32
    %c25 = arith.constant 25 : i32
    %hash = arith.shrui %p13, %c25 : i32
    %hf = arith.uitofp %hash : i32 to f32
    %sixteenth = arith.constant 0.0625 : f32
    %bias = arith.mulf %hf, %sixteenth : f32
    %y = arith.addf %x, %bias : f32
    attn.yield %y : f32
  }
}

func.func @attend(%q: memref<?x2x32xf16>, %qo_indptr: memref<?xi32>, %k: memref<?x1x32xf16>, %v: memref<?x1x32xf16>,
                  %kv_indptr: memref<?xi32>, %o: memref<?x2x32xf16>, %table: memref<?xi32>, %floats: memref<?xf32>) {
  attn.attention @integers(%table, %floats : memref<?xi32>, memref<?xf32>)
    q(%q, %qo_indptr : memref<?x2x32xf16>, memref<?xi32>)
    kv(%k, %v : memref<?x1x32xf16>, memref<?x1x32xf16>)
    indptr(%kv_indptr : memref<?xi32>)
    outs(%o : memref<?x2x32xf16>) {format = #attn.format<ragged>}
  return
}
