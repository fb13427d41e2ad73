#!/usr/bin/env bash
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Mutated batch files through attn-run --check, COUNT for each variant of examples/variants; findings are kept in OUT.
#   utils/fuzz/batches.sh [COUNT [SEED [OUT]]]      (50, 1, fuzz-findings; JOBS in the environment, 1)
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
status=0
for ir in examples/variants/*.mlir; do
  name=$(basename "$ir" .mlir)
  echo "$name"
  python3 utils/fuzz/mutate.py --tool "${ATTN_RUN:-build/bin/attn-run}" --suffix .json --args="$ir --batch={} --device=cpu --check" \
    --count "${1:-50}" --seed "${2:-1}" --out "${3:-fuzz-findings}/$name" --timeout "${TIMEOUT:-60}" --memory 4096 --jobs "${JOBS:-1}" \
    "examples/variants/Inputs/$name.json" || status=1
done
exit $status
