#!/usr/bin/env bash
# A clean clone and `make run`: an MLP on Fashion-MNIST under mpirun, 2 servers and 4 workers, at least two schemes
# on different shards; test accuracy at least 0.86 within 240 s, breakdown table, run folder and report printed.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

clone "$TMP/clone"
cd "$TMP/clone"
make run ARGS="--out $TMP/run" >"$TMP/log" 2>&1 || shown "make run"
tail -n 45 "$TMP/log"

s=$TMP/run/summary.json
accuracy=$(get "$s" test_accuracy)
wall=$(get "$s" wall_s)
schemes=$(get "$s" 'per_shard.*.scheme' | sort -u | paste -sd ' ')
figure "test accuracy $accuracy (at least 0.86), wall_s ${wall:0:5} (at most 240), schemes: $schemes; $(grep '^setup:' "$TMP/log")"

[ "$(get "$s" finished)" = ok ] || fail "finished: $(get "$s" finished)"
[ "$(get "$s" mode) $(get "$s" servers) $(get "$s" workers)" = "mpi 2 4" ] || fail "not 2 servers and 4 workers under MPI"
must "$accuracy >= 0.86" "test accuracy"
must "$wall <= 240" "wall_s"
[ "$(wc -w <<<"$schemes")" -ge 2 ] || fail "only one scheme: $schemes"
for section in Compute Push Blocked Pull Fold Idle; do
	grep -q -w "$section" "$TMP/log" || fail "no $section row in the breakdown table"
done
grep -q -F "$TMP/run" "$TMP/log" || fail "the path of the run folder was not printed"
grep -q -x -F "Report: $TMP/run/report.html" "$TMP/log" || fail "the path of the report was not printed"
[ "$(grep -c '<svg' "$TMP/run/report.html")" -ge 10 ] || fail "the report has fewer than 10 plots"
