// RUN: attn-opt %s --tile-stream-items --split-input-file --verify-diagnostics

// expected-error @+1 {{is of level logical, expected level specialized: run tile-warp-specialize first}}
tile.kernel @level() attributes {level = #tile.level<logical>} {
  tile.return
}

// -----
// expected-error @+1 {{has no role that loads and another that multiplies}}
tile.kernel @roles() attributes {level = #tile.level<specialized>} {
  tile.return
}
