# Sourced after lib.sh by the scripts that need links of a set rate: tests/net/hosts.sh, and how to read steps.
# shellcheck shell=bash

HOSTS=$ROOT/tests/net/hosts.sh
# Socket buffers of about what a link of 200 Mbit/s carries in 5 ms: what is queued in them nobody can overtake (README,
# Sending).
SHORT_QUEUES=(--env OMPI_MCA_btl_tcp_sndbuf=131072)

# hosts_up N RATE: until this script ends. Where the machine does not let us, that is a failure.
hosts_up() { "$HOSTS" up --wait 600 --owner $$ "$1" "$2" || fail "no hosts, see above"; }

# on_hosts MAP ARG... is fluentps with a rank on each host of the map, with short queues.
on_hosts() {
	local map=$1
	shift
	timeout 120 "$HOSTS" mpirun --map "$map" "${SHORT_QUEUES[@]}" "$FLUENTPS" "$@" >"$TMP/log" 2>"$TMP/err" </dev/null || {
		cat "$TMP/err" >>"$TMP/log"
		shown "fluentps $* on $map"
	}
}

# link_rate: bytes per second of a link that carries messages of a piece's size both ways at once, each way.
link_rate() {
	on_hosts h1,h2 bench comm --sizes 60KiB --time 1s --format json
	sed -n 's/.*"both_gb_per_s":\([0-9.e+-]*\).*/\1/p' "$TMP/log" | awk '{ printf "%d", $1 / 2 * 1e9 }'
}

# steps_ms DIR: the steps of worker 0, each from the end of its computing to the next one's, without the first 3 and the last.
steps_ms() {
	awk -F , 'NR > 1 && $1 == 0 { end = $3 + $4 + $6; if (++n > 4) { if (held != "") print held; held = (end - last) * 1000 } last = end }' "$1/iterations.csv"
}
compute_ms() { awk -F , 'NR > 1 && $1 == 0 && ++n > 3 { print $4 * 1000 }' "$1/iterations.csv"; }
median() { sort -g | awk '{ x[NR] = $1 } END { if (NR == 0) exit 1; printf "%.1f", NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
