#!/usr/bin/env bash
# A run takes at most the memory that plan says, and at least 85 % of it above 1 GiB: 21 configurations, some as processes, some with --local.
# Shared memory counts once. Needs 3 GiB, and takes about 6 minutes of two busy cores.
#   ACCEPT_ONLY=TEXT   only configurations whose name contains it
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/base.yaml" <<-END
	name: ledger
	cluster: {servers: 1}
	data: {set: generated, rows: 2000, test_rows: 100, features: 1000, classes: 10}
	model: {name: mlp, layers: [1000, 1000]}
	train:
	  batch_per_worker: 4
	  optimizer: {name: adam, lr: 0.0001}
	  stop: {updates: 8}
	evaluate: {every_epochs: 0}
END
{ yes "$(printf '1,%.0s' $(seq 199))1" || true; } | head -n 500000 >"$TMP/ones.csv"
head -n 20 "$TMP/ones.csv" >"$TMP/few.csv"
csv="data={set: csv, path: $TMP/ones.csv, test: $TMP/few.csv}"

# bytes TEXT: a size as plan prints it.
bytes() { echo "$1" | awk '{ u["B"] = 1; u["KiB"] = 1024; u["MiB"] = 1048576; u["GiB"] = 1073741824; printf "%.0f", $1 * u[$2] }'; }

large=0 count=0 least=1000 most=0
# holds_for NAME HOW:RANKS SET... runs the configuration, as processes or --local, and compares.
holds_for() {
	local name=$1 how=${2%:*} ranks=${2#*:} set=() q
	shift 2
	case $name in *"${ACCEPT_ONLY:-}"*) ;; *) return 0 ;; esac
	for q in "$@"; do set+=(--set "$q"); done
	"$FLUENTPS" plan "$TMP/base.yaml" --ranks "$ranks" "${set[@]}" >"$TMP/plan" 2>&1 || fail "$name: plan: $(tail -n 3 "$TMP/plan")"
	local start=("$FLUENTPS" run --local "$ranks") says
	says=$(sed -n 's/^  most: .*one process of run --local [0-9]*: \(.*\)$/\1/p' "$TMP/plan")
	if [ "$how" = mpi ]; then
		start=("${MPIRUN[@]}" -n "$ranks" "$FLUENTPS" run)
		says=$(sed -n 's/^  most: \(.*\) on localhost;.*/\1/p' "$TMP/plan")
	fi
	rm -rf "$TMP/out"
	"$ACCEPT_TMP/inspect" peak fluentps "${start[@]}" "$TMP/base.yaml" --out "$TMP/out" --no-what-if --no-report "${set[@]}" >"$TMP/peak" 2>"$TMP/log" || shown "$name"
	[ "$(get "$TMP/out/summary.json" finished)" = ok ] || fail "$name did not finish"
	local took limit
	took=$(awk '{ print $4 }' "$TMP/peak") limit=$(bytes "$says")
	awk -v n="$name" -v h="$how:$ranks" -v t="$took" -v l="$limit" 'BEGIN { printf "%-28s %-8s %8.1f MiB of %8.1f MiB, %5.1f %%\n", n, h, t / 1048576, l / 1048576, 100 * t / l }'
	count=$((count + 1))
	must "$took <= $limit" "$name takes more than plan says"
	most=$(awk "BEGIN { s = 100 * $took / $limit; print (s > $most) ? s : $most }")
	if [ "$limit" -gt 1073741824 ]; then
		large=$((large + 1))
		must "$took >= 0.85 * $limit" "$name takes less than 85 % of what plan says"
		least=$(awk "BEGIN { s = 100 * $took / $limit; print (s < $least) ? s : $least }")
	fi
}

wide="model={name: mlp, layers: [6000, 4000]}" broad="model={name: mlp, layers: [3200, 3200]}"
holds_for "bsp, windows" mpi:3 "$wide"
holds_for "bsp, windows" local:3 "$wide"
holds_for "bsp, messages, sgd" mpi:2 "$wide" cluster.shared_memory=off
holds_for "bsp, colocated" mpi:2 "$wide" 'cluster={servers: 2, placement: colocate}'
holds_for "all-reduce, ring" mpi:3 "$wide" 'cluster={}' baseline=allreduce baseline.algorithm=ring
holds_for "all-reduce, MPI" mpi:3 'cluster={}' baseline=allreduce baseline.algorithm=mpi
holds_for "hierarchy" mpi:4 "$wide" 'cluster={servers: 1, hierarchy: node}'
holds_for "diloco" mpi:3 "$broad" 'local={policy: diloco, steps: 3}'
holds_for "checkpoints" mpi:3 "$wide" 'checkpoint={every_updates: 2}'
holds_for "100 million rows" mpi:3 'data={set: generated, rows: 100000000, test_rows: 100, features: 20, classes: 10}'
holds_for "110 million rows" local:3 'data={set: generated, rows: 110000000, test_rows: 100, features: 20, classes: 10}'
holds_for "rows of all, in an order" local:3 'data={set: generated, rows: 80000000, features: 20, classes: 10, partition: overlap_reshuffle}'
holds_for "csv" mpi:3 "$csv" 'model={name: softmax}'
holds_for "csv" local:3 "$csv" 'model={name: softmax}'
holds_for "topk" mpi:3 'payload={push: topk, ratio: 0.1}'
holds_for "float16 both ways" local:4 'payload={push: float16, pull: float16}'
holds_for "ssp 3" mpi:4 'sync=[{match: "*", scheme: ssp, staleness: 3}]' train.stop.updates=40
holds_for "asp, messages" local:4 'sync=[{match: "*", scheme: asp}]' cluster.shared_memory=off train.stop.updates=40
holds_for "essp 2" mpi:3 'sync=[{match: "*", scheme: essp, staleness: 2}]' train.stop.updates=40
holds_for "snapshots" local:3 evaluate.every_epochs=0.004
holds_for "tiny" mpi:8 'model={name: softmax}' train.stop.updates=200
figure "$count configurations: at most $most % of what plan says; of $large above 1 GiB at least $least %"
[ -n "${ACCEPT_ONLY:-}" ] || must "$count >= 20 && $large >= 6" "20 configurations, several of them above 1 GiB"
