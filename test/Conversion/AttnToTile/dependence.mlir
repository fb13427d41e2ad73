// RUN: attn-opt %s --attn-select-config --attn-to-tile | FileCheck %s

// What a value of a hook follows from, through ops with regions. Where the index of a load follows from the key, keys
// that do not exist are clamped and fewer keys leave registers for the addresses.

// CHECK-LABEL: tile.kernel @by_key_r128(
// CHECK: tile.mask {{.*}}<128x32xf32> {
// CHECK: arith.maxsi
// CHECK: scf.if
attn.variant @by_key(%table: memref<?xi32>, %first: index) {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %late = arith.cmpi sge, %q, %first : index
    %i = scf.if %late -> (index) {
      scf.yield %k : index
    } else {
      scf.yield %q : index
    }
    %v = memref.load %table[%i] : memref<?xi32>
    %zero = arith.constant 0 : i32
    %in = arith.cmpi ne, %v, %zero : i32
    attn.yield %in : i1
  }
}
func.func @by_key_attend(%q: memref<?x4x128xbf16>, %qo: memref<?xi32>, %k: memref<?x4x128xbf16>, %ind: memref<?xi32>, %o: memref<?x4x128xbf16>, %table: memref<?xi32>, %first: index) {
  attn.attention @by_key(%table, %first : memref<?xi32>, index)
    q(%q, %qo : memref<?x4x128xbf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xbf16>, memref<?x4x128xbf16>) indptr(%ind : memref<?xi32>)
    outs(%o : memref<?x4x128xbf16>) {format = #attn.format<ragged>, target = #attn.target<"sm_90a">}
  return
}

// Where it follows from the row alone, neither is done.

// CHECK-LABEL: tile.kernel @by_row_r128(
// CHECK: tile.mask {{.*}}<128x128xf32> {
// CHECK-NOT: arith.maxsi
// CHECK: scf.if
attn.variant @by_row(%table: memref<?xi32>, %first: index) {
  attn.hook mask (%at: !attn.coord) {
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %late = arith.cmpi sge, %q, %first : index
    %i = scf.if %late -> (index) {
      scf.yield %first : index
    } else {
      scf.yield %q : index
    }
    %v = memref.load %table[%i] : memref<?xi32>
    %zero = arith.constant 0 : i32
    %in = arith.cmpi ne, %v, %zero : i32
    attn.yield %in : i1
  }
}
func.func @by_row_attend(%q: memref<?x4x128xbf16>, %qo: memref<?xi32>, %k: memref<?x4x128xbf16>, %ind: memref<?xi32>, %o: memref<?x4x128xbf16>, %table: memref<?xi32>, %first: index) {
  attn.attention @by_row(%table, %first : memref<?xi32>, index)
    q(%q, %qo : memref<?x4x128xbf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xbf16>, memref<?x4x128xbf16>) indptr(%ind : memref<?xi32>)
    outs(%o : memref<?x4x128xbf16>) {format = #attn.format<ragged>, target = #attn.target<"sm_90a">}
  return
}

// Rows that do not exist are clamped where something is looked up by them, not beside a table of heads: the distances of
// a thread's rows then differ by constants.

// CHECK-LABEL: tile.kernel @by_head_r128(
// CHECK: memref.load
// CHECK-NOT: arith.minsi
// CHECK: arith.sitofp
// CHECK-LABEL: tile.kernel @by_head_merge(
attn.variant @by_head(%table: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %h = attn.q_head %at
    %slope = memref.load %table[%h] : memref<?xf32>
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %d = arith.subi %k, %q : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    %y = math.fma %slope, %f, %x : f32
    attn.yield %y : f32
  }
}
func.func @by_head_attend(%q: memref<?x4x128xbf16>, %qo: memref<?xi32>, %k: memref<?x4x128xbf16>, %ind: memref<?xi32>, %o: memref<?x4x128xbf16>, %table: memref<?xf32>) {
  attn.attention @by_head(%table : memref<?xf32>)
    q(%q, %qo : memref<?x4x128xbf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xbf16>, memref<?x4x128xbf16>) indptr(%ind : memref<?xi32>)
    outs(%o : memref<?x4x128xbf16>) {format = #attn.format<ragged>, target = #attn.target<"sm_90a">}
  return
}

// CHECK-LABEL: tile.kernel @by_position_r128(
// CHECK: arith.minsi {{.*}}
// CHECK: tile.map {{.*}}<128x128xf32> {
// CHECK: arith.minsi
// CHECK: memref.load
attn.variant @by_position(%table: memref<?xf32>) {
  attn.hook logits (%x: f32, %at: !attn.coord) {
    %r = attn.row %at
    %b = memref.load %table[%r] : memref<?xf32>
    %y = arith.addf %x, %b : f32
    attn.yield %y : f32
  }
}
func.func @by_position_attend(%q: memref<?x4x128xbf16>, %qo: memref<?xi32>, %k: memref<?x4x128xbf16>, %ind: memref<?xi32>, %o: memref<?x4x128xbf16>, %table: memref<?xf32>) {
  attn.attention @by_position(%table : memref<?xf32>)
    q(%q, %qo : memref<?x4x128xbf16>, memref<?xi32>) kv(%k, %k : memref<?x4x128xbf16>, memref<?x4x128xbf16>) indptr(%ind : memref<?xi32>)
    outs(%o : memref<?x4x128xbf16>) {format = #attn.format<ragged>, target = #attn.target<"sm_90a">}
  return
}
