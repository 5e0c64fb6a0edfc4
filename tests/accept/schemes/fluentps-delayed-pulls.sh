#!/usr/bin/env bash
# FluentPS's claim on delayed pulls, simulated: soft barrier over lazy, 10 % noise, 16 workers, s in {1, 3, 5}, speed
# ratios 1.5, 2, 3: each within 10 % of s*rho/(rho-1) + 1/2. Then lazy + PSSP beside it, and the settings at which 131 is
# reached, as in internal/sim/testdata/delayed-pulls.md; ps/scheme/DELAYED_PULLS.md says how plausible they are.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

go test ./internal/sim -count=1 -run '^(TestSoftOverLazyDelayedPulls|TestDelayedPullsTable)$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim -run DelayedPulls"
sed -n 's/.*sim_test.go:[0-9]*: //p' "$TMP/log"
rows=$(grep -c 'ratio .* formula' "$TMP/log")
worst=$(sed -n 's/.*ratio \([0-9.]*\), formula \([0-9.]*\).*/\1 \2/p' "$TMP/log" | awk '{ d = $1 / $2 - 1; if (d < 0) d = -d; if (d > w) w = d } END { printf "%.1f", 100 * w }')
figure "simulated: soft over lazy is at most $worst % away from s*rho/(rho-1) + 1/2 in $rows settings (within 10 %)"
must "$rows == 9" "settings"
must "$worst <= 10" "largest difference"

sed -n '/delayed_test.go/,/^---/p' "$TMP/log" | sed -n 's/^        //p'
pssp=$(grep -c '^ *| [135] | [0-9.]* |.*|.*|.*|' "$TMP/log")
must "$pssp == 9" "settings of lazy + PSSP"
reached=$(grep -c '| yes |' "$TMP/log")
figure "simulated: lazy + PSSP beside it in $pssp settings; 131 (within 10 %) is reached in $reached of those tried"
must "$reached >= 1" "settings that reach 131"
sed -n '/^How plausible is FluentPS/,/^$/p' ps/scheme/DELAYED_PULLS.md
