// RUN: attn-opt %s --convert-tile-to-cpu --split-input-file --verify-diagnostics

// expected-error @below {{expected a kernel of level logical; the host runs kernels before asynchrony is introduced}}
tile.kernel @level() attributes {level = #tile.level<pipelined>} {
  tile.return
}

// -----

// expected-error @below {{argument 0 has no role in the ABI; give it the attribute tile.arg}}
tile.kernel @role(%q: memref<?xf32>) attributes {level = #tile.level<logical>} {
}

// -----

// expected-error @below {{argument 0 has type 'memref<?xi4>', expected a strided buffer of numbers that the host path has}}
tile.kernel @buffer(%q: memref<?xi4> {tile.arg = "q"}) attributes {level = #tile.level<logical>} {
}

// -----

// expected-error @below {{argument 0 of role 'param:x' cannot have type 'f64'; scalars are f32, index, i32 or i64}}
tile.kernel @scalar(%x: f64 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
}

// -----

tile.kernel @source(%q: memref<?xf32> {tile.arg = "q"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'memref.cast' op is not supported in scalar code on the host path; use arith, math, scf, func.call and memref.load of the kernel's buffers}}
  %m = memref.cast %q : memref<?xf32> to memref<8xf32>
}

// -----

tile.kernel @element(%x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  %z = arith.constant 0 : i4
  // expected-error @below {{has a tile of element type 'i4', expected i1, i8, i16, i32, i64, index, bf16, f16, f8E4M3FN, f8E5M2 or f32 on the host path}}
  %t = tile.splat %z : i4 -> !tile.reg<8xi4>
}

// -----

tile.kernel @constant(%x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  // expected-error @below {{expected a scalar that the host path computes with, got 'vector<4xf32>'}}
  %z = arith.constant dense<0.0> : vector<4xf32>
}

// -----

tile.kernel @operand(%q: memref<?xf32> {tile.arg = "q"}, %x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  // expected-error @below {{has a result of type 'f128', which the host path does not compute with}}
  %z = arith.extf %x : f32 to f128
}

// -----

tile.kernel @store(%q: memref<?xf32> {tile.arg = "q"}, %x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'memref.store' op is not supported in scalar code on the host path}}
  memref.store %x, %q[%c0] : memref<?xf32>
}

// -----

tile.kernel @dim(%q: memref<?xf32> {tile.arg = "q"}, %i: index {tile.arg = "param:i"}) attributes {level = #tile.level<logical>} {
  // expected-error @below {{expected a constant dimension of an argument of the kernel}}
  %z = memref.dim %q, %i : memref<?xf32>
}

// -----

tile.kernel @mode(%x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  // expected-error @below {{rounds to nearest even on the host path; drop the rounding mode}}
  %z = arith.truncf %x toward_zero : f32 to bf16
}

// -----

func.func private @outside(f32) -> f32
tile.kernel @external(%x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  // expected-error @below {{calls 'outside', which has no body in this module; define it}}
  %z = func.call @outside(%x) : (f32) -> f32
}

// -----

func.func private @blocks(%x: f32) -> f32 {
  cf.br ^bb1
^bb1:
  return %x : f32
}
tile.kernel @several(%x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  // expected-error @below {{calls 'blocks', which has several blocks; use scf for control flow}}
  %z = func.call @blocks(%x) : (f32) -> f32
}

// -----

func.func private @again(%x: f32) -> f32 {
  // expected-error @below {{calls 'again', which calls itself; kernels cannot recurse}}
  %y = func.call @again(%x) : (f32) -> f32
  return %y : f32
}
tile.kernel @recursive(%x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  %z = func.call @again(%x) : (f32) -> f32
}

// -----

tile.kernel @carried(%q: memref<?xf32> {tile.arg = "q"}, %n: index {tile.arg = "param:n"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{cannot carry a value of type 'memref<?xf32>' on the host path; carry tiles and scalars}}
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%a = %q) -> (memref<?xf32>) {
    scf.yield %a : memref<?xf32>
  }
}

// -----

!s = !tile.smem<8x8xf32>
tile.kernel @shared(%q: memref<?x8xf32> {tile.arg = "q"}, %n: index {tile.arg = "param:n"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = tile.view %q[%c0] rows(%n) : memref<?x8xf32> -> !tile.view<?x8xf32>
  %t = tile.load %v[%c0] : !tile.view<?x8xf32> -> !s
  %r = tile.local_load %t : !s -> !tile.reg<8x8xf32>
  tile.local_store %r, %t : !tile.reg<8x8xf32>, !s
  // expected-error @below {{cannot carry shared memory through a loop beside tile.local_store; carry registers}}
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> (!s) {
    scf.yield %a : !s
  }
}

// -----

!s = !tile.smem<8x8xf32>
tile.kernel @shared_if(%q: memref<?x8xf32> {tile.arg = "q"}, %n: index {tile.arg = "param:n"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %v = tile.view %q[%c0] rows(%n) : memref<?x8xf32> -> !tile.view<?x8xf32>
  %t = tile.load %v[%c0] : !tile.view<?x8xf32> -> !s
  %r = tile.local_load %t : !s -> !tile.reg<8x8xf32>
  tile.local_store %r, %t : !tile.reg<8x8xf32>, !s
  %p = arith.cmpi eq, %n, %c0 : index
  // expected-error @below {{cannot yield shared memory beside tile.local_store; yield registers}}
  %m = scf.if %p -> (!s) {
    scf.yield %t : !s
  } else {
    scf.yield %t : !s
  }
}

// -----

!r = !tile.reg<8x8xf32>
tile.kernel @select(%x: f32 {tile.arg = "param:x"}, %n: index {tile.arg = "param:n"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %t = tile.splat %x : f32 -> !r
  %p = arith.cmpi eq, %n, %c0 : index
  // expected-error @below {{is not supported by the host path; kernels of level logical have views, loads, stores, dots, maps, masks, reductions, slices, concatenations and scf.for, scf.while and scf.if}}
  %m = arith.select %p, %t, %t : !r
}

// -----

tile.kernel @pad(%k: memref<?x40xf32> {tile.arg = "k"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x40xf32> -> !tile.view<?x40xf32>
  // expected-error @below {{pads rows of 40 to 48, which the host has no code for: it takes any head dim}}
  %x = tile.load %kv[%c0] : !tile.view<?x40xf32> -> !tile.reg<16x48xf32>
  tile.store %x, %kv[%c0] : !tile.reg<16x48xf32>, !tile.view<?x40xf32>
}

// -----

tile.kernel @cut(%k: memref<?x40xf32> {tile.arg = "k"}, %x: f32 {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
  %kv = tile.view %k[%c0] rows(%c0) : memref<?x40xf32> -> !tile.view<?x40xf32>
  %t = tile.splat %x : f32 -> !tile.reg<16x48xf32>
  // expected-error @below {{stores rows of 48 to rows of 40, which the host has no code for: it takes any head dim}}
  tile.store %t, %kv[%c0] : !tile.reg<16x48xf32>, !tile.view<?x40xf32>
}
