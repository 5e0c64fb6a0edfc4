#!/usr/bin/env bash
# Two hosts with two workers each and a third with the server, joined by links of 200 Mbit/s: with cluster.hierarchy: node half
# as many bytes cross the network as flat, by the counters of the hosts' interfaces; the results are the same within the
# tolerance of floats; and a step takes less time.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
readonly RATE=200mbit HOSTS=tests/net/hosts.sh STEPS=60
[ "$(id -u)" -eq 0 ] || fail "hosts with networks of their own need root"

cat >"$TMP/config.yaml" <<'END'
name: hierarchy
seed: 7
cluster: {servers: 1}
data: {set: idx, path: /usr/share/datasets/fashion-mnist}
model: {name: mlp, layers: [256, 128]}
train:
  batch_per_worker: 32
  optimizer: {name: momentum, lr: 0.05, momentum: 0.9}
  stop: {updates: 60}
evaluate: {every_epochs: 0}
sync:
  - {match: "*", scheme: bsp}
END

"$HOSTS" up --wait 120 3 "$RATE"

# crossed: the bytes that the two hosts of workers have sent and received so far.
crossed() {
	local host
	for host in h1 h2; do
		"$HOSTS" exec "$host" cat /sys/class/net/eth0/statistics/tx_bytes /sys/class/net/eth0/statistics/rx_bytes
	done | awk '{ sum += $1 } END { printf "%d", sum }'
}

# train HIERARCHY: leaves the run folder in $TMP/HIERARCHY and the bytes of a step in $TMP/HIERARCHY.bytes.
train() {
	local before
	before=$(crossed)
	timeout 300 "$HOSTS" mpirun --map h3,h1,h1,h2,h2 "$FLUENTPS" run "$TMP/config.yaml" --set "cluster.hierarchy=$1" --out "$TMP/$1" >"$TMP/log" 2>&1 ||
		shown "fluentps run with hierarchy $1"
	echo $((($(crossed) - before) / STEPS)) >"$TMP/$1.bytes"
}
of() { get "$TMP/$1/summary.json" "$2"; }
train none
train node
"$HOSTS" down

for h in none node; do
	[ "$(of $h iterations)" = "$STEPS" ] || fail "$h: $(of $h iterations) iterations"
done
[ "$(of node workers) $(of node computing) $(of none workers)" = "2 4 4" ] || fail "workers: $(of node workers) with $(of node computing) ranks, flat $(of none workers)"
step() { awk "BEGIN { printf \"%.1f\", 1000 * $(of "$1" train_s) / $STEPS }"; }
ratio() { awk "BEGIN { printf \"%.3f\", $1 / $2 }"; }
wires=$(ratio "$(cat "$TMP/node.bytes")" "$(cat "$TMP/none.bytes")")
counted=$(ratio "$(of node bytes_between_hosts)" "$(of none bytes_between_hosts)")
apart() { awk "BEGIN { d = $(of none "$1") - $(of node "$1"); printf \"%.2g\", (d < 0 ? -d : d) }"; }
figure "hierarchy: 2 hosts x 2 workers at $RATE: $(cat "$TMP/node.bytes") bytes a step over the hosts' interfaces, flat $(cat "$TMP/none.bytes"): $wires (own count $counted)"
figure "hierarchy: test loss $(of node test_loss), flat $(of none test_loss); test accuracy $(of node test_accuracy), flat $(of none test_accuracy)"
figure "hierarchy: step $(step node) ms, flat $(step none) ms; $(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
must "$wires <= 0.53 && $wires >= 0.47" "bytes on the wires against flat"
must "$counted == 0.5" "bytes counted between hosts against flat"
must "$(apart test_loss) <= 1e-4 && $(apart train_loss) <= 1e-4" "losses against flat"
must "$(apart test_accuracy) <= 0.001" "test accuracy against flat"
must "$(step node) < $(step none)" "ms a step against flat"
