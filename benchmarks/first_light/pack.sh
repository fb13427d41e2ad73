#!/usr/bin/env bash
# pack.sh BUILD OUT.tar.xz: the tools with every library they need beyond glibc, and the test inputs, as one archive that runs on
# another x86-64 Linux machine: tar xf OUT.tar.xz && attn-pack/bin/attn-run ...
set -euo pipefail
build=$1 out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pack=$work/attn-pack
mkdir -p "$pack/bin" "$pack/lib"
for tool in attn-opt attn-compile attn-run; do cp "$build/bin/$tool" "$pack/bin/"; done
cp "$build"/lib/libAttn*.so "$pack/lib/"
for file in "$pack"/bin/* "$pack"/lib/*.so; do
  LD_LIBRARY_PATH=$pack/lib:/usr/lib/llvm-22/lib ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libresolv|libutil)\.so' | while read -r library; do
  [ -e "$pack/lib/$(basename "$library")" ] || cp -L "$library" "$pack/lib/"
done
cp -r "$root/examples" "$root/test" "$root/benchmarks" "$root/python" "$pack/"
strip --strip-unneeded "$pack"/lib/*.so* "$pack"/bin/* 2>/dev/null || true
# The tools find their libraries beside them.
mkdir "$pack/bin/real"
for tool in attn-opt attn-compile attn-run; do
  mv "$pack/bin/$tool" "$pack/bin/real/"
  printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nLD_LIBRARY_PATH="$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/real/%s" "$@"\n' $tool >"$pack/bin/$tool"
  chmod +x "$pack/bin/$tool"
done
mkdir -p "$(dirname "$out")"
tar -C "$work" -cf - attn-pack | xz -T0 -3 >"$out"
ls -l "$out"
