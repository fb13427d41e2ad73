#!/usr/bin/env bash
# build.sh BUILD FOLDER [WORD,...]: the candidates of cases.py (those whose names hold a WORD), compiled for sm_90a, and the tools
# with their libraries, as archives for device.sh on a machine with a GPU. No GPU needed here.
set -euo pipefail
build=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
names=$(python3 "$here/cases.py" "$work/in" ${3:+--only "$3"})
files=() batches=()
for name in $names; do
  files+=("$work/in/$name.mlir")
  batches+=("--batch=$work/in/$name.json")
done
"$build/bin/attn-tune" "${files[@]}" "${batches[@]}" --target=sm_90a --candidates="${CANDIDATES:-6}" --compile-only="$work/cases" | tee "$out/build.log"
tar -C "$work" -cf - cases | xz -T2 -3 >"$out/cases.tar.xz"
"$here/../first_light/pack.sh" "$build" "$out"
