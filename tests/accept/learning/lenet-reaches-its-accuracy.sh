#!/usr/bin/env bash
# LeNet on Fashion-MNIST, CPU, 2 servers and 4 workers under BSP: test accuracy at least 0.905 in under 20 minutes on
# two cores.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

world 6 run --out "$TMP/run" configs/examples/fashion-lenet.yaml
s=$TMP/run/summary.json
accuracy=$(get "$s" test_accuracy)
wall=$(get "$s" wall_s)
figure "test accuracy $accuracy (at least 0.905), wall_s ${wall:0:5} (under 1200), $(get "$s" samples_per_s) samples/s"
[ "$(get "$s" finished)" = ok ] || fail "finished: $(get "$s" finished)"
[ "$(get "$s" workers) $(get "$s" 'per_shard.*.scheme' | sort -u)" = "4 bsp" ] || fail "not 4 workers under BSP"
must "$accuracy >= 0.905" "test accuracy"
must "$wall < 1200" "wall_s"
