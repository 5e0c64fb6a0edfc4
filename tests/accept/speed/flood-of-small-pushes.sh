#!/usr/bin/env bash
# A million small pushes against a server that is stopped (SIGSTOP) for three seconds on the way: neither process
# grows past the limit that is stated, nothing is lost, and it resumes.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

timeout 300 "${MPIRUN[@]}" -n 2 "$FLUENTPS" bench flood --messages 1000000 --sizes 1KiB --pause 0s --format json >"$TMP/row.json" 2>"$TMP/log" &
job=$!
server=""
for _ in $(seq 200); do
	server=$(sed -n 's/^rank 0 is process //p' "$TMP/log")
	[ -z "$server" ] || break
	sleep 0.05
done
[ -n "$server" ] || shown "bench flood did not start"
sleep 0.3
kill -STOP "$server" || fail "the flood was over before the server could be stopped"
worker=$(pgrep -P "$(ps -o ppid= -p "$server" | tr -d ' ')" -x fluentps | grep -vx "$server")
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; } # KiB
from_server=$(rss "$server")
from_worker=$(rss "$worker")
most_server=$from_server
most_worker=$from_worker
for _ in $(seq 30); do
	sleep 0.1
	now=$(rss "$server")
	[ "$now" -le "$most_server" ] || most_server=$now
	now=$(rss "$worker")
	[ "$now" -le "$most_worker" ] || most_worker=$now
done
kill -CONT "$server"
wait "$job" || shown "bench flood"
job=""
row() { get "$TMP/row.json" "$1"; }
took=$(row seconds)
figure "flood: while the server was stopped it grew by $((most_server - from_server)) KiB, the worker by $((most_worker - from_worker)) KiB"
figure "flood: $(row messages) messages of $(row bytes) B in $took s, $(row lost) lost; the server grew by $(($(row receiver_growth_bytes) / 1024)) KiB, the worker by $(($(row sender_growth_bytes) / 1024)) KiB (each at most $(($(row limit_bytes) / 1024))); $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
must "$(row messages) == 1000000 && $(row lost) == 0" "messages"
must "$took >= 3" "seconds, with the stop in them"
must "$(row receiver_growth_bytes) <= $(row limit_bytes) && $(row sender_growth_bytes) <= $(row limit_bytes)" "bytes"
must "1024 * ($most_worker - $from_worker) <= $(row limit_bytes)" "bytes while stopped"
