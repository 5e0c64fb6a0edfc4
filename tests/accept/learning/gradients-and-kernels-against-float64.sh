#!/usr/bin/env bash
# Gradients: every layer of every model within 1e-3 of finite differences in float64, every kernel within k * 2^-23 *
# sqrt(length of the reduction) of float64, k at most 8: on the CPU (Go, and C with oneDNN), and its CUDA source thread by thread
# on the emulator, in both orders of threads.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# worst FILE: the largest k of a log, how many kernels it has, and how many cases.
worst() {
	sed -n 's/.*go:[0-9]*: \([a-z_0-9]*\): k is \([0-9.]*\) at most in \([0-9]*\) cases, and may be \([0-9.]*\)$/\1 \2 \3 \4/p' "$1" |
		awk '{ seen[$1] = 1; cases += $3; if ($2 > k) { k = $2; name = $1 }; if ($4 > may) may = $4 }
		END { for (n in seen) kernels++; printf "%s %s %d %d %s\n", k, name, kernels, cases, may }'
}
conforms() { # NAME COMMAND...
	local name=$1 k kernel kernels cases may
	shift
	"$@" >"$TMP/$name" 2>&1 || { cp "$TMP/$name" "$TMP/log"; shown "$*"; }
	read -r k kernel kernels cases may < <(worst "$TMP/$name")
	must "$kernels >= 30 && $cases >= 1000" "kernels and cases of $name"
	must "$k <= 8 && $may <= 8" "k of $name"
	figure "$name: $kernels kernels, $cases cases, k at most $k ($kernel)"
}
conforms go env CGO_ENABLED=0 go test -vet=off -count=1 -v -run '^TestTwins$' ./kernels/kerneltest
conforms C go test -vet=off -count=1 -v -tags "mpi blas" -run '^TestConformance$' ./kernels/cpu
tests/deps.sh --test >"$TMP/log" 2>&1 || shown "tests/deps.sh --test"
conforms cuda-emulated go test -vet=off -count=1 -v -tags cuemu -run '^TestConformance$' ./kernels/cuemu
for tags in "" "mpi blas"; do
	go test -vet=off -count=1 -v -tags "$tags" -run 'FiniteDifferences' ./ps/workload ./kernels/batchnorm >"$TMP/log" 2>&1 || shown "go test -run FiniteDifferences, tags $tags"
	[ "$(grep -c '^--- PASS' "$TMP/log")" -ge 6 ] || fail "finite differences: $(grep -c '^--- PASS' "$TMP/log") tests passed, want 6"
	figure "layers (tags: ${tags:-none}): $(sed -n 's/^--- PASS: \([A-Za-z]*\).*/\1/p' "$TMP/log" | paste -sd ' ')"
done
