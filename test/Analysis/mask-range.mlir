// RUN: attn-opt %s --attn-mask-range | FileCheck %s
// RUN: attn-opt %s --attn-check-range --verify-diagnostics -o /dev/null

// Keys up to the query's own: hi = qpos0 + tokens, interior up to qpos0.
// CHECK-LABEL: func.func @causal_range(
// CHECK-SAME: %[[Q:.*]]: index, %[[N:.*]]: index, %{{.*}}: index, %[[KV:.*]]: index, %{{.*}}: index) -> (index, index, index, index)
// CHECK-SAME: attn.range = {code = [
// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @causal() {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sle, %k, %q : index
    attn.yield %in : i1
  }
}

// The hull is loose for windows that no query is in (left = -4, right = 3).
// expected-remark @below {{range is sound, hull loose, interior exact}}
attn.variant @window(%left: index, %right: index) {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %e = arith.subi %k, %q : index
    %a = arith.cmpi sle, %d, %left : index
    %b = arith.cmpi sle, %e, %right : index
    %in = arith.andi %a, %b : i1
    attn.yield %in : i1
  }
}

// -1 means unbounded (so do all negative numbers).
// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @window_or_not(%left: index) {
  %zero = arith.constant 0 : index
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %a = arith.cmpi sle, %d, %left : index
    %b = arith.cmpi slt, %left, %zero : index
    %in = arith.ori %a, %b : i1
    attn.yield %in : i1
  }
}

// Sinks and a causal window: the hull spans the gap between them.
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @sink_window(%sinks: index, %left: index) {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %causal = arith.cmpi sle, %k, %q : index
    %near = arith.cmpi slt, %d, %left : index
    %sink = arith.cmpi slt, %k, %sinks : index
    %seen = arith.ori %near, %sink : i1
    %in = arith.andi %causal, %seen : i1
    attn.yield %in : i1
  }
}

// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @prefix_lm(%prefix: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %r = attn.request %at
    %p32 = memref.load %prefix[%r] : memref<?xi32>
    %p = arith.index_cast %p32 : i32 to index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %causal = arith.cmpi sle, %k, %q : index
    %inside = arith.cmpi slt, %k, %p : index
    %in = arith.ori %causal, %inside : i1
    attn.yield %in : i1
  }
}

// A document's first key, by position of the query: each token has bounds of its own.
// expected-remark @below {{range is sound, hull exact, interior exact, one token at a time}}
attn.variant @document(%start: memref<?xi64>) {
  attn.hook mask (%at: !attn.coord) {
    %row = attn.row %at
    %s64 = memref.load %start[%row] : memref<?xi64>
    %s = arith.index_cast %s64 : i64 to index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %causal = arith.cmpi sle, %k, %q : index
    %own = arith.cmpi sge, %k, %s : index
    %in = arith.andi %causal, %own : i1
    attn.yield %in : i1
  }
}

// Chunks of 4 keys: a query sees its own chunk, causally.
// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @chunks() {
  %four = arith.constant 4 : index
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %qc = arith.divsi %q, %four : index
    %kc = arith.divsi %k, %four : index
    %same = arith.cmpi eq, %qc, %kc : index
    %causal = arith.cmpi sle, %k, %q : index
    %in = arith.andi %same, %causal : i1
    attn.yield %in : i1
  }
}

// Not the last key, not the first: negations and constants.
// expected-remark @below {{range is sound, hull loose, interior exact}}
attn.variant @inner() {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %true = arith.constant true
  attn.hook mask (%at: !attn.coord) {
    %k = attn.kv_pos %at
    %n = attn.kv_len %at
    %next = arith.addi %k, %one : index
    %last = arith.cmpi eq, %next, %n : index
    %first = arith.cmpi eq, %k, %zero : index
    %edge = arith.ori %last, %first : i1
    %in = arith.xori %edge, %true : i1
    attn.yield %in : i1
  }
}

// Multiples: 2 k <= 3 q + 1.
// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @slope() {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %k2 = arith.muli %k, %two : index
    %q3 = arith.muli %q, %three : index
    %r = arith.addi %q3, %one : index
    %in = arith.cmpi sle, %k2, %r : index
    attn.yield %in : i1
  }
}

// 0 <= q - k < left as one unsigned comparison; a parameter may be negative, so it is not analysed.
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @unsigned(%left: index) {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %in = arith.cmpi ult, %d, %left : index
    attn.yield %in : i1
  }
}

// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @unsigned_constant() {
  %left = arith.constant 3 : index
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %q, %k : index
    %in = arith.cmpi ult, %d, %left : index
    attn.yield %in : i1
  }
}

// Chosen by a parameter: both sides count.
// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @chosen(%mode: index, %left: index) {
  %zero = arith.constant 0 : index
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %plain = arith.cmpi eq, %mode, %zero : index
    %causal = arith.cmpi sle, %k, %q : index
    %d = arith.subi %q, %k : index
    %near = arith.cmpi sle, %d, %left : index
    %in = arith.select %plain, %causal, %near : i1
    attn.yield %in : i1
  }
}

// Hidden on interior tiles only; by head; by bits: evaluated everywhere.
// CHECK-LABEL: func.func @holes_range(
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: return %[[ZERO]], %[[ZERO]], %[[ZERO]], %arg3
// expected-remark @below {{range is sound, hull exact, interior loose}}
attn.variant @holes(%bits: memref<?xi32>) {
  %zero = arith.constant 0 : i32
  attn.hook mask (%at: !attn.coord) {
    %k = attn.kv_pos %at
    %b = memref.load %bits[%k] : memref<?xi32>
    %in = arith.cmpi ne, %b, %zero : i32
    attn.yield %in : i1
  }
}

// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @heads(%left: index) {
  attn.hook mask (%at: !attn.coord) {
    %h = attn.q_head %at
    %k = attn.kv_pos %at
    %in = arith.cmpi sge, %k, %h : index
    attn.yield %in : i1
  }
}

// A bound of +-2^63 does not wrap.
// expected-remark @below {{range is sound, hull exact, interior exact}}
attn.variant @huge() {
  %huge = arith.constant 9223372036854775807 : index
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %k, %q : index
    %in = arith.cmpi sle, %d, %huge : index
    attn.yield %in : i1
  }
}

// Packed documents: the keys of the queries' documents, an interval where documents are intervals.
// CHECK-LABEL: func.func @documents_range(
// CHECK-SAME: ["extent", 19, 0, 15, 18]
// CHECK-SAME: ["scan", 25, 0, 11, 10, 24, 19, 20, 20, 19, 0]
// CHECK: scf.for {{.*}} -> (i64, i64)
// CHECK: scf.for {{.*}} -> (index, index, index, index, index)
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @documents(%doc: memref<?xi32>, %offset: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %r = attn.request %at
    %base32 = memref.load %offset[%r] : memref<?xi32>
    %base = arith.index_cast %base32 : i32 to index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qi = arith.addi %base, %inside : index
    %ki = arith.addi %base, %k : index
    %qd = memref.load %doc[%qi] : memref<?xi32>
    %kd = memref.load %doc[%ki] : memref<?xi32>
    %same = arith.cmpi eq, %qd, %kd : i32
    %causal = arith.cmpi sle, %k, %q : index
    %in = arith.andi %same, %causal : i1
    attn.yield %in : i1
  }
}

// Both ways: later documents see earlier ones.
// expected-remark @below {{range is sound, hull exact, interior loose}}
attn.variant @chapters(%doc: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %in = arith.cmpi sge, %qd, %kd : i32
    attn.yield %in : i1
  }
}

// All comparisons, with a constant and with queries; not and or.
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @others(%doc: memref<?xi32>, %least: index) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %three = arith.constant 3 : index
    %true = arith.constant true
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %qx = arith.index_cast %qd : i32 to index
    %kx = arith.index_cast %kd : i32 to index
    %a = arith.cmpi slt, %kx, %qx : index
    %b = arith.cmpi sgt, %three, %kx : index
    %c = arith.cmpi ne, %qd, %kd : i32
    %d = arith.cmpi sle, %kx, %least : index
    %e = arith.cmpi sle, %k, %q : index
    %not = arith.xori %b, %true : i1
    %f = arith.ori %a, %not : i1
    %g = arith.andi %c, %d : i1
    %h = arith.andi %g, %e : i1
    %in = arith.ori %f, %h : i1
    attn.yield %in : i1
  }
}

// Entries of 64 bits are not compared with numbers that are clamped, nor cut to an index; per-token bounds forbid scans.
// CHECK-LABEL: func.func @wide_range(
// CHECK-NOT: "scan"
// CHECK-LABEL: func.func @both_range(
// CHECK-NOT: "scan"
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @wide(%doc: memref<?xi64>, %least: index) {
  attn.hook mask (%at: !attn.coord) {
    %k = attn.kv_pos %at
    %d = memref.load %doc[%k] : memref<?xi64>
    %x = arith.index_cast %d : i64 to index
    %in = arith.cmpi sge, %x, %least : index
    attn.yield %in : i1
  }
}

// expected-remark @below {{range is sound, hull loose, interior loose, one token at a time}}
attn.variant @both(%doc: memref<?xi32>, %start: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %s = memref.load %start[%inside] : memref<?xi32>
    %first = arith.index_cast %s : i32 to index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %same = arith.cmpi eq, %qd, %kd : i32
    %behind = arith.cmpi sge, %k, %first : index
    %in = arith.andi %same, %behind : i1
    attn.yield %in : i1
  }
}

// Entries of 64 bits with those of the queries.
// CHECK-LABEL: func.func @long_range(
// CHECK-SAME: "scan"
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @long(%doc: memref<?xi64>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi64>
    %kd = memref.load %doc[%k] : memref<?xi64>
    %in = arith.cmpi eq, %qd, %kd : i64
    attn.yield %in : i1
  }
}

// Four comparisons of entries are read, not a fifth.
// CHECK-LABEL: func.func @five_range(
// CHECK-SAME: "scan"
// CHECK-SAME: "scan"
// CHECK-SAME: "scan"
// CHECK-SAME: "scan"
// CHECK-NOT: "scan"
// expected-remark @below {{range is sound, hull loose, interior loose}}
attn.variant @five(%a: memref<?xi32>, %b: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %k = attn.kv_pos %at
    %x = memref.load %a[%k] : memref<?xi32>
    %y = memref.load %b[%k] : memref<?xi32>
    %c0 = arith.cmpi ne, %x, %one : i32
    %c1 = arith.cmpi ne, %y, %one : i32
    %c2 = arith.cmpi sle, %x, %two : i32
    %c3 = arith.cmpi sle, %y, %two : i32
    %c4 = arith.cmpi ne, %x, %three : i32
    %d0 = arith.andi %c0, %c1 : i1
    %d1 = arith.andi %c2, %c3 : i1
    %d2 = arith.andi %d0, %d1 : i1
    %in = arith.andi %d2, %c4 : i1
    attn.yield %in : i1
  }
}
