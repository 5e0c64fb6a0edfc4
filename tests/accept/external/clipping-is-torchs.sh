#!/usr/bin/env bash
# After 100 steps of least squares with train.clip the parameters are those of torch.optim's rules in float64 to 1e-6 (relative to
# 1 + |parameter|), where torch.nn.utils.clip_grad_norm_ clips the gradient of each worker before the mean is taken: under bsp with 2 servers
# and 3 workers, and with one worker under each scheme named here. Some gradients are clipped and some are not.
#   ACCEPT_RULES='adam adamw'
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
steps=100
declare -A rates=([sgd]=0.05 [momentum]=0.02 [nesterov]=0.02 [adam]=0.1 [adamw]=0.1)
norm=9
single=("asp" "ssp, staleness: 2" "asp, push: delta")

job() { # RULE WORKERS SYNC
	local dir=$TMP/job workers=$2 rule=$1 sync=$3 said servers=$(($2 < 2 ? 1 : 2))
	rm -rf "$dir"
	mkdir "$dir"
	cat >"$dir/job.yaml" <<-END
		name: clip
		cluster: {servers: $servers, placement: spread}
		data: {set: external, rows: 512, test_rows: 0}
		model: {name: external, command: [$PYTHON, $EXTERNAL/rules.py, $dir], shapes: $dir/net.shapes}
		train:
		  batch_per_worker: 16
		  optimizer: {name: $rule, lr: ${rates[$rule]}, weight_decay: 0.1}
		  clip: {norm: $norm}
		  stop: {updates: $steps}
		evaluate: {every_epochs: 0}
		sync: [{match: "*", scheme: $sync}]
	END
	shapes "$dir/job.yaml" "$dir/net.shapes"
	rm -f "$dir"/rows.*
	world $((servers + workers)) run --out "$dir/out" "$dir/job.yaml"
	"$FLUENTPS" export "$dir/out" "$dir/model.npz" >/dev/null
	said=$("$PYTHON" "$EXTERNAL/rules.py" "$dir" --rule "$rule" --lr "${rates[$rule]}" --decay 0.1 --workers "$workers" --steps $steps \
		--clip $norm)
	read -r taken apart moved clipped <<<"$said"
	[ "$taken" -ge $steps ] || fail "$rule under $sync took $taken steps"
	must "$apart <= 1e-6" "$rule under $sync with $workers workers is $apart from torch's"
	must "$moved >= 0.1" "$rule under $sync moves parameters by $moved only"
	must "$clipped >= 10 && $clipped <= $workers * $steps - 10" "$rule under $sync clips $clipped of $((workers * steps)) gradients"
	if awk "BEGIN { exit !($apart > $most) }"; then most=$apart; fi
}

for rule in ${ACCEPT_RULES:-sgd momentum nesterov adam adamw}; do
	most=0
	job "$rule" 3 bsp
	bsp=$most of=$clipped
	for sync in "${single[@]}"; do job "$rule" 1 "$sync"; done
	figure "$rule: $of of $((3 * steps)) gradients clipped, $bsp from torch's under bsp with 3 workers, at most $most with one worker"
done
