#!/usr/bin/env bash
# A file of NumPy is mapped, not loaded. Of a file of 20 GiB (5 million rows of 4 KiB, sparse), a run has its first batch within 0.5 s once the file's
# first pages are cached, with cluster.memory_max 2 GiB. Gathered batches of mapped rows are at least 0.9 times as fast as rows in memory, the median of
# 7 rounds in turn. The processes of 4 workers have at most 1.1 times one copy of the data in memory (proportional size, Pss).
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

PYTHON=${ACCEPT_PYTHON:-/usr/bin/python3}
"$PYTHON" -c 'import numpy' 2>/dev/null || fail "no NumPy for $PYTHON: apt-get install python3-numpy"

# made FOLDER ROWS FULL: x.npy with rows of 4 KiB, of which the first FULL are not 0, and y.npy.
made() {
	mkdir -p "$1"
	"$PYTHON" -c '
import sys, numpy as np
folder, rows, full = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x = np.lib.format.open_memmap(f"{folder}/x.npy", mode="w+", dtype="f4", shape=(rows, 1024))
x[:full] = np.random.default_rng(1).random((full, 1024), dtype="f4")
np.save(f"{folder}/y.npy", np.arange(rows) % 10)' "$@"
}
config() {
	cat >"$TMP/$1.yaml" <<-END
		name: $1
		cluster: {servers: 1, memory_max: 2GiB}
		data: {set: npy, path: $TMP/$1}
		model: {name: softmax}
		train: {batch_per_worker: 64, optimizer: {name: sgd, lr: 0.01}, stop: {$2}}
		sync: [{match: "*", scheme: bsp}]
		evaluate: {every_epochs: 0}
	END
}

made "$TMP/large" 5000000 100
config large "updates: 3"
for _ in 1 2; do # the first run reads pages from the disk
	rm -rf "$TMP/run"
	local_world 3 --no-report --no-what-if --out "$TMP/run" "$TMP/large.yaml"
done
setup=$(get "$TMP/run/summary.json" setup_s)
first=$(awk -F , '$2 == 0 && $4 > most { most = $4 } END { print most }' "$TMP/run/iterations.csv")
figure "$(stat -c %s "$TMP/large/x.npy") bytes: set up in $setup s, the first iteration took $first s (together at most 0.5)"
rm -rf "$TMP/large"

go test -run '^$' -bench Batches -count 7 ./ps/workload/dataset >"$TMP/bench" || fail "the benchmark: $(tail -n 3 "$TMP/bench")"
ratio=$(awk '/\/mapped/ { m[++i] = $3 } /\/memory/ { r[++j] = $3 } END { print i, j; for (k = 1; k <= i; k++) print r[k] / m[k] }' "$TMP/bench" |
	sed 1d | sort -g | sed -n 4p)
figure "batches of mapped rows are gathered $(printf %.2f "$ratio") times as fast as rows in memory (at least 0.9)"

made "$TMP/shared" 65536 65536
config shared "time: 60s"
"${MPIRUN[@]}" -n 5 "$FLUENTPS" run --no-report --no-what-if --out "$TMP/shared-run" "$TMP/shared.yaml" >"$TMP/log" 2>&1 &
job=$!
pss() {
	local pid
	for pid in $(pgrep -f "$TMP/shared.yaml"); do
		awk -v file="$TMP/shared/x.npy" '/^[0-9a-f]+-/ { ours = $6 == file } ours && $1 == "Pss:" { kb += $2 } END { print kb + 0 }' "/proc/$pid/smaps" 2>/dev/null || true
	done | awk '{ s += $1 } END { print s * 1024 }'
}
most=0
for _ in $(seq 20); do
	sleep 1
	now=$(pss)
	most=$(awk -v a="$most" -v b="$now" 'BEGIN { print (a > b ? a : b) }')
done
kill -INT "$job"
wait "$job" 2>/dev/null || true
job=""
share=$(awk -v a="$most" -v b="$(stat -c %s "$TMP/shared/x.npy")" 'BEGIN { printf "%.3f", a / b }')
figure "5 ranks map a file of 256 MiB: $share of one copy in memory (at most 1.1, and it was read: at least 0.5)"
must "$setup + $first <= 0.5 && $ratio >= 0.9 && $share <= 1.1 && $share >= 0.5" "mapped files"
