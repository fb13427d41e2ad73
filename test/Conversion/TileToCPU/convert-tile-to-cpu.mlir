// RUN: attn-opt %s --convert-tile-to-cpu=width=8 | FileCheck %s

!m = memref<?x4x16xbf16, strided<[?, ?, 1]>>
!v = !tile.view<?x16xbf16>
!t = !tile.smem<8x16xbf16>
!s = !tile.reg<8x8xf32>
!r = !tile.reg<8xf32>
!lv = !tile.view<?xf32>

// The words in the order of the arguments, strides where the type leaves them open; scratch bytes.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[WORDS:.*]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %[[CTA:.*]]: i32, %[[SCRATCH:.*]]: !llvm.ptr
// CHECK-SAME: attn.smem = {{[0-9]+}} : i64
// CHECK-SAME: attn.words = [{kind = "pointer", operand = "q"}, {dim = 0 : i64, kind = "stride", operand = "q"}, {dim = 1 : i64, kind = "stride", operand = "q"},
// CHECK-SAME: {kind = "pointer", operand = "lse"}, {kind = "scale"}, {kind = "pointer", operand = "items"}, {kind = "pointer", operand = "cta_indptr"}]
// This CTA's items.
// CHECK: %[[CTAI:.*]] = arith.index_cast %[[CTA]] : i32 to index
// CHECK: scf.for
tile.kernel @rows(%q: !m {tile.arg = "q"}, %lse: memref<?xf32> {tile.arg = "lse"}, %scale: f32 {tile.arg = "scale"},
                  %items: !tile.items {tile.arg = "items"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%row0 = token0, %rows = rows, %head = head) in %items {
    %v = tile.view %q[%row0, %head] rows(%rows) : !m -> !v
    // Rows that exist are widened by shifting, the rest are zeros.
    // CHECK: arith.minsi
    // CHECK: scf.for
    // CHECK: llvm.load {{.*}} -> vector<8xi16>
    // CHECK: arith.extui {{.*}} : vector<8xi16> to vector<8xi32>
    // CHECK: arith.shli
    // CHECK: scf.for
    %t = tile.load %v[%c0] : !v -> !t
    // Four rows by two columns of sums.
    // CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
    // CHECK-COUNT-8: math.fma
    // CHECK-COUNT-7: arith.addf {{.*}} : vector<8xf32>
    %s = tile.dot %t, %t transpose_b : (!t, !t) -> !s
    // One nest for all three ops: nothing is stored but the row.
    // CHECK: scf.for
    // CHECK: math.exp2 {{.*}} : vector<8xf32>
    // CHECK-NOT: scf.for
    // CHECK: arith.select {{.*}} : vector<8xi1>, vector<8xf32>
    // CHECK-NOT: llvm.store {{.*}} : vector<8xf32>
    // CHECK: llvm.store {{.*}} : f32, !llvm.ptr
    %x = tile.map (%e = %s : !s) -> !s {
      %z = arith.mulf %e, %scale : f32
      %w = math.exp2 %z : f32
      tile.yield %w : f32
    }
    %y = tile.mask %x () at (%i, %j) zero : !s {
      %in = arith.cmpi sle, %j, %i : index
      tile.yield %in : i1
    }
    %l = tile.reduce addf %y dim 1 : !s -> !r
    %lv = tile.view %lse[%row0] rows(%rows) : memref<?xf32> -> !lv
    tile.store %l, %lv[%c0] : !r, !lv
  }
}

// A function that a kernel calls is emitted in place and goes.
// CHECK-NOT: @twice
// CHECK-LABEL: func.func @calls(
// CHECK: arith.addf {{.*}} : vector<8xf32>
func.func private @twice(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}
tile.kernel @calls(%lse: memref<?xf32> {tile.arg = "lse"}, %items: !tile.items {tile.arg = "items"})
    attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  tile.for_each (%row0 = token0, %rows = rows) in %items {
    %lv = tile.view %lse[%row0] rows(%rows) : memref<?xf32> -> !lv
    %a = tile.load %lv[%c0] : !lv -> !r
    %b = tile.map (%e = %a : !r) -> !r {
      %z = func.call @twice(%e) : (f32) -> f32
      tile.yield %z : f32
    }
    tile.store %b, %lv[%c0] : !r, !lv
  }
}

// Lookups become loops over the entries.
// CHECK-LABEL: func.func @lookups(
// CHECK: scf.for
// CHECK: %[[EXTENT:.*]]:2 = scf.for {{.*}} -> (i64, i64)
// CHECK: %[[ENTRY:.*]] = llvm.load {{.*}} : !llvm.ptr -> i8
// CHECK-NEXT: %[[WIDE:.*]] = arith.extsi %[[ENTRY]] : i8 to i64
// CHECK-NEXT: arith.minsi %{{.*}}, %[[WIDE]]
// CHECK-NEXT: arith.maxsi %{{.*}}, %[[WIDE]]
// CHECK: %[[LEAST:.*]] = arith.select %{{.*}}, %[[EXTENT]]#0, %{{.*}} : i64
// CHECK: %[[MOST:.*]] = arith.select %{{.*}}, %[[EXTENT]]#1, %{{.*}} : i64
// CHECK: scf.for {{.*}} -> (index, index, index, index, index)
// CHECK: llvm.load {{.*}} : !llvm.ptr -> i8
// CHECK: arith.cmpi {{.*}} %[[LEAST]] : i64
// CHECK-NOT: tile.
tile.kernel @lookups(%lse: memref<?xf32> {tile.arg = "lse"}, %items: !tile.items {tile.arg = "items"}, %doc: memref<?xi8> {tile.arg = "param:doc"})
    attributes {level = #tile.level<logical>} {
  tile.for_each (%row0 = token0, %rows = rows, %lo = klo, %hi = khi) in %items {
    %least, %most = tile.extent %doc[%lo to %hi] : memref<?xi8>
    %0:4 = tile.scan %doc[%row0] from %lo to %hi some outside(%least, %most) all(%most, %least) : memref<?xi8>
    %1 = arith.addi %0#0, %0#1 : index
    %2 = arith.addi %0#2, %0#3 : index
    %3 = arith.addi %1, %2 : index
    %lv = tile.view %lse[%3] rows(%rows) : memref<?xf32> -> !lv
    %a = tile.load %lv[%lo] : !lv -> !r
    tile.store %a, %lv[%hi] : !r, !lv
  }
}
