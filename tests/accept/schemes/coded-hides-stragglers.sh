#!/usr/bin/env bash
# Gradient coding hides stragglers: 5 workers, real MPI, slept computing of 4 ms a sample, 8 samples a batch, the cyclic code with s = 1, and 6 workers with the fractional code for s = 2. With s workers slowed
# 10 times a coded run takes at most 15 % longer than the same one without stragglers. Its workers compute s + 1 times as much, so it can be 10 / (s + 1) times as fast as bsp with
# them: 5 times with s = 1, of which it reaches 4 at least, and 3.33 times with s = 2, of which it reaches as large a share.
#   ACCEPT_ITERATIONS=30   ACCEPT_LAUNCHES=3
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

iterations=${ACCEPT_ITERATIONS:-30}
launches=${ACCEPT_LAUNCHES:-3}
cat >"$TMP/config.yaml" <<-END
	name: coded
	cluster: {servers: 1}
	data: {set: generated, features: 1, rows: 2560}
	model: {name: synthetic, layers: [1000, 1000], compute: {per_sample: 4ms}}
	train: {batch_per_worker: 8, optimizer: {name: sgd, lr: 0.01}, stop: {updates: $iterations}}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
END

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# seconds WORKERS ARG...: the median training time.
seconds() {
	local k workers=$1
	shift
	for ((k = 0; k < launches; k++)); do
		rm -rf "$TMP/run"
		world $((workers + 1)) run "$TMP/config.yaml" --out "$TMP/run" "$@"
		get "$TMP/run/summary.json" train_s
	done | median
}

figures=""
# compare WORKERS STRAGGLERS KIND GAIN IDEAL
compare() {
	local code="work={policy: coded, micro: 1, code: {stragglers: $2, kind: $3}}" slow="" w clean with bsp ratio gain
	for ((w = 0; w < $2; w++)); do
		slow+="{worker: $((2 * w + 1)), slow: {factor: 10}},"
	done
	clean=$(seconds "$1" --set "$code")
	with=$(seconds "$1" --set "$code" --set "faults=[${slow%,}]")
	bsp=$(seconds "$1" --set "faults=[${slow%,}]")
	ratio=$(awk "BEGIN { printf \"%.3f\", $with / $clean }")
	gain=$(awk "BEGIN { printf \"%.2f\", $bsp / $with }")
	echo "$1 workers, $2 slowed 10 times, $3: coded $clean s without stragglers, $with s with them; bsp $bsp s"
	must "$ratio <= 1.15" "times the time without stragglers, $3, s = $2"
	must "$gain >= $4" "times as fast as bsp, $3, s = $2"
	figures+=" $3, s = $2: $ratio times its time without stragglers (at most 1.15), $gain times as fast as bsp (at least $4 of $5);"
}
compare 5 1 cyclic 4 5
compare 6 2 fractional 2.67 3.33
figure "coded with s workers slowed 10 times, measured:${figures%;}"
