#!/usr/bin/env bash
# ResNet-20 on CIFAR-10, CPU, 1 server and 2 workers under BSP: 3 epochs, falling loss, test accuracy at least 0.55. The
# run ends after 2 epochs and goes on from its checkpoint for the third.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

if [ ! -d "$EXTRA_DATA/cifar-10" ]; then
	figure "left out: FLUENTPS_TEST_DATA has no cifar-10, the binary version of the set"
	exit 0
fi
example=(configs/examples/cifar10-resnet20.yaml --set "data.path=$EXTRA_DATA/cifar-10")
world 3 run --out "$TMP/run" "${example[@]}" --set train.stop.epochs=2
world 3 run --resume "$TMP/run" "${example[@]}"
s=$TMP/run/summary.json
resumed=$(get "$s" resumed.iteration)
[ "$resumed" -gt 1500 ] || fail "went on from iteration $resumed"
accuracy=$(get "$s" test_accuracy)
mapfile -t losses < <(get "$s" 'evaluations.*.test_loss')
# The loss of training in the first and in the last tenth of the iterations: mean of the windows of metrics.csv.
read -r first last < <(awk -F, '
	NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
	$column["train/loss"] != "" { n++; epoch[n] = $column["epoch"]; loss[n] = $column["train/loss"] }
	END {
		for (i = 1; i <= n; i++) {
			if (epoch[i] <= epoch[n] / 10) { a += loss[i]; j++ }
			if (epoch[i] >= epoch[n] * 9 / 10) { b += loss[i]; k++ }
		}
		print a / j, b / k
	}' "$TMP/run/metrics.csv")
figure "test accuracy $accuracy (at least 0.55), train loss $first falls to $last, test loss ${losses[*]}, resumed at iteration $resumed, $(get "$s" samples_per_s) samples/s"
[ "$(get "$s" finished)" = ok ] || fail "finished: $(get "$s" finished)"
[ "$(get "$s" workers) $(get "$s" 'per_shard.*.scheme' | sort -u)" = "2 bsp" ] || fail "not 2 workers under BSP"
[ "${#losses[@]}" = 3 ] || fail "${#losses[@]} evaluations, want one an epoch"
must "$accuracy >= 0.55" "test accuracy"
must "$last < $first / 2" "train loss"
must "${losses[2]} < ${losses[0]}" "test loss of the last epoch"
