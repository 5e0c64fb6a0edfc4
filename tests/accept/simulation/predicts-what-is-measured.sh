#!/usr/bin/env bash
# Simulated against measured: 4 workers, one of them a straggler, and 2 servers under mpirun. `simulate --calibrate` with
# one BSP run of seed 1 predicts the steps per second (iterations of a worker, over all workers) of BSP, SSP(3), ASP and
# R2SP with seed 2 within 15% of the median of 3 measured runs. Beside it, what a calibration on a run of the scheme
# itself predicts.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

batch=8
# config NAME SYNC ITERATIONS: computing is next to nothing but a sleep, 40 ms or 120 ms, so that the cores are not the subject.
config() {
	cat >"$TMP/$1.yaml" <<-END
		name: predicted-$1
		cluster: {servers: 2}
		data: {set: generated, rows: 4096, test_rows: 256, features: 32, classes: 10}
		model: {name: softmax}
		train:
		  batch_per_worker: $batch
		  optimizer: {name: sgd, lr: 0.05}
		  stop: {samples: $(($3 * 4 * batch))}
		evaluate: {every_epochs: 0}
		faults:
		  - {worker: "*", slow: {sleep: 40ms}}
		  - {worker: 3, slow: {sleep: 80ms}}
		sync: [{match: "*", $2}]
	END
}
steps() { awk "BEGIN { print $(get "$1/summary.json" samples_per_s) / $batch }"; }
predicted() { # SCHEME RUN
	local out
	out=$(mktemp -d "$TMP/simulated.XXXX")
	"$FLUENTPS" simulate "$TMP/$1.yaml" --seed 2 --calibrate "$2" --out "$out" >"$TMP/log" 2>&1 || shown "simulate $1 --calibrate $2" >&2
	steps "$out"
}
off() { awk "BEGIN { printf \"%+.1f\", ($1 / $2 - 1) * 100 }"; }

listed=$("$FLUENTPS" explain)
missing=""
wrong=""
table=$(printf '%-8s %9s %21s %25s' scheme measured "predicted from bsp" "predicted from its own")
for sync in "scheme: bsp" "scheme: ssp, staleness: 3" "scheme: asp" "scheme: r2sp"; do
	name=$(sed 's/scheme: //; s/, staleness: //' <<<"$sync")
	if ! grep -q -E "^  ${name%3} +" <<<"$listed"; then
		missing+=" ${name%3}"
		continue
	fi
	iterations=60 # 7 s or more of each
	[ "$name" != asp ] || iterations=150
	config "$name" "$sync" "$iterations"
	world 6 run --set seed=1 --out "$TMP/$name-seed1" "$TMP/$name.yaml"
	for k in 1 2 3; do
		world 6 run --set seed=2 --out "$TMP/$name-seed2-$k" "$TMP/$name.yaml"
	done
	measured=$(for k in 1 2 3; do steps "$TMP/$name-seed2-$k"; done | sort -g | sed -n 2p)
	one=$(predicted "$name" "$TMP/bsp-seed1")
	own=$(predicted "$name" "$TMP/$name-seed1")
	table+=$'\n'$(printf '%-8s %9.2f %11.2f (%5s %%) %15.2f (%5s %%)' "$name" "$measured" "$one" "$(off "$one" "$measured")" "$own" "$(off "$own" "$measured")")
	for p in "$one" "$own"; do
		holds "$p >= 0.85 * $measured && $p <= 1.15 * $measured" || wrong+=" $name"
	done
	# The straggler never waits for another worker, so all of its step is computing and the exchange.
	share=$(awk -F, '$1 == 3 { slept += $5; step += $4 + $6 + $7 + $8 } END { print slept / step }' "$TMP/$name-seed2-1/iterations.csv")
	must "$share >= 0.8" "$name, share of the injected sleep in the straggler's step"
done
figure "steps/s, 4 workers, 2 servers, one straggler (each within 15 %)"
while read -r line; do figure "  $line"; done <<<"$table"
[ -z "$wrong" ] || fail "predicted not within 15 % of the measured median:$wrong"
[ -z "$missing" ] || fail "this binary has no scheme:$missing"
