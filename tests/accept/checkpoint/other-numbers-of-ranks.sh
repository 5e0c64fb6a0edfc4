#!/usr/bin/env bash
# A run of 2 servers and 4 workers goes on with 3 + 2, and with 1 + 8: the parameters are the same to the bit after the
# load, training goes on from there and counts on, and what it learned is not lost. The same once more from 3 + 2 to 1 + 8.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/job.yaml" <<'END'
name: resized
cluster: {servers: 2}
data: {set: generated, rows: 4000, test_rows: 1000, features: 64, classes: 10}
model: {name: mlp, layers: [128, 64]}
train:
  batch_global: 96
  optimizer: {name: adam, lr: 0.001}
  stop: {updates: 200}
evaluate: {every_epochs: 0}
END
# With residuals what the workers keep is shared out anew, too.
kinds=("momentum" "adam and residuals")
settings=("train.optimizer={name: momentum, lr: 0.05}" "payload={push: topk, ratio: 0.1}")

# go_on FROM TO SERVERS WORKERS UPDATES: takes a copy of a run up with other ranks, until it has so many versions.
go_on() {
	[ -d "$2" ] || cp -r "$1" "$2"
	world $(($3 + $4)) run "$TMP/job.yaml" --resume "$2" --allow-changed workers,cluster.servers --set "cluster.servers=$3" --set "train.stop.updates=$5" --set "$setting"
	grep -q '^Resumed: ' "$TMP/log" || shown "no word of what it went on from"
	[ "$(get "$2/summary.json" servers) $(get "$2/summary.json" workers)" = "$3 $4" ] || shown "not $3 servers and $4 workers"
}

# resized FROM NAME SERVERS WORKERS UPDATES: first to where the run was, which computes nothing, and then on.
resized() {
	local from=$1 to=$TMP/$k-$2 want got was now loss
	want=$(get "$from/summary.json" parameters_sha256)
	was=$(get "$from/summary.json" iterations)
	go_on "$from" "$to" "$3" "$4" "$was"
	got=$(get "$to/summary.json" parameters_sha256)
	[ "$got" = "$want" ] || fail "$2: parameters ${got:0:12} after the load, ${want:0:12} before"
	go_on "$from" "$to" "$3" "$4" "$5"
	now=$(get "$to/summary.json" iterations)
	loss=$(get "$to/summary.json" train_loss)
	[ "$now" = "$5" ] || fail "$2: $now iterations, want $5"
	must "$loss < $(get "$from/summary.json" train_loss)" "$2: the loss after $now iterations"
	[ "$(get "$to/summary.json" parameters_sha256)" != "$want" ] || fail "$2: nothing was trained"
	said+=" $2 ${got:0:12}, then $was to $now iterations, loss $loss;"
}

for k in 0 1; do
	setting=${settings[$k]}
	world 6 run "$TMP/job.yaml" --out "$TMP/$k" --set "$setting"
	sha=$(get "$TMP/$k/summary.json" parameters_sha256)
	said=""
	resized "$TMP/$k" 3+2 3 2 400
	resized "$TMP/$k" 1+8 1 8 400
	resized "$TMP/$k-3+2" 3+2-to-1+8 1 8 600
	figure "${kinds[$k]}: 2+4 ${sha:0:12}, loss $(get "$TMP/$k/summary.json" train_loss);$said"
done
