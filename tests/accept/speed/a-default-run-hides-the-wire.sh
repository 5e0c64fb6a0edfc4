#!/usr/bin/env bash
# A run with nothing set for its network hides communication behind computing: 16 equal layers of 1 MiB, 2 servers and 2 workers on four hosts
# with links of 200 Mbit/s, bsp. Computing takes as long as the least time that the network cards allow for a round. A step then takes at most
# 1.15 times either, and at most 1.05 of the best schedule's. Beside it: fifo, and no overlap.
#
# No schedule is faster than computing and, between the end of backward and the start of the next forward, the way of layer 0, whose gradient is
# the last to be ready and whose parameters are the first to be read: both workers push it, each server receives all of its half and then
# sends all of it, both at the rate of a card. With 0.95 of 200 Mbit/s:
#
#	best = computing + 2 layers / rate
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

layer=1048576
limit=$(awk "BEGIN { printf \"%.4f\", 16 * $layer / (0.95 * 25e6) }")
best=$(awk "BEGIN { printf \"%.4f\", $limit + 2 * $layer / (0.95 * 25e6) }")
layers=$(yes $((layer / 4)) | head -16 | paste -sd ,)
cat >"$TMP/config.yaml" <<-END
	name: hide
	cluster: {servers: 2}
	data: {set: generated, features: 1}
	model: {name: synthetic, layers: [$layers], compute: ${limit}s}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 14}}
	evaluate: {every_epochs: 0}
END
hosts_up 4 200mbit

# step_s ARG...: the median step of worker 0 over several launches, in seconds.
step_s() {
	local out k
	for ((k = 0; k < ${ACCEPT_LAUNCHES:-3}; k++)); do
		out=$(mktemp -d "$TMP/run.XXXX")
		timeout 120 "$HOSTS" mpirun --map h1,h2,h3,h4 "$FLUENTPS" run "$TMP/config.yaml" --out "$out" "$@" >"$TMP/log" 2>&1 </dev/null || shown "run $*"
		steps_ms "$out"
	done | median | awk '{ print $1 / 1000 }'
}
step=$(step_s)
fifo=$(step_s --set send.order=fifo)
apart=$(step_s --set send.overlap=false)
of() { awk "BEGIN { printf \"%.3f\", $1 / $2 }"; }
figure "nothing set, 200 Mbit/s, computing as long as the limit of sending: a step takes $(of "$step" "$limit") of either (must be 1.15), $(of "$step" "$best") of the best schedule (must be 1.05); with fifo $(of "$fifo" "$limit"), without overlap $(of "$apart" "$limit") of either"
must "$(of "$step" "$limit") <= 1.15" "a step of $step s against computing and sending of $limit s each"
must "$(of "$step" "$best") <= 1.05" "a step of $step s against the best schedule's $best s"
must "$(of "$apart" "$limit") >= 1.8" "what overlap hides: a step without it"
