#!/usr/bin/env bash
# Three hosts with two ranks each, joined by links of 1 Gbit/s. One dies: its processes are killed, its cable is pulled, its
# memory is lost, and the files of the checkpoints in the run folder are emptied. The run restarts by itself on the two that
# remain, from the replicas in their memory, loses at most one interval, and trains on.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

every=1 # seconds
run=$TMP/run
cat >"$TMP/job.yaml" <<END
name: lost-host
cluster: {servers: 2}
data: {set: generated, rows: 2000, test_rows: 100, features: 64, classes: 10}
model: {name: mlp, layers: [256]}
train:
  batch_per_worker: 16
  optimizer: {name: adam, lr: 0.001}
  stop: {time: 10h}
evaluate: {every_epochs: 0}
checkpoint: {every: ${every}s, replica: 1}
metrics: {interval: 0.1s}
END
# h1:2,h2:2 becomes a map with a name for each rank.
cat >"$TMP/launch.sh" <<END
map=\$(echo "\$1" | tr , '\n' | awk -F : '{ for (i = 0; i < \$2; i++) print \$1 }' | paste -sd , -)
shift 2
exec "$HOSTS" mpirun --map "\$map" "\$@"
END

until_true() { # WHAT COMMAND...: waits at most 120 s
	local what=$1
	shift
	for _ in $(seq 2400); do
		! "$@" || return 0
		kill -0 "$job" 2>/dev/null || shown "$what"
		sleep 0.05
	done
	fail "$what: not within 120 s"
}
newest() { find "$run/checkpoints" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1; }
has() { [ "$(newest)" \> "$run/checkpoints/$1" ]; }
trains() { [ "$(get "$run/run.json" ranks.0.pid 2>/dev/null)" != "$old" ] && [ "$run/metrics.jsonl" -nt "$run/run.json" ]; }

hosts_up 3 1gbit
"$FLUENTPS" run "$TMP/job.yaml" --restarts 1 --hosts h1:2,h2:2,h3:2 --out "$run" -- bash "$TMP/launch.sh" "{hosts}" "{ranks}" >"$TMP/log" 2>&1 </dev/null &
job=$!
until_true "two checkpoints" has 000000000002
sleep 0.5
old=$(get "$run/run.json" ranks.0.pid)
victims=()
for rank in $(seq 0 5); do
	[ "$(get "$run/run.json" "ranks.$rank.host")" = h3 ] || continue
	pid=$(get "$run/run.json" "ranks.$rank.pid")
	victims+=("$pid" "$(awk '{ print $4 }' "/proc/$pid/stat")") # and the launcher's part there
done
[ "${#victims[@]}" -eq 4 ] || fail "h3 has ${#victims[@]} processes and their parents, not 4"
at=$(tail -n 1 "$run/metrics.jsonl" | sed 's/.*"at_s":\([0-9.e-]*\).*/\1/')
truncate -s 0 "$run"/checkpoints/0*/*.bin
start=$(now_ms)
kill -9 "${victims[@]}" 2>/dev/null || true
"$HOSTS" exec h3 sh -c 'ip link set eth0 down; rm -rf /dev/shm/fluentps-*'
until_true "training again" trains
took=$(awk "BEGIN { print ($(now_ms) - $start) / 1000 }")
grep -q 'nothing starts on h3 within 30s; continuing with 4 of 6 ranks' "$TMP/log" || shown "without h3"
resumed=$(grep '^Resumed: ' "$TMP/log" | tail -n 1)
case "$resumed" in
"Resumed: /dev/shm/fluentps-"*", of 2 servers and 4 workers, "*) ;;
*) shown "from memory: $resumed" ;;
esac
lost=$(echo "$resumed" | sed 's/.* \([0-9.]*\)\(m*s\) of training$/\1 \2/' | awk -v at="$at" '{ print at - ($2 == "ms" ? $1 / 1000 : $1) }')
until_true "a checkpoint after it" has "$(basename "$(newest)")"
kill -USR1 "$job"
code=0
wait "$job" || code=$?
job=""
[ "$code" -eq 75 ] || shown "the wish to stop: code $code"
for host in h1 h2; do
	left=$("$HOSTS" exec "$host" sh -c 'find /dev/shm -name "fluentps-*"')
	[ -z "$left" ] || fail "$host still has $left"
done
figure "one of three hosts lost, with its memory: training again on the others after $took s; $lost s of training lost at an interval of $every s; $resumed"
must "$lost < 2 * $every" "seconds of training lost"
"$HOSTS" down
