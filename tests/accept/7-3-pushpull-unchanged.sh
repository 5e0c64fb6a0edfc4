#!/usr/bin/env bash
# Push and pull are as fast as they were in the program of another commit: at least 0.97 of its speed at every size. Launches take
# turns, there and back; medians of the ratios of neighbours in time, with the interval that has the true median in 95 of 100 cases. The
# other program is launched twice a round, and compared with itself: where even that is not within 3 %, the machine cannot tell. A row
# fails whose whole interval is below 0.97.
#   ACCEPT_BASE=fe319e1, the last before kernels were chosen at run time   ACCEPT_LAUNCHES=12
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/lib.sh"

base=${ACCEPT_BASE:-fe319e1}
launches=${ACCEPT_LAUNCHES:-12}
git clone --quiet "$ROOT" "$TMP/old"
git -C "$TMP/old" checkout --quiet "$base"
make -C "$TMP/old" build >"$TMP/log" 2>&1 || shown "make build at $base"

# rows BINARY: a line for each size: scheme, shared memory, bytes, MB/s.
rows() {
	local scheme
	for scheme in asp bsp; do
		timeout 300 "${MPIRUN[@]}" -n 4 "$1" bench pushpull --servers 2 --scheme $scheme --sizes 64KiB,1MiB,16MiB --time 0.4s --shared-memory both --format json </dev/null
	done
}
for ((k = 1; k <= launches; k++)); do
	order="old new again"
	((k % 2)) || order="again new old"
	for which in $order; do
		binary=$TMP/old/bin/fluentps
		[ "$which" != new ] || binary=$FLUENTPS
		rows "$binary" | sed "s/^/$k $which /" >>"$TMP/lines"
	done
done
# field NAME: its value in a line of JSON.
awk '
	function field(name,   v) { v = $0; if (!sub(".*\"" name "\": *", "", v)) return ""; sub(/[,}].*/, "", v); gsub(/"/, "", v); return v }
	{ print $1, $2, field("scheme") "/" field("shared_memory") "/" field("bytes"), field("round_us_p50") }' "$TMP/lines" |
	awk 'NF == 4 { us[$1, $2, $3] = $4; row[$3]; round[$1] }
		END { for (r in row) for (k in round) if ((k, "old", r) in us && (k, "new", r) in us && (k, "again", r) in us) {
			old = sqrt(us[k, "old", r] * us[k, "again", r])
			print r, old / us[k, "new", r], us[k, "old", r] / us[k, "again", r], old, us[k, "new", r] } }' >"$TMP/ratios"
[ -s "$TMP/ratios" ] || { head -n 2 "$TMP/lines"; fail "no figures"; }
# of ROW FIELD QUANTITY: median, or the ends of its interval, by ranks (sign test), low and high
of() {
	awk -v r="$1" -v f="$2" '$1 == r { print $f }' "$TMP/ratios" | sort -g | awk -v what="$3" '{ v[NR] = $1 }
		END { k = int(NR / 2 - 0.98 * sqrt(NR)); if (k < 1) k = 1
			if (what == "low") print v[k]; else if (what == "high") print v[NR + 1 - k]
			else print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
cut -d ' ' -f 1 "$TMP/ratios" | sort -u >"$TMP/rows"
while read -r row; do
	printf '%-22s old %9.1f us  new %9.1f us  %.3f  (%.3f to %.3f; old over itself %.3f)\n' "$row" "$(of "$row" 4 median)" "$(of "$row" 5 median)" \
		"$(of "$row" 2 median)" "$(of "$row" 2 low)" "$(of "$row" 2 high)" "$(of "$row" 3 median)"
done <"$TMP/rows" | tee "$TMP/table"
worst=$(awk '{ print $8, $1, $9, $11 }' "$TMP/table" | tr -d '(;' | sort -g | head -n 1)
read -r ratio row low high <<<"$worst"
figure "push+pull, new over old ($base), $launches launches: $(awk '$8 >= 0.97' "$TMP/table" | wc -l) of $(wc -l <"$TMP/table") rows at least 0.97; the least is $ratio ($low to $high) of $row; must be 0.97"
while read -r row; do
	high=$(of "$row" 2 high)
	must "$high >= 0.97" "push+pull, $row: the whole interval is below"
done <"$TMP/rows"
