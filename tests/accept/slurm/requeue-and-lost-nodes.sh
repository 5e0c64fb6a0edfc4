#!/usr/bin/env bash
# On a real Slurm: a job whose time limit comes too early is warned, leaves a checkpoint and goes back to the queue, as often
# as it takes; one of whose nodes every process is killed (the node of the batch script, rank 0 and a server; then one of
# workers) is requeued by Slurm onto others; one of whose ranks is killed requeues itself. Each ends with the parameters of a run
# that was never interrupted.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/slurm.sh
. "$ROOT/tests/accept/slurm.sh"

steps=4000
every=50
slurm_up 6
cat >job.yaml <<END
name: requeued
seed: 5
cluster: {servers: 2}
data: {set: idx, path: /usr/share/datasets/fashion-mnist}
model: {name: mlp, layers: [64]}
train:
  batch_per_worker: 16
  optimizer: {name: momentum, lr: 0.02, momentum: 0.9}
  stop: {updates: $steps}
evaluate: {every_epochs: 0}
checkpoint: {every_updates: $every}
sync:
  - {match: "*", scheme: bsp}
faults:
  - {worker: 3, slow: {sleep: 20ms}}   # so that it lasts longer than a minute; the numbers stay the same
END
"$FLUENTPS" run --local 8 --out alone --set 'faults=[]' job.yaml >alone.log || fail "run --local: $(tail -n 20 alone.log)"
want=$(get alone/summary.json parameters_sha256)

# script NAME TIME WARNING: a job script of 8 ranks on 4 nodes whose run folder is NAME.
script() {
	bin/fluentps plan job.yaml --ranks 8 --nodes 4 --sbatch |
		sed "s#^out=.*#out=$1#; s/--time=.*/--time=$2/; s/--signal=.*/--signal=B:USR1@$3/" >"$1.sbatch"
}
# same NAME: its parameters, beside those of the run that nobody interrupted.
same() {
	local got
	got=$(get "$1/summary.json" parameters_sha256)
	restarts=$("$SLURM" scontrol show job -o "$id" | sed -E 's/.* Restarts=([0-9]+) .*/\1/')
	resumed=$(sed -n 's/^Resumed: .* iteration \([0-9]*\),.*/\1/p' "$id.out" | paste -sd ' ')
	echo "$1: restarts $restarts, resumed at $resumed"
	[ "$restarts" -ge 1 ] || fail "$1: the job was not requeued"
	[ -n "$resumed" ] || fail "$1: no part of it went on from a checkpoint"
	[ "$got" = "$want" ] || fail "$1: parameters ${got:0:12}, those of an uninterrupted run ${want:0:12}"
}

# The warning is due a minute after the start, and comes when Slurm looks, every half minute.
script limit 0-00:02:00 60
submit limit.sbatch
completed "$id" 500
same limit
grep -q "limit will resume after a requeue" "$id.out" || fail "it was not the warning that stopped the job"
figure "USR1 before the time limit: requeued $restarts times, went on at iterations $resumed of $steps; parameters ${want:0:12}, as uninterrupted"


# node_fails NAME NODE: a job, and after its first checkpoints the end of everything on one of its nodes.
node_fails() {
	script "$1" 0-01:00:00 120
	submit "$1.sbatch"
	until_there 200 "$1/checkpoints/000000000004"
	"$SLURM" crash "$2"
	local start=$SECONDS
	until "$SLURM" sinfo -h -N -n "$2" -o %T | grep -q '^down'; do
		[ $((SECONDS - start)) -lt 90 ] || fail "Slurm does not find out that $2 is gone"
		sleep 0.5
	done
	local found=$((SECONDS - start))
	completed "$id" 500
	same "$1"
	! hosts_of "$1" "[sw]" | grep -qw "$2" || fail "$1: it goes on with ranks on $2, which is dead"
	figure "node $2 killed, $3: Slurm knew after $found s, requeued $restarts times, now on $(hosts_of "$1" '[sw]'); went on at iteration $resumed; parameters as uninterrupted"
}
node_fails first h1 "with the batch script, rank 0 and a server"
node_fails other h4 "with two workers"

# A rank that is killed ends the job within seconds, and what came further than before is tried again.
script killed 0-01:00:00 120
submit killed.sbatch
until_there 200 killed/checkpoints/000000000004
kill -9 "$(get killed/run.json ranks.3.pid)"
completed "$id" 500
same killed
code=$(sed -n 's/^killed failed with code \([0-9]*\),.*/\1/p' "$id.out")
[ -n "$code" ] || fail "it was not the job script that requeued"
figure "a rank killed: the launcher left with $code, requeued $restarts times, went on at iteration $resumed; parameters as uninterrupted"
