#!/usr/bin/env bash
# Every kind of straggler under MPI beside the simulator, from one YAML and seed: 4 workers and a server, slept computing of
# 15 ms and 1 ms a sample, asp and bsp. The mean time of an iteration agrees within 5 %. Both sleep in the same iterations, each within 2 ms, and with another seed
# in others.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

iterations=150
cat >"$TMP/config.yaml" <<-END
	name: stragglers
	cluster: {servers: 1}
	data: {set: generated, features: 1, rows: 1600}
	model: {name: synthetic, layers: [1000], compute: {fixed: 15ms, per_sample: 1ms}}
	train: {batch_per_worker: 5, optimizer: {name: sgd, lr: 0.1}, stop: {samples: $((4 * 5 * iterations))}}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
END
# mean FILE: seconds of an iteration, of the workers' means, from the second iteration on until the first worker ends.
mean() {
	awk -F , 'NR > 1 && $2 == 1 { from[$1] = $3 } NR > 1 && $2 > 1 { to[$1] = $3; n[$1] = $2 - 1 }
		END { for (w in from) { sum += (to[w] - from[w]) / n[w]; k++ } printf "%.6f", sum / k }' "$1"
}
world 5 run --out "$TMP/trace" "$TMP/config.yaml" --set 'faults=[{worker: 2, slow: {factor: 2}}, {worker: "*", slow: {kind: exponential, sleep: 6ms}}]'
slow=(
	'{worker: 3, slow: {factor: 3}}'
	'{worker: "*", slow: {kind: exponential, factor: 2}}'
	'{worker: "*", slow: {kind: exponential, sleep: 10ms}}'
	'{worker: "*", slow: {kind: normal, sleep: 10ms, spread: 0.5}}'
	'{worker: "*", slow: {kind: lognormal, factor: 2, spread: 0.8}}'
	'{worker: "*", slow: {kind: lognormal, sleep: 10ms, spread: 0.8, draws: 5}}'
	'{worker: "*", slow: {kind: two_state, factor: 4, enter: 0.1, leave: 0.2}}'
	'{worker: "*", slow: {kind: dbs, chance: 0.3, sleep_min: 500ms, sleep_max: 1s, epochs_min: 1, epochs_max: 2}}'
	'{worker: "*", slow: {kind: fluentps, every: 2, sleep: 15ms, spread: 0.3}}'
	'{worker: "*", slow: {kind: trace, path: '"$TMP/trace/iterations.csv"'}}'
	'{worker: 1, pause: {at: 500ms, for: 1s}}'
)
printf '%-88s %-7s %12s %12s %7s\n' fault scheme "MPI ms" "simulated" "ratio"
worst=0
for fault in "${slow[@]}"; do
	for scheme in bsp asp; do
		set=(--set "faults=[$fault]" --set "sync[0]={match: \"*\", scheme: $scheme}")
		rm -rf "$TMP/run" "$TMP/simulated"
		world 5 run --out "$TMP/run" "$TMP/config.yaml" "${set[@]}"
		"$FLUENTPS" simulate "$TMP/config.yaml" "${set[@]}" --set simulate.network.latency=50us --out "$TMP/simulated" >"$TMP/log" 2>&1 || shown "simulate $fault"
		a=$(mean "$TMP/run/iterations.csv")
		b=$(mean "$TMP/simulated/iterations.csv")
		ratio=$(awk "BEGIN { print $a / $b }")
		printf '%-88s %-7s %12s %12s %7.3f\n' "${fault//$TMP\//}" "$scheme" "$(awk "BEGIN { print 1000 * $a }")" "$(awk "BEGIN { print 1000 * $b }")" "$ratio"
		off=$(awk "BEGIN { d = $ratio - 1; print d < 0 ? -d : d }")
		holds "$off <= $worst" || worst=$off
	done
done
figure "mean iterations of ${#slow[@]} kinds of stragglers under bsp and asp, MPI beside simulated: at most $(awk "BEGIN { printf \"%.1f\", 100 * $worst }") % apart (must be 5)"
must "$worst <= 0.05" "MPI beside simulated"

# The sample path: sleeps per worker and iteration. The sleeps of a run make up for each other when one is too long, the simulator's do not.
path='{worker: "*", slow: {kind: two_state, sleep: 20ms, enter: 0.2, leave: 0.3}}, {worker: 0, slow: {kind: lognormal, sleep: 10ms, spread: 0.5}}'
slept() { # NAME: of its iterations.csv
	awk -F , 'NR > 1 && $2 < 100 { print $1 "," $2, $5 }' "$TMP/$1/iterations.csv" | sort >"$TMP/$1.slept"
}
for seed in 1 2; do
	"$FLUENTPS" simulate "$TMP/config.yaml" --set "faults=[$path]" --set seed=$seed --out "$TMP/simulated-$seed" >"$TMP/log" 2>&1 || shown "simulate $path"
	slept "simulated-$seed"
done
world 5 run --out "$TMP/real" "$TMP/config.yaml" --set "faults=[$path]"
slept real
apart() { # of a name and real: iterations that differ by more than 2 ms, and of how many
	join "$TMP/$1.slept" "$TMP/real.slept" | awk '{ d = $2 - $3; if (d < 0) d = -d; if (d > 0.002) n++ } END { print n + 0, NR }'
}
read -r off of < <(apart simulated-1)
read -r other _ < <(apart simulated-2)
figure "sleeps of $of iterations under MPI and simulated, one seed: $off are more than 2 ms apart (must be 2 % of them at most), with another seed $other"
must "$of == 400 && $off <= $of / 50" "iterations that slept otherwise"
must "$other > $of / 5" "iterations that slept otherwise with another seed"
