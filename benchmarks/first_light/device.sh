#!/usr/bin/env bash
# device.sh FOLDER [CHIP...]: what the tools of pack.sh do on this machine's GPU, as one table: every example variant and the numeric
# matrix against the reference, the Python tests on the device, compute-sanitizer on a sample, and three timings.
# FOLDER is that of pack.sh; CHIP defaults to sm_90a sm_80 (an sm_80 bundle runs on later machines by its PTX). About six minutes on 16 cores.
set -u
folder=$(cd "$1" && pwd)
shift
chips=("${@:-sm_90a}")
[ $# -gt 0 ] || chips=(sm_90a sm_80)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" && tar xf "$folder/libraries.tar.xz" && tar xf "$folder/tools.tar.xz" && cd attn-pack || exit 1
run=$PWD/bin/attn-run
inputs=$PWD/benchmarks/first_light/Inputs
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for name in decode-64x8k decode-16x1k prefill-2x8k; do
  echo "time $name: $(timeout 60 "$run" "$inputs/${name%%-*}.mlir" --batch="$inputs/$name.json" --device=cuda --iters=100 2>&1 | tail -1)"
done
for chip in "${chips[@]}"; do
  for variant in examples/variants/*.mlir; do
    name=$(basename "$variant" .mlir)
    (timeout 120 "$run" "$variant" --batch=examples/variants/Inputs/"$name".json --device=cuda --target="$chip" --check >"$work/$name.log" 2>&1
      echo "$chip $name: $(grep -E 'error|check|wrong' "$work/$name.log" | head -3 | cut -c1-160 | tr '\n' ' ')" >"$work/$name.line") &
  done
  wait
  cat "$work"/*.line
  for tool in memcheck racecheck synccheck; do
    echo "$chip $tool causal: $(LD_LIBRARY_PATH=$PWD/lib timeout 120 compute-sanitizer --tool $tool bin/real/attn-run examples/variants/causal.mlir \
      --batch=examples/variants/Inputs/causal.json --device=cuda --target="$chip" --check 2>&1 | grep -E 'SUMMARY|check ' | tr '\n' ' ')"
  done
  echo "$chip matrix: $(timeout 300 python3 test/Integration/matrix.py --tool "$run" --device cuda --target "$chip" --set pairwise --timeout 60 2>&1 |
    tee "$folder/matrix-$chip.log" | tail -1)"
done
echo "python: $(LD_LIBRARY_PATH=$PWD/lib ATTN_LIB_DIR=$PWD/lib PYTHONPATH=$PWD/python timeout 120 python3 -m pytest -q test/python/test_cuda.py 2>&1 | tail -1)"
