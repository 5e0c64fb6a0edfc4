#!/usr/bin/env bash
# Budgets hold: in 10,000 random configurations, over all schemes, changes of scheme, losses and returns of workers, no run accepts
# more than its budget and one iteration of every worker, and a version that the budget cannot fill ends the run all the same.
#   ACCEPT_SEEDS=10000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

seeds=${ACCEPT_SEEDS:-10000}
FLUENTPS_TEST_SIM_SEEDS=$seeds go test ./internal/sim/check -count=1 -run '^TestLawsOverManySeeds$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim"
figure "simulated: $(sed -n 's/.*random_test.go:[0-9]*: //p' "$TMP/log" | tail -n 1), none beyond its budget by more than an iteration of every worker ($seeds configurations drawn)"
go test ./internal/core/servernode -count=1 -run '^TestBudgetsHoldUnderRandomOrders$' -rapid.checks=2000 -v >"$TMP/log" 2>&1 || shown "go test ./internal/core/servernode"
figure "2000 random orders of events with and without lost workers: ok"

# softsync with a version of 4000 pushes and one epoch of 8192 samples trained 128,096 of them once.
for q in 4000 1000000000; do
	cat >"$TMP/q.yaml" <<-END
		name: q
		cluster: {servers: 2}
		data: {set: generated, rows: 8192, test_rows: 256}
		model: {name: softmax}
		train: {batch_per_worker: 32, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 1}}
		sync: [{match: "*", scheme: softsync, q: $q}]
	END
	world 6 run --out "$TMP/q$q" "$TMP/q.yaml"
	samples=$(get "$TMP/q$q/summary.json" samples)
	figure "softsync, q: $q, 4 workers of 32: $samples samples of a budget of 8192"
	must "$samples >= 8192 && $samples < 8192 + 128" "samples with q: $q"
done
# updates are exact
for scheme in asp "ssp, staleness: 3" "softsync, q: 3" "pssp" "essp"; do
	out=$(mktemp -d "$TMP/u.XXXX")/run
	world 6 run --out "$out" --set "train.stop={updates: 1001}" --set "sync=[{match: '*', scheme: $scheme, weight: 0.25}]" "$TMP/q.yaml"
	versions=$(get "$out/summary.json" updates)
	must "$versions == 1001" "$scheme: updates"
done
figure "updates: 1001 makes 1001 versions under asp, ssp, softsync, pssp and essp"
