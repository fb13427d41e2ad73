// RUN: attn-opt %s --tile-transform-stages --verify-diagnostics

// expected-error@+1 {{has no config, expected an attribute 'config' of kind #attn.config}}
tile.kernel @no_config() attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
}
