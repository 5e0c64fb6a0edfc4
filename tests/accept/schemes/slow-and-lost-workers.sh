#!/usr/bin/env bash
# Which scheme reaches a test accuracy first if one of 8 workers is 5 times slower than the others and another is lost: quorum, ringmaster, rennala and ringleader beside bsp, ssp,
# asp, and drop, which is m-synchronous SGD, with three counts. Softmax regression on Fashion-MNIST, simulated with real gradients: each scheme has the same data, computing times and
# faults. Each has the best of three learning rates, by the median over the seeds of its time to 0.78, from which on three evaluations in a row reach it. Each of the four must need less time
# than bsp. Ringleader and quorum must drop nothing.
#   ACCEPT_SEEDS=3 (the page has 3), ACCEPT_JOBS=2
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
seeds=${ACCEPT_SEEDS:-3}
horizon=40
cat >"$TMP/config.yaml" <<-END
	name: slow-and-lost
	cluster: {servers: 1}
	data: {set: idx, path: /usr/share/datasets/fashion-mnist}
	model: {name: softmax}
	train: {batch_per_worker: 25, optimizer: {name: sgd, lr: 0.2}, stop: {time: ${horizon}s}}
	evaluate: {where: online, every_samples: 3000}
	checkpoint: {keep: 0}
	faults: [{worker: "*", slow: {kind: normal, factor: 1.2, spread: 0.2}}, {worker: 3, slow: {factor: 5}}]
	simulate: {workers: 8, compute: 20ms, network: {latency: 50us}, gradients: true}
END
rules=(bsp "ssp, staleness: 3" "drop, required: 7" "drop, required: 6" "drop, required: 4" asp ringmaster rennala ringleader quorum)
rates=(0.1 0.2 0.4)

# one RULE RATE SEED writes a line: rule, rate, seed, time to the target, accuracy at the end, pushes dropped and made, versions.
one() {
	local out
	out=$(mktemp -d "$TMP/run.XXXXXX")
	"$FLUENTPS" simulate --lose 5@4s --out "$out/run" "$TMP/config.yaml" --set "sync=[{match: '*', scheme: $1}]" --set "train.optimizer.lr=$2" --set "seed=$3" >"$out/log" 2>&1 || {
		cat "$out/log" >&2
		return 1
	}
	# The accuracy at the end is the mean of the last five evaluations; a time beyond the horizon stands for never.
	awk -F, -v rule="$1" -v rate="$2" -v seed="$3" -v never=$((horizon * 10)) -v counts="$(get "$out/run/summary.json" per_shard.0.dropped);$(get "$out/run/summary.json" per_shard.0.pushes);$(get "$out/run/summary.json" updates)" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == "test/accuracy") column = i; next }
		$column != "" { x[++n] = $column; run = $column >= 0.78 ? run + 1 : 0; if (run == 1) began = $1; if (run == 3 && !reached) reached = began }
		END { for (i = n - 4; i <= n; i++) sum += x[i] / 5; printf "%s;%s;%s;%s;%s;%s\n", rule, rate, seed, reached ? reached : never, sum, counts }' "$out/run/simulated.csv" >"$out/line"
	rm -rf "$out/run"
}
export -f one get
export FLUENTPS ACCEPT_TMP TMP horizon
# shellcheck disable=SC2016 # bash -c expands them
for rule in "${rules[@]}"; do
	for rate in "${rates[@]}"; do
		for seed in $(seq "$seeds"); do
			printf '%s\0%s\0%s\0' "$rule" "$rate" "$seed"
		done
	done
done | xargs -0 -n 3 -P "${ACCEPT_JOBS:-2}" bash -c 'one "$1" "$2" "$3"' one || fail "a simulated run failed"
cat "$TMP"/run.*/line >"$TMP/lines"

# Of each rule the rate with the smallest median time, and the medians with that rate.
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
of() { awk -F';' -v rule="$1" -v rate="$2" -v field="$3" '$1 == rule && $2 == rate { print $field }' "$TMP/lines" | median; }
declare -A time
for rule in "${rules[@]}"; do
	best=""
	for rate in "${rates[@]}"; do
		at=$(of "$rule" "$rate" 4)
		if [ -z "$best" ] || holds "$at < ${time[$rule]}"; then
			best=$rate time[$rule]=$at
		fi
	done
	dropped=$(of "$rule" "$best" 6)
	case $rule in ringleader | quorum) must "$dropped == 0" "pushes that $rule dropped" ;; esac
	# shellcheck disable=SC2016 # backticks of a table
	printf '%s;| `%s` | %s | %.1f | %.3f | %d of %d | %d |\n' "${time[$rule]}" "$rule" "$best" "${time[$rule]}" "$(of "$rule" "$best" 5)" "$dropped" "$(of "$rule" "$best" 7)" "$(of "$rule" "$best" 8)" >>"$TMP/rows"
done
sort -g "$TMP/rows" -o "$TMP/rows"
echo "simulated: one of 8 workers 5 times slower, one lost after 4 s; medians of $seeds seeds; $((horizon * 10)) s stands for never"
{
	echo "| scheme | lr | s to 0.78 | accuracy after $horizon s | dropped pushes | versions |"
	echo "|---|---|---|---|---|---|"
	cut -d';' -f2 "$TMP/rows"
} | tee "$TMP/table"
won=$(head -n 1 "$TMP/rows" | cut -d'`' -f2)
figure "simulated, s to a test accuracy of 0.78: $won won with ${time[$won]}; quorum ${time[quorum]}, ringmaster ${time[ringmaster]}, rennala ${time[rennala]}, ringleader ${time[ringleader]}; each must be less than bsp's, ${time[bsp]}"
for rule in quorum ringmaster rennala ringleader; do
	must "${time[$rule]} < ${time[bsp]}" "$rule against bsp"
done
[ "$seeds" -ne 3 ] || table ps/scheme/SLOW_AND_LOST.md 0.02 "$TMP/table"
