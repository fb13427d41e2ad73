// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Types, then registers: every message of TileDialect.cpp and TileVerifyRegs.cpp.

// expected-error @+1 {{reg has rank 4, expected 1 to 3}}
func.func private @f(!tile.reg<2x2x8x8xf32>)

// -----
// expected-error @+1 {{reg has extent 0, expected 1 to 65536}}
func.func private @f(!tile.reg<0xf32>)

// -----
// expected-error @+1 {{reg has element type 'f64', expected a float of at most 32 bits, an integer or index}}
func.func private @f(!tile.reg<8xf64>)

// -----
// expected-error @+1 {{reg has layout 3 : i64, expected #tile.mma, #tile.operand, #tile.blocked or #tile.slice}}
func.func private @f(!tile.reg<8xf32, 3 : i64>)

// -----
// expected-error @+1 {{smem has element type 'index', expected a float or an integer of 8 to 32 bits}}
func.func private @f(!tile.smem<8xindex>)

// -----
// expected-error @+1 {{smem has layout 3 : i64, expected #tile.swizzle}}
func.func private @f(!tile.smem<8xf32, 3 : i64>)

// -----
// expected-error @+1 {{view has rank 3, expected 1 or 2}}
func.func private @f(!tile.view<?x8x8xf32>)

// -----
// expected-error @+1 {{view has a dynamic row length, expected a fixed one}}
func.func private @f(!tile.view<8x?xf32>)

// -----
// expected-error @+1 {{view is paged and packed, expected at most one}}
func.func private @f(!tile.view<?x8xf32, paged<4>, packed<4>>)

// -----
// expected-error @+1 {{view has a negative page size or packing factor}}
func.func private @f(!tile.view<?x8xf32, paged<-4>>)

// -----
// expected-error @+1 {{view has element type 'f64', expected a float, an integer or index}}
func.func private @f(!tile.view<?x8xf64>)

// -----
// expected-error @+1 {{expected 'paged' or 'packed', got 'sliced'}}
func.func private @f(!tile.view<?x8xf32, sliced<4>>)

// -----
// expected-error @+1 {{pipeline has 0 stages, expected 1 to 32}}
func.func private @f(!tile.pipeline<0 x !tile.smem<8xf32>>)

// -----
// expected-error @+1 {{pipeline has 33 words, expected 0 to 32}}
func.func private @f(!tile.pipeline<1 x !tile.smem<8xf32>, words = 33>)

// -----
func.func @f(%x: f16) {
  // expected-error @+1 {{splat_c1: 'value' has type 'f16', expected the element type of the result, 'f32'}}
  %0 = tile.splat %x : f16 -> !tile.reg<8xf32>
  return
}

// -----
func.func @f() {
  // expected-error @+1 {{map_c1: has no result}}
  "tile.map"() <{dims = [], operandSegmentSizes = array<i32: 0, 0>}> ({
    tile.yield
  }) : () -> ()
  return
}

// -----
func.func @f(%x: f32) {
  // expected-error @+1 {{map_c1: has explicit uniform operands; capture scalars in the body instead}}
  %0 = "tile.map"(%x) <{dims = [], operandSegmentSizes = array<i32: 0, 1>}> ({
    tile.yield %x : f32
  }) : (f32) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: f32) {
  // expected-error @+1 {{map_c1: has results of different shapes}}
  %0, %1 = tile.map () -> (!tile.reg<8xf32>, !tile.reg<16xf32>) {
    tile.yield %x, %x : f32, f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c2: has 0 entries in 'dims' for 1 inputs}}
  %0 = "tile.map"(%x) <{dims = [], operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    tile.yield %a : f32
  }) : (!tile.reg<8xf32>) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c2: 'dims' has 1 : i64, expected an array of i64}}
  %0 = "tile.map"(%x) <{dims = [1], operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    tile.yield %a : f32
  }) : (!tile.reg<8xf32>) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c3: input 0 has rank 1 but spans 2 dimensions}}
  %0 = tile.map (%a = %x[0, 1] : !tile.reg<8xf32>) -> !tile.reg<8x8xf32> {
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c4: input 0 spans dimension 2, expected increasing dimensions below 2}}
  %0 = tile.map (%a = %x[2] : !tile.reg<8xf32>) -> !tile.reg<8x8xf32> {
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>) {
  // expected-error @+1 {{map_c4: input 0 spans dimension 0, expected increasing dimensions below 2}}
  %0 = tile.map (%a = %x[1, 0] : !tile.reg<8x8xf32>) -> !tile.reg<8x8xf32> {
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<16xf32>) {
  // expected-error @+1 {{map_c5: input 0 has extent 16 where dimension 1 of the result has 8}}
  %0 = tile.map (%a = %x[1] : !tile.reg<16xf32>) -> !tile.reg<16x8xf32> {
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: f32) {
  // expected-error @+1 {{map_c6: has 1 body arguments, expected 0 scalars and 2 indices}}
  %0 = tile.map () at (%i) -> !tile.reg<8x8xf32> {
    tile.yield %x : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c6: body argument 0 has type 'f16', expected 'f32'}}
  %0 = "tile.map"(%x) <{dims = [array<i64>], operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f16):
    tile.yield %a : f16
  }) : (!tile.reg<8xf32>) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c7: has a body that does not end with tile.yield}}
  %0 = "tile.map"(%x) <{dims = [array<i64>], operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: f32):
    %c = arith.addf %a, %a : f32
  }) : (!tile.reg<8xf32>) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c8: has 'tile.splat' in its body, expected arith, math, scf, memref.load or a call}}
  %0 = tile.map (%a = %x : !tile.reg<8xf32>) -> !tile.reg<8xf32> {
    %1 = tile.splat %a : f32 -> !tile.reg<8xf32>
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>, %v: vector<8xf32>) {
  // expected-error @+1 {{map_c9: captures a value of type 'vector<8xf32>' in its body, expected scalars and memrefs}}
  %0 = tile.map (%a = %x : !tile.reg<8xf32>) -> !tile.reg<8xf32> {
    %1 = arith.addf %v, %v : vector<8xf32>
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c10: yields 2 values for 1 results}}
  %0 = tile.map (%a = %x : !tile.reg<8xf32>) -> !tile.reg<8xf32> {
    tile.yield %a, %a : f32, f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{map_c10: yields 'f32' for a result of element type 'f16'}}
  %0 = tile.map (%a = %x : !tile.reg<8xf32>) -> !tile.reg<8xf16> {
    tile.yield %a : f32
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>, %in: i1) {
  // expected-error @+1 {{mask_c1: has a result of type '!tile.reg<16xf32>', expected that of 'value', '!tile.reg<8xf32>'}}
  %0 = "tile.mask"(%x) <{dims = [], keys = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> ({
  ^bb0(%i: index):
    tile.yield %in : i1
  }) : (!tile.reg<8xf32>) -> !tile.reg<16xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xindex>, %in: i1) {
  // expected-error @+1 {{mask_c1: 'value' has element type 'index', expected a float}}
  %0 = tile.mask %x () at (%i) : !tile.reg<8xindex> {
    tile.yield %in : i1
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>, %q: !tile.reg<16xindex>, %in: i1) {
  // expected-error @+1 {{mask_c5: input 0 has extent 16 where dimension 0 of the result has 8}}
  %0 = tile.mask %x (%a = %q[0] : !tile.reg<16xindex>) at (%i, %j) : !tile.reg<8x8xf32> {
    tile.yield %in : i1
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>, %in: i1) {
  // expected-error @+1 {{mask_c6: has 1 body arguments, expected 0 scalars and 2 indices}}
  %0 = tile.mask %x () at (%i) : !tile.reg<8x8xf32> {
    tile.yield %in : i1
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>, %in: index) {
  // expected-error @+1 {{mask_c10: yields something else than one i1}}
  %0 = tile.mask %x () at (%i, %j) : !tile.reg<8x8xf32> {
    tile.yield %in : index
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>, %in: i1, %j: index) {
  // expected-error @+1 {{mask_c11: has part of an interval, expected 'key', 'lo' and 'hi' or none of them}}
  %0 = "tile.mask"(%x, %j) <{dims = [], keys = 8 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 0, 0>}> ({
  ^bb0(%i: index):
    tile.yield %in : i1
  }) : (!tile.reg<8xf32>, index) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>, %in: i1, %j: index) {
  // expected-error @+1 {{mask_c12: has keys 0, expected a positive number with an interval and 0 without}}
  %0 = tile.mask %x () at (%i) unless %j in [%j, %j) keys 0 : !tile.reg<8xf32> {
    tile.yield %in : i1
  }
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xindex>) {
  // expected-error @+1 {{reduce_c1: 'value' has element type 'index', expected a float}}
  %0 = tile.reduce addf %x dim 1 : !tile.reg<8x8xindex> -> !tile.reg<8xindex>
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>) {
  // expected-error @+1 {{reduce_c1: has a result of element type 'f16', expected 'f32'}}
  %0 = tile.reduce addf %x dim 1 : !tile.reg<8x8xf32> -> !tile.reg<8xf16>
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>, %i: !tile.reg<16xf32>) {
  // expected-error @+1 {{reduce_c2: 'init' has type '!tile.reg<16xf32>', expected that of the result, '!tile.reg<8xf32>'}}
  %0 = tile.reduce addf %x dim 1 init %i : !tile.reg<16xf32>, : !tile.reg<8x8xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>) {
  // expected-error @+1 {{reduce_c3: has a dimension with scope lanes, expected none}}
  %0 = tile.reduce addf %x dim 1 scope lanes : !tile.reg<8x8xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8xf32>) {
  // expected-error @+1 {{reduce_c3: with scope lanes expects a partial slice and the same slice without partial}}
  %0 = tile.reduce addf %x scope lanes : !tile.reg<8xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>) {
  // expected-error @+1 {{reduce_c4: has no dimension}}
  %0 = tile.reduce addf %x : !tile.reg<8x8xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8x8xf32>) {
  // expected-error @+1 {{reduce_c4: has dimension 2 of a value of rank 2, expected one below the rank of a value of rank 2 or 3}}
  %0 = tile.reduce addf %x dim 2 : !tile.reg<8x8xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8x16xf32>) {
  // expected-error @+1 {{reduce_c5: has a result of type '!tile.reg<8xf32>', expected the shape of 'value' without dimension 0}}
  %0 = tile.reduce addf %x dim 0 : !tile.reg<8x16xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<8x16xf32>) {
  // expected-error @+1 {{reduce_c6: with scope thread expects a result whose layout is the partial slice of the layout of 'value'}}
  %0 = tile.reduce addf %x dim 1 scope thread : !tile.reg<8x16xf32> -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16xf32>, %b: !tile.smem<16x8xf32>) {
  // expected-error @+1 {{dot_c1: has a result of rank 1, expected 2 or 3}}
  %0 = tile.dot %a, %b : (!tile.reg<16xf32>, !tile.smem<16x8xf32>) -> !tile.reg<8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16xf32>, %b: !tile.smem<16x8xf32>) {
  // expected-error @+1 {{dot_c1: 'a' has rank 1, expected 2 to the rank of the result, 2}}
  %0 = tile.dot %a, %b : (!tile.reg<16xf32>, !tile.smem<16x8xf32>) -> !tile.reg<8x8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf32>, %b: !tile.smem<16x8xf32>) {
  // expected-error @+1 {{dot_c2: has a batch dimension in the result that no operand has}}
  %0 = tile.dot %a, %b : (!tile.reg<16x16xf32>, !tile.smem<16x8xf32>) -> !tile.reg<2x16x8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf32>, %b: !tile.smem<4x16x8xf32>) {
  // expected-error @+1 {{dot_c2: 'b' has batch extent 4, expected 2}}
  %0 = tile.dot %a, %b : (!tile.reg<16x16xf32>, !tile.smem<4x16x8xf32>) -> !tile.reg<2x16x8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf32>, %b: !tile.smem<16x8xf32>) {
  // expected-error @+1 {{dot_c3: 'a' has 16 columns but 'b' has 8 on its contracted dimension}}
  %0 = tile.dot %a, %b transpose_b : (!tile.reg<16x16xf32>, !tile.smem<16x8xf32>) -> !tile.reg<16x8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf32>, %b: !tile.smem<16x8xf32>) {
  // expected-error @+1 {{dot_c4: has a result of 16x16, expected 16x8}}
  %0 = tile.dot %a, %b : (!tile.reg<16x16xf32>, !tile.smem<16x8xf32>) -> !tile.reg<16x16xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf32>, %b: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{dot_c5: has operands of element types 'f32' and 'f16', expected one float type}}
  %0 = tile.dot %a, %b : (!tile.reg<16x16xf32>, !tile.smem<16x8xf16>) -> !tile.reg<16x8xf32>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf16>, %b: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{dot_c5: has a result of element type 'f16', expected f32}}
  %0 = tile.dot %a, %b : (!tile.reg<16x16xf16>, !tile.smem<16x8xf16>) -> !tile.reg<16x8xf16>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf16>, %b: !tile.smem<16x8xf16>, %c: !tile.reg<8x8xf32>) {
  // expected-error @+1 {{dot_c6: 'acc' has type '!tile.reg<8x8xf32>', expected '!tile.reg<16x8xf32>'}}
  %0 = tile.dot %a, %b acc %c : (!tile.reg<16x16xf16>, !tile.smem<16x8xf16>, !tile.reg<8x8xf32>) -> !tile.reg<16x8xf32>
  return
}

// -----
#acc = #tile.mma<warps = [1, 1]>
func.func @f(%a: !tile.smem<16x16xf16>, %b: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{dot_c7: has a result of layout #tile.slice<dim = 1, parent = #tile.mma<warps = [1, 1]>>, expected #tile.mma}}
  %0 = tile.dot %a, %b : (!tile.smem<16x16xf16>, !tile.smem<16x8xf16>) -> !tile.reg<16x8xf32, #tile.slice<dim = 1, parent = #acc>>
  return
}

// -----
#acc = #tile.mma<warps = [1, 1]>
func.func @f(%a: !tile.reg<16x16xf16, #acc>, %b: !tile.smem<16x8xf16>) {
  // expected-error @+1 {{dot_c7: has a register operand whose layout is not #tile.operand of its place}}
  %0 = tile.dot %a, %b : (!tile.reg<16x16xf16, #acc>, !tile.smem<16x8xf16>) -> !tile.reg<16x8xf32, #acc>
  return
}

// -----
func.func @f(%a: !tile.reg<16x16xf16>, %b: !tile.reg<16x8xf16>) {
  // expected-error @+1 {{dot_c8: 'b' has type '!tile.reg<16x8xf16>', expected shared memory (only 'a' may come from registers)}}
  %0 = tile.dot_async %a, %b : (!tile.reg<16x16xf16>, !tile.reg<16x8xf16>) -> !tile.pending<!tile.reg<16x8xf32>>
  return
}

// -----
func.func @f(%p: !tile.pending<!tile.reg<16x8xf32>>) {
  // expected-error @+1 {{await_c1: has a result of type '!tile.reg<8x8xf32>', expected '!tile.reg<16x8xf32>'}}
  %0 = tile.await %p : !tile.pending<!tile.reg<16x8xf32>> -> !tile.reg<8x8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{slice_c1: has a result of type '!tile.reg<16x8xf16>', expected element type and rank of '!tile.reg<16x16xf32>'}}
  %0 = tile.slice %x [0, 8] : !tile.reg<16x16xf32> -> !tile.reg<16x8xf16>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{slice_c2: has 1 offsets for rank 2}}
  %0 = tile.slice %x [0] : !tile.reg<16x16xf32> -> !tile.reg<16x8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{slice_c3: takes 12 to 20 of dimension 1, which has 16}}
  %0 = tile.slice %x [0, 12] : !tile.reg<16x16xf32> -> !tile.reg<16x8xf32>
  return
}

// -----
#acc = #tile.mma<warps = [1, 1]>
func.func @f(%x: !tile.reg<16x16xf32, #acc>) {
  // expected-error @+1 {{slice_c4: cuts dimension 1 elsewhere than at a multiple of 8, which a layout cannot do}}
  %0 = tile.slice %x [0, 4] : !tile.reg<16x16xf32, #acc> -> !tile.reg<16x8xf32, #acc>
  return
}

// -----
#acc = #tile.mma<warps = [1, 1]>
func.func @f(%x: !tile.reg<16x16xf32, #acc>) {
  // expected-error @+1 {{slice_c5: has a result of another layout than its source}}
  %0 = tile.slice %x [0, 8] : !tile.reg<16x16xf32, #acc> -> !tile.reg<16x8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{concat_c1: has 1 inputs and dimension 2, expected inputs and a dimension below 2}}
  %0 = tile.concat %x dim 2 : !tile.reg<16x16xf32> -> !tile.reg<16x16xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{concat_c2: input 0 has type '!tile.reg<16x16xf32>', expected element type, rank and layout of '!tile.reg<16x16xf16>'}}
  %0 = tile.concat %x dim 1 : !tile.reg<16x16xf32> -> !tile.reg<16x16xf16>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{concat_c3: input 0 has extent 16 in dimension 0, expected 8}}
  %0 = tile.concat %x dim 1 : !tile.reg<16x16xf32> -> !tile.reg<8x16xf32>
  return
}

// -----
#acc = #tile.mma<warps = [1, 1]>
func.func @f(%x: !tile.reg<16x4xf32, #acc>) {
  // expected-error @+1 {{concat_c4: input 0 does not end at a multiple of 8, which a layout cannot do}}
  %0 = tile.concat %x, %x dim 1 : !tile.reg<16x4xf32, #acc>, !tile.reg<16x4xf32, #acc> -> !tile.reg<16x8xf32, #acc>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{concat_c5: has 32 elements along dimension 1, expected 48}}
  %0 = tile.concat %x, %x dim 1 : !tile.reg<16x16xf32>, !tile.reg<16x16xf32> -> !tile.reg<16x48xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{convert_layout_c1: changes '!tile.reg<16x16xf32>' into '!tile.reg<16x8xf32>', expected shape and element type to stay}}
  %0 = tile.convert_layout %x : !tile.reg<16x16xf32> -> !tile.reg<16x8xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x16xf32>) {
  // expected-error @+1 {{convert_layout_c2: has a type without layout}}
  %0 = tile.convert_layout %x : !tile.reg<16x16xf32> -> !tile.reg<16x16xf32>
  return
}

// -----
func.func @f(%x: !tile.reg<16x5xf32>) {
  // expected-error @+1 {{swap_pairs_c1: has 5 elements in its last dimension, expected an even number}}
  %0 = tile.swap_pairs %x : !tile.reg<16x5xf32>
  return
}

// -----
func.func @f(%p: !tile.pending<!tile.reg<16x8xf32>>, %s: !tile.reg<16xf32>) {
  // expected-error @+1 {{await_c2: stands after a value that is no sum of a thread's terms, expected a tile.reduce addf with scope thread}}
  %0 = tile.await %p after %s terms 1 : !tile.reg<16xf32>, : !tile.pending<!tile.reg<16x8xf32>> -> !tile.reg<16x8xf32>
  return
}

// -----
!s = !tile.reg<16x8xf32, #tile.mma<warps = [1, 1]>>
!part = !tile.reg<16xf32, #tile.slice<dim = 1, parent = #tile.mma<warps = [1, 1]>, partial = true>>
func.func @f(%p: !tile.pending<!s>, %w: !s) {
  %sum = tile.reduce addf %w dim 1 scope thread : !s -> !part
  // expected-error @+1 {{await_c3: stands after 0 terms, expected 1 or more}}
  %0 = tile.await %p after %sum terms 0 : !part, : !tile.pending<!s> -> !s
  return
}
