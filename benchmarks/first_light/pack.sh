#!/usr/bin/env bash
# pack.sh BUILD FOLDER: the tools with every library they need beyond glibc, and the test inputs, as two archives that run on
# another x86-64 Linux machine: tar xf libraries.tar.xz && tar xf tools.tar.xz && attn-pack/bin/attn-run ...
# libraries.tar.xz (LLVM, MLIR and what they need, about 45 MB) is kept when it is there already.
set -euo pipefail
build=$1 out=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# LLVM links libxml2 (with 31 MB of ICU) and z3, which nothing here calls: stubs with the same symbol versions stand in for them.
stub() { # stub FOLDER SONAME PATTERN
  local symbols=$work/symbols script=$work/script.map source=$work/stub.c
  objdump -T "$1"/libLLVM.so.* | grep -E "[( ]$3" | awk '{v = $(NF-1); gsub(/[()]/, "", v); print v, $NF}' | sort -u >"$symbols"
  awk '{print "void " $2 "(void) { __builtin_trap(); }"}' "$symbols" >"$source"
  awk '$1 != "Base" {names[$1] = names[$1] " " $2 ";"} END {for (v in names) print v " { global:" names[v] " };"}' "$symbols" >"$script"
  rm -f "$1/$2"
  gcc -shared -fPIC -w -o "$1/$2" -Wl,-soname,"$2" $([ -s "$script" ] && echo "-Wl,--version-script=$script") "$source"
}

if [ ! -e "$out/libraries.tar.xz" ]; then
  libraries=$work/libraries/attn-pack/lib
  mkdir -p "$libraries"
  for file in "$build"/bin/attn-{opt,compile,run,tune} "$build"/lib/libAttn*.so; do
    ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
  done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libresolv|libutil|libAttn[A-Za-z]*|libicu[a-z]*)\.so' |
    while read -r library; do cp -L "$library" "$libraries/"; done
  stub "$libraries" libxml2.so.2 'LIBXML2'
  stub "$libraries" libz3.so.4 'Base +Z3_'
  strip --strip-unneeded "$libraries"/* 2>/dev/null || true
  tar -C "$work/libraries" -cf - attn-pack | xz -T2 "-${XZ_LEVEL:-6}" >"$out/libraries.tar.xz"
fi

pack=$work/tools/attn-pack
mkdir -p "$pack/bin/real" "$pack/lib"
cp "$build"/lib/libAttn*.so* "$pack/lib/"
for tool in attn-opt attn-compile attn-run attn-tune; do # each finds its libraries beside it
  cp "$build/bin/$tool" "$pack/bin/real/"
  printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nLD_LIBRARY_PATH="$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/real/%s" "$@"\n' $tool >"$pack/bin/$tool"
  chmod +x "$pack/bin/$tool"
done
strip --strip-unneeded "$pack"/lib/*.so* "$pack"/bin/real/* 2>/dev/null || true
cp -r "$root/examples" "$root/test" "$root/benchmarks" "$root/python" "$pack/"
tar -C "$work/tools" -cf - attn-pack | xz -T2 -3 >"$out/tools.tar.xz"
ls -l "$out"
