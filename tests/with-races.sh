#!/usr/bin/env bash
# Runs a command that finds the emulator of the kernels with its race check: `go test -tags "cuemu races" ./kernels/cuemu`.
#   tests/with-races.sh COMMAND [ARG...]
# The library is made in build/races if it is missing or old. Only the kernels are instrumented. It is not a part of the Go program, so that
# addr2line finds the lines of the kernels, which it does not among Go's own debug information.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/races
library=$build/libcuemu.so
# shellcheck disable=SC2046 # one argument per file
if [ ! -e "$library" ] || [ -n "$(find "$0" $(find "$root/kernels" -name '*.cu' -o -name '*.cuh' -o -path '*/cuemu/*.cpp' -o -path '*/cuemu/*.h') -newer "$library" -print -quit)" ]; then
	mkdir -p "$build"
	flags=(-std=c++17 -O2 -g -fPIC -fno-strict-aliasing -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-unused-parameter -DCUEMU_RACES)
	made=()
	compilers=()
	for source in "$root"/kernels/cuemu/*.cpp; do
		name=$(basename "$source" .cpp)
		made+=("$build/$name.o")
		case $name in
		kernels | faulty) g++ "${flags[@]}" -fsanitize=thread -c -o "$build/$name.o" "$source" & ;;
		*)
			[ -z "$(find "$source" "$0" "$root"/kernels/cuemu/*.h -newer "$build/$name.o" -print -quit 2>&1)" ] && continue # find complains of a missing one
			g++ "${flags[@]}" -c -o "$build/$name.o" "$source" &
			;;
		esac
		compilers+=($!)
	done
	for compiler in "${compilers[@]}"; do
		wait "$compiler"
	done
	g++ -shared -Wl,-Bsymbolic -o "$library.new" "${made[@]}" -ldl
	mv "$library.new" "$library"
fi
export CGO_LDFLAGS="${CGO_LDFLAGS:+$CGO_LDFLAGS }-L$build"
export LD_LIBRARY_PATH="$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
