// RUN: attn-opt %s --pass-pipeline='builtin.module(tile.kernel(attn-schedule-kernel))' --split-input-file --verify-diagnostics

// expected-error @+1 {{has no config, expected an attribute 'config' of kind #attn.config}}
tile.kernel @bare() attributes {level = #tile.level<logical>} {
  tile.return
}

// -----

// expected-error @+1 {{asks for tensor copies without consumers, expected consumers > 0 or load = gather}}
tile.kernel @copies() attributes {level = #tile.level<logical>, config = #attn.config<rows = 64, keys = 64, load = tma>} {
  tile.return
}
