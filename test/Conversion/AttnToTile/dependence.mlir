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
