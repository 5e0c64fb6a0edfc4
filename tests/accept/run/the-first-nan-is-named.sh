#!/usr/bin/env bash
# A run whose values leave the range of float32 names where the first one that is not finite arose, and the key that acts there: from data
# files, rates and penalties alone, under every payload, under mpirun and as goroutines, with steps of the workers' own; and the Go test that
# damages memory in each of the seven places. A run that ends far above the loss of a constant prediction says so.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# csv FILE VALUE: 256 rows whose four features are the value, one in 16 of the second class.
csv() { awk -v v="$2" 'BEGIN { for (i = 0; i < 256; i++) print v "," v "," v "," v "," (i % 16 == 0) }' >"$TMP/$1.csv"; }
csv limit 3e38
csv large 8e36
csv wide 1e30
csv thousands 20000
csv unit 1
awk 'BEGIN { for (i = 0; i < 512; i++) print i % 16 "," i % 13 ",1e30" }' >"$TMP/ratings.csv"

cat >"$TMP/base.yaml" <<EOF
name: nan
seed: 3
cluster: {servers: 2}
data: {set: csv, path: $TMP/unit.csv, test: $TMP/unit.csv}
model: {name: softmax}
train: {batch_per_worker: 32, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 8}}
sync: [{match: "*", scheme: bsp}]
EOF

cases=0
# named HOW WANT KEY SET...: a run of 6 ranks ends with code 1 and says both.
named() {
	local how=$1 want=$2 key=$3 code=0 args=()
	shift 3
	for set in "$@"; do args+=(--set "$set"); done
	if [ "$how" = mpi ]; then
		"${MPIRUN[@]}" -n 6 "$FLUENTPS" run "$TMP/base.yaml" "${args[@]}" --out "$TMP/run$cases" >"$TMP/log" 2>&1 || code=$?
	else
		"$FLUENTPS" run --local 6 "$TMP/base.yaml" "${args[@]}" --out "$TMP/run$cases" >"$TMP/log" 2>&1 || code=$?
	fi
	local finished
	finished=$(get "$TMP/run$cases/summary.json" finished)
	[ "$code" -eq 1 ] || { tail -n 20 "$TMP/log" >&2; fail "$how $*: exit code $code, want 1"; }
	case $finished in
	"diverged: the first value that is not finite, "*"$want"*"$key"*) ;;
	*) fail "$how $*: finished \"$finished\"; want \"$want\" and \"$key\"" ;;
	esac
	cases=$((cases + 1))
}

data() { echo "data={set: csv, path: $TMP/$1.csv, test: $TMP/$1.csv}"; }
for how in local mpi; do
	for payload in "push: float32" "push: float16" "push: bfloat16" "push: topk, ratio: 0.5" "push: threshold, threshold: 1e-6, ratio: 1"; do
		p="payload={$payload}"
		named $how "arose from the data: the batch of worker " "raise data.scale (now 1)" "$(data limit)" "$p" "model={name: mlp, layers: [256]}"
		named $how "arose in the gradient: fc1.weight[" "raise data.scale (now 1)" "$(data limit)" "$p"
		named $how "arose in the " "lower train.optimizer.lr (now 1e+38)" "train.optimizer.lr=1e38" "$p"
		named $how "arose in the optimizer: fc1.weight[" "lower train.optimizer.weight_decay (now 1e+37)" "train.optimizer={name: sgd, lr: 100, weight_decay: 1e37}" "$p"
		if [ "$payload" = "push: float16" ]; then
			named $how "arose in the payload: the push of fc1.weight[" "set payload.push to bfloat16 or float32" "$(data thousands)" "$p"
			continue # magnitudes from 65520 on do not reach what follows
		fi
		named $how "arose in the pending sum: fc1.weight[" "raise data.scale (now 1)" "$(data large)" "$p"
		named $how "arose in the optimizer: fc1.weight[" "lower train.optimizer.lr (now 1e+10)" "$(data wide)" "train.optimizer.lr=1e10" "$p"
	done
	named $how "arose in the pending sum: fc1.weight[" "raise data.scale (now 1)" "$(data large)" "cluster={servers: 2, placement: colocate}"
	named $how "arose in the optimizer: fc1.weight[" "lower train.optimizer.lr (now 1e+10)" "$(data wide)" "train.optimizer.lr=1e10" "cluster={servers: 2, placement: colocate}"
	named $how "arose in the payload: fc1.weight[" "set payload.pull to float32 (now float16)" "$(data thousands)" "payload={pull: float16}" "train.optimizer.lr=100"
	named $how "arose from the data: the batch of worker " "scale the values of data.path" "data={set: ratings, path: $TMP/ratings.csv, test: $TMP/ratings.csv, center: false}" "model={name: matrix_factorization}"
	named $how "arose in the optimizer: fc1.weight[" "lower train.optimizer.lr (now 1e+10)" "$(data wide)" "train.optimizer.lr=1e10" "local={policy: averaging, steps: 3}"
	named $how "arose in the optimizer: fc1.weight[" "lower train.optimizer.lr (now 1e+10)" "$(data wide)" "train.optimizer.lr=1e10" "sync=[{match: '*', scheme: asp}]"
done
figure "$cases runs name the place and the key (of $cases), also where ranks are servers and workers"

code=0
"$FLUENTPS" run --local 6 "$TMP/base.yaml" --set "train.optimizer={name: sgd, lr: 1e30, l1: 9e29}" --set train.stop.updates=1 --set "data={set: generated, classes: 4}" --require --out "$TMP/worse" >"$TMP/log" 2>&1 || code=$?
[ "$code" -eq 5 ] || fail "--require: exit code $code, want 5"
grep -q "WARNING: the test loss at the end" "$TMP/log" || fail "no warning of a loss that is far above that of a constant prediction"
figure "a loss of $(get "$TMP/worse/summary.json" test_loss) beside $(get "$TMP/worse/summary.json" constant_loss) of a constant prediction: code $code with --require (5)"

go test -vet=off -count=1 -run 'TestTheFirstNaNIsNamed|TestALossFarAboveThatOfAConstantIsSaid' ./internal/rank/runtime ./internal/rank/coordinate >"$TMP/log" 2>&1 || { tail -n 40 "$TMP/log" >&2; fail "memory damaged in one of the seven places is not named"; }
figure "memory damaged in each of the seven places is named under every payload, shared, apart and with local steps"
