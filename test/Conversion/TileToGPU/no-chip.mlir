// RUN: attn-opt %s --convert-tile-to-gpu --verify-diagnostics

// expected-error @+1 {{has no target and the pass no 'chip'; name a machine in one of them, for example sm_80}}
tile.kernel @bare() attributes {level = #tile.level<logical>, tile.shared_bytes = 0} {
  tile.return
}
