#!/usr/bin/env bash
# A rank that waits takes at most 5 % of a core after 10 ms, and handles a message within 2.5 ms at the 99th
# percentile: medians of 7 runs, with as many ranks as cores and with twice as many.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# idle RANKS: sets cpu (%) and react (us, p99), medians of 7.
idle() {
	local i
	: >"$TMP/cpu"
	: >"$TMP/react"
	for i in 1 2 3 4 5 6 7; do
		timeout 60 "${MPIRUN[@]}" -n "$1" "$FLUENTPS" bench idle --format json >"$TMP/row-$i.json" 2>"$TMP/log" ||
			shown "bench idle with $1 ranks"
		get "$TMP/row-$i.json" cpu_percent >>"$TMP/cpu"
		get "$TMP/row-$i.json" react_p99_us >>"$TMP/react"
	done
	cpu=$(sort -g "$TMP/cpu" | sed -n 4p)
	react=$(sort -g "$TMP/react" | sed -n 4p)
}

cores=$(nproc)
for ranks in $((cores > 2 ? cores : 2)) $((2 * cores > 4 ? 2 * cores : 4)); do
	idle "$ranks"
	figure "waiting, $ranks ranks: $cpu % of a core (at most 5), reaction p99 $react us (at most 2500); $cores cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
	must "$cpu <= 5" "percent of a core, $ranks ranks"
	must "$react <= 2500" "microseconds to react, $ranks ranks"
done
