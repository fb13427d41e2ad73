#!/usr/bin/env bash
# Part of attn-mlir, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The rules of the house that a script can check; --fix formats instead of complaining about format. Prints one line per
# finding (file:line: rule) and exits with 1 when there is any.
#   utils/lint.sh [--fix] [--no-format] [--root DIR] [FILE...]
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fix=0 format=1 files=()
while [ $# -gt 0 ]; do
  case $1 in
    --fix) fix=1 ;;
    --no-format) format=0 ;;
    --root) root=$(cd "$2" && pwd) || exit 2; shift ;;
    -h | --help) sed -n '5,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "lint: unknown option $1; known: --fix, --no-format, --root DIR" >&2; exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done
cd "$root" || exit 2

if [ ${#files[@]} -eq 0 ]; then
  if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
    mapfile -t files < <(git ls-files --cached --others --exclude-standard | sort -u)
  else
    mapfile -t files < <(find . -type f -not -path './build*' -not -path './.git/*' | sed 's|^\./||' | sort)
  fi
fi

found=0
say() { echo "$1"; found=1; }

sources=()
for file in "${files[@]}"; do
  [ -f "$file" ] || continue
  case $file in
    */Inputs/* | LICENSE) continue ;;
  esac

  # Sources and scripts: length and header.
  case $file in
    *.cpp | *.h | *.td | *.c | *.py | *.sh | *.cmake | */CMakeLists.txt | CMakeLists.txt | *.mlir)
      lines=$(wc -l <"$file")
      [ "$lines" -le 800 ] || say "$file:801: $lines lines, at most 800; split it by concern"
      ;;
  esac
  case $file in
    *.cpp | *.h | *.td | *.c)
      name=${file##*/}
      if [ "$file" != lib/PCH.h ] && [ "$file" != lib/PCH.cpp ]; then
        first=$(head -n 1 "$file")
        case $first in
          "//===- $name - "*"===//") ;;
          *) say "$file:1: the first line must be //===- $name - what it is ---===//" ;;
        esac
        head -n 6 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception' ||
          say "$file:4: the header must name the licence (SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception)"
      fi
      ;;
  esac
  case $file in
    *.cpp | *.h | *.c) sources+=("$file") ;;
  esac

  # The wall: the runtime and the ABI know nothing of MLIR and LLVM, and no other library knows the runtime.
  case $file in
    lib/Runtime/* | include/attn/Runtime/* | include/attn/ABI/* | lib/Reference/* | include/attn/Reference/*)
      while IFS=: read -r line _; do
        [ -z "$line" ] || say "$file:$line: this side of the wall includes no mlir/ or llvm/ header"
      done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](mlir|llvm|mlir-c|llvm-c|clang)/' "$file")
      ;;
    lib/CAPI/* | lib/Python/*) ;;
    lib/* | include/attn/*)
      while IFS=: read -r line _; do
        [ -z "$line" ] || say "$file:$line: only tools, the C API and tests include attn/Runtime"
      done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]attn/Runtime/' "$file")
      ;;
  esac

  # Options belong to tools.
  case $file in
    lib/*.cpp | lib/*.h | include/attn/*.h)
      while IFS=: read -r line _; do
        [ -z "$line" ] || say "$file:$line: no cl::opt in the libraries; use an options struct"
      done < <(grep -nE '\bcl::(opt|list|bits|alias)\b' "$file")
      ;;
  esac

  # Tests are named in dash case.
  case $file in
    test/*.mlir | test/*.test)
      name=${file##*/}
      [[ $name =~ ^[a-z0-9]+(-[a-z0-9]+)*\.(mlir|test)$ ]] ||
        say "$file:1: a test's name is in dash case, like split-kv-errors.mlir"
      ;;
  esac

  # Text hygiene.
  case $file in
    *.cpp | *.h | *.td | *.c | *.py | *.sh | *.cmake | *.txt | *.mlir | *.md)
      while IFS=: read -r line _; do
        [ -z "$line" ] || say "$file:$line: trailing blanks"
      done < <(grep -nE '[[:blank:]]+$' "$file" | head -3)
      while IFS=: read -r line _; do
        [ -z "$line" ] || say "$file:$line: a merge conflict's mark"
      done < <(grep -nE '^(<{7}|>{7})( |$)' "$file" | head -3)
      [ -z "$(tail -c 1 "$file")" ] || say "$file:$(wc -l <"$file"): the last line must end with a newline"
      ;;
  esac
done

if [ $format -eq 1 ] && [ ${#sources[@]} -gt 0 ]; then
  tool=${CLANG_FORMAT:-clang-format-22}
  if ! command -v "$tool" >/dev/null; then
    say "lint: $tool is not installed; install it or set CLANG_FORMAT, or pass --no-format"
  elif [ $fix -eq 1 ]; then
    "$tool" -i "${sources[@]}" || found=1
  else
    while IFS= read -r line; do
      say "$line: not formatted; run utils/lint.sh --fix"
    done < <(printf '%s\0' "${sources[@]}" | xargs -0 "$tool" --dry-run 2>&1 |
      sed -nE 's/^([^:]+:[0-9]+):[0-9]+: warning: code should be clang-formatted.*/\1/p' | sort -t: -k1,1 -u)
  fi
fi
exit $found
