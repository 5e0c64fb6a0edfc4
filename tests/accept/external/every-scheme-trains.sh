#!/usr/bin/env bash
# A torch program trains under every scheme that the program has, and under policies that move work and that train locally: 4 workers
# and 2 servers in --local, what is said of the policy taken from its example. Each run ends ok, and an MLP has at least LEAST
# of the test rows right after 10 passes over generated rows, a tenth of which it would have without learning.
#   ACCEPT_ONLY="bsp ssp"   some of them
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
least=${LEAST:-0.7}

# policy EXAMPLE: its blocks that say how to synchronize.
policy() { awk '/^[a-z]/ { on = /^(sync|work|local|faults|schedule):/ } on' "configs/examples/$1.yaml"; }

read -ra names <<<"${ACCEPT_ONLY:-$(schemes) diloco streaming_diloco hpsgd dbs flexrr coded-gradients partial}"
figures="" failed=""
for name in "${names[@]}"; do
	batch='batch_per_worker: 16'
	case $name in
	dbs) example=fashion-mlp-dbs batch='batch_global: 64' ;;
	flexrr) example=flexrr ;;
	partial) example=partial-gradients ;;
	coded-gradients) example=coded-gradients ;;
	*) example=fashion-softmax-$name ;;
	esac
	cat >"$TMP/$name.yaml" <<-END
		name: $name
		seed: 7
		cluster: {servers: 2}
		data: {set: external, rows: 4096, test_rows: 1024}
		model: {name: external, command: $(command_of mlp-32-64-10 generated), shapes: $TMP/mlp.shapes}
		train: {$batch, optimizer: {name: sgd, lr: 0.2}, stop: {epochs: 10}}
		device: {threads: 1}
		evaluate: {every_epochs: 0}
	END
	policy "$example" >>"$TMP/$name.yaml"
	args=()
	# Each step of a task is a pass of the child: 1 row, the default of such small batches, makes an iteration 16 passes.
	! grep -qE 'policy: (coded|partial|flexrr)' "$TMP/$name.yaml" || args=(--set work.micro=8)
	[ -e "$TMP/mlp.shapes" ] || shapes "$TMP/$name.yaml" "$TMP/mlp.shapes"
	if ! timeout 120 "$FLUENTPS" run --local 6 --out "$TMP/$name" "${args[@]}" "$TMP/$name.yaml" >"$TMP/log" 2>&1; then
		tail -n 25 "$TMP/log" >&2
		failed+=" $name (exit code);"
		continue
	fi
	accuracy=$(get "$TMP/$name/summary.json" test_accuracy) finished=$(get "$TMP/$name/summary.json" finished)
	figures+=" $name ${accuracy:0:5};"
	echo "$name: $accuracy, $finished, $(get "$TMP/$name/summary.json" train_s) s"
	[ "$finished" = ok ] || failed+=" $name (finished: $finished);"
	holds "$accuracy >= $least" || failed+=" $name (accuracy $accuracy);"
done
figure "test accuracy of an MLP in torch (at least $least):$figures"
[ -z "$failed" ] || fail "these do not:$failed"
