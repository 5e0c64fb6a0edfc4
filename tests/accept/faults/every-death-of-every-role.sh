#!/usr/bin/env bash
# Every way of dying (SIGBUS, SIGSEGV, SIGABRT, memory that the system refuses, SIGKILL) of every role (rank 0, which serves, a
# server, a worker): under run --restarts over mpirun the job comes back by itself each time, and in jobs on a real Slurm, whose
# script has no --restarts, it goes back to the queue. Each ends with the bits of a run of which no process died.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

deaths=(BUS SEGV ABRT memory KILL)
roles=(0 1 3) # of 2 servers and 4 workers: ranks
# Without a collector the memory of a rank grows, until the system gives no more.
export GOGC=off

cat >"$TMP/job.yaml" <<END
name: mortal
seed: 5
cluster: {servers: 2}
data: {set: generated, rows: 2000, test_rows: 100, features: 32, classes: 10}
model: {name: mlp, layers: [32]}
train:
  batch_per_worker: 16
  optimizer: {name: momentum, lr: 0.02, momentum: 0.9}
  stop: {updates: 12000}
evaluate: {every_epochs: 0}
checkpoint: {every_updates: 100}
metrics: {interval: 0.2s}
faults:
  - {worker: 3, slow: {sleep: 5ms}} # so that it lasts; the numbers stay the same
END
local_world 6 --out "$TMP/unharmed" --set 'faults=[]' "$TMP/job.yaml"
want=$(get "$TMP/unharmed/summary.json" parameters_sha256)

newest() { find "$1/checkpoints" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1; }

# strike PID DEATH: the process dies of it.
strike() {
	if [ "$2" != memory ]; then
		kill -"$2" "$1"
		return
	fi
	prlimit --pid "$1" --data=1
	while kill -USR2 "$1" 2>/dev/null; do :; done # it prints where it stands, for which it needs memory
}
# until_true SECONDS WHAT COMMAND...: waits for it.
until_true() {
	local deadline=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || fail "$what: not in time"
		sleep 0.05
	done
}
has_newer() { [ "$(newest "$run")" != "$before" ]; }

# Under --restarts.
run=$TMP/restarted
"$FLUENTPS" run "$TMP/job.yaml" --restarts 99 --out "$run" -- "${MPIRUN[@]}" -n 6 >"$TMP/log" 2>&1 </dev/null &
job=$!
died() { kill -0 "$job" 2>/dev/null && [ "$(grep -c '^fluentps: the job died after ' "$TMP/log")" -eq "$n" ]; }
n=0
codes=""
for death in "${deaths[@]}"; do
	for rank in "${roles[@]}"; do
		before=$(newest "$run")
		until_true 60 "a checkpoint after $n deaths" has_newer
		strike "$(get "$run/run.json" "ranks.$rank.pid")" "$death"
		n=$((n + 1))
		until_true 60 "restart $n, after $death of rank $rank" died
	done
	codes+=" $death $(sed -n 's/^fluentps: the job died after .* with code \([0-9]*\)[,;].*/\1/p' "$TMP/log" | tail -n "${#roles[@]}" | sort -u | paste -sd /)"
done
wait "$job" || shown "a job that died $n times"
job=""
got=$(get "$run/summary.json" parameters_sha256)
figure "under --restarts $n deaths, of rank 0, a server and a worker each; codes of mpirun:$codes; parameters ${got:0:12}, of a run without a death ${want:0:12}; of $(get "$run/summary.json" iterations) iterations of each worker iterations.csv lacks $(get "$run/summary.json" resumed.iterations_unrecorded) rows, and summary.json says so"
[ "$got" = "$want" ] || fail "the parameters differ"

# The same in jobs: what dies waits in the queue again.
# shellcheck source=tests/accept/slurm.sh
. "$ROOT/tests/accept/slurm.sh"
slurm_up 3
cp "$TMP/job.yaml" .
for launcher in pmix mpirun; do
	run=job-$launcher
	bin/fluentps plan job.yaml --ranks 6 --nodes 3 --time 2h --launcher "$launcher" --sbatch | sed "s#^out=.*#out=$run#" >"$run.sbatch"
	submit "$run.sbatch"
	n=0
	codes=""
	requeued() { [ "$(grep -c "^$run failed with code .*, and will resume" "$id.out")" -eq "$n" ]; }
	for death in "${deaths[@]}"; do
		for rank in "${roles[@]}"; do
			before=$(newest "$run")
			until_true 200 "a checkpoint of job $id after $n deaths" has_newer
			strike "$(get "$run/run.json" "ranks.$rank.pid")" "$death"
			n=$((n + 1))
			until_true 120 "requeue $n of job $id, after $death of rank $rank" requeued
		done
		codes+=" $death $(sed -n "s/^$run failed with code \([0-9]*\),.*/\1/p" "$id.out" | tail -n "${#roles[@]}" | sort -u | paste -sd /)"
	done
	completed "$id" 600
	got=$(get "$run/summary.json" parameters_sha256)
	restarts=$("$SLURM" scontrol show job -o "$id" | sed -E 's/.* Restarts=([0-9]+) .*/\1/')
	figure "in a job, by $launcher: $n deaths, requeued $restarts times; codes:$codes; parameters ${got:0:12}"
	[ "$got" = "$want" ] || fail "the parameters differ"
	[ "$restarts" -eq "$n" ] || fail "$restarts requeues after $n deaths"
done
