// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{pipeline is written as <stages x !tile.smem<...>>}}
func.func private @pipeline(!tile.pipeline<2 x f32>)

// -----

func.func @map_type(%a: f32) {
  // expected-error @+1 {{expected a !tile.reg type, got 'f32'}}
  %0 = tile.map arith.negf(%a : f32) -> !tile.reg<16xf32>
  return
}

// -----

func.func @map_op(%a: !tile.reg<16xf32>) {
  // expected-error @+1 {{unknown op 'arith.nothing' in the short form of tile.map}}
  %0 = tile.map arith.nothing(%a : !tile.reg<16xf32>) -> !tile.reg<16xf32>
  return
}
