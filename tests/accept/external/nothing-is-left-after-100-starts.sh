#!/usr/bin/env bash
# 100 short runs in a row of a torch program with a DataLoader of 4 forked workers in each of 2 children. Every run ends ok; of each ten,
# one has a child killed in the middle and ends with code 1, and one is killed itself. After each, within 10 s, no process of it
# is left, no file in /dev/shm, and no process holds memory that it shared; after all, the system has the open files that it had.
# As root the script runs in namespaces of its own, so that it sees no processes or files of other jobs.
#   STARTS=100
set -eu
if [ -z "${APART:-}" ] && unshare --mount --pid --fork --mount-proc true 2>/dev/null; then
	# shellcheck disable=SC2016 # the inner shell expands it
	APART=1 exec unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$0"' "$(realpath "$0")"
fi
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
starts=${STARTS:-100}
cat >"$TMP/job.yaml" <<END
name: short
cluster: {servers: 1}
data: {set: external, rows: 512, test_rows: 64}
model: {name: external, command: [$PYTHON, $EXTERNAL/loader.py, $TMP], shapes: $TMP/net.shapes}
train: {batch_per_worker: 8, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 20}}
sync: [{match: "*", scheme: bsp}]
device: {threads: 1}
END
shapes "$TMP/job.yaml" "$TMP/net.shapes"

processes() { pgrep -f "$TMP" | grep -vx -e "$$" -e "$BASHPID" || true; }
shared() { find /dev/shm -mindepth 1 | sort; }
# Descriptors of memory of the protocol, of whatever process.
held() { find /proc/[0-9]*/fd -lname '*memfd:fluentps*' 2>/dev/null | wc -l; }
files() { cut -f 1 /proc/sys/fs/file-nr; }
# left: what there is more than before.
left() {
	processes
	comm -13 "$TMP/shared" <(shared)
	[ "$(held)" -le "$held" ] || echo "memory of the protocol: $(held), before $held"
}
shared >"$TMP/shared"
held=$(held) had=$(files) most=0 killed=0

for n in $(seq "$starts"); do
	args=() wanted=0
	case $((n % 10)) in 3 | 7) args=(--set 'train.stop={time: 60s}') ;; esac
	"$FLUENTPS" run --local 3 --no-report --no-what-if --out "$TMP/run" "${args[@]}" "$TMP/job.yaml" >"$TMP/log" 2>&1 &
	job=$!
	if [ ${#args[@]} -gt 0 ]; then
		for _ in $(seq 300); do # until the loaders of both children run
			[ "$(pgrep -c -f "$EXTERNAL/loader.py $TMP")" -lt 10 ] || break
			sleep 0.1
		done
		[ "$(pgrep -c -f "$EXTERNAL/loader.py $TMP")" -ge 10 ] || fail "start $n: not 2 children with 4 workers each"
		killed=$((killed + 1))
		if [ $((n % 10)) -eq 3 ]; then
			wanted=1
			kill -9 "$(pgrep -P "$job" | head -n 1)"
		else
			wanted=137
			kill -9 "$job"
		fi
	fi
	code=0
	wait "$job" 2>/dev/null || code=$?
	job=""
	[ "$code" -eq "$wanted" ] || shown "start $n: code $code, want $wanted"
	[ "$wanted" -ne 0 ] || [ "$(get "$TMP/run/summary.json" finished)" = ok ] || fail "start $n: finished $(get "$TMP/run/summary.json" finished)"
	since=$(now_ms)
	while [ -n "$(left)" ]; do
		[ $(($(now_ms) - since)) -lt 10000 ] || fail "start $n (code $code): left after 10 s: $(left | head -n 5 | paste -sd ' ')"
		sleep 0.1
	done
	took=$(($(now_ms) - since))
	[ "$took" -le "$most" ] || most=$took
	rm -rf "$TMP/run"
done
figure "$starts starts with 2 children and 8 DataLoader workers, $killed killed in the middle: nothing left, at most $most ms after the end; open files of the system $had before, $(files) after"
