#!/usr/bin/env bash
# HPSGD learns as much as bsp at equal epochs: LeNet on Fashion-MNIST, 4 workers, 5 epochs, rates that fall to 0 along a cosine, means of 3 seeds: within 1 point of bsp.
#
# A worker's push reaches its parameters a round late, so HPSGD bears a lower rate than bsp while the loss still falls steeply: a warm-up of 200 steps. Its workers have no momentum,
# and their rate makes up for it: bsp's 0.03 / (1 - 0.9) is 0.3. A fixed number of steps makes runs repeat. With momentum on the servers a round is one step, because momentum makes
# what is late count for longer.
#   ACCEPT_SEEDS=3
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
seeds=${ACCEPT_SEEDS:-3}
readonly EPOCHS=5
cat >"$TMP/config.yaml" <<-END
	name: hpsgd
	cluster: {servers: 1}
	data: {set: idx, path: /usr/share/datasets/fashion-mnist}
	model: {name: lenet}
	train:
	  batch_per_worker: 32
	  optimizer: {name: momentum, lr: 0.03, momentum: 0.9, weight_decay: 0.001}
	  schedule: {name: cosine, over: $((EPOCHS * 469))} # in steps: 469 are an epoch of 4 workers
	  stop: {epochs: $EPOCHS}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
END

# accuracy NAME ARG...: the mean over the seeds, which are listed in $TMP/NAME.seeds.
accuracy() {
	local name=$1 seed s
	shift
	for seed in $(seq "$seeds"); do
		local_world 5 "$TMP/config.yaml" --out "$TMP/$name-$seed" --set "seed=$seed" "$@"
		s=$TMP/$name-$seed/summary.json
		[ "$(get "$s" finished)" = ok ] || fail "$name, seed $seed: finished: $(get "$s" finished)"
		must "$(get "$s" samples) <= $EPOCHS * 60000 + 1024" "samples of $name against $EPOCHS epochs and one round"
		get "$s" test_accuracy >>"$TMP/$name.seeds"
	done
	awk '{ sum += $1 } END { printf "%.4f", sum / NR }' "$TMP/$name.seeds"
}
late=(--set train.schedule.warm_up=200 --set "train.optimizer.name=sgd" --set "train.optimizer.momentum=null")
bsp=$(accuracy bsp)
hpsgd=$(accuracy hpsgd "${late[@]}" --set train.optimizer.lr=0.4 --set "local={policy: hpsgd, steps: 2}")
outer=$(accuracy outer "${late[@]}" --set train.optimizer.lr=0.2 --set "local={policy: hpsgd, steps: 1, outer: {name: momentum, momentum: 0.5}}")
for name in bsp hpsgd outer; do
	printf '%-6s test accuracy %s\n' "$name" "$(tr '\n' ' ' <"$TMP/$name.seeds")"
done
figure "LeNet on Fashion-MNIST, $EPOCHS epochs: test accuracy of hpsgd with 2 steps $hpsgd, with 1 step and momentum 0.5 on the servers $outer (both must be within 0.01 of bsp's $bsp); means of $seeds seeds"
must "$hpsgd >= $bsp - 0.01" "test accuracy of hpsgd against bsp's"
must "$outer >= $bsp - 0.01" "test accuracy of hpsgd with momentum on the servers against bsp's"
