// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Views, transfers, shared memory and pipelines: every message of TileVerifyMemory.cpp.

func.func @f(%m: memref<?x8xf32>, %i: index) {
  // expected-error @+1 {{view_c1: 'source' has element type 'f32', expected 'f16'}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x8xf32> -> !tile.view<?x8xf16>
  return
}

// -----
func.func @f(%m: memref<?x8xf32>, %p: memref<?xi32>, %i: index) {
  // expected-error @+1 {{view_c2: of pages has 1 offsets into rank 2, expected the head and (page, row in page, head, vector)}}
  %0 = tile.view %m[%i] rows(%i) pages(%p[%i] : memref<?xi32>) : memref<?x8xf32> -> !tile.view<?x8xf32, paged<4>>
  return
}

// -----
func.func @f(%m: memref<?x4x8xf32>, %i: index) {
  // expected-error @+1 {{view_c2: has 1 offsets into rank 3, expected one for each dimension but the vector's}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x4x8xf32> -> !tile.view<?x8xf32>
  return
}

// -----
func.func @f(%m: memref<?x8xf32>, %i: index) {
  // expected-error @+1 {{view_c2: packs heads into rows with 1 offsets, expected row and head}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x8xf32> -> !tile.view<?x8xf32, packed<4>>
  return
}

// -----
func.func @f(%m: memref<?x8x2x8xf32>, %p: memref<?xi32>, %i: index) {
  // expected-error @+1 {{view_c3: has pages of 4 rows, but those of 'source' have 8}}
  %0 = tile.view %m[%i] rows(%i) pages(%p[%i] : memref<?xi32>) : memref<?x8x2x8xf32> -> !tile.view<?x8xf32, paged<4>>
  return
}

// -----
func.func @f(%m: memref<?x4x2x8xf32>, %i: index) {
  // expected-error @+1 {{view_c4: is paged without 'pages'}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x4x2x8xf32> -> !tile.view<?x8xf32, paged<4>>
  return
}

// -----
func.func @f(%m: memref<?x8xf32>, %p: memref<?xi32>, %i: index) {
  // expected-error @+1 {{view_c4: has 'pages' but is not paged}}
  %0 = tile.view %m[%i] rows(%i) pages(%p[%i] : memref<?xi32>) : memref<?x8xf32> -> !tile.view<?x8xf32>
  return
}

// -----
func.func @f(%m: memref<?x4x2x8xf32>, %p: memref<?xf32>, %i: index) {
  // expected-error @+1 {{view_c5: 'pages' has type 'memref<?xf32>', expected a memref of rank 1 of i32 or i64}}
  %0 = tile.view %m[%i] rows(%i) pages(%p[%i] : memref<?xf32>) : memref<?x4x2x8xf32> -> !tile.view<?x8xf32, paged<4>>
  return
}

// -----
func.func @f(%m: memref<?x8xf32>, %i: index) {
  // expected-error @+1 {{view_c6: has 'rows' for a fixed number of rows}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x8xf32> -> !tile.view<16x8xf32>
  return
}

// -----
func.func @f(%m: memref<?x8xf32>, %i: index) {
  // expected-error @+1 {{view_c7: has rows of 16, but the last dimension of 'source' has 8}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x8xf32> -> !tile.view<?x16xf32>
  return
}

// -----
func.func @f(%m: memref<?x8xf32, strided<[?, ?]>>, %i: index) {
  // expected-error @+1 {{view_c8: 'source' has a last dimension that is not contiguous}}
  %0 = tile.view %m[%i] rows(%i) : memref<?x8xf32, strided<[?, ?]>> -> !tile.view<?x8xf32>
  return
}

// -----
func.func @f(%v: !tile.view<?x8xf32>, %i: index) {
  // expected-error @+1 {{load_c1: the result has element type 'f16', expected that of the view, 'f32'}}
  %0 = tile.load %v[%i] : !tile.view<?x8xf32> -> !tile.smem<16x8xf16>
  return
}

// -----
func.func @f(%v: !tile.view<?x8xf32>, %i: index) {
  // expected-error @+1 {{load_c2: the result has rank 1 for a view of rank 2, expected the same or one more}}
  %0 = tile.load %v[%i] : !tile.view<?x8xf32> -> !tile.smem<16xf32>
  return
}

// -----
func.func @f(%v: !tile.view<?x8xf32>, %i: index) {
  // expected-error @+1 {{load_c3: the result has rows of 4, expected at least 8}}
  %0 = tile.load %v[%i] : !tile.view<?x8xf32> -> !tile.smem<16x4xf32>
  return
}

// -----
func.func @f(%v: !tile.view<?x8xf32>, %i: index, %x: !tile.reg<16x8xf16>) {
  // expected-error @+1 {{store_c1: 'value' has element type 'f16', expected that of the view, 'f32'}}
  tile.store %x, %v[%i] : !tile.reg<16x8xf16>, !tile.view<?x8xf32>
  return
}

// -----
func.func @f(%x: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{local_load_c1: has '!tile.reg<8x8xf16>' and '!tile.smem<16x8xf16>', expected the same shape and element type}}
  %0 = tile.local_load %x : !tile.smem<16x8xf16> -> !tile.reg<8x8xf16>
  return
}

// -----
func.func @f(%x: !tile.smem<16x8xf16>, %r: !tile.reg<16x8xf32>) {
  // expected-error @+1 {{local_store_c1: has '!tile.reg<16x8xf32>' and '!tile.smem<16x8xf16>', expected the same shape and element type}}
  tile.local_store %r, %x : !tile.reg<16x8xf32>, !tile.smem<16x8xf16>
  return
}

// -----
func.func @f(%x: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{subview_c1: has a result of type '!tile.smem<8x8xf32>', expected element type and layout of '!tile.smem<16x8xf16>'}}
  %0 = tile.subview %x[0, 0] : !tile.smem<16x8xf16> -> !tile.smem<8x8xf32>
  return
}

// -----
func.func @f(%x: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{subview_c2: has 1 offsets for rank 2}}
  %0 = tile.subview %x[0] : !tile.smem<16x8xf16> -> !tile.smem<8x8xf16>
  return
}

// -----
func.func @f(%x: !tile.smem<16xf16>) {
  // expected-error @+1 {{subview_c3: has a result of higher rank than its source}}
  %0 = tile.subview %x[0] : !tile.smem<16xf16> -> !tile.smem<8x8xf16>
  return
}

// -----
func.func @f(%x: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{subview_c3: takes 12 to 20 of dimension 0, which has 16}}
  %0 = tile.subview %x[12, 0] : !tile.smem<16x8xf16> -> !tile.smem<8x8xf16>
  return
}

// -----
func.func @f(%x: !tile.smem<16xf16>, %i: index) {
  // expected-error @+1 {{fill_rows_c1: 'dest' has rank 1, expected rows}}
  tile.fill_rows %x from %i : !tile.smem<16xf16>
  return
}

// -----
func.func @f() {
  // expected-error @+1 {{pipeline_c1: has no producer or no consumer}}
  %0 = tile.pipeline consumers 0 : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f() {
  // expected-error @+1 {{pipeline_c2: has 2 producers, expected 1 where the slots are not chained}}
  %0 = tile.pipeline producers 2 : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f(%q: !tile.pipeline<2 x !tile.smem<8x8xf16>>) {
  // expected-error @+1 {{pipeline_c3: 'chain' is not a pipeline with memory of its own}}
  %0 = tile.pipeline chain %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f() {
  %q = tile.pipeline : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  // expected-error @+1 {{pipeline_c4: has 2 stages of 256 bytes in the slots of 2 stages of 128}}
  %0 = tile.pipeline chain %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> : !tile.pipeline<2 x !tile.smem<8x8xf32>>
  return
}

// -----
func.func @f() {
  %q = tile.pipeline consumers 2 : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  // expected-error @+1 {{pipeline_c5: has 1 producers, expected the 2 consumers of 'chain', who hand on its slots}}
  %0 = tile.pipeline chain %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f() {
  %q = tile.pipeline : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  // expected-error @+1 {{pipeline_c6: chains a pipeline that another one chains}}
  %0 = tile.pipeline chain %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  %1 = tile.pipeline chain %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f(%q: !tile.pipeline<2 x !tile.smem<8x8xf16>>) {
  // expected-error @+1 {{acquire_c1: has a slot of type '!tile.smem<8x8xf32>', expected that of the pipeline, '!tile.smem<8x8xf16>'}}
  %0 = tile.producer_acquire %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> -> !tile.smem<8x8xf32>
  return
}

// -----
func.func @f(%v: !tile.view<?x8xf16>, %i: index, %s: !tile.smem<8x8xf16>, %q: !tile.pipeline<2 x !tile.smem<8x8xf16>>) {
  // expected-error @+1 {{load_async_c4: 'slot' does not come from producer_acquire of the pipeline that it signals}}
  tile.load_async %v[%i] into %s signal %q : !tile.view<?x8xf16>, !tile.smem<8x8xf16>, !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f(%v: !tile.view<?x16xf16>, %i: index, %q: !tile.pipeline<2 x !tile.smem<8x8xf16>>) {
  %s = tile.producer_acquire %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> -> !tile.smem<8x8xf16>
  // expected-error @+1 {{load_async_c3: 'slot' has rows of 8, expected at least 16}}
  tile.load_async %v[%i] into %s signal %q : !tile.view<?x16xf16>, !tile.smem<8x8xf16>, !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
!t = !tile.smem<8x8xf16>
!p = !tile.pipeline<2 x !t>
tile.kernel @f(%k: memref<?x8xf16>) attributes {level = #tile.level<pipelined>} {
  %c0 = arith.constant 0 : index
  %p = tile.pipeline : !p
  %v = tile.view %k[%c0] : memref<?x8xf16> -> !tile.view<?x8xf16>
  %s = tile.producer_acquire %p : !p -> !t
  // expected-error @+1 {{load_async_c5: has 'tile.gather' at level pipelined, where every thread copies; expected it in roles only}}
  tile.load_async %v[%c0] into %s signal %p {tile.gather} : !tile.view<?x8xf16>, !t, !p
  %w = tile.consumer_wait %p : !p
  tile.consumer_release %p : !p
}

// -----
!t = !tile.smem<8x8xf16>
!p = !tile.pipeline<2 x !t>
func.func @f(%v: !tile.view<?x8xf16>, %i: index, %q: !p) {
  %s = tile.producer_acquire %q : !p -> !t
  // expected-error @+1 {{load_async_c6: has 'tile.gather', unlike another load of its pipeline}}
  tile.load_async %v[%i] into %s signal %q {tile.gather} : !tile.view<?x8xf16>, !t, !p
  %r = tile.producer_acquire %q : !p -> !t
  tile.load_async %v[%i] into %r signal %q : !tile.view<?x8xf16>, !t, !p
  return
}

// -----
!t = !tile.smem<8x8xf16>
!p = !tile.pipeline<2 x !t>
func.func @f(%v: !tile.view<?x8xf16>, %i: index, %q: !p) {
  %s = tile.producer_acquire %q : !p -> !t
  // expected-error @+1 {{load_async_c6: lacks 'tile.gather', unlike another load of its pipeline}}
  tile.load_async %v[%i] into %s signal %q : !tile.view<?x8xf16>, !t, !p
  %r = tile.producer_acquire %q : !p -> !t
  tile.load_async %v[%i] into %r signal %q {tile.gather} : !tile.view<?x8xf16>, !t, !p
  return
}

// -----
func.func @f(%i: index, %q: !tile.pipeline<2 x !tile.smem<8x8xf16>, words = 2>) {
  // expected-error @+1 {{send_c1: has 3 words, expected at most the 2 of the pipeline}}
  tile.send %q(%i, %i, %i) : !tile.pipeline<2 x !tile.smem<8x8xf16>, words = 2>
  return
}

// -----
func.func @f(%q: !tile.pipeline<2 x !tile.smem<8x8xf16>>) {
  // expected-error @+1 {{wait_c1: has a slot of type '!tile.smem<8x8xf32>', expected that of the pipeline, '!tile.smem<8x8xf16>'}}
  %0 = "tile.consumer_wait"(%q) : (!tile.pipeline<2 x !tile.smem<8x8xf16>>) -> !tile.smem<8x8xf32>
  return
}

// -----
func.func @f(%q: !tile.pipeline<2 x !tile.smem<8x8xf16>>) {
  // expected-error @+1 {{wait_c2: has 1 words, expected the 0 of the pipeline}}
  %0, %1 = "tile.consumer_wait"(%q) : (!tile.pipeline<2 x !tile.smem<8x8xf16>>) -> (!tile.smem<8x8xf16>, index)
  return
}

// -----
func.func @f(%q: !tile.pipeline<2 x !tile.smem<8x8xf16>, words = 1>) -> !tile.smem<8x8xf16> {
  // expected-error @+1 {{wait_c3: observes the pipeline, whose stages are others', and uses the slot}}
  %s, %w = tile.consumer_wait %q {observes} : !tile.pipeline<2 x !tile.smem<8x8xf16>, words = 1>
  return %s : !tile.smem<8x8xf16>
}

// -----
func.func @f(%t: memref<?xf32>, %i: index) {
  // expected-error @+1 {{extent_c1: has a table of type 'memref<?xf32>', expected a contiguous one-dimensional memref of i8, i32 or i64}}
  %a, %b = tile.extent %t[%i to %i] : memref<?xf32>
  return
}

// -----
func.func @f(%t: memref<?xi32, strided<[2]>>, %i: index) {
  // expected-error @+1 {{extent_c1: has a table of type 'memref<?xi32, strided<[2]>>', expected a contiguous}}
  %a, %b = tile.extent %t[%i to %i] : memref<?xi32, strided<[2]>>
  return
}

// -----
func.func @f(%t: memref<?xi16>, %i: index, %x: i64) {
  // expected-error @+1 {{scan_c1: has a table of type 'memref<?xi16>', expected a contiguous one-dimensional memref of i8, i32 or i64}}
  %0:4 = tile.scan %t[%i] from %i to %i some(%x, %x) all(%x, %x) : memref<?xi16>
  return
}

// -----
func.func @f(%t: memref<4x?xi32>, %i: index, %x: i64) {
  // expected-error @+1 {{scan_c1: has a table of type 'memref<4x?xi32>', expected a contiguous one-dimensional}}
  %0:4 = tile.scan %t[%i] from %i to %i some(%x, %x) all(%x, %x) : memref<4x?xi32>
  return
}

// -----
func.func @f() {
  %q = tile.pipeline : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  %o = tile.pipeline chain %q : !tile.pipeline<2 x !tile.smem<8x8xf16>> : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  // expected-error @+1 {{release_c1: of a pipeline whose slots are handed on; commit to the pipeline that chains it instead}}
  tile.consumer_release %q : !tile.pipeline<2 x !tile.smem<8x8xf16>>
  return
}

// -----
func.func @f(%v: !tile.view<?x8xf32>, %i: index, %s: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{store_async_c1: 'slot' has element type 'f16', expected that of the view, 'f32'}}
  tile.store_async %s, %v[%i] : !tile.smem<16x8xf16>, !tile.view<?x8xf32>
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t) {
  // expected-error @+1 {{transform_c1: has a result of type '!tile.smem<16x8xf16>' for a source of type '!tile.smem<16x16xf16>', expected the same shape of rank 2 or 3}}
  %h = tile.transform %s rows 8 : !t -> !tile.smem<16x8xf16> {
  ^bb0(%x: !tile.reg<8x16xf16>, %first: index):
    tile.yield %x : !tile.reg<8x16xf16>
  }
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t) {
  // expected-error @+1 {{transform_c2: takes 12 rows at a time, expected a number that divides 16}}
  %h = tile.transform %s rows 12 : !t -> !t {
  ^bb0(%x: !tile.reg<12x16xf16>, %first: index):
    tile.yield %x : !tile.reg<12x16xf16>
  }
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t) {
  // expected-note @+1 {{it is rewritten here}}
  %h = tile.transform %s rows 8 : !t -> !t {
  ^bb0(%x: !tile.reg<8x16xf16>, %first: index):
    tile.yield %x : !tile.reg<8x16xf16>
  }
  // expected-error @+1 {{transform_c3: uses a stage that has been rewritten, expected the result}}
  %r = tile.local_load %s : !t -> !tile.reg<16x16xf16>
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t) {
  // expected-error @+1 {{transform_c4: has other body arguments than the 8 rows and the number of the first one}}
  %h = tile.transform %s rows 8 : !t -> !t {
  ^bb0(%x: !tile.reg<16x16xf16>, %first: index):
    tile.yield %x : !tile.reg<16x16xf16>
  }
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t) {
  // expected-error @+1 {{transform_c5: has a body that does not end by yielding the 8 rows of the result}}
  %h = tile.transform %s rows 8 : !t -> !tile.smem<16x16xbf16> {
  ^bb0(%x: !tile.reg<8x16xf16>, %first: index):
    tile.yield %x : !tile.reg<8x16xf16>
  }
  return
}

// -----
#b = #tile.blocked<warps = [1, 1], columns = 16, rows = 8>
#c = #tile.blocked<warps = [1, 1], columns = 8, rows = 8>
!t = !tile.smem<16x16xf16, #tile.swizzle<32, panel = 16>>
func.func @f(%s: !t) {
  // expected-error @+1 {{transform_c5: yields rows of another layout than that of those it gets}}
  %h = tile.transform %s rows 8 : !t -> !t {
  ^bb0(%x: !tile.reg<8x16xf16, #b>, %first: index):
    %y = tile.convert_layout %x : <8x16xf16, #b> -> <8x16xf16, #c>
    tile.yield %y : !tile.reg<8x16xf16, #c>
  }
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t, %other: !tile.smem<8x16xf16>) {
  %h = tile.transform %s rows 8 : !t -> !t {
  ^bb0(%x: !tile.reg<8x16xf16>, %first: index):
    // expected-error @+1 {{transform_c6: may not stand in the body of a transform, expected arithmetic and ops on registers that keep rows apart}}
    %y = tile.local_load %other : !tile.smem<8x16xf16> -> !tile.reg<8x16xf16>
    tile.yield %y : !tile.reg<8x16xf16>
  }
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t, %y: !tile.reg<8x16xf16>) {
  %h = tile.transform %s rows 8 : !t -> !t {
  ^bb0(%x: !tile.reg<8x16xf16>, %first: index):
    // expected-error @+1 {{transform_c7: uses a tile from outside of the body, expected scalars and memrefs only}}
    tile.yield %y : !tile.reg<8x16xf16>
  }
  return
}

// -----
!t = !tile.smem<16x16xf16>
func.func @f(%s: !t, %d: !t) {
  // expected-error @+1 {{transform_c8: writes '!tile.smem<16x16xf16>' into '!tile.smem<16x16xf16>', expected a slot of the result's type, in a role, and a source of another}}
  %h = tile.transform %s rows 8 into %d : !t, : !t -> !t {
  ^bb0(%x: !tile.reg<8x16xf16>, %first: index):
    tile.yield %x : !tile.reg<8x16xf16>
  }
  return
}
