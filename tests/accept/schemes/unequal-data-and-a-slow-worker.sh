#!/usr/bin/env bash
# What a slow worker alone knows: optdigits sorted by digit, so that each of 5 workers has two digits of its own, and worker 3 is 5 times slower. Softmax regression, simulated with real
# gradients. Schemes that drop what is late never learn the slow worker's digits; ringleader and quorum drop nothing and learn them. Accuracy after 40 s of virtual time, the mean of the last
# five evaluations, with the best of three learning rates by the median over the seeds.
#   ACCEPT_SEEDS=3; needs the extra data, see FLUENTPS_TEST_DATA
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

if [ -z "$EXTRA_DATA" ]; then
	figure "unequal data: not tried, no data; set FLUENTPS_TEST_DATA"
	exit 0
fi
seeds=${ACCEPT_SEEDS:-3}
zcat "$EXTRA_DATA/optdigits/optdigits.tra.gz" | sort -s -t, -k65,65n >"$TMP/sorted.csv"
cat >"$TMP/config.yaml" <<-END
	name: unequal-data
	cluster: {servers: 1}
	data: {set: csv, path: $TMP/sorted.csv, test: $EXTRA_DATA/optdigits/optdigits.tes.gz, scale: 16, partition: disjoint_contiguous}
	model: {name: softmax}
	train: {batch_per_worker: 8, optimizer: {name: sgd, lr: 0.1}, stop: {time: 40s}}
	evaluate: {where: online, every_samples: 1000}
	checkpoint: {keep: 0}
	faults: [{worker: "*", slow: {kind: normal, factor: 1.2, spread: 0.2}}, {worker: 3, slow: {factor: 5}}]
	simulate: {workers: 5, compute: 20ms, network: {latency: 50us}, gradients: true}
END
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
declare -A accuracy
echo "simulated: 5 workers with two digits each, one 5 times slower; medians of $seeds seeds"
printf '| scheme | lr | accuracy after 40 s | dropped pushes |\n|---|---|---|---|\n' | tee "$TMP/table"
for rule in bsp "ssp, staleness: 3" asp "drop, required: 4" ringmaster rennala ringleader quorum; do
	accuracy[$rule]=0
	for rate in 0.05 0.2 0.5; do
		: >"$TMP/ends"
		for seed in $(seq "$seeds"); do
			rm -rf "$TMP/run"
			"$FLUENTPS" simulate --out "$TMP/run" "$TMP/config.yaml" --set "sync=[{match: '*', scheme: $rule}]" --set train.optimizer.lr=$rate --set seed="$seed" >"$TMP/log" 2>&1 || shown "simulate $rule"
			awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "test/accuracy") column = i; next }
				$column != "" { x[++n] = $column }
				END { for (i = n - 4; i <= n; i++) sum += x[i] / 5; print sum }' "$TMP/run/simulated.csv" >>"$TMP/ends"
		done
		end=$(median <"$TMP/ends")
		if holds "$end > ${accuracy[$rule]}"; then
			accuracy[$rule]=$end
			row=$(printf '%s | %.3f | %d of %d' "$rate" "$end" "$(get "$TMP/run/summary.json" per_shard.0.dropped)" "$(get "$TMP/run/summary.json" per_shard.0.pushes)")
		fi
	done
	echo "| \`$rule\` | $row |" | tee -a "$TMP/table"
done
figure "simulated, accuracy where a slow worker alone has two of ten digits: ringleader ${accuracy[ringleader]}, quorum ${accuracy[quorum]}, asp ${accuracy[asp]}, bsp ${accuracy[bsp]} (ringleader and quorum at least 0.88); drop ${accuracy[drop, required: 4]}, ringmaster ${accuracy[ringmaster]}, rennala ${accuracy[rennala]} (less than 0.85)"
for rule in ringleader quorum; do
	must "${accuracy[$rule]} >= 0.88" "$rule's accuracy"
done
for rule in "drop, required: 4" ringmaster rennala; do
	must "${accuracy[$rule]} < 0.85" "$rule's accuracy"
done
[ "$seeds" -ne 3 ] || table ps/scheme/SLOW_AND_LOST.md 0.02 "$TMP/table"
