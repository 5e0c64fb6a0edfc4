#!/usr/bin/env bash
# FluentPS's claim on delayed pulls, simulated: soft barrier over lazy, 10 % noise, 16 workers, s in {1, 3, 5}, speed
# ratios 1.5, 2, 3: each within 10 % of s*rho/(rho-1) + 1/2.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/lib.sh"

go test ./ps/sim -count=1 -run '^TestSoftOverLazyDelayedPulls$' -v >"$TMP/log" 2>&1 || shown "go test ./ps/sim -run TestSoftOverLazyDelayedPulls"
sed -n 's/.*sim_test.go:[0-9]*: //p' "$TMP/log"
rows=$(grep -c 'ratio .* formula' "$TMP/log")
worst=$(sed -n 's/.*ratio \([0-9.]*\), formula \([0-9.]*\).*/\1 \2/p' "$TMP/log" | awk '{ d = $1 / $2 - 1; if (d < 0) d = -d; if (d > w) w = d } END { printf "%.1f", 100 * w }')
figure "simulated: soft over lazy is at most $worst % away from s*rho/(rho-1) + 1/2 in $rows settings (within 10 %)"
must "$rows == 9" "settings"
must "$worst <= 10" "largest difference"
