// RUN: attn-opt %s --tile-fold-scale --verify-diagnostics

// expected-error @+1 {{is of level pipelined, expected level logical: }}
tile.kernel @level() attributes {level = #tile.level<pipelined>} {
  tile.return
}
