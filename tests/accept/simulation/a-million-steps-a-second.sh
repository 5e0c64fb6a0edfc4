#!/usr/bin/env bash
# Timing mode: at least one million node steps per second on one core; 10,000 workers with 64 servers in under 4 GiB;
# BSP with 64 servers at 100 and at 10,000 workers: node steps per second of both, within a factor of 2.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/big.yaml" <<-END
	name: big
	cluster: {servers: 64}
	data: {set: generated, rows: 20000, features: 64, classes: 16}
	model: {name: softmax}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 10}}
	sync: [{match: "*", scheme: bsp}]
END

# simulate WORKERS UPDATES: sets speed (million node steps per second) and peak (KiB), the best of three.
simulate() {
	local pid now
	speed=0
	peak=0
	for _ in 1 2 3; do
		GOMAXPROCS=1 "$FLUENTPS" simulate "$TMP/big.yaml" --workers "$1" --set "train.stop.updates=$2" >"$TMP/out" 2>&1 &
		pid=$!
		while now=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
			[ "$now" -le "$peak" ] || peak=$now
			sleep 0.02
		done
		wait "$pid" || { tail -n 5 "$TMP/out"; fail "simulate --workers $1"; }
		now=$(sed -n 's/.*: \([0-9.]*\) million per second/\1/p' "$TMP/out")
		holds "$now <= $speed" || speed=$now
	done
}

simulate 100 400
small=$speed
simulate 10000 10
figure "simulated, 64 servers, BSP, one core: $small million node steps/s with 100 workers, $speed with 10,000 (at least 1); 10,000 workers take $((peak / 1024)) MiB (under 4096)"
must "$small >= 1 && $speed >= 1" "million node steps per second"
must "$peak < 4 * 1024 * 1024" "KiB of memory"
must "$small <= 2 * $speed" "node steps per second, 100 workers against 10,000"
