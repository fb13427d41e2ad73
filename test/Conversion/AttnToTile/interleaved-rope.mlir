// RUN: attn-opt %s --attn-to-tile | FileCheck %s

// Interleaved pairs: the partner of an element is its neighbour; what does not rotate is joined on.

attn.variant @interleaved() {
  attn.hook key (%x: vector<64xf32>, %at: !attn.coord) {
    %p = attn.kv_pos %at
    %y = attn.rope %x at %p {theta = 10000.0 : f64, rotary = 32 : i64, interleaved} : vector<64xf32>
    attn.yield %y : vector<64xf32>
  }
}

// CHECK-LABEL: tile.kernel @interleaved_r16(
// CHECK: %[[K:.*]] = tile.local_load
// CHECK: %[[X:.*]] = tile.slice %[[K]] [0, 0]
// CHECK: %[[P:.*]] = tile.swap_pairs %[[X]]
// CHECK: tile.map (%{{.*}} = %[[X]] : {{.*}}, %{{.*}} = %[[P]] : {{.*}})
// CHECK: tile.slice %[[K]] [0, 32]
// CHECK: tile.concat {{.*}} dim 1
func.func @f(%q: memref<?x4x64xf16>, %qo: memref<?xi32>, %k: memref<?x4x64xf16>, %ind: memref<?xi32>, %o: memref<?x4x64xf16>) {
  attn.attention @interleaved() q(%q, %qo : memref<?x4x64xf16>, memref<?xi32>) kv(%k, %k : memref<?x4x64xf16>, memref<?x4x64xf16>)
    indptr(%ind : memref<?xi32>) outs(%o : memref<?x4x64xf16>)
    {format = #attn.format<ragged>, configs = [#attn.config<rows = 16, keys = 64>]}
  return
}
