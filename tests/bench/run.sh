#!/usr/bin/env bash
# fluentps beside the references in C, launch by launch in turn, and a table of both.
#   tests/bench/run.sh [pushpull] [comm]      both without a name
# LAUNCHES (3) of each, SIZES, WORLDS ("1 2": as many servers as workers), SCHEMES, SECONDS_EACH a figure, SHARED_MEMORY
# (auto, off, both); LINES_FILE keeps the JSON lines; BENCH_ARGS go to fluentps bench pushpull.
set -eu
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

LAUNCHES=${LAUNCHES:-3}
lines=${LINES_FILE:-$(mktemp "${TMPDIR:-/tmp}/fluentps-bench.XXXXXX")}
: >"$lines"
[ $# -gt 0 ] || set -- pushpull comm
for what; do
	for ((launch = 1; launch <= LAUNCHES; launch++)); do
		echo "bench: $what, launch $launch of $LAUNCHES" >&2
		case $what in
		pushpull) side_by_side >>"$lines" ;;
		comm) comm_side_by_side >>"$lines" ;;
		*)
			echo "bench: there is no \"$what\"; there are pushpull and comm" >&2
			exit 2
			;;
		esac
	done
done
joined <"$lines"
[ -n "${LINES_FILE:-}" ] || rm -f "$lines"
