# Sourced by scripts of policies that move work between workers, behind lib.sh: runs whose computing is slept, and what they learn with real gradients.
# shellcheck shell=bash

iterations=${ACCEPT_ITERATIONS:-40}

# slept NAME FAULTS SYNC WORK runs 4 workers whose computing is slept, a batch of 64 ms. The fastest of three runs counts: others may use the machine.
slept() {
	cat >"$TMP/$1.yaml" <<-END
		name: slept
		cluster: {servers: 1}
		data: {set: generated, rows: 4096, test_rows: 64, features: 4, classes: 2}
		model: {name: synthetic, layers: [16384, 16384], compute: {per_sample: 1ms}}
		train: {batch_per_worker: 64, optimizer: {name: sgd, lr: 0.1}, stop: {samples: $((iterations * 4 * 64))}}
		evaluate: {every_epochs: 0}
		checkpoint: {keep: 0}
		faults: $2
		sync: [{match: "*", scheme: $3}]
		work: {policy: $4}
	END
	local samples i
	for i in $(seq "${ACCEPT_REPEATS:-3}"); do
		world 5 run --out "$TMP/$1-$i" "$TMP/$1.yaml"
		samples=$(get "$TMP/$1-$i/summary.json" samples)
		must "$samples >= $iterations * 256 && $samples <= ($iterations + 4) * 256" "samples of $1"
	done
}

# took NAME is how long the fastest run of a name trained, in s; times A B is how many times faster B is than A.
took() {
	local run
	for run in "$TMP/$1"-[0-9]/; do get "$run/summary.json" train_s; done | sort -g | awk 'NR == 1 { printf "%.2f", $1 }'
}
times() { awk -v a="$(took "$1")" -v b="$(took "$2")" 'BEGIN { printf "%.3f", a / b }'; }

# learns_like_bsp POLICY: 3 seeds of Fashion-MNIST with real gradients and a slow worker end within a point of bsp's accuracy.
learns_like_bsp() {
	local seed policy name
	for seed in 1 2 3; do
		for policy in fixed "$1"; do
			name=learn-$policy-$seed-1
			cat >"$TMP/$name.yaml" <<-END
				name: $name
				seed: $seed
				cluster: {servers: 1}
				data: {set: idx, path: /usr/share/datasets/fashion-mnist}
				model: {name: mlp, layers: [32]}
				train: {batch_per_worker: 64, optimizer: {name: sgd, lr: 0.2}, stop: {epochs: 3}}
				checkpoint: {keep: 0}
				faults: [{worker: 1, slow: {factor: 3}}]
				sync: [{match: "*", scheme: bsp}]
				work: {policy: $policy}
			END
			world 5 run --out "$TMP/$name" "$TMP/$name.yaml"
		done
		local with without
		with=$(get "$TMP/learn-$1-$seed-1/summary.json" test_accuracy) without=$(get "$TMP/learn-fixed-$seed-1/summary.json" test_accuracy)
		figure "accuracy with real gradients, seed $seed: $1 ${with:0:6} in $(took "learn-$1-$seed") s, bsp ${without:0:6} in $(took "learn-fixed-$seed") s"
		must "$with >= $without - 0.01 && $with <= $without + 0.01" "accuracy of seed $seed against bsp's $without"
	done
}
