#!/usr/bin/env bash
# What the sinks and the timeline cost: CPU time of a step (cpu_s of summary.json), in pairs of runs that alternate. With all sinks, once a
# second, at most 1 % more than with none; with the timeline beside them, at most 3 %. The figure is the median of the pairs' ratios. Single runs differ by more
# than these limits, for other work on the machine and its memory adds time: each member of a pair is the least of three runs, taken in turn.
# Beside the figure are the ratios of the smallest times of all.
# The ranks are goroutines: ranks of MPI that wait take CPU time, too, more or less of it from run to run.
#
# ACCEPT_PAIRS (10), ACCEPT_RUNS of a member (3), ACCEPT_STEPS (1200).
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

pairs=${ACCEPT_PAIRS:-10}
runs=${ACCEPT_RUNS:-3}
steps=${ACCEPT_STEPS:-1200}
cat >"$TMP/config.yaml" <<-END
	name: cost
	cluster: {servers: 1}
	data: {set: generated, rows: 20000, test_rows: 100, features: 784, classes: 10}
	model: {name: mlp, layers: [256, 128]}
	train: {batch_per_worker: 32, optimizer: {name: momentum, lr: 0.01}, stop: {updates: $steps}}
	evaluate: {every_epochs: 0}
	metrics: {sinks: [], interval: 1s}
END
# cpu ARG...: CPU time of a step, in microseconds.
cpu() {
	local out
	out=$(mktemp -d "$TMP/run.XXXX")
	local_world 3 "$TMP/config.yaml" --out "$out" "$@"
	awk "BEGIN { printf \"%.2f\", $(get "$out/summary.json" cpu_s) / $steps * 1e6 }"
	rm -r "$out"
}
all='metrics.sinks=[jsonl, csv, tensorboard, openmetrics]'
cpu >"$TMP/warm" # the first run of a binary is not like the others
: >"$TMP/sinks"
: >"$TMP/times"
: >"$TMP/trace"
least() { awk "BEGIN { print $1 < $2 ? $1 : $2 }"; }
for ((k = 0; k < pairs; k++)); do
	none=1e9 sinks=1e9 trace=1e9
	for ((turn = k; turn < k + 3 * runs; turn++)); do # each comes first, second and last as often
		case $((turn % 3)) in
		0) none=$(least "$none" "$(cpu)") ;;
		1) sinks=$(least "$sinks" "$(cpu --set "$all")") ;;
		2) trace=$(least "$trace" "$(cpu --set "$all" --trace)") ;;
		esac
	done
	echo "$none $sinks $trace" >>"$TMP/times"
	awk "BEGIN { print $sinks / $none }" >>"$TMP/sinks"
	awk "BEGIN { print $trace / $none }" >>"$TMP/trace"
	echo "pair $((k + 1)): no sinks $none us a step, all $sinks, and the timeline $trace; load $(cut -d ' ' -f 1 /proc/loadavg)"
done
middle() { sort -g "$1" | awk '{ x[NR] = $1 } END { printf "%.2f", 100 * ((NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2) - 1) }'; }
sinks=$(middle "$TMP/sinks") trace=$(middle "$TMP/trace")
smallest=$(awk '{ for (i = 1; i <= 3; i++) if (NR == 1 || $i < x[i]) x[i] = $i } END { printf "%.2f and %.2f", 100 * (x[2] / x[1] - 1), 100 * (x[3] / x[1] - 1) }' "$TMP/times")
figure "CPU time of a step, medians of $pairs alternating pairs: all sinks $sinks % (at most 1), with the timeline $trace % (at most 3); of the smallest times $smallest %; load $(cut -d ' ' -f 1 /proc/loadavg)"
must "$sinks <= 1" "percent of all sinks"
must "$trace <= 3" "percent of all sinks and the timeline"
