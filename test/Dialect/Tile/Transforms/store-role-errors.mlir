// RUN: attn-opt %s --tile-store-role --split-input-file --verify-diagnostics

// expected-error @+1 {{is of level logical, expected level specialized: run tile-warp-specialize first}}
tile.kernel @level() attributes {level = #tile.level<logical>} {
  tile.return
}
