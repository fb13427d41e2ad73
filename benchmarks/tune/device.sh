#!/usr/bin/env bash
# device.sh FOLDER TABLE [ROUNDS]: measures the candidates that build.sh put into FOLDER on this machine's GPU and writes (or
# extends) TABLE. About 15 s a case.
set -euo pipefail
folder=$(cd "$1" && pwd)
table=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for archive in libraries tools cases; do tar xf "$folder/$archive.tar.xz"; done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
attn-pack/bin/attn-tune --measure=cases -o "$table" --rounds="${3:-7}"
