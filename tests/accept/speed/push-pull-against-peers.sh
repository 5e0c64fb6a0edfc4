#!/usr/bin/env bash
# Push+pull against other parameter servers. Their figures in tests/bench/peers.tsv stand beside an ideal C program on the
# same machine; scaled by that program here and now, fluentps moves at least 4 times what PS-Lite does up to 64 KiB and 2.2
# times from 1 MiB, 1.6 times what Multiverso does at 1 MiB and 2 times elsewhere, with everything sent in messages; through
# shared memory 3 times PS-Lite everywhere. It takes at most 1.2 times the CPU seconds of the ideal C program for a GB.
# Medians over launches that take turns.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
SCHEMES=asp
# shellcheck source=tests/bench/lib.sh
. "$ROOT/tests/bench/lib.sh"

make -s -C tests/bench
launches=${ACCEPT_LAUNCHES:-7}
for ((k = 0; k < launches; k++)); do
	side_by_side >>"$TMP/lines" 2>"$TMP/log" || shown "launch $((k + 1))"
done
joined <"$TMP/lines" | tee "$TMP/table"
columns <"$TMP/lines" >"$TMP/columns"

# A row of a case: its name, the multiples of both peers with what they must be, and the CPU seconds against C.
awk -F '\t' '
	/^#/ { next }
	FNR == 1 { delete at; for (i = 1; i <= NF; i++) at[$i] = i; next }
	FILENAME == ARGV[1] { key = $1 " " $at["bytes"]; ideal[key] = $at["ideal"]; pslite[key] = $at["pslite"]; multiverso[key] = $at["multiverso"]; next }
	{
		key = $1 " " $at["bytes"]; bytes = $at["bytes"]; near = $at["shared_memory"] == "auto"
		if (!(key in ideal)) { print "no figures of peers for " key > "/dev/stderr"; exit 1 }
		scaled = $at["ratio"] * ideal[key]
		printf "%s %s\t%.2f\t%s\t%.2f\t%s\t%s\n", key, near ? "shared" : "sent", scaled / pslite[key], near ? 3 : bytes < 1048576 ? 4 : 2.2, scaled / multiverso[key], near ? 0 : bytes == 1048576 ? 1.6 : 2, $at["cpu_ratio"]
	}' <(sed '/^#/d' tests/bench/peers.tsv) "$TMP/columns" >"$TMP/peers"
printf 'servers+workers bytes how\tPS-Lite\tmust be\tMultiverso\tmust be\tCPU s/GB against C (at most 1.2)\n'
cat "$TMP/peers"
[ "$(wc -l <"$TMP/peers")" -eq 20 ] || fail "$(wc -l <"$TMP/peers") cases, must be 20"
# range COLUMN HOW: the least and the most.
range() { grep " $2"$'\t' "$TMP/peers" | sort -t $'\t' -k "$1,$1g" | cut -f "$1" | sed -n '1p;$p' | paste -sd ' ' | sed 's/ / to /'; }
figure "push+pull, asp, $launches launches: $(range 2 sent) times PS-Lite, $(range 4 sent) times Multiverso, scaled by C; CPU seconds a GB $(range 6 sent) times the ideal C program's; through shared memory $(range 2 shared), $(range 4 shared) and $(range 6 shared); $(tail -n 1 "$TMP/table")"
while IFS=$'\t' read -r name pslite pslite_must multiverso multiverso_must cpu; do
	holds "$pslite >= $pslite_must" || echo "FAIL: $name: $pslite times PS-Lite, must be $pslite_must"
	holds "$multiverso >= $multiverso_must" || echo "FAIL: $name: $multiverso times Multiverso, must be $multiverso_must"
	holds "$cpu <= 1.2" || echo "FAIL: $name: $cpu times the CPU seconds of C, at most 1.2"
done <"$TMP/peers" >"$TMP/failed"
if [ -s "$TMP/failed" ]; then
	cat "$TMP/failed"
	fail "$(wc -l <"$TMP/failed") of 50 comparisons"
fi
