#!/usr/bin/env bash
# Runs a command in the environment in which `go build -tags cuda` finds the driver's header and our loader in place
# of NVIDIA's; both are made in build/cuda if they are missing or old.
#   tests/with-cuda.sh COMMAND [ARG...]
#   tests/with-cuda.sh --emulated COMMAND [ARG...]   the driver that the command finds computes on the CPU
#   tests/with-cuda.sh --races COMMAND [ARG...]      and checks that accesses of the GPU's memory have an order
# CGO_CFLAGS replaces Go's own -O2 -g; what stands in it and in CGO_LDFLAGS already is kept.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/cuda

# stale TARGET FILE...: TARGET is missing, or older than one of the files.
stale() {
	local target=$1
	shift
	[ ! -e "$target" ] || [ -n "$(find "$@" -newer "$target" -print -quit)" ]
}

if stale "$build/libcuda.a" "$root"/kernels/cuda/cuload "$root/go.mod"; then
	(cd "$root" && env -u CGO_CFLAGS -u CGO_LDFLAGS go run ./kernels/cuda/cuload "$build")
fi
# The go command does not watch the header: the macro makes it compile anew what was compiled with another one.
header=$(cksum <"$build/include/cuda.h")
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g} -I$build/include -DCULOAD_HEADER=${header%% *}"
export CGO_LDFLAGS="${CGO_LDFLAGS:+$CGO_LDFLAGS }-L$build -lcuda -ldl"
if [ "${1:-}" = --emulated ] || [ "${1:-}" = --races ]; then
	emulator=$root/build/cuemu flags=() instrumented=()
	[ "$1" = --emulated ] || emulator=$root/build/cuemu-races flags=(-DCUEMU_RACES) instrumented=(-fsanitize=thread)
	shift
	driver=$emulator/libcuda.so.1
	# shellcheck disable=SC2046 # one argument per file
	if stale "$driver" "$build/libcuda.a" $(find "$root/kernels" -name '*.cu' -o -name '*.cuh' -o -path '*/cuemu/*'); then
		mkdir -p "$emulator"
		flags+=(-std=c++17 -O2 -g -fPIC -fno-strict-aliasing -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter -I"$build/include")
		g++ "${flags[@]}" "${instrumented[@]}" -c -o "$emulator/kernels.o" "$root/kernels/cuemu/kernels.cpp" # the library checks, and is not checked
		g++ "${flags[@]}" -shared -Wl,-Bsymbolic -o "$driver.new" "$emulator/kernels.o" \
			$(find "$root"/kernels/cuemu -name '*.cpp' ! -name kernels.cpp ! -name faulty.cpp) -ldl
		mv "$driver.new" "$driver"
		ln -sf libcuda.so.1 "$emulator/libcublas.so.12"
	fi
	export LD_LIBRARY_PATH="$emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
exec "$@"
