#!/usr/bin/env bash
# DiLoCo with 50 steps between two exchanges sends at most 1/45 of the bytes of bsp, and learns as much. LeNet on Fashion-MNIST, float32 both ways.
#
# Bytes: 1000 steps, which are 20 exchanges, of 2 workers and 1 server on three hosts, by the counters of the hosts' interfaces, and by the program's own
# count. Evaluation is left out: rank 0, which evaluates, has the parameters. The first pull counts, so for K steps and R exchanges no run can save more than
#
#	(2 K + 1) / (2 R + 1) = 2001 / 41 = 48.8
#
# The interfaces count the start of the job too, and the acknowledgements of TCP.
#
# Accuracy: 4 workers, 320,000 samples, which are 50 exchanges, means of 3 seeds: within 1 point of bsp at the same samples.
#   ACCEPT_SEEDS=3
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

tests/deps.sh --test
seeds=${ACCEPT_SEEDS:-3}
readonly H=50 STEPS=1000 SAMPLES=320000 # diloco: 20 and 50 exchanges
cat >"$TMP/config.yaml" <<-END
	name: diloco
	cluster: {servers: 1, link: 10Gbit} # given, so that the run does not send anything to measure it
	data: {set: idx, path: /usr/share/datasets/fashion-mnist}
	model: {name: lenet}
	train:
	  batch_per_worker: 32
	  optimizer: {name: momentum, lr: 0.03, momentum: 0.9, weight_decay: 0.001}
	  schedule: {name: cosine, over: $((SAMPLES / 4 / 32))}
	  stop: {samples: $SAMPLES}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
	payload: {push: float32, pull: float32}
END
bsp="{policy: none}"
diloco="{policy: diloco, steps: $H, outer: {name: nesterov, lr: 0.7, momentum: 0.9}}"

hosts_up 3 none
crossed() {
	local host
	for host in h1 h2 h3; do
		"$HOSTS" exec "$host" cat /sys/class/net/eth0/statistics/tx_bytes
	done | awk '{ sum += $1 } END { printf "%.0f", sum }'
}
# count NAME LOCAL: what a run sends over the interfaces goes to $TMP/NAME.wire. Batches of 4 make its computing short.
count() {
	local before
	before=$(crossed)
	on_hosts h1,h2,h3 run "$TMP/config.yaml" --out "$TMP/$1" --set "local=$2" --set train.batch_per_worker=4 --set train.stop.samples=$((STEPS * 2 * 4))
	echo $(($(crossed) - before)) >"$TMP/$1.wire"
	[ "$(get "$TMP/$1/summary.json" finished) $(get "$TMP/$1/summary.json" samples)" = "ok $((STEPS * 2 * 4))" ] || fail "$1: $(head -n 3 "$TMP/$1/summary.txt")"
}
count bsp "$bsp"
count diloco "$diloco"
"$HOSTS" down
rounds=$(get "$TMP/diloco/summary.json" updates)
[ "$(get "$TMP/bsp/summary.json" updates) $rounds" = "$STEPS $((STEPS / H))" ] || fail "$(get "$TMP/bsp/summary.json" updates) versions of bsp and $rounds of diloco, must be $STEPS and $((STEPS / H))"
ratio() { awk "BEGIN { printf \"%.2f\", $1 / $2 }"; }
limit=$(ratio "(2 * $STEPS + 1)" "(2 * $rounds + 1)")
wire=$(ratio "$(cat "$TMP/bsp.wire")" "$(cat "$TMP/diloco.wire")")
own=$(ratio "$(get "$TMP/bsp/summary.json" bytes_between_hosts)" "$(get "$TMP/diloco/summary.json" bytes_between_hosts)")
echo "$STEPS steps: bsp $(cat "$TMP/bsp.wire") bytes over the interfaces, $(get "$TMP/bsp/summary.json" bytes_between_hosts) by its own count; diloco $(cat "$TMP/diloco.wire") and $(get "$TMP/diloco/summary.json" bytes_between_hosts)"

# accuracy NAME LOCAL: the mean over the seeds, which are listed in $TMP/NAME.seeds.
accuracy() {
	local seed
	for seed in $(seq "$seeds"); do
		local_world 5 "$TMP/config.yaml" --out "$TMP/$1-$seed" --set "local=$2" --set "seed=$seed"
		[ "$(get "$TMP/$1-$seed/summary.json" samples)" = "$SAMPLES" ] || fail "$1, seed $seed: $(get "$TMP/$1-$seed/summary.json" samples) samples"
		get "$TMP/$1-$seed/summary.json" test_accuracy >>"$TMP/$1.seeds"
	done
	awk '{ sum += $1 } END { printf "%.4f", sum / NR }' "$TMP/$1.seeds"
}
with_bsp=$(accuracy bsp "$bsp")
with_diloco=$(accuracy diloco "$diloco")
echo "test accuracy: bsp $(tr '\n' ' ' <"$TMP/bsp.seeds")diloco $(tr '\n' ' ' <"$TMP/diloco.seeds")"
figure "diloco, $H steps, $rounds rounds: bsp sends $wire times as many bytes over the hosts' interfaces, $own by its own count (both must be 45 or more, the limit is $limit)"
figure "diloco, LeNet on Fashion-MNIST: test accuracy $with_diloco, bsp $with_bsp at as many samples (must be within 0.01), means of $seeds seeds"
must "$rounds >= 20" "rounds"
must "$wire >= 45" "bytes of bsp over the interfaces against diloco's"
must "$own >= 45 && $own <= $limit" "bytes of bsp by the own count against diloco's"
must "$with_diloco >= $with_bsp - 0.01" "test accuracy of diloco against bsp's"
