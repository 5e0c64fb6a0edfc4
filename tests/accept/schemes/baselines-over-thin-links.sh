#!/usr/bin/env bash
# Even slices, one a server as in the paper, against the servers that they replace, on links of 100 Mbit/s, each rank a host, 4 workers: an iteration spends
# at least 92 % less time on communication than with baseline: {name: pslite, keys: scalar}, which has 8 bytes of key for every
# scalar and all of them on server 0, where there are 4 servers, and at least 73 % less where there is one. A list of keys for
# each server, a message a tensor and an all-reduce stand beside it, and all of them simulated at that rate.
#
# The time of communication is that of an iteration less its computing: the median over the iterations without the first 3,
# each from the moment at which all workers have computed to the next such moment (iterations.csv). The model computes
# nothing, so that this is nearly all.
# By bytes alone it is 32 of them a parameter through that card, and 8/M through each of M servers': 1 - 1/(4 M). On a real
# link the keys of one worker's pull come while the parameters of another's leave, so that a little less is left to save.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

# Socket buffers that the links' queues of 20 ms have room for, with 4 hosts sending to one: nothing is dropped, and all get
# the same share.
SHORT_QUEUES=(--env OMPI_MCA_btl_tcp_sndbuf=32768)
readonly WORKERS=4 LAYER=80000 LAYERS=8
layers=$(yes $LAYER | head -$LAYERS | paste -sd ,)
cat >"$TMP/config.yaml" <<-END
	name: baselines
	cluster: {servers: 4}
	data: {set: generated, features: 1}
	model: {name: synthetic, layers: [$layers], compute: 0s}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 1}}
	shards: {parts: 1}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
	simulate: {workers: $WORKERS, compute: 1us, network: {latency: 100us}, server: {fold: 0B, commit: 0B}}
END
hosts_up $((WORKERS + 4)) 100mbit
echo "load $(cut -d ' ' -f 1 /proc/loadavg), $(nproc) cores"

# map RANKS: a host for each rank.
map() { seq -f 'h%g' -s , "$1"; }

# all_steps_ms DIR: the iterations but the first 3, each from the moment at which all workers have computed.
all_steps_ms() {
	awk -F , 'NR > 1 { end = $3 + $4 + $6; if (end > all[$2]) all[$2] = end; if ($2 > last) last = $2 }
		END { for (k = 3; k < last; k++) print (all[k + 1] - all[k]) * 1000 }' "$1/iterations.csv"
}

# measure WHAT SERVERS UPDATES BASELINE: a run on the hosts, and the same in virtual time; their times of communication in
# milliseconds go to $TMP/WHAT.ms and $TMP/WHAT.simulated.
measure() {
	local what=$1 servers=$2 iterations=$3 baseline=$4 ranks updates
	ranks=$((servers + WORKERS))
	[ "$what" != allreduce ] || ranks=$WORKERS
	on_hosts "$(map "$ranks")" run "$TMP/config.yaml" --out "$TMP/$what" --set "cluster.servers=$servers" --set "baseline=$baseline" --set "train.stop.updates=$iterations"
	[ "$(get "$TMP/$what/summary.json" finished) $(get "$TMP/$what/summary.json" iterations) $(get "$TMP/$what/summary.json" workers)" = "ok $iterations $WORKERS" ] ||
		fail "$what: $(head -n 3 "$TMP/$what/summary.txt")"
	awk "BEGIN { printf \"%.1f\", $(all_steps_ms "$TMP/$what" | median) - $(compute_ms "$TMP/$what" | median) }" >"$TMP/$what.ms"
	for updates in 5 25; do
		"$FLUENTPS" simulate "$TMP/config.yaml" --set "cluster.servers=$servers" --set "baseline=$baseline" --set "train.stop.updates=$updates" \
			--set "simulate.network.bandwidth=12500KB" --out "$TMP/$what-$updates" >"$TMP/log" 2>&1 || shown "simulate of $what"
	done
	awk "BEGIN { printf \"%.1f\", ($(get "$TMP/$what-25/summary.json" train_s) - $(get "$TMP/$what-5/summary.json" train_s)) / 20 * 1000 - 0.001 }" >"$TMP/$what.simulated"
	printf '%-12s %8.1f ms, simulated %8.1f ms; %10d bytes an iteration\n' "$what" "$(cat "$TMP/$what.ms")" "$(cat "$TMP/$what.simulated")" \
		$(($(get "$TMP/$what/summary.json" bytes_sent) / iterations))
}
measure even-4 4 30 none
measure even-1 1 12 none
for keys in list tensor scalar; do
	measure "$keys-4" 4 9 "{name: pslite, keys: $keys}"
	[ "$(get "$TMP/$keys-4/summary.json" baseline) $(get "$TMP/$keys-4/summary.json" baseline_keys)" = "pslite $keys" ] ||
		fail "summary.json of $keys-4 does not name its baseline"
	grep -q "baseline pslite (keys: $keys)" "$TMP/$keys-4/summary.txt" || fail "summary.txt of $keys-4 does not name its baseline"
done
measure scalar-1 1 9 "{name: pslite, keys: scalar}"
measure allreduce 1 15 "{name: allreduce, algorithm: ring}" # as it is simulated

# less KEYS SERVERS KIND: how many per cent less time even slices take, measured (ms) or simulated.
less() { awk "BEGIN { printf \"%.1f\", 100 * (1 - $(cat "$TMP/even-$2.$3") / $(cat "$TMP/$1-$2.$3")) }"; }
figure "time of communication, $WORKERS workers at 100 Mbit/s: even slices over 4 servers take $(less scalar 4 ms) % less than pslite with keys: scalar (simulated $(less scalar 4 simulated) %), $(less list 4 ms) % less than list ($(less list 4 simulated) %), $(less tensor 4 ms) % less than tensor ($(less tensor 4 simulated) %); with one server $(less scalar 1 ms) % less than scalar ($(less scalar 1 simulated) %)"
figure "an all-reduce over $WORKERS hosts as a ring: $(cat "$TMP/allreduce.ms") ms, simulated $(cat "$TMP/allreduce.simulated") ms; even slices over 4 more hosts $(cat "$TMP/even-4.ms") ms, simulated $(cat "$TMP/even-4.simulated") ms"
must "$(less scalar 4 ms) >= 92" "per cent less than keys: scalar, 4 servers"
must "$(less scalar 1 ms) >= 73" "per cent less than keys: scalar, one server"
must "$(less scalar 4 simulated) >= 92" "the same simulated, 4 servers"
must "$(less scalar 1 simulated) >= 73" "the same simulated, one server"
