#!/usr/bin/env bash
# Two threads train ResNet-20 at least 1.7 times as fast as one, by the clock; launches take turns, medians. Needs two quiet cores.
#   ACCEPT_LAUNCHES=5
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

launches=${ACCEPT_LAUNCHES:-5}
go test -c -tags "mpi blas" -o "$TMP/steps" ./internal/rank/runtime
for ((k = 1; k <= launches; k++)); do
	for threads in 1 2; do
		(cd internal/rank/runtime && "$TMP/steps" -test.run '^$' -test.bench "^BenchmarkTrainStepThreads\$/^model=resnet20\$/^batch=128\$/^threads=$threads\$" -test.benchtime 2s) >"$TMP/log" 2>&1 || shown "benchmark"
		tr '\t' ' ' <"$TMP/log" | sed -n "s|^BenchmarkTrainStepThreads.* \([0-9.e+]*\) samples/s.*|$threads \1|p" >>"$TMP/lines"
	done
done
median() { awk -v t="$1" '$1 == t { print $2 }' "$TMP/lines" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
one=$(median 1) two=$(median 2)
figure "ResNet-20 at batch 128: one thread $one samples/s, two $two: $(awk "BEGIN { printf \"%.2f\", $two / $one }") times (must be 1.7); $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
must "$two >= 1.7 * $one" "two threads against one"
