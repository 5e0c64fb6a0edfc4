#!/usr/bin/env bash
# HPSGD trains ResNet-20 on CIFAR-10 as well as bsp: 2 workers, 5 epochs, rates that fall to 0 along a cosine, means of 3 seeds: within 2 points.
# Each run takes about 9 minutes on two idle cores.
#
# A round is one step. The momentum is on the workers, and the rate is twice that of bsp: a change reaches the parameters a round late, and the mean of the workers' changes is what counts.
#   ACCEPT_SEEDS=3, ACCEPT_EPOCHS=5
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

if [ ! -d "$EXTRA_DATA/cifar-10" ]; then
	figure "left out: FLUENTPS_TEST_DATA has no cifar-10, the binary version of the set"
	exit 0
fi
seeds=${ACCEPT_SEEDS:-3}
epochs=${ACCEPT_EPOCHS:-5}
example=(configs/examples/cifar10-resnet20.yaml --set "data.path=$EXTRA_DATA/cifar-10" --set "train.stop.epochs=$epochs"
	--set "train.schedule.over=$((epochs * 782))" --set evaluate.every_epochs=0 --set checkpoint.keep=0)

# train NAME SEED ARG...: its accuracy goes to $TMP/NAME.seeds.
train() {
	local name=$1 seed=$2 s=$TMP/$1-$2/summary.json
	shift 2
	local_world 3 "${example[@]}" --out "$TMP/$name-$seed" --set "seed=$seed" "$@"
	[ "$(get "$s" finished)" = ok ] || fail "$name, seed $seed: finished: $(get "$s" finished)"
	must "$(get "$s" samples) <= $epochs * 50000 + 256" "samples of $name against $epochs epochs and one round"
	get "$s" test_accuracy >>"$TMP/$name.seeds"
	echo "$name, seed $seed: test accuracy $(get "$s" test_accuracy)"
}
for seed in $(seq "$seeds"); do
	train bsp "$seed"
	train hpsgd "$seed" --set "local={policy: hpsgd, steps: 1}" --set "train.optimizer={name: nesterov, lr: 0.2, momentum: 0.9, weight_decay: 0.0005}"
done
mean() { awk '{ sum += $1 } END { printf "%.4f", sum / NR }' "$TMP/$1.seeds"; }
figure "ResNet-20 on CIFAR-10, $epochs epochs: test accuracy of hpsgd $(mean hpsgd), bsp $(mean bsp) (must be within 0.02), means of $seeds seeds"
must "$(mean hpsgd) >= $(mean bsp) - 0.02" "test accuracy of hpsgd against bsp's"
