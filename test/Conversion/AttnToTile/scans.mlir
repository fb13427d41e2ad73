// RUN: attn-opt %s --attn-to-tile | FileCheck %s

// Which kernels look up tables by key: tiles of 32 tokens and more, without a row table, of keys in the order of their positions.

attn.variant @document(%doc: memref<?xi32>, %offset: memref<?xi32>) {
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

func.func @paged(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind: memref<?xi32>,
                 %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x64xbf16>, %doc: memref<?xi32>, %offset: memref<?xi32>) {
  attn.attention @document(%doc, %offset : memref<?xi32>, memref<?xi32>) q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>) indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>)
    last(%last : memref<?xi32>) outs(%o : memref<?x8x64xbf16>)
    {format = #attn.format<paged>, configs = [
      #attn.config<rows = 16, keys = 64>,
      #attn.config<rows = 64, keys = 64, pack = 4>,
      #attn.config<rows = 32, keys = 64, row_table = true>,
      #attn.config<rows = 32, keys = 64>,
      #attn.config<rows = 128, keys = 64, pack = 4>]}
  return
}

// Few tokens: 16 rows, 64 rows of 4 heads each; rows of any token.
// CHECK-LABEL: tile.kernel @document_r16(
// CHECK-NOT: attn.scans
// CHECK-NOT: tile.extent
// CHECK-NOT: tile.scan
// CHECK-LABEL: tile.kernel @document_r64(
// CHECK-NOT: attn.scans
// CHECK-NOT: tile.extent
// CHECK-NOT: tile.scan
// CHECK-LABEL: tile.kernel @document_r32(
// CHECK-NOT: attn.scans
// CHECK-NOT: tile.extent
// CHECK-NOT: tile.scan

// 32 tokens. The entries of the queries, those of the chunk's keys in front of the last query; the loop runs over what was found.
// CHECK-LABEL: tile.kernel @document_r32
// CHECK-SAME: attributes {attn.scans,
// CHECK: tile.for_each ({{.*}} = kpos0, {{.*}} = klo,
// CHECK: %[[BASE32:.*]] = memref.load
// CHECK: %[[BASE:.*]] = arith.extsi %[[BASE32]] : i32 to i64
// CHECK: %[[LEAST:.*]], %[[MOST:.*]] = tile.extent %[[DOC:.*]][%{{.*}} to %{{.*}}] : memref<?xi32>
// CHECK: %[[FROM:.*]] = arith.maxsi {{.*}} : index
// CHECK-NEXT: %[[TO:.*]] = arith.minsi {{.*}} : index
// CHECK-NEXT: %[[FIRST:.*]], %[[LAST:.*]], %{{.*}}, %{{.*}} = tile.scan %[[DOC]][%{{.*}}] from %[[FROM]] to %[[TO]] some(%[[LEAST]], %[[MOST]]) all(%[[MOST]], %[[LEAST]]) : memref<?xi32>
// CHECK-NEXT: arith.index_cast %[[FIRST]] : index to i64
// CHECK-NEXT: arith.index_cast %[[LAST]] : index to i64
// CHECK: scf.for

// 128 rows of 4 heads are 32 tokens.
// CHECK-LABEL: tile.kernel @document_r128(
// CHECK-SAME: attn.scans
// CHECK: tile.scan

// Column blocks do not come in the order of their positions.
attn.variant @sparse(%doc: memref<?xi32>) {
  attn.hook mask (%at: !attn.coord) {
    %zero = arith.constant 0 : index
    %q = attn.q_pos %at
    %k = attn.kv_pos %at
    %inside = arith.maxsi %q, %zero : index
    %qd = memref.load %doc[%inside] : memref<?xi32>
    %kd = memref.load %doc[%k] : memref<?xi32>
    %in = arith.cmpi eq, %qd, %kd : i32
    attn.yield %in : i1
  }
}
func.func @bsr(%q: memref<?x8x64xbf16>, %qo: memref<?xi32>, %k: memref<?x16x2x64xbf16>, %v: memref<?x16x2x64xbf16>, %ind: memref<?xi32>,
               %idx: memref<?xi32>, %last: memref<?xi32>, %o: memref<?x8x64xbf16>, %doc: memref<?xi32>) {
  attn.attention @sparse(%doc : memref<?xi32>) q(%q, %qo : memref<?x8x64xbf16>, memref<?xi32>)
    kv(%k, %v : memref<?x16x2x64xbf16>, memref<?x16x2x64xbf16>) indptr(%ind : memref<?xi32>) indices(%idx : memref<?xi32>)
    last(%last : memref<?xi32>) outs(%o : memref<?x8x64xbf16>)
    {format = #attn.format<bsr, row_block = 64>, configs = [#attn.config<rows = 64, keys = 64>]}
  return
}
// CHECK-LABEL: tile.kernel @sparse_r64(
// CHECK-NOT: attn.scans
// CHECK-NOT: tile.extent
// CHECK-NOT: tile.scan
// CHECK-LABEL: tile.kernel @sparse_merge(
