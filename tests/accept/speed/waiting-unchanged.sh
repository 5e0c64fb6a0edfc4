#!/usr/bin/env bash
# A rank that waits, and the run of `make run`, are as fast as in the program of another commit: at least 0.97. Launches take turns, there
# and back; medians of the ratios of neighbours in time, with the interval that has the true median in 95 of 100 cases. What a rank does
# beside the training counts in processor seconds. A row fails whose whole interval is below 0.97.
#   ACCEPT_BASE=82a63e0, the last before the runtime had rooms   ACCEPT_LAUNCHES=12
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# shellcheck source=tests/accept/unchanged.sh
. "$ROOT/tests/accept/unchanged.sh"

old_program 82a63e0
# rows BINARY: a line for each figure.
rows() {
	local name
	timeout 60 "${MPIRUN[@]}" -n 4 "$1" bench idle --format json >"$TMP/idle.json" 2>"$TMP/log" </dev/null || shown "bench idle"
	for name in cpu_percent react_p50_us; do echo "idle/$name $(get "$TMP/idle.json" "$name")"; done
	rm -rf "$TMP/run"
	timeout 300 "${MPIRUN[@]}" -n 6 "$1" run configs/examples/fashion-mlp-mixed.yaml --out "$TMP/run" >"$TMP/log" 2>&1 </dev/null || shown "run"
	for name in train_s cpu_s; do echo "run/$name $(get "$TMP/run/summary.json" "$name")"; done
}
in_turn rows
judge "waiting and training"
