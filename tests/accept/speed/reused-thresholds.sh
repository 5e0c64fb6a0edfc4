#!/usr/bin/env bash
# topk with reused thresholds: 1 M elements at ratio 0.01 are encoded at least 3 times as fast as with exact ones, in one run of the benchmark; the
# example ends with the same accuracy: the means of 3 seeds differ by less than the seeds do.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

go test ./internal/policy/payload -run none -bench Thresholds/.*/1048576 -count 5 >"$TMP/bench" || fail "$(tail -n 5 "$TMP/bench")"
# ns WHAT: the median time of an encoding.
ns() { awk -v what="BenchmarkThresholds/$1/" 'index($1, what) == 1 { print $3 }' "$TMP/bench" | sort -g | sed -n 3p; }
faster=$(awk "BEGIN { printf \"%.2f\", $(ns exact) / $(ns reused) }")
for seed in 1 2 3; do
	for thresholds in exact reused; do
		local_world 6 configs/examples/payload-topk.yaml --set seed=$seed --set payload.thresholds=$thresholds --out "$TMP/$thresholds-$seed"
		get "$TMP/$thresholds-$seed/summary.json" test_accuracy >>"$TMP/$thresholds"
	done
done
mean() { awk '{ s += $1 } END { printf "%.4f", s / NR }' "$TMP/$1"; }
spread() { sort -g "$TMP/$1" | awk 'NR == 1 { least = $1 } { most = $1 } END { printf "%.4f", most - least }'; }
apart=$(awk "BEGIN { d = $(mean exact) - $(mean reused); printf \"%.4f\", d < 0 ? -d : d }")
figure "topk at 0.01 of 1 M elements: reused thresholds encode $faster times as fast (must be 3); accuracy of 3 seeds $(mean exact) exact, $(mean reused) reused: $apart apart, the seeds $(spread exact)"
must "$faster >= 3" "encoding with reused thresholds"
must "$apart < $(spread exact)" "accuracies apart"
