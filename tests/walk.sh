#!/usr/bin/env bash
# Through how many files and functions do the gradients of an iteration go, from backward to the commit and back? Those whose
# statements run more often in a run of twice as many iterations: 2 servers and 2 workers in one process, an MLP under bsp, over
# messages, without records, checkpoints and evaluations. What happens now and then may be in it.
#   tests/walk.sh    from the root of the repository
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -cover -covermode=count -coverpkg=./... -o "$tmp/fluentps" ./cmd/fluentps
cat >"$tmp/config.yaml" <<-END
	name: walk
	cluster: {servers: 2, shared_memory: off}
	data: {set: generated, rows: 512, features: 20, classes: 4}
	model: {name: mlp, layers: [64]}
	train: {batch_per_worker: 8, optimizer: {name: sgd, lr: 0.1}}
	evaluate: {every_epochs: 0}
	metrics: {interval: 1h}
	checkpoint: {keep: 0}
END
for updates in 50 100; do
	mkdir "$tmp/$updates"
	(cd "$tmp" && GOCOVERDIR="$tmp/$updates" ./fluentps run config.yaml --local 4 --out "$tmp/run$updates" --set train.stop="{updates: $updates}" >/dev/null)
	go tool covdata textfmt -i "$tmp/$updates" -o "$tmp/$updates.txt"
done
go run ./tests/walk "$tmp/50.txt" "$tmp/100.txt"
