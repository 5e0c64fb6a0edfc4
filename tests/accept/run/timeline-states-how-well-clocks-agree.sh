#!/usr/bin/env bash
# Between hosts the timeline states the error of each rank's clock, aligns clocks whose error is at most a tenth of an iteration, and refuses
# otherwise: the log says so, and no arrow leads to these ranks. The network is a switch with links of 200 Mbit/s on this machine.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

cat >"$TMP/config.yaml" <<-END
	name: clocks
	cluster: {servers: 1}
	data: {set: generated, features: 1}
	model: {name: synthetic, layers: [1000, 1000], compute: 20ms}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 60}}
	evaluate: {every_epochs: 0}
END
hosts_up 3 200mbit
# clocks NAME COMPUTE: a run with so much computing; its counts are in $TMP/NAME.
clocks() {
	on_hosts h1,h2,h3 run "$TMP/config.yaml" --trace --set "model.compute=$2" --out "$TMP/run-$1"
	"$ACCEPT_TMP/inspect" trace "$TMP/run-$1/trace.json.gz" >"$TMP/$1" || fail "no timeline"
}
clocks slow 50ms
clocks fast 0s
error=$(get "$TMP/slow" ErrorUs)
fast=$(get "$TMP/fast" ErrorUs)
must "$error > 0 && $fast > 0" "errors of clocks between hosts"
must "$(get "$TMP/slow" Aligned) == 3 && $(get "$TMP/slow" Whole) > 0" "iterations of 50 ms, clocks within $error us"
step=$(awk "BEGIN { printf \"%.1f\", $(get "$TMP/run-fast/summary.json" train_s) / 60 * 1e6 }")
aligned=$(get "$TMP/fast" Aligned)
refused=$(cat "$TMP"/run-fast/logs/* | grep -c "is not aligned with rank 0's" || true)
must "$aligned + $refused == 3 && $(get "$TMP/fast" Loose) == 0" "a clock is aligned, or the log says why not"
if holds "$fast > $step / 10"; then
	must "$aligned < 3" "iterations of $step us, clocks within $fast us"
fi
figure "clocks of 3 hosts: within $error us, aligned with iterations of 50 ms; within $fast us, $aligned of 3 aligned with iterations of $step us"
