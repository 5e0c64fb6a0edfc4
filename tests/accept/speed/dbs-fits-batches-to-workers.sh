#!/usr/bin/env bash
# DBS with workers of speed 1, 1, 1 and 1/3, batches of 512 and no fixed cost. Simulated: (154, 154, 153, 51) from the second epoch on, and all compute equally long within
# 1 %. Under real MPI with slept computing an epoch is at least 1.8 times as short as with fixed batches (ideal 2.49). With real gradients, in
# virtual time, the accuracy of an MLP on Fashion-MNIST is within a point of fixed batches, over 3 seeds.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/config.yaml" <<-END
	name: dbs
	cluster: {servers: 1}
	data: {set: generated, features: 1, rows: 5120}
	model: {name: synthetic, layers: [1000], compute: {per_sample: 1ms}}
	train: {batch_global: 512, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 4}}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
	work: {policy: dbs}
	faults: [{worker: 3, slow: {factor: 3}}]
END
# epochs FILE: seconds of each epoch of 10 iterations, from the first worker's begin to the last one's end.
epochs() {
	awk -F , 'NR > 1 { e = int($2 / 10); end = $3 + $4 + $6; if (end > last[e]) last[e] = end }
		END { for (e = 0; e in last; e++) printf "%.4f ", last[e] - (e ? last[e - 1] : 0) }' "$1"
}
# batches FILE: of each worker in the first iteration of the second epoch.
batches() { awk -F , 'NR > 1 && $2 == 10 { b[$1] = $9 } END { print b[0], b[1], b[2], b[3] }' "$1"; }

"$FLUENTPS" simulate "$TMP/config.yaml" --out "$TMP/simulated" >"$TMP/log" 2>&1 || shown "simulate"
dealt=$(batches "$TMP/simulated/iterations.csv")
spread=$(awk -F , 'NR > 1 && $2 >= 10 { t = $4; if (!($2 in lo) || t < lo[$2]) lo[$2] = t; if (t > hi[$2]) hi[$2] = t }
	END { for (i in lo) if (hi[i] / lo[i] > worst) worst = hi[i] / lo[i]; printf "%.4f", worst }' "$TMP/simulated/iterations.csv")
figure "simulated: batches $dealt after one epoch (must be 154 154 153 51), computing times within $(awk "BEGIN { printf \"%.2f\", 100 * ($spread - 1) }") % (must be 1)"
[ "$dealt" = "154 154 153 51" ] || fail "batches $dealt"
must "$spread <= 1.01" "computing times"

world 5 run --out "$TMP/dbs" "$TMP/config.yaml"
world 5 run --out "$TMP/fixed" "$TMP/config.yaml" --set work.policy=fixed
read -r first second third fourth <<<"$(epochs "$TMP/dbs/iterations.csv")"
read -r f1 f2 f3 f4 <<<"$(epochs "$TMP/fixed/iterations.csv")"
printf '%-24s %9s %9s %9s %9s\n' "epoch, s" 1 2 3 4 fixed "$f1" "$f2" "$f3" "$f4" dbs "$first" "$second" "$third" "$fourth"
ratio=$(awk "BEGIN { printf \"%.2f\", ($f2 + $f3 + $f4) / ($second + $third + $fourth) }")
figure "MPI, 4 workers: an epoch with dbs is $ratio times as short as with fixed batches (must be 1.8, ideal 2.49), batches $(batches "$TMP/dbs/iterations.csv")"
must "$ratio >= 1.8" "epochs of dbs under MPI"

example=(configs/examples/fashion-mlp-dbs.yaml --set simulate.gradients=true --set simulate.compute='{per_sample: 100us}')
sum_dbs=0
sum_fixed=0
for seed in 1 2 3; do
	for policy in dbs fixed; do
		"$FLUENTPS" simulate "${example[@]}" --set work.policy=$policy --set seed=$seed --out "$TMP/$policy-$seed" >"$TMP/log" 2>&1 || shown "simulate $policy"
	done
	a=$(get "$TMP/dbs-$seed/summary.json" test_accuracy)
	b=$(get "$TMP/fixed-$seed/summary.json" test_accuracy)
	echo "seed $seed: accuracy $a with dbs in $(get "$TMP/dbs-$seed/summary.json" train_s) s, $b with fixed batches in $(get "$TMP/fixed-$seed/summary.json" train_s) s of virtual time"
	sum_dbs=$(awk "BEGIN { print $sum_dbs + $a / 3 }")
	sum_fixed=$(awk "BEGIN { print $sum_fixed + $b / 3 }")
	must "$a - $b >= -0.01 && $a - $b <= 0.01" "accuracy of seed $seed"
done
figure "Fashion-MNIST, real gradients, 3 seeds: accuracy $sum_dbs with dbs, $sum_fixed with fixed batches (must be within 0.01, each)"
