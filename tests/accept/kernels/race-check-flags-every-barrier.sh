#!/usr/bin/env bash
# The race check of the emulator: every case of every kernel for GPUs passes it, and the device with its streams. It flags each barrier
# (__syncthreads, __syncwarp) that is removed from one source, but one that is redundant. The barriers of a header are removed for one source at a
# time.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# channel_bias_grad uses part once: nothing behind the second barrier of block_sum touches it.
redundant="channel_bias.cu block_sum 2"

start=$(now_ms)
FLUENTPS_TEST_RACES=all tests/with-races.sh go test -vet=off -count=1 -v -tags "cuemu races" -run '^Test(NoKernelHasRaces|RacesAreReported|StreamsNeedAnOrder)$' ./kernels/cuemu >"$TMP/log" 2>&1 ||
	shown "the suite under the race check"
kernels=$(grep -c '^    --- PASS: TestNoKernelHasRaces/' "$TMP/log") || true
must "$kernels >= 30" "kernels"
figure "no race in $kernels kernels, all cases, in $((($(now_ms) - start) / 1000)) s with building"
FLUENTPS_TEST_CUDA=emulated tests/with-cuda.sh --races go test -vet=off -count=1 -tags "mpi blas cuda" ./kernels/cuda >"$TMP/log" 2>&1 || shown "the tests of the device for GPUs under the race check"
figure "the device for GPUs: no race between its streams, $(sed -n 's/^ok.*\t\([0-9.]*s\)$/\1/p' "$TMP/log")"
tests/with-races.sh go test -vet=off -c -tags "cuemu races" -o "$TMP/test" ./kernels/cuemu >"$TMP/log" 2>&1 || shown "go test -c"

# barriers FILE: line, function that holds it, and its number there.
barriers() {
	awk '/^[a-zA-Z\t].*[a-z_A-Z0-9]+\(.*[,{]$/ && !/^\t*(if|for|while|switch|else|return)[^a-zA-Z_]/ { match($0, /[a-zA-Z_0-9]+\(/); f = substr($0, RSTART, RLENGTH - 1) }
		/__sync(threads|warp)\(/ { print FNR, f, ++n[f] }' "$1"
}

# flagged SOURCE FILE LINE: whether the check finds a race once that barrier of FILE is gone, for SOURCE alone.
flagged() {
	local tree=$TMP/tree
	rm -rf "$tree"
	mkdir -p "$tree/kernels" "$tree/tests"
	cp -p tests/with-races.sh "$tree/tests/"
	(cd kernels && tar -cf - gpu.cuh ./*/*.cu ./*/*.cuh cuemu) | tar -C "$tree/kernels" -xf -
	rm "$tree/kernels/cuemu/faulty.cpp"
	mkdir -p "$tree/build/races" # the emulator itself is made once
	cp -p build/races/{cuemu,memory,operations,races,report}.o "$tree/build/races/"
	awk -v only="#include \"../$1\"" '/^namespace/ { begin = $0; next } /^#include "\.\.\/.*\.cu"/ { inside = $0 == only; if (inside) print begin }
		!/^(CUEMU_ENTRY|} \/\/ namespace|#include "\.\.\/.*\.cu")/ || inside { print } /^}/ { inside = 0 }' kernels/cuemu/kernels.cpp >"$tree/kernels/cuemu/kernels.cpp"
	sed -i -E "$3s/__sync(threads|warp)\([a-z_]*\);/;/" "$tree/kernels/$2"
	if cmp -s "kernels/$2" "$tree/kernels/$2"; then fail "line $3 of $2 has no barrier"; fi
	"$tree/tests/with-races.sh" true >"$TMP/log" 2>&1 || shown "building without the barrier in line $3 of $2"
	# The kernels of other sources fail: they have no entries.
	(cd kernels/cuemu && LD_LIBRARY_PATH=$tree/build/races "$TMP/test" -test.run '^TestNoKernelHasRaces$') >"$TMP/log" 2>&1 || true
	grep -q 'no such entry' "$TMP/log" || shown "the test without the barrier in line $3 of $2"
	grep -qE 'race on|which no thread of the block has written' "$TMP/log"
}

count=0
caught=0
missed=""
for source in kernels/*/*.cu; do
	source=${source#kernels/}
	mapfile -t files < <(echo "$source" && sed -n "s|^#include \"\.\./\(.*\)\"|\1|p; s|^#include \"\([^.].*\)\"|$(dirname "$source")/\1|p" "kernels/$source")
	for file in "${files[@]}"; do
		while read -r line function number; do
			# Of gpu.cuh a source uses some functions only, of the headers beside it all.
			[ "$file" != gpu.cuh ] || grep -qE "\b${function}[<(]" "${files[@]/#/kernels/}" --exclude=gpu.cuh || continue
			count=$((count + 1))
			if flagged "$source" "$file" "$line"; then
				caught=$((caught + 1))
				echo "$source without barrier $number of $function ($file:$line): $(grep -oE -m1 'race on.*|thread .* which no thread.*' "$TMP/log")"
			else
				missed+="${missed:+$'\n'}$(basename "$source") $function $number"
				echo "$source without barrier $number of $function ($file:$line): no race"
			fi
		done < <(barriers "kernels/$file")
	done
done
figure "of $count barriers, removed one by one, the check flags $caught; redundant: ${missed//$'\n'/, }"
must "$count >= 22" "barriers"
[ "$missed" = "$redundant" ] || fail "not flagged: $missed; must be: $redundant"
