#!/usr/bin/env bash
# Push and pull are as fast as they were in the program of another commit: at least 0.97 of its speed at every size, medians over
# launches that take turns.
#   ACCEPT_BASE=fe319e1, the last before kernels were chosen at run time   ACCEPT_LAUNCHES=9
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/lib.sh"

base=${ACCEPT_BASE:-fe319e1}
launches=${ACCEPT_LAUNCHES:-9}
git clone --quiet "$ROOT" "$TMP/old"
git -C "$TMP/old" checkout --quiet "$base"
make -C "$TMP/old" build >"$TMP/log" 2>&1 || shown "make build at $base"

# rows BINARY: a line for each size: scheme, shared memory, bytes, MB/s.
rows() {
	local scheme
	for scheme in asp bsp; do
		timeout 300 "${MPIRUN[@]}" -n 4 "$1" bench pushpull --servers 2 --scheme $scheme --sizes 64KiB,1MiB,16MiB --time 0.2s --shared-memory both --format json </dev/null
	done
}
for ((k = 1; k <= launches; k++)); do
	rows "$TMP/old/bin/fluentps" | sed 's/^/old /' >>"$TMP/lines"
	rows "$FLUENTPS" | sed 's/^/new /' >>"$TMP/lines"
done
# field NAME: its value in a line of JSON.
awk '
	function field(name,   v) { v = $0; if (!sub(".*\"" name "\": *", "", v)) return ""; sub(/[,}].*/, "", v); gsub(/"/, "", v); return v }
	{ print $1, field("scheme") "/" field("shared_memory") "/" field("bytes"), field("round_us_p50") }' "$TMP/lines" |
	awk 'NF == 3' | sort -k 1,1 -k 2,2 -k 3,3g | awk -v middle=$(((launches + 1) / 2)) '{ key = $1 " " $2 } key != last { n = 0; last = key } ++n == middle' >"$TMP/medians"
awk '$1 == "old" { old[$2] = $3 } $1 == "new" { new[$2] = $3 }
	END { for (k in old) if (k in new) printf "%-28s old %10s us  new %10s us  %.3f\n", k, old[k], new[k], old[k] / new[k] }' "$TMP/medians" | sort >"$TMP/table"
[ -s "$TMP/table" ] || { head -n 2 "$TMP/lines"; fail "no figures"; }
cat "$TMP/table"
worst=$(awk '{ print $NF, $1 }' "$TMP/table" | sort -g | head -n 1)
figure "push+pull, new over old ($base), $launches launches: at least ${worst%% *} (${worst##* }); must be 0.97"
must "${worst%% *} >= 0.97" "push+pull, ${worst##* }"
