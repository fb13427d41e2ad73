// RUN: attn-opt %s --tile-fold-scale --verify-diagnostics

// expected-error @+1 {{is not of level logical}}
tile.kernel @level() attributes {level = #tile.level<pipelined>} {
  tile.return
}
