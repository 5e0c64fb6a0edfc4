#!/usr/bin/env bash
# On a real Slurm of four nodes: the repository's own scripts train Fashion-MNIST with servers on different nodes, by srun
# and by mpirun; a heterogeneous job is one world with the servers on its first part; of a sweep's four runs a second
# submission runs only what the first did not finish; each worker takes the GPU of its place among those of its node.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/slurm.sh
. "$ROOT/tests/accept/slurm.sh"

mixed=configs/examples/fashion-mlp-mixed.yaml
slurm_up 4

submit "$ROOT/slurm/templates/requeue.sbatch"
completed "$id"
run=runs/fashion-mlp-mixed/batch
accuracy=$(get $run/summary.json test_accuracy)
figure "srun --mpi=pmix, requeue.sbatch as it is: 4 nodes, 8 ranks, servers on $(hosts_of $run s), workers on $(hosts_of $run w); 10 epochs in $(get $run/summary.json wall_s) s, test accuracy $accuracy"
[ "$(hosts_of $run s)" = "h1 h2" ] || fail "the servers are not on two nodes"
[ "$(hosts_of $run w)" = "h1 h2 h3 h3 h4 h4" ] || fail "the workers are elsewhere"
must "$accuracy > 0.85" "test accuracy"
submit "$ROOT/slurm/templates/requeue.sbatch"
completed "$id"
grep -q "^$run has finished already$" "$id.out" || fail "submitted again, it does more than nothing"
mv runs runs-srun

bin/fluentps plan $mixed --ranks 8 --nodes 4 --launcher mpirun --set train.stop.epochs=2 --sbatch >mpirun.sbatch
submit mpirun.sbatch
completed "$id"
accuracy=$(get $run/summary.json test_accuracy)
figure "mpirun, plan --sbatch: servers on $(hosts_of $run s), workers on $(hosts_of $run w); 2 epochs in $(get $run/summary.json wall_s) s, test accuracy $accuracy"
[ "$(hosts_of $run s) $(hosts_of $run w)" = "h1 h2 h1 h2 h3 h3 h4 h4" ] || fail "the ranks are elsewhere"
must "$accuracy > 0.75" "test accuracy after 2 epochs"
mv runs runs-mpirun

# The template as it is, but for the length of training.
sed 's/ --resume auto/& --set train.stop.epochs=2/' "$ROOT/slurm/templates/servers-on-cpu-nodes.sbatch" >het.sbatch
submit het.sbatch
completed "$id"
world=$(get $run/run.json 'ranks.*.rank' | paste -sd ' ')
figure "heterogeneous, servers-on-cpu-nodes.sbatch: one world of ranks $world, servers on $(hosts_of $run s), workers on $(hosts_of $run w)"
[ "$world" = "0 1 2 3 4 5 6 7 8 9" ] || fail "that is not one world of 10 ranks"
[ "$(hosts_of $run s)" = "h1 h2" ] || fail "the servers are not on the first part"
[ "$(hosts_of $run w)" = "h3 h3 h3 h3 h4 h4 h4 h4" ] || fail "the workers are not on the second part"
mv runs runs-het

sweep=(bin/fluentps sweep configs/examples/sweep-learning-rate.yaml --slurm --ranks 6 --nodes 2 --parallel 1)
"${sweep[@]}" || fail "sweep"
folder=sweeps/sweep-learning-rate
submit $folder/sweep.sbatch
until_there 300 $folder/0001/summary.json
"$SLURM" scancel "$id"
"$SLURM" ended "$id"
before=$(cd $folder && grep -l '"finished": "ok"' 000?/summary.json | cut -d / -f 1)
stamps=$(cd $folder && for n in $before; do stat -c '%n %y' "$n/summary.json"; done)
[ "$(wc -w <<<"$before")" -lt 4 ] || fail "all runs have finished before the array was cancelled: there is nothing left to show"
"${sweep[@]}" || fail "sweep, once more"
array=$(sed -n 's/^#SBATCH --array=//p' $folder/sweep.sbatch)
submit $folder/sweep.sbatch
completed "$id"
after=$(cd $folder && for n in $before; do stat -c '%n %y' "$n/summary.json"; done)
[ "$stamps" = "$after" ] || fail "a run that had finished was run again: $stamps, then $after"
[ "$(grep -l '"finished": "ok"' $folder/000?/summary.json | wc -l)" -eq 4 ] || fail "not all four runs have finished"
"${sweep[@]}" | tee last
grep -q "all runs have finished" last || fail "a third submission would run something"
figure "sweep of 4: $(paste -sd ' ' <<<"$before") had finished when the array was cancelled; submitted again it ran --array=$array, and all have finished"

# GPUs that the driver makes up, four on each node; the template as it is, but for what is trained.
mkdir gpu
(cd "$ROOT" && tests/with-cuda.sh --emulated go build -tags "mpi blas cuda" -o "$TMP/user/gpu/fluentps" ./cmd/fluentps) || fail "go build with CUDA"
cat >gpu.yaml <<END
name: gpus
cluster: {servers: 2}
data: {set: generated, rows: 256, test_rows: 64, features: 20, classes: 4}
model: {name: softmax}
train:
  batch_per_worker: 8
  optimizer: {name: sgd, lr: 0.1}
  stop: {updates: 3}
sync:
  - {match: "*", scheme: bsp}
END
sed 's# bin/fluentps # gpu/fluentps #; s#^config=.*#config=gpu.yaml#; s#^out=.*#out=gpus#' "$ROOT/slurm/templates/gpu-nodes.sbatch" >gpu.sbatch
LD_LIBRARY_PATH=$ROOT/build/cuemu CUEMU_DEVICES=4 submit gpu.sbatch
completed "$id"
chosen=$(sed -n 's/.*"device": "cuda .* GPU \([0-9]*\),.*/\1/p' gpus/run.json | paste -sd ' ')
figure "gpu-nodes.sbatch on a driver that makes 4 GPUs up for each node: workers on $(hosts_of gpus w) took GPUs $chosen"
[ "$(hosts_of gpus w)" = "h1 h1 h1 h1 h2 h2 h2 h2" ] || fail "the workers are elsewhere"
[ "$chosen" = "0 1 2 3 0 1 2 3" ] || fail "the GPUs are not those of the places on the nodes"
