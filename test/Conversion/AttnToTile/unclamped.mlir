// RUN: attn-opt %s --attn-to-tile | FileCheck %s

// Keys that do not exist are dropped whatever a mask says of them. So entries are read at positions clamped to keys that exist, but positions are
// compared as they are: a register and a constant each. (16 rows: no scans, so the mask is one expression.)

attn.variant @document(%doc: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %same = arith.cmpi eq, %qd, %kd : i32
    %causal = arith.cmpi sle, %k, %q : index
    %in = arith.andi %same, %causal : i1
    attn.yield %in : i1
  }
}
func.func @attend(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x2x64xbf16>, %v: memref<?x2x64xbf16>, %kv: memref<?xi32>,
                  %o: memref<?x8x64xbf16>, %doc: memref<?xi32>) {
  attn.attention @document(%doc : memref<?xi32>) q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x2x64xbf16>, memref<?x2x64xbf16>) indptr(%kv : memref<?xi32>) outs(%o : memref<?x8x64xbf16>)
    {format = #attn.format<ragged>, configs = [#attn.config<rows = 16, keys = 128>]}
  return
}

// CHECK-LABEL: tile.kernel @document_r16(
// CHECK: = kpos0
// CHECK: scf.for %[[J:.*]] = %{{.*}} to
// CHECK: tile.mask {{.*}} () at (%{{.*}}, %[[C:.*]]) unless
// CHECK: arith.addi %[[J]], %[[C]] : index
// CHECK: %[[KEY:.*]] = arith.addi %[[J]], %[[C]] : index
// CHECK: %[[CLAMPED:.*]] = arith.minsi %[[KEY]],
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[KPOS0:.*]], %[[CLAMPED]] : index
// CHECK-NEXT: %[[POS:.*]] = arith.addi %[[KPOS0]], %[[KEY]] : index
// CHECK: memref.load %{{.*}}[%[[AT]]]
// CHECK: arith.cmpi sle, %[[POS]], %{{.*}} : index
// CHECK-NOT: arith.cmpi {{.*}}%[[AT]]
// CHECK: tile.yield
