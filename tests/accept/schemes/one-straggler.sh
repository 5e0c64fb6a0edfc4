#!/usr/bin/env bash
# One worker five times slower than the others: under BSP max_lead is 0 and the job takes the straggler's time, under
# SSP(3) max_lead reaches 3 and never more, under ASP it passes 20 and samples per second are at least twice BSP's.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# Every iteration is mostly an injected pause, 4 ms or 20 ms, so that the ratio does not depend on the machine.
iterations=300
for sync in "scheme: bsp" "scheme: ssp, staleness: 3" "scheme: asp"; do
	name=$(sed 's/scheme: //; s/, staleness: //' <<<"$sync")
	cat >"$TMP/$name.yaml" <<-END
		name: straggler-$name
		cluster: {servers: 2}
		data: {set: generated, rows: 4096, test_rows: 256, features: 32, classes: 10}
		model: {name: softmax}
		train:
		  batch_per_worker: 8
		  optimizer: {name: sgd, lr: 0.05}
		  stop: {samples: $((iterations * 4 * 8))}
		evaluate: {every_epochs: 0}
		faults:
		  - {worker: 0, slow: {sleep: 4ms}}
		  - {worker: 1, slow: {sleep: 4ms}}
		  - {worker: 2, slow: {sleep: 4ms}}
		  - {worker: 3, slow: {sleep: 20ms}}
		sync: [{match: "*", $sync}]
	END
	world 6 run --out "$TMP/$name" "$TMP/$name.yaml"
done
lead() { get "$TMP/$1/summary.json" max_lead; }
rate() { get "$TMP/$1/summary.json" samples_per_s | cut -d. -f1; }
train=$(get "$TMP/bsp/summary.json" train_s)
figure "max_lead: BSP $(lead bsp) (0), SSP(3) $(lead ssp3) (3), ASP $(lead asp) (more than 20)"
figure "samples/s: BSP $(rate bsp), SSP(3) $(rate ssp3), ASP $(rate asp) (at least twice BSP's); BSP trained ${train:0:5} s (the straggler needs $((iterations * 20 / 1000)) s)"
must "$(lead bsp) == 0" "BSP's max_lead"
must "$(lead ssp3) == 3" "SSP(3)'s max_lead"
must "$(lead asp) > 20" "ASP's max_lead"
must "$(rate asp) >= 2 * $(rate bsp)" "ASP's samples per second"
must "$train >= $iterations * 0.020 && $train <= $iterations * 0.020 * 1.5" "BSP's train_s against the straggler's"
