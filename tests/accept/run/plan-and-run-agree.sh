#!/usr/bin/env bash
# plan and run accept and refuse the same configurations, whatever they need: random ones around the limit of memory.
#   ACCEPT_CONFIGS=1000 ACCEPT_SEED=1
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

configs=${ACCEPT_CONFIGS:-1000}
RANDOM=${ACCEPT_SEED:-1}
one_of() { local all=("$@"); echo "${all[RANDOM % $#]}"; }
upto() { echo $((RANDOM * 32768 % $1 + RANDOM % $1 + 1)); }

accepted=0 refused=0
for ((k = 1; k <= configs; k++)); do
	ranks=$((3 + RANDOM % 5))
	{
		echo "name: agree"
		echo "cluster: {servers: $((1 + RANDOM % 2)), memory_max: $((66 + RANDOM % 60))MiB, placement: $(one_of spread colocate pack mixed), shared_memory: $(one_of auto off)}"
		echo "data: {set: generated, rows: $(one_of 300 5000 "$(upto 900000)" "$(upto 3000000)"), test_rows: $(one_of 1 20), features: $(upto 40), classes: 10, partition: $(one_of disjoint_random disjoint_contiguous overlap_reshuffle)}"
		echo "model: {name: mlp, layers: [$(upto 500), $(upto 500)]}"
		echo "sync: [{match: '*', $(one_of 'scheme: bsp' 'scheme: ssp, staleness: 3' 'scheme: asp' "scheme: ssp, staleness: $(upto 40), fold: rank" "scheme: essp, staleness: $(upto 30)")}]"
		echo "payload: {$(one_of 'push: float32' 'push: topk, ratio: 0.1' 'push: float16')}"
		echo "train: {batch_per_worker: $(upto 64), optimizer: {name: $(one_of sgd momentum adam), lr: 0.001}, stop: {updates: 1}}"
		echo "evaluate: {every_epochs: $(one_of 0 1)}"
		echo "checkpoint: {$(one_of 'keep: 0' 'keep: 1' 'every_updates: 3')}"
	} >"$TMP/agree.yaml"
	plan=0 run=0
	"$FLUENTPS" plan "$TMP/agree.yaml" --ranks "$ranks" >"$TMP/plan" 2>&1 || plan=$?
	rm -rf "$TMP/out"
	"$FLUENTPS" run --local "$ranks" "$TMP/agree.yaml" --out "$TMP/out" --no-report --no-what-if >"$TMP/log" 2>&1 || run=$?
	if [ "$plan" != "$run" ]; then
		cat "$TMP/agree.yaml"
		tail -n 3 "$TMP/plan" "$TMP/log"
		fail "configuration $k, $ranks ranks: plan ends with $plan and run with $run"
	fi
	case $plan in
	0) accepted=$((accepted + 1)) ;;
	2)
		refused=$((refused + 1))
		[ "$(grep -c 'cluster.memory_max is' "$TMP/plan")" = "$(grep -c 'cluster.memory_max is' "$TMP/log")" ] || fail "configuration $k: plan and run give other reasons: $(tail -n 2 "$TMP/plan" "$TMP/log")"
		if grep -q 'cluster.memory_max is' "$TMP/plan"; then echo memory; else head -n 1 "$TMP/plan"; fi >>"$TMP/reasons"
		;;
	*) fail "configuration $k: plan ends with $plan" ;;
	esac
done
[ -z "${ACCEPT_DEBUG:-}" ] || sort "$TMP/reasons" | uniq -c
memory=$(grep -c '^memory$' "$TMP/reasons" || true)
figure "$configs random configurations: plan and run accept the same $accepted and refuse the same $refused, $memory of them for memory"
must "$accepted * 5 >= $configs && $memory * 5 >= $configs" "both kinds are frequent"
