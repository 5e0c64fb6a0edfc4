#!/usr/bin/env bash
# BSP with 1, 2 and 3 servers, in one process and under MPI: the same parameters to the bit; and equal to a
# sequential run on the concatenated batch within float tolerance (a Go test).
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

for model in "name: softmax" "name: mlp, layers: [64, 32]"; do
	cat >"$TMP/run.yaml" <<-END
		name: hash
		seed: 11
		data: {set: idx, path: /usr/share/datasets/fashion-mnist}
		model: {$model}
		train:
		  batch_per_worker: 32
		  optimizer: {name: momentum, lr: 0.05}
		  stop: {samples: 25600}
		evaluate: {every_epochs: 0}
		sync: [{match: "*", scheme: bsp}]
	END
	hashes=""
	for servers in 1 2 3; do
		for mode in local mpi; do
			dir=$TMP/${model//[^a-z]/}-$servers-$mode
			if [ "$mode" = mpi ]; then
				world $((servers + 4)) run --out "$dir" --set cluster.servers=$servers "$TMP/run.yaml"
			else
				local_world $((servers + 4)) --out "$dir" --set cluster.servers=$servers "$TMP/run.yaml"
			fi
			[ "$(get "$dir/summary.json" mode)" = "$mode" ] || fail "$dir ran as $(get "$dir/summary.json" mode)"
			hash=$(get "$dir/summary.json" parameters_sha256)
			echo "$model, $servers servers, $mode: $hash"
			hashes+="$hash "
		done
	done
	distinct=$(tr ' ' '\n' <<<"$hashes" | sed '/^$/d' | sort -u | wc -l)
	figure "$model: $distinct hash over 6 runs (${hashes:0:12}...)"
	[ "$distinct" -eq 1 ] || fail "$model: $distinct different results"
done

go test -count=1 -tags "mpi blas" -run TestSequential -v ./internal/rank/train >"$TMP/log" 2>&1 || shown "go test -run TestSequential ./internal/rank/train"
passed=$(grep -c '^ *--- PASS: TestSequential' "$TMP/log" || true)
grep -E 'TestSequential|relative' "$TMP/log"
figure "equal to the sequential run: $passed tests passed"
[ "$passed" -gt 0 ] || fail "no test is named TestSequential"
