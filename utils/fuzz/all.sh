#!/usr/bin/env bash
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Mutated inputs through attn-opt and all its pipelines and passes; findings are kept in OUT.
#   utils/fuzz/all.sh [COUNT [SEED [OUT]]]      (2000, 1, fuzz-findings; JOBS in the environment, 1)
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
front80="--attn-select-config=target=sm_80 --attn-to-tile" front90="--attn-select-config=target=sm_90a --attn-to-tile"
tile="canonicalize,cse,tile-assign-layouts,tile-defer-sums,tile-skew-dots,tile-peel-masks"
lines=(
  ""
  "--attn-front-pipeline"
  "--attn-front-pipeline --attn-host-pipeline=width=8"
  "$front80 --attn-gpu-pipeline=chip=sm_80"
  "$front90 --attn-gpu-pipeline=chip=sm_90a"
  "--attn-gpu-pipeline=chip=sm_80"
  "--attn-gpu-pipeline=chip=sm_90a"
  "--attn-host-pipeline=width=4"
  "--convert-tile-to-cpu=width=16"
  "--attn-host-lowering-pipeline"
  "--convert-tile-to-gpu=chip=sm_90a"
  "--pass-pipeline=builtin.module(tile.kernel($tile,tile-multibuffer,tile-allocate-shared))"
  "--pass-pipeline=builtin.module(attn-select-config{target=sm_90a},attn-to-tile,tile.kernel($tile,tile-warp-specialize,tile-allocate-shared),convert-tile-to-gpu{chip=sm_90a})"
  "--attn-mask-range --canonicalize --cse"
  "--attn-check-range=max-keys=5"
  "--attn-legalize-math=target=host"
  "--attn-legalize-math=target=gpu --canonicalize"
  "--one-shot-bufferize"
)
args=()
for line in "${lines[@]}"; do args+=("--args=$line"); done
exec python3 utils/fuzz/mutate.py --tool "${ATTN_OPT:-build/bin/attn-opt}" --generic --count "${1:-2000}" --seed "${2:-1}" \
  --out "${3:-fuzz-findings}" --timeout "${TIMEOUT:-60}" --jobs "${JOBS:-1}" "${args[@]}" examples/variants test/Kernels test/Dialect \
  test/Conversion test/Interpreter
