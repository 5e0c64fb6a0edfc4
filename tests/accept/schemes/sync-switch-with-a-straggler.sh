#!/usr/bin/env bash
# Sync-Switch beside bsp and asp, with a straggler that comes and goes: softmax regression on Fashion-MNIST, 4 workers and a server, each iteration sleeps 4 ms, and worker 3 sleeps 25 ms
# more in iterations 100 to 200. Time to a test accuracy of 0.82, under real MPI and simulated with real gradients. Sync-Switch changes to asp and back, both times once, and is at least 1.3 times as
# fast as bsp.
#   ACCEPT_LAUNCHES=3, medians
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
launches=${ACCEPT_LAUNCHES:-3}
cat >"$TMP/config.yaml" <<-END
	name: sync-switch
	cluster: {servers: 1}
	data: {set: idx, path: /usr/share/datasets/fashion-mnist}
	model: {name: softmax}
	train: {batch_per_worker: 25, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 6, target: 0.82}}
	evaluate: {where: online, every_samples: 6000}
	checkpoint: {keep: 0}
	faults: [{worker: "*", slow: {sleep: 4ms}}, {worker: 3, slow: {sleep: 25ms, from: 100, until: 200}}]
	simulate: {compute: 600us, network: {latency: 50us}, gradients: true}
END
switch='{match: "*", schemes: [{scheme: bsp, until: {straggler: shows, factor: 2}}, {scheme: asp, until: {straggler: gone, factor: 2}}]}'
declare -A sync=([bsp]='{match: "*", scheme: bsp}' [asp]='{match: "*", scheme: asp}' [sync-switch]=$switch) measured simulated
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
printf '%-12s %12s %12s   %s\n' scheme "MPI, s" "simulated, s" "to an accuracy of 0.82; changes"
for name in bsp asp sync-switch; do
	times=()
	for seed in $(seq "$launches"); do
		rm -rf "$TMP/run"
		world 5 run --out "$TMP/run" "$TMP/config.yaml" --set "sync=[${sync[$name]}]" --set seed="$seed"
		times+=("$(get "$TMP/run/summary.json" target_reached_s)")
	done
	measured[$name]=$(printf '%s\n' "${times[@]}" | median)
	rm -rf "$TMP/simulated"
	"$FLUENTPS" simulate --out "$TMP/simulated" "$TMP/config.yaml" --set "sync=[${sync[$name]}]" >"$TMP/log" 2>&1 || shown "simulate $name"
	simulated[$name]=$(get "$TMP/simulated/summary.json" target_reached_s)
	changes=$(get "$TMP/run/summary.json" 'changes.*.iteration' 2>/dev/null | paste -sd ' ' || true)
	printf '%-12s %12.2f %12.2f   %s\n' "$name" "${measured[$name]}" "${simulated[$name]}" "$changes"
done
faster=$(awk "BEGIN { printf \"%.2f\", ${measured[bsp]} / ${measured[sync-switch]} }")
figure "time to 0.82 with a straggler that comes and goes: sync-switch ${measured[sync-switch]} s, bsp ${measured[bsp]} s, asp ${measured[asp]} s; $faster times as fast as bsp (must be 1.3); simulated ${simulated[sync-switch]}, ${simulated[bsp]}, ${simulated[asp]} s; changes at iterations $changes"
[ "$(wc -w <<<"$changes")" -eq 2 ] || fail "changes at \"$changes\", want two"
must "$faster >= 1.3" "sync-switch against bsp"
