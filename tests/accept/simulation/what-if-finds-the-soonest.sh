#!/usr/bin/env bash
# What-if with real gradients: 4 workers, one of them a straggler, and a server under mpirun. From one run of bsp, `what-if --gradients` tells which scheme reaches a test
# accuracy first. Then each of its candidates that reach it is run, three times: the one that what-if puts first must be the soonest of them, or at most 5 % later than the soonest, by
# the medians.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

target=0.82
cat >"$TMP/run.yaml" <<-END
	name: soonest
	data: {set: generated, rows: 8192, test_rows: 2048, features: 64, classes: 10}
	model: {name: mlp, layers: [32]}
	train:
	  batch_per_worker: 16
	  optimizer: {name: sgd, lr: 0.1}
	  stop: {samples: 16384}
	evaluate: {where: online, every_samples: 256}
	checkpoint: {keep: 0}
	faults: [{worker: "*", slow: {sleep: 20ms}}, {worker: 3, slow: {sleep: 40ms}}]
	sync: [{match: "*", scheme: bsp}]
END
world 5 run "$TMP/run.yaml" --out "$TMP/bsp"
echo "bsp, 16,384 samples: test accuracy $(get "$TMP/bsp/summary.json" test_accuracy)"
"$FLUENTPS" what-if "$TMP/bsp" --gradients --target "$target" >"$TMP/told" || fail "what-if --gradients"
cat "$TMP/told"
# settings NAME: what what-if changes under that name.
settings() {
	case $1 in
	"ssp(3)") echo 'sync=[{match: "*", scheme: ssp, staleness: 3}]' ;;
	asp | r2sp) echo "sync=[{match: \"*\", scheme: $1}]" ;;
	"drop(3 of 4)") echo 'sync=[{match: "*", scheme: drop, required: 3}]' ;;
	*) echo "work={policy: $1}" ;;
	esac
}
best="" soonest="" first=""
mapfile -t told < <(awk -F '  +' 'NF == 5 && $5 ~ /^[0-9.]+$/ && !/as it was/ { print $1 }' "$TMP/told")
[ "${#told[@]}" -ge 4 ] || fail "what-if tells of ${#told[@]} that reach the target"
for what in "${told[@]}"; do
	for k in 1 2 3; do
		world 5 run "$TMP/run.yaml" --set "$(settings "$what")" --set "train.stop={target: $target, samples: 65536}" --out "$TMP/${what// /-}-$k"
	done
	reached=$(for k in 1 2 3; do get "$TMP/${what// /-}-$k/summary.json" target_reached_s; done | sort -g | sed -n 2p)
	echo "$what: $reached s"
	[ -n "$first" ] || first=$reached firstname=$what
	if [ -z "$soonest" ] || holds "$reached < $soonest"; then
		soonest=$reached best=$what
	fi
done
figure "what-if --gradients puts $firstname first, which reached $target after $first s; the soonest is $best, $soonest s (must be at most 5 % later)"
must "$first <= 1.05 * $soonest" "the first of what-if against the soonest"
