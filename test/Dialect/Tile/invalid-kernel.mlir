// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Kernels, levels, roles and the rules R1 to R5 and R7: every message of TileVerifyKernel.cpp, TileVerifyAsync.cpp and
// of the items of TileOps.cpp.

// expected-error @+1 {{kernel_c1: has results, expected none: a kernel writes to its memrefs}}
"tile.kernel"() <{sym_name = "f", function_type = () -> i32, level = #tile.level<logical>}> ({
  "tile.return"() : () -> ()
}) : () -> ()

// -----
// expected-error @+1 {{kernel_c2: has 2 blocks, expected one: control flow is that of scf}}
tile.kernel @f() attributes {level = #tile.level<logical>} {
  tile.return
^bb1:
  tile.return
}

// -----
// expected-error @+1 {{kernel_c2: has a body that does not end with tile.return}}
"tile.kernel"() <{sym_name = "f", function_type = () -> (), level = #tile.level<logical>}> ({
  %0 = arith.constant 0 : index
}) : () -> ()

// -----
// expected-error @+1 {{kernel_c3: argument 0 has tile.arg = 3 : i64, expected a string}}
tile.kernel @f(%q: memref<?xf32> {tile.arg = 3 : i64}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{kernel_c3: argument 0 has the unknown role 'queries', expected a role of the ABI or param:NAME}}
tile.kernel @f(%q: memref<?xf32> {tile.arg = "queries"}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{kernel_c4: has two arguments of role 'q'}}
tile.kernel @f(%q: memref<?xf32> {tile.arg = "q"}, %r: memref<?xf32> {tile.arg = "q"}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{kernel_c5: argument 0 of role 'items' has type 'memref<?xf32>', expected !tile.items}}
tile.kernel @f(%q: memref<?xf32> {tile.arg = "items"}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{kernel_c5: argument 0 of role 'scale' has type 'index', expected f32}}
tile.kernel @f(%q: index {tile.arg = "scale"}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{kernel_c5: argument 0 of role 'q' has type 'index', expected a memref}}
tile.kernel @f(%q: index {tile.arg = "q"}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{kernel_c5: argument 0 of role 'param:x' has type '!tile.items', expected a memref or a scalar}}
tile.kernel @f(%q: !tile.items {tile.arg = "param:x"}) attributes {level = #tile.level<logical>} {
}

// -----
// expected-error @+1 {{expected attribute 'level', for example #tile.level<logical>}}
tile.kernel @f() {
  tile.return
}

// -----
tile.kernel @f(%items: !tile.items) attributes {level = #tile.level<logical>} {
  // expected-error @+1 {{unknown item field 'keys', see AttnWorkItem in the ABI header}}
  tile.for_each (%a = keys) in %items {
  }
}

// -----
tile.kernel @f(%items: !tile.items) attributes {level = #tile.level<logical>} {
  // expected-error @+1 {{item field 'rows' is named twice}}
  tile.for_each (%a = rows, %b = rows) in %items {
  }
}

// -----
tile.kernel @f(%items: !tile.items) attributes {level = #tile.level<logical>} {
  // expected-error @+1 {{has 0 arguments for 1 fields}}
  "tile.for_each"(%items) <{fields = ["rows"]}> ({
    tile.yield
  }) : (!tile.items) -> ()
}

// -----
tile.kernel @f(%items: !tile.items) attributes {level = #tile.level<specialized>} {
  // expected-error @+1 {{has 0 values for 1 fields}}
  %0 = "tile.next_item"(%items) <{fields = ["rows"]}> : (!tile.items) -> i1
}

// -----
tile.kernel @f() attributes {level = #tile.level<logical>} {
  // expected-error @+1 {{level_c1: may not appear in a kernel of level logical, expected level pipelined or later}}
  %0 = tile.pipeline : !tile.pipeline<2 x !tile.smem<8x8xf16>>
}

// -----
tile.kernel @f() attributes {level = #tile.level<pipelined>} {
  // expected-error @+1 {{level_c1: may not appear in a kernel of level pipelined, expected level specialized}}
  tile.roles {
    tile.role @a warps(1) {
    }
  }
}

// -----
#acc = #tile.mma<warps = [1, 1]>
tile.kernel @f(%x: f32) attributes {level = #tile.level<logical>} {
  // expected-note @+1 {{this op has a layout}}
  %0 = tile.splat %x : f32 -> !tile.reg<16x8xf32, #acc>
  // expected-error @+1 {{R5: has a type without layout in a kernel with layouts}}
  %1 = tile.splat %x : f32 -> !tile.reg<16x8xf32>
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  tile.roles {
    // expected-error @+1 {{role_c1: has 9 groups of 4 warps, expected 1 to 32 warps}}
    tile.role @a warps(4) groups(9) (%g) {
    }
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  tile.roles {
    // expected-error @+1 {{role_c2: has 0 arguments for 2 groups, expected one index when there are several groups and none else}}
    tile.role @a warps(4) groups(2) {
    }
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  tile.roles {
    // expected-error @+1 {{role_c3: asks for 20 registers, expected a multiple of 8 from 24 to 256}}
    tile.role @a warps(4) registers(20) {
    }
  }
}

// -----
tile.kernel @f(%x: f32) attributes {level = #tile.level<specialized>} {
  %0 = tile.splat %x : f32 -> !tile.reg<16x8xf32>
  tile.roles {
    tile.role @a warps(4) {
      // expected-error @+1 {{R7: uses a value of type '!tile.reg<16x8xf32>' from outside of its role, expected scalars, memrefs, views and pipelines only}}
      %1 = tile.reduce addf %0 dim 1 : !tile.reg<16x8xf32> -> !tile.reg<16xf32>
    }
  }
}

// -----
tile.kernel @f(%c: i1) attributes {level = #tile.level<specialized>} {
  scf.if %c {
    // expected-error @+1 {{roles_c1: is not at the top of a kernel}}
    tile.roles {
      tile.role @a warps(4) {
      }
    }
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  // expected-error @+1 {{roles_c1: stands beside another roles op}}
  tile.roles {
    tile.role @a warps(4) {
    }
  }
  tile.roles {
    tile.role @a warps(4) {
    }
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  tile.roles {
    // expected-error @+1 {{roles_c2: stands between roles, expected tile.role}}
    %0 = arith.constant 0 : index
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  tile.roles {
    tile.role @a warps(4) {
    }
    // expected-error @+1 {{roles_c2: has a name that another role has}}
    tile.role @a warps(4) {
    }
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  // expected-error @+1 {{roles_c2: has no roles}}
  tile.roles {
  }
}

// -----
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  // expected-error @+1 {{roles_c3: has 36 warps in all, expected at most 32}}
  tile.roles {
    tile.role @a warps(32) {
    }
    tile.role @b warps(4) {
    }
  }
}

// -----
!s = !tile.smem<8x8xf16>
!p = !tile.pipeline<2 x !s>
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  %p = tile.pipeline : !p
  %0 = tile.producer_acquire %p : !p -> !s
  // expected-error @+1 {{roles_c4: uses a pipeline outside of the roles}}
  tile.commit %p : !p
  tile.roles {
    tile.role @a warps(4) {
      %1 = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----
!s = !tile.smem<8x8xf16>
!p = !tile.pipeline<2 x !s>
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  // expected-error @+1 {{roles_c5: says that 1 groups fill it, but 0 do}}
  %p = tile.pipeline : !p
  tile.roles {
    tile.role @a warps(4) {
      %1 = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----
!s = !tile.smem<8x8xf16>
!p = !tile.pipeline<2 x !s>
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  // expected-error @+1 {{roles_c6: says that 1 groups give its stages back, but 2 do}}
  %p = tile.pipeline : !p
  tile.roles {
    tile.role @a warps(1) {
      %0 = tile.producer_acquire %p : !p -> !s
      tile.commit %p : !p
    }
    tile.role @b warps(4) groups(2) (%g) {
      %1 = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}

// -----
!b = !tile.smem<16x8xf16>
!a = !tile.reg<16x16xf16>
!pend = !tile.pending<!tile.reg<16x8xf32>>
tile.kernel @f(%c: i1) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !tile.pipeline<1 x !b>
  %x = arith.constant 0.0 : f16
  %a = tile.splat %x : f16 -> !a
  %s = tile.producer_acquire %p : !tile.pipeline<1 x !b> -> !b
  // expected-error @+1 {{R1: has 2 uses of its pending accumulator, expected one}}
  %0 = tile.dot_async %a, %s : (!a, !b) -> !pend
  %1 = tile.await %0 : !pend -> !tile.reg<16x8xf32>
  %2 = tile.await %0 : !pend -> !tile.reg<16x8xf32>
  tile.commit %p : !tile.pipeline<1 x !b>
}

// -----
!b = !tile.smem<16x8xf16>
!a = !tile.reg<16x16xf16>
!pend = !tile.pending<!tile.reg<16x8xf32>>
tile.kernel @f(%c: i1) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !tile.pipeline<1 x !b>
  %x = arith.constant 0.0 : f16
  %a = tile.splat %x : f16 -> !a
  %s = tile.producer_acquire %p : !tile.pipeline<1 x !b> -> !b
  %0 = tile.dot_async %a, %s : (!a, !b) -> !pend
  scf.if %c {
    // expected-error @+1 {{R1: uses a pending accumulator that this block has not issued}}
    %2 = tile.await %0 : !pend -> !tile.reg<16x8xf32>
  }
  tile.commit %p : !tile.pipeline<1 x !b>
}

// -----
!b = !tile.smem<16x8xf16>
!a = !tile.reg<16x16xf16>
!pend = !tile.pending<!tile.reg<16x8xf32>>
tile.kernel @f(%c: i1) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !tile.pipeline<1 x !b>
  %x = arith.constant 0.0 : f16
  %a = tile.splat %x : f16 -> !a
  %s = tile.producer_acquire %p : !tile.pipeline<1 x !b> -> !b
  %0 = tile.dot_async %a, %s : (!a, !b) -> !pend
  // expected-error @+1 {{R1: uses a pending accumulator, which only tile.await and tile.dot_async may}}
  %2 = builtin.unrealized_conversion_cast %0 : !pend to i32
  tile.commit %p : !tile.pipeline<1 x !b>
}

// -----
!b = !tile.smem<16x8xf16>
!a = !tile.reg<16x16xf16>
!pend = !tile.pending<!tile.reg<16x8xf32>>
tile.kernel @f(%c: i1) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !tile.pipeline<1 x !b>
  %x = arith.constant 0.0 : f16
  %a = tile.splat %x : f16 -> !a
  %s = tile.producer_acquire %p : !tile.pipeline<1 x !b> -> !b
  // expected-note @+1 {{this one was issued before}}
  %0 = tile.dot_async %a, %s : (!a, !b) -> !pend
  %1 = tile.dot_async %a, %s : (!a, !b) -> !pend
  // expected-error @+1 {{R1: waits for an accumulator before an older one, expected issue order}}
  %2 = tile.await %1 : !pend -> !tile.reg<16x8xf32>
  %3 = tile.await %0 : !pend -> !tile.reg<16x8xf32>
  tile.commit %p : !tile.pipeline<1 x !b>
}

// -----
!b = !tile.smem<16x8xf16>
!p = !tile.pipeline<2 x !b>
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  %p = tile.pipeline : !p
  tile.roles {
    tile.role @a warps(1) {
      %0 = tile.producer_acquire %p : !p -> !b
      tile.commit %p : !p
    }
    tile.role @b warps(4) {
      %1 = tile.consumer_wait %p : !p
      %part = tile.subview %1[0, 0] : !b -> !tile.smem<8x8xf16>
      // expected-note @+1 {{the slot is released here}}
      tile.consumer_release %p : !p
      // expected-error @+1 {{R2: uses a slot after its release}}
      %2 = tile.local_load %part : !tile.smem<8x8xf16> -> !tile.reg<8x8xf16>
    }
  }
}

// -----
!b = !tile.smem<16x8xf16>
!a = !tile.reg<16x16xf16>
!pend = !tile.pending<!tile.reg<16x8xf32>>
!p = !tile.pipeline<2 x !b>
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  %p = tile.pipeline : !p
  tile.roles {
    tile.role @a warps(1) {
      %0 = tile.producer_acquire %p : !p -> !b
      tile.commit %p : !p
    }
    tile.role @b warps(4) {
      %x = arith.constant 0.0 : f16
      %a = tile.splat %x : f16 -> !a
      %1 = tile.consumer_wait %p : !p
      // expected-error @+1 {{R2: reads a slot that is released before the product has been awaited}}
      %2 = tile.dot_async %a, %1 : (!a, !b) -> !pend
      // expected-note @+1 {{the slot is released here}}
      tile.consumer_release %p : !p
      %3 = tile.await %2 : !pend -> !tile.reg<16x8xf32>
    }
  }
}

// -----
!b = !tile.smem<16x8xf16>
!a = !tile.reg<16x16xf16>
!c = !tile.reg<16x8xf32>
!p = !tile.pipeline<2 x !b>
tile.kernel @f(%lo: index, %hi: index, %step: index) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !p
  %x = arith.constant 0.0 : f16
  %a0 = tile.splat %x : f16 -> !a
  %r = scf.for %i = %lo to %hi step %step iter_args(%a = %a0) -> (!a) {
    %s = tile.consumer_wait %p : !p
    // expected-note @+1 {{this product reads them}}
    %pend = tile.dot_async %a, %s : (!a, !b) -> !tile.pending<!c>
    // expected-error @+1 {{R3: computes the next value of registers that a product in flight still reads; move it behind the await}}
    %n = tile.map arith.addf(%a : !a, %a : !a) -> !a
    %c = tile.await %pend : !tile.pending<!c> -> !c
    tile.consumer_release %p : !p
    scf.yield %n : !a
  }
}

// -----
!b = !tile.smem<16x8xf16>
!p = !tile.pipeline<2 x !b>
tile.kernel @f(%c: i1) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !p
  %s = tile.consumer_wait %p : !p
  // expected-error @+1 {{R4: leaves different numbers of stages acquired or waited for on its two paths}}
  scf.if %c {
    tile.consumer_release %p : !p
  }
}

// -----
!b = !tile.smem<16x8xf16>
!p = !tile.pipeline<2 x !b>
tile.kernel @f(%lo: index, %hi: index, %step: index) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !p
  // expected-error @+1 {{R4: does not give back in each iteration as many stages as it takes}}
  scf.for %i = %lo to %hi step %step {
    %s = tile.consumer_wait %p : !p
  }
}

// -----
!b = !tile.smem<16x8xf16>
!p = !tile.pipeline<2 x !b>
tile.kernel @f(%c: i1) attributes {level = #tile.level<pipelined>} {
  %p = tile.pipeline : !p
  // expected-error @+1 {{R4: does not give back in each iteration as many stages as it takes}}
  scf.while : () -> () {
    %s = tile.consumer_wait %p : !p
    scf.condition(%c)
  } do {
    scf.yield
  }
}

// -----
!b = !tile.smem<16x8xf16>
!p = !tile.pipeline<2 x !b>
// expected-error @+1 {{R4: acquires and fills different numbers of stages of a pipeline}}
tile.kernel @f() attributes {level = #tile.level<pipelined>} {
  // expected-note @+1 {{the pipeline is this one}}
  %p = tile.pipeline : !p
  %s = tile.producer_acquire %p : !p -> !b
}

// -----
!b = !tile.smem<16x8xf16>
!p = !tile.pipeline<2 x !b>
tile.kernel @f() attributes {level = #tile.level<specialized>} {
  // expected-note @+1 {{the pipeline is this one}}
  %p = tile.pipeline : !p
  tile.roles {
    tile.role @a warps(1) {
      %0 = tile.producer_acquire %p : !p -> !b
      tile.commit %p : !p
    }
    // expected-error @+1 {{R4: waits for and gives back different numbers of stages of a pipeline}}
    tile.role @b warps(4) {
      %1 = tile.consumer_wait %p : !p
      %2 = tile.consumer_wait %p : !p
      tile.consumer_release %p : !p
    }
  }
}
