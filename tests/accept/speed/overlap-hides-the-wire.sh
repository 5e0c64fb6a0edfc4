#!/usr/bin/env bash
# Overlap: a net of 16 equal layers, slice: layer, send: {order: priority}, 1 server and 1 worker on two hosts with links of
# 200 Mbit/s. Its computing is set to take as long as the same run with no computing. A step then takes at most 1.20 times the
# longer of the two and at most 1.08 times the best schedule's; without overlap about 2.
#
# No schedule is faster than computing or than the link, and between the end of backward and the start of the next forward
# lies the way of layer 0, whose gradient is the last to be ready and whose parameters are the first to be read: its push,
# and its reply, which begins when the push has landed. With the link's rate as `bench comm` measures it:
#
#	best = max(computing + 2 layers / rate, 17 layers / rate)
#
# Beside it, the step of `simulate` at that rate: the same order of sending with no latency and no queues.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

launches=${ACCEPT_LAUNCHES:-3}
parameters=524288 # of a layer: 89 ms on the link
layers=$(yes $parameters | head -16 | paste -sd ,)
cat >"$TMP/config.yaml" <<-END
	name: overlap
	cluster: {servers: 1}
	data: {set: generated, features: 1}
	model: {name: synthetic, layers: [$layers], compute: 0s}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 12}}
	shards: {slice: layer, max_bytes: 60KiB}
	send: {order: priority}
	evaluate: {every_epochs: 0}
END
hosts_up 2 200mbit
rate=$(link_rate)
echo "a link carries $((rate / 1000)) KB/s each way; load $(cut -d ' ' -f 1 /proc/loadavg), $(nproc) cores"

# measure WHAT ARG...: the steps of one more launch to $TMP/WHAT, its computing to $TMP/WHAT.compute.
measure() {
	local what=$1 out
	shift
	out=$(mktemp -d "$TMP/run.XXXX")
	on_hosts h1,h2 run "$TMP/config.yaml" --out "$out" "$@"
	steps_ms "$out" >>"$TMP/$what"
	compute_ms "$out" >>"$TMP/$what.compute"
}
for ((k = 0; k < launches; k++)); do measure alone; done
alone=$(median <"$TMP/alone")
for ((k = 0; k < launches; k++)); do measure overlapped --set "model.compute=${alone}ms"; done
measure slices --set "model.compute=${alone}ms" --set shards.slice=slices
measure fifo --set "model.compute=${alone}ms" --set send.order=fifo
measure apart --set "model.compute=${alone}ms" --set send.overlap=false
compute=$(median <"$TMP/overlapped.compute")
step=$(median <"$TMP/overlapped")

virtual_s() { # UPDATES: training time in virtual time
	"$FLUENTPS" simulate "$TMP/config.yaml" --workers 1 --set simulate.compute="${compute}ms" --set simulate.network.bandwidth="${rate}B" \
		--set simulate.network.latency=0s --set simulate.server.fold=0B --set simulate.server.commit=0B --set train.stop.updates="$1" \
		--out "$TMP/simulated-$1" >"$TMP/log" 2>&1 || shown "simulate of $1 updates" >&2
	get "$TMP/simulated-$1/summary.json" train_s
}
virtual=$(awk "BEGIN { printf \"%.1f\", ($(virtual_s 40) - $(virtual_s 10)) / 30 * 1000 }")
longer=$(printf '%s\n' "$alone" "$compute" | sort -g | tail -n 1)
best=$(awk "BEGIN { l = $parameters * 4 / $rate * 1000; a = $compute + 2 * l; b = 17 * l; printf \"%.1f\", (a > b ? a : b) }")
row() { # NAME MS
	awk "BEGIN { printf \"%-34s %8.1f ms %6.3f of the longer %6.3f of the best schedule's\n\", \"$1\", $2, $2 / $longer, $2 / $best }"
}
row "no computing" "$alone"
row "computing alone" "$compute"
row "best of slice: layer, computed" "$best"
row "priority, simulated at that rate" "$virtual"
row "priority" "$step"
row "priority, slice: slices" "$(median <"$TMP/slices")"
row "fifo" "$(median <"$TMP/fifo")"
row "priority, no overlap" "$(median <"$TMP/apart")"
ratio=$(awk "BEGIN { printf \"%.3f\", $step / $longer }")
above=$(awk "BEGIN { printf \"%.3f\", $step / $best }")
apart=$(awk "BEGIN { printf \"%.3f\", $(median <"$TMP/apart") / $longer }")
figure "overlap over 200 Mbit/s, computing as long as sending: a step takes $ratio of the longer (must be 1.20) and $above of the best schedule's (must be 1.08); without overlap $apart"
must "$ratio <= 1.20" "a step of ${step} ms against the longer of computing and sending, ${longer} ms"
must "$above <= 1.08" "a step of ${step} ms against the best schedule's ${best} ms"
must "$apart >= 1.8" "what overlap hides: a step without it, against the longer of computing and sending"
