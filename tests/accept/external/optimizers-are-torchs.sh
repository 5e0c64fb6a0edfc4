#!/usr/bin/env bash
# After 100 steps of least squares the servers' sgd, momentum, nesterov, adam and adamw have the parameters of torch.optim's rules in
# float64 to 1e-6 (relative to 1 + |parameter|), with weight decay: under bsp with 2 servers and 2 workers, and with one worker under each
# scheme named here, whose pushes then come one after the other; also where the worker takes the step and pushes deltas. muon has
# those of the rule by its definition, which rules.py has; weight and bias then lie on servers of their own.
#   ACCEPT_RULES='adam muon'
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
steps=100
declare -A rates=([sgd]=0.02 [momentum]=0.005 [nesterov]=0.005 [adam]=0.01 [adamw]=0.01 [muon]=0.02)
single=("asp" "ssp, staleness: 2" "dssp, s_l: 1, s_u: 3" "pssp" "r2sp" "drop" "essp, staleness: 1" "asp, push: delta" "bsp, push: delta")

job() { # RULE WORKERS SYNC
	local dir=$TMP/job workers=$2 rule=$1 sync=$3 said keys='' slice=even
	if [ "$rule" = muon ]; then
		keys=", others: {lr: 0.01}" slice=layer
	fi
	rm -rf "$dir"
	mkdir "$dir"
	cat >"$dir/job.yaml" <<-END
		name: rule
		cluster: {servers: $workers, placement: spread}
		data: {set: external, rows: 512, test_rows: 0}
		model: {name: external, command: [$PYTHON, $EXTERNAL/rules.py, $dir], shapes: $dir/net.shapes}
		train: {batch_per_worker: 16, optimizer: {name: $rule, lr: ${rates[$rule]}, weight_decay: 0.1$keys}, stop: {updates: $steps}}
		evaluate: {every_epochs: 0}
		shards: {slice: $slice}
		sync: [{match: "*.bias", scheme: $sync}, {match: "*", scheme: $sync}]
	END
	shapes "$dir/job.yaml" "$dir/net.shapes"
	rm -f "$dir"/rows.*
	world $((2 * workers)) run --out "$dir/out" "$dir/job.yaml"
	"$FLUENTPS" export "$dir/out" "$dir/model.npz" >/dev/null
	said=$("$PYTHON" "$EXTERNAL/rules.py" "$dir" --rule "$rule" --lr "${rates[$rule]}" --decay 0.1 --workers "$workers" --steps $steps)
	read -r taken apart moved _ <<<"$said"
	[ "$taken" -ge $steps ] || fail "$rule under $sync took $taken steps"
	must "$apart <= 1e-6" "$rule under $sync with $workers workers is $apart from torch's"
	must "$moved >= 0.1" "$rule under $sync moves parameters by $moved only"
	if awk "BEGIN { exit !($apart > $most) }"; then most=$apart; fi
}

for rule in ${ACCEPT_RULES:-sgd momentum nesterov adam adamw muon}; do
	most=0
	job "$rule" 2 bsp
	bsp=$most
	for sync in "${single[@]}"; do job "$rule" 1 "$sync"; done
	figure "$rule: after $steps steps $bsp from torch's under bsp with 2 workers, at most $most under ${#single[@]} other rules with one"
done
