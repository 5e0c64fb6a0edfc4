#!/usr/bin/env bash
# Half a round trip of messages up to 1 KiB through the transport: at most 2.5 us above raw MPI in C.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
COMM_SIZES=8B,64B,256B,1KiB
# shellcheck source=tests/bench/lib.sh
. "$ROOT/tests/bench/lib.sh"

make -s -C tests/bench
launches=${ACCEPT_LAUNCHES:-7}
for ((k = 0; k < launches; k++)); do
	comm_side_by_side >>"$TMP/lines" 2>"$TMP/log" || shown "launch $((k + 1))"
done
joined <"$TMP/lines" | tee "$TMP/table"
columns <"$TMP/lines" >"$TMP/columns"
IFS=$'\t' read -r more row < <(awk -F '\t' '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	most == "" || $at["more_us"] + 0 > most + 0 { most = $at["more_us"]; row = $at["bytes"] " B, " $at["latency_us"] " against " $at["c_latency_us"] " us" }
	END { print most "\t" row }' "$TMP/columns")
figure "half a round trip up to 1 KiB, $launches launches: at most $more us above C ($row; must be 2.5); $(tail -n 1 "$TMP/table")"
must "$more <= 2.5" "us above C, $row"
