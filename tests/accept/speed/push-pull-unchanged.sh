#!/usr/bin/env bash
# Push and pull are as fast as they were in the program of another commit: at least 0.97 of its speed at every size. Launches take
# turns, there and back; medians of the ratios of neighbours in time, with the interval that has the true median in 95 of 100 cases. The
# other program is launched twice a round, and compared with itself: where even that is not within 3 %, the machine cannot tell. A row
# fails whose whole interval is below 0.97.
#   ACCEPT_BASE=fe319e1, the last before kernels were chosen at run time   ACCEPT_LAUNCHES=12
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# shellcheck source=tests/accept/unchanged.sh
. "$ROOT/tests/accept/unchanged.sh"

old_program fe319e1
# rows BINARY: a line for each scheme, way and size, and its us a round.
rows() {
	local scheme
	for scheme in asp bsp; do
		timeout 300 "${MPIRUN[@]}" -n 4 "$1" bench pushpull --servers 2 --scheme $scheme --sizes 64KiB,1MiB,16MiB --time 0.4s --shared-memory both --format json </dev/null
	done | awk '
		function field(name,   v) { v = $0; if (!sub(".*\"" name "\": *", "", v)) return ""; sub(/[,}].*/, "", v); gsub(/"/, "", v); return v }
		{ print field("scheme") "/" field("shared_memory") "/" field("bytes") "/us", field("round_us_p50") }'
}
in_turn rows
judge "push+pull"
