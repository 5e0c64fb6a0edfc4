#!/usr/bin/env bash
# Makes each kernel's NAME.ptx of its NAME.cu.
#   make.sh           writes the files beside their sources
#   make.sh --check   compares instead, and fails when one differs
# It needs NVRTC 11.8, whose PTX every driver from 520 on takes: Debian's libnvrtc11.2 and libnvrtc-builtins11.8
# (non-free, 17 MB), installed, or unpacked with `dpkg -x`: then say NVRTC=FOLDER/libnvrtc.so.11.2, and have
# LD_LIBRARY_PATH name FOLDER. Neither a GPU nor a driver nor the CUDA toolkit is needed.
set -euo pipefail
cd "$(dirname "$0")/../.."

check=${1:-}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
gcc -O1 -Wall -Wextra -o "$build/nvrtc" cuda/ptx/nvrtc.c -ldl
mapfile -t flags <cuda/ptx/flags

stale=0
for source in */*.cu; do
	ptx=${source%.cu}.ptx
	shopt -s nullglob
	headers=("$(dirname "$source")"/*.cuh)
	hash=$(cat "$source" "${headers[@]}" gpu.cuh cuda/ptx/flags | sha256sum | cut -d ' ' -f 1)
	if ! "$build/nvrtc" "$source" gpu.cuh "${headers[@]}" -- "${flags[@]}" >"$build/raw"; then
		echo "$source: not compiled; where NVRTC is missing, see the top of kernels/cuda/ptx/make.sh" >&2
		exit 1
	fi
	{
		echo "// Made by make ptx of $(basename "$source"), gpu.cuh and cuda/ptx/flags; sha256 $hash"
		# Without blanks at the ends of lines, and without empty lines.
		sed -e 's/[[:space:]\x00]*$//' -e '/^$/d' "$build/raw"
	} >"$build/ptx"
	if [ "$check" = --check ]; then
		cmp "$build/ptx" "$ptx" || stale=1 # names the file
	else
		cp "$build/ptx" "$ptx"
	fi
done
exit "$stale"
