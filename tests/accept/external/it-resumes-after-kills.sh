#!/usr/bin/env bash
# kill -9 of a torch child, of the worker beside it, or of a server in the middle of a bsp run under mpirun, with checkpoints every
# 50 updates and --restarts, with random numbers of the script in each step: the run comes back by itself, and ends with the bits of a run that nobody has killed. The same of a
# child in --local. No child is left behind by a kill.
#   KILLS=2 of each
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
kills=${KILLS:-2}
RANDOM=7
cat >"$TMP/job.yaml" <<END
name: killed
cluster: {servers: 2}
data: {set: external, rows: 4096, test_rows: 1024}
model: {name: external, command: $(command_of mlp-32-64-10 generated --dropout 0.2), shapes: $TMP/mlp.shapes}
train: {batch_per_worker: 16, optimizer: {name: adam, lr: 0.001}, stop: {updates: $((200 * (kills + 1)))}}
sync: [{match: "*", scheme: bsp}]
device: {threads: 1}
checkpoint: {every_updates: 50}
faults: [{worker: "*", slow: {sleep: 15ms}}]
evaluate: {every_epochs: 0}
END
shapes "$TMP/job.yaml" "$TMP/mlp.shapes"

children() { pgrep -f "train.py mlp-32-64-10 generated" | sort || true; }
before=$(children)
[ -z "$before" ] || fail "such children run already: $before"

world 4 run --out "$TMP/whole" "$TMP/job.yaml"
want=$(get "$TMP/whole/summary.json" parameters_sha256)

# pid_of VICTIM RUN: the process to kill: child, worker or server.
pid_of() {
	local n pid child
	if [ "$1" = child ]; then
		children | shuf -n 1 --random-source=<(yes)
		return
	fi
	for n in 0 1 2 3; do
		pid=$(get "$2/run.json" "ranks.$n.pid")
		child=$(pgrep -P "$pid" -f train.py || true)
		if [ "$1" = "$([ -n "$child" ] && echo worker || echo server)" ]; then
			echo "$pid"
			return
		fi
	done
}

# killed NAME VICTIM START...: a run that is killed so many times.
killed() {
	local name=$1 victim=$2 run=$TMP/$1 n pid code had=0 most=0
	shift 2
	"$FLUENTPS" run --out "$run" --restarts "$kills" "$@" >"$TMP/log" 2>&1 </dev/null &
	job=$!
	for n in $(seq "$kills"); do
		for _ in $(seq 600); do
			[ "$(made "$run")" -le "$had" ] || break
			kill -0 "$job" 2>/dev/null || shown "$name: it has ended before kill $n"
			sleep 0.1
		done
		[ "$(made "$run")" -gt "$had" ] || fail "$name: no checkpoint in 60 s before kill $n"
		had=$(made "$run")
		sleep "0.$((RANDOM % 300 + 100))"
		pid=$(pid_of "$victim" "$run")
		[ -n "$pid" ] || fail "$name: no $victim is found before kill $n"
		kill -9 "$pid"
	done
	code=0
	wait "$job" || code=$?
	job=""
	[ "$code" -eq 0 ] || shown "$name: code $code"
	most=$(grep -c 'restart [0-9]* of' "$TMP/log" || true)
	[ "$most" -ge "$kills" ] || shown "$name: $most restarts for $kills kills"
	[ -z "$(children)" ] || fail "$name: children are left: $(children)"
	got=$(get "$run/summary.json" parameters_sha256)
	figure "$kills times kill -9 of a $name: parameters ${got:0:12}, of a run without ${want:0:12}"
	[ "$got" = "$want" ] || fail "$name: the parameters differ"
}
for victim in child worker server; do
	killed "$victim" "$victim" "$TMP/job.yaml" -- "${MPIRUN[@]}" -n 4
done
killed "child in --local" child --local 4 "$TMP/job.yaml"
