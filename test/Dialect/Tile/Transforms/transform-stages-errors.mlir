// RUN: attn-opt %s --tile-transform-stages --verify-diagnostics

// expected-error@+1 {{has no config, expected an attribute 'config' of kind #attn.config}}
tile.kernel @no_config() attributes {level = #tile.level<logical>} {
  %c0 = arith.constant 0 : index
}

// expected-error@+1 {{is of level pipelined, expected level logical: it runs before layouts, pipelines and roles exist}}
tile.kernel @level() attributes {level = #tile.level<pipelined>, config = #attn.config<rows = 16, keys = 16>} {
  tile.return
}
