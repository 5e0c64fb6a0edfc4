#!/usr/bin/env bash
# Push and pull, one round at a time, with 1 server and 1 worker and with 2 and 2, asp and bsp: at least 0.90 of the better
# ideal C program from 1 MiB on, at least 0.80 of it at 64 KiB, where everything is sent in messages; through shared memory
# more than it from 64 KiB on. Medians over launches that take turns.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
SIZES=64KiB,1MiB,16MiB,64MiB
# shellcheck source=tests/bench/lib.sh
. "$ROOT/tests/bench/lib.sh"

make -s -C tests/bench
launches=${ACCEPT_LAUNCHES:-7}
for ((k = 0; k < launches; k++)); do
	side_by_side >>"$TMP/lines" 2>"$TMP/log" || shown "launch $((k + 1))"
done
joined <"$TMP/lines" | tee "$TMP/table"
columns <"$TMP/lines" >"$TMP/columns"

# worst MEMORY BYTES...: the row with the smallest ratio among those sizes, with shared memory (auto) or without (off).
worst() {
	awk -F '\t' -v memory="$1" -v sizes=" ${*:2} " '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["shared_memory"] == memory && index(sizes, " " $at["bytes"] " ") && (best == "" || $at["ratio"] + 0 < best + 0) {
			best = $at["ratio"]; row = $1 " " $2 " " $at["bytes"] " B"
		}
		END { print best "\t" row }' "$TMP/columns"
}
IFS=$'\t' read -r big bigrow < <(worst off 1048576 16777216 67108864)
IFS=$'\t' read -r small smallrow < <(worst off 65536)
IFS=$'\t' read -r near nearrow < <(worst auto 65536 1048576 16777216 67108864)
figure "push+pull against the ideal C program, $launches launches: from 1 MiB at least $big of it ($bigrow; must be 0.90), at 64 KiB $small ($smallrow; must be 0.80); through shared memory at least $near ($nearrow; must be above 1.00); $(tail -n 1 "$TMP/table")"
must "$big >= 0.90" "push+pull from 1 MiB, $bigrow"
must "$small >= 0.80" "push+pull at 64 KiB, $smallrow"
must "$near > 1.00" "push+pull through shared memory, $nearrow"
