# Sourced by scripts that hold this program beside that of another commit.
# shellcheck shell=bash

# old_program COMMIT: makes the program of that commit, or of ACCEPT_BASE, at $old.
old_program() {
	base=${ACCEPT_BASE:-$1}
	git clone --quiet "$ROOT" "$TMP/old"
	git -C "$TMP/old" checkout --quiet "$base"
	make -C "$TMP/old" build >"$TMP/log" 2>&1 || shown "make build at $base"
	old=$TMP/old/bin/fluentps
}

# in_turn ROWS: has the function ROWS print lines of row and figure, the smaller the better, for the old program, the new one and the old one
# again, ACCEPT_LAUNCHES times, there and back.
in_turn() {
	local k order which binary
	launches=${ACCEPT_LAUNCHES:-12}
	for ((k = 1; k <= launches; k++)); do
		order="old new again"
		((k % 2)) || order="again new old"
		for which in $order; do
			binary=$old
			[ "$which" != new ] || binary=$FLUENTPS
			"$1" "$binary" >"$TMP/said" || fail "$binary"
			sed "s/^/$k $which /" "$TMP/said" >>"$TMP/lines"
		done
	done
	# One round: the ratio old over new, that of the old program over itself, and the figures.
	awk 'NF == 4 { figure[$1, $2, $3] = $4; row[$3]; round[$1] }
		END { for (r in row) for (k in round) if ((k, "old", r) in figure && (k, "new", r) in figure && (k, "again", r) in figure) {
			was = sqrt(figure[k, "old", r] * figure[k, "again", r])
			print r, was / figure[k, "new", r], figure[k, "old", r] / figure[k, "again", r], was, figure[k, "new", r] } }' "$TMP/lines" >"$TMP/ratios"
	local rows
	rows=$(cut -d ' ' -f 3 "$TMP/lines" | sort -u | wc -l)
	[ "$(wc -l <"$TMP/ratios")" -eq $((rows * launches)) ] || { sort "$TMP/lines" | tail -n 40 >&2; fail "$rows rows in $launches rounds, and $(wc -l <"$TMP/ratios") ratios"; }
	[ -s "$TMP/ratios" ] || { head -n 2 "$TMP/lines"; fail "no figures"; }
}

# of ROW FIELD QUANTITY: median, or the ends of its interval, by ranks (sign test), low and high.
of() {
	awk -v r="$1" -v f="$2" '$1 == r { print $f }' "$TMP/ratios" | sort -g | awk -v what="$3" '{ v[NR] = $1 }
		END { k = int(NR / 2 - 0.98 * sqrt(NR)); if (k < 1) k = 1
			if (what == "low") print v[k]; else if (what == "high") print v[NR + 1 - k]
			else print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# judge WHAT: prints the rows, and fails one whose whole interval is below 0.97.
judge() {
	local row worst ratio low high
	cut -d ' ' -f 1 "$TMP/ratios" | sort -u >"$TMP/rows"
	while read -r row; do
		printf '%-26s old %10.2f  new %10.2f  %.3f  (%.3f to %.3f; old over itself %.3f)\n' "$row" "$(of "$row" 4 median)" "$(of "$row" 5 median)" \
			"$(of "$row" 2 median)" "$(of "$row" 2 low)" "$(of "$row" 2 high)" "$(of "$row" 3 median)"
	done <"$TMP/rows" | tee "$TMP/table"
	worst=$(awk '{ print $6, $1, $7, $9 }' "$TMP/table" | tr -d '(;' | sort -g | head -n 1)
	read -r ratio row low high <<<"$worst"
	figure "$1, new over old ($base), $launches launches: $(awk '$6 >= 0.97' "$TMP/table" | wc -l) of $(wc -l <"$TMP/table") rows at least 0.97; the least is $ratio ($low to $high) of $row; must be 0.97"
	while read -r row; do
		high=$(of "$row" 2 high)
		must "$high >= 0.97" "$1, $row: the whole interval is below"
	done <"$TMP/rows"
}
