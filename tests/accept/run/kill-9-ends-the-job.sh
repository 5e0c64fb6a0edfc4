#!/usr/bin/env bash
# kill -9 of any rank ends the job within 5 s with a non-zero code; mpirun names the rank, and the rank map, printed
# at the start and kept in run.json, gives its role and host. SIGTERM to mpirun leaves no half-written file.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

ranks=5
cat >"$TMP/long.yaml" <<'END'
name: long
cluster: {servers: 2}
data: {set: generated, rows: 20000, test_rows: 1000, features: 64, classes: 10}
model: {name: mlp, layers: [64]}
train:
  batch_per_worker: 16
  optimizer: {name: sgd, lr: 0.01}
  stop: {time: 10m}
evaluate: {every_epochs: 0}
metrics: {interval: 0.2s}
sync: [{match: "*", scheme: ssp, staleness: 3}]
END

# begin DIR: starts the job and returns once it trains; sets job, the pid of mpirun.
begin() {
	"${MPIRUN[@]}" -n "$ranks" "$FLUENTPS" run --out "$1" "$TMP/long.yaml" >"$1.log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq 300); do
		if [ -s "$1/metrics.jsonl" ] && [ -s "$1/run.json" ]; then
			return 0
		fi
		kill -0 "$job" 2>/dev/null || break
		sleep 0.1
	done
	cat "$1.log"
	kill -9 "$job" 2>/dev/null || true
	fail "$1: the job did not begin to train within 30 s"
}

# ended: waits for the job, at most 10 s; sets code and took, in milliseconds.
ended() {
	local start
	start=$(now_ms)
	for _ in $(seq 200); do
		kill -0 "$job" 2>/dev/null || break
		sleep 0.05
	done
	took=$(($(now_ms) - start))
	if kill -0 "$job" 2>/dev/null; then
		kill -9 "$job"
		fail "the job went on for 10 s"
	fi
	code=0
	wait "$job" || code=$?
	job=""
}

slowest=0
for rank in $(seq 0 $((ranks - 1))); do
	dir=$TMP/kill-$rank
	begin "$dir"
	pid=$(get "$dir/run.json" "ranks.$rank.pid")
	role=$(get "$dir/run.json" "ranks.$rank.role")
	host=$(get "$dir/run.json" "ranks.$rank.host")
	kill -9 "$pid"
	ended
	echo "rank $rank ($role on $host, pid $pid): code $code after $took ms; mpirun: $(grep -m 1 -E "rank $rank\b.*(signal 9|Killed)" "$dir.log" || echo nothing)"
	[ "$code" -ne 0 ] || fail "rank $rank killed: exit code 0"
	[ "$took" -le 5000 ] || fail "rank $rank killed: the job ended only after $took ms"
	grep -q -E "rank $rank\b.*(signal 9|Killed)" "$dir.log" || {
		tail -n 30 "$dir.log"
		fail "mpirun does not name rank $rank"
	}
	case "$role/$host" in
	/* | */) fail "run.json lacks role or host of rank $rank" ;;
	esac
	intact "$dir"
	[ "$took" -le "$slowest" ] || slowest=$took
done
figure "kill -9 of each of $ranks ranks: the job ended within $slowest ms (at most 5000), code not 0, rank named"

files=""
for delay in 0 0.3 1; do
	dir=$TMP/term-$delay
	begin "$dir"
	sleep "$delay"
	kill -TERM "$job"
	ended
	[ "$code" -ne 0 ] || fail "SIGTERM: exit code 0"
	files+="$(intact "$dir"), code $code, $took ms; "
done
figure "SIGTERM to mpirun: $files"
