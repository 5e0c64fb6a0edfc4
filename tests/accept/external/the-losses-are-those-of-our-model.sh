#!/usr/bin/env bash
# A torch program under our servers has the losses of our own model, from the same values and on the same rows: 2 workers and
# 2 servers under mpirun, bsp with momentum. An MLP on optdigits within 1e-3 at each of 200 steps; ResNet-20 on CIFAR-10 within
# 1e-3 at the first 20, and the mean of steps 181 to 200 within 2 %. The MLP begins with model.init, ResNet-20 with what the
# program itself loads, for torch's batch norm has other names. Every worker sleeps in each step: a row of metrics.csv is one.
#   ACCEPT_MODELS="mlp resnet"
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
if [ -z "$EXTRA_DATA" ] || [ ! -d "$EXTRA_DATA/optdigits" ]; then
	figure "left out: FLUENTPS_TEST_DATA has no optdigits"
	exit 0
fi
chosen=${ACCEPT_MODELS:-mlp resnet}
steps=200 batch=32
workers=2

# losses NAME: the mean loss of each step. Rows of the file add up to steps, or it fails.
losses() {
	awk -F, -v all="$((batch * workers))" -v steps=$steps '
		NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		$column["train/loss"] != "" {
			n = $column["samples"]
			sum += $column["train/loss"] * (n - had)
			had = n
			if (had % all == 0) { if (had / all != ++k) exit 1; printf "%.9g\n", sum / all; sum = 0 }
		}
		END { if (k != steps) { print "the file has the losses of " k " single steps" >"/dev/stderr"; exit 1 } }' "$TMP/$1/metrics.csv"
}

# pair NAME RATE WARM-UP: trains NAME.yaml and NAME-torch.yaml, whose data and model the caller has written. ResNet-20 makes rounding
# errors 10 times as large in each of the first steps at a rate of 0.01, and its rate therefore climbs over all of the steps.
pair() {
	local name=$1
	cat >"$TMP/rest.yaml" <<-END
		seed: 3
		cluster: {servers: 2}
		train: {batch_per_worker: $batch, optimizer: {name: momentum, lr: $2, momentum: 0.9}, schedule: {name: constant, warm_up: $3}, stop: {updates: $steps}}
		sync: [{match: "*", scheme: bsp}]
		device: {threads: 1}
		metrics: {interval: 0.1s}
		evaluate: {every_epochs: 0}
		faults: [{worker: "*", slow: {sleep: 250ms}}]
	END
	cat "$TMP/rest.yaml" >>"$TMP/$name.yaml"
	cat "$TMP/rest.yaml" >>"$TMP/$name-torch.yaml"
	# One step at no rate leaves the values of the seed in a checkpoint, and a program that loads them.
	world 4 run --out "$TMP/$name-init" "$TMP/$name.yaml" --set train.stop.updates=1 --set train.optimizer.lr=1e-37
	"$FLUENTPS" export "$TMP/$name-init" "$TMP/$name.safetensors" >/dev/null
	"$FLUENTPS" export "$TMP/$name-init" "$TMP/$name.npz" >/dev/null
	shapes "$TMP/$name-torch.yaml" "$TMP/$name.shapes"
	world 4 run --out "$TMP/$name" "$TMP/$name.yaml"
	world 4 run --out "$TMP/$name-torch" "$TMP/$name-torch.yaml"
	losses "$name" >"$TMP/$name.losses" || fail "the losses of $name are not those of single steps"
	losses "$name-torch" >"$TMP/$name-torch.losses" || fail "the losses of $name in torch are not those of single steps"
	paste "$TMP/$name.losses" "$TMP/$name-torch.losses" >"$TMP/$name.pairs"
}
# apart NAME FIRST LAST: the largest difference at these steps.
apart() { awk -v a="$2" -v b="$3" 'NR >= a && NR <= b { d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d } END { printf "%.2g", most }' "$TMP/$1.pairs"; }
# mean NAME COLUMN: of steps 181 to 200.
mean() { awk -v c="$2" 'NR > 180 { s += $c; n++ } END { printf "%.5f", s / n }' "$TMP/$1.pairs"; }

cat >"$TMP/mlp.yaml" <<END
name: mlp
data: {set: csv, path: $EXTRA_DATA/optdigits/optdigits.tra.gz, test: $EXTRA_DATA/optdigits/optdigits.tes.gz, scale: 16}
model: {name: mlp, layers: [64]}
END
cat >"$TMP/mlp-torch.yaml" <<END
name: mlp-torch
data: {set: external, rows: 3823, test_rows: 1797}
model: {name: external, command: $(command_of mlp-64-64-10 "optdigits:$EXTRA_DATA/optdigits"), shapes: $TMP/mlp.shapes, init: $TMP/mlp.safetensors}
END
if [[ $chosen == *mlp* ]]; then
	pair mlp 0.05 0
	figure "MLP on optdigits, $steps steps: losses at most $(apart mlp 1 $steps) apart (1e-3), from $(head -n 1 "$TMP/mlp.losses") to mean $(mean mlp 1), torch $(mean mlp 2)"
	must "$(apart mlp 1 $steps) <= 1e-3" "losses of the MLP"
	must "$(mean mlp 1) < $(head -n 1 "$TMP/mlp.losses") / 2" "the MLP learns"
fi

[[ $chosen == *resnet* ]] || exit 0
if [ ! -d "$EXTRA_DATA/cifar-10" ]; then
	figure "ResNet-20 left out: FLUENTPS_TEST_DATA has no cifar-10, the binary version of the set"
	exit 0
fi
cat >"$TMP/resnet.yaml" <<END
name: resnet
data: {set: cifar10, path: $EXTRA_DATA/cifar-10}
model: {name: resnet20}
END
cat >"$TMP/resnet-torch.yaml" <<END
name: resnet-torch
data: {set: external, rows: 50000, test_rows: 10000}
model: {name: external, command: $(command_of resnet20 "cifar10:$EXTRA_DATA/cifar-10" --load "$TMP/resnet.npz"), shapes: $TMP/resnet.shapes}
END
pair resnet 0.02 $steps
figure "ResNet-20 on CIFAR-10: losses at most $(apart resnet 1 20) apart in steps 1 to 20 (1e-3), $(apart resnet 1 $steps) in $steps; mean of 181 to 200 $(mean resnet 1), torch $(mean resnet 2) (2 %)"
must "$(apart resnet 1 20) <= 1e-3" "losses of ResNet-20"
must "$(mean resnet 2) <= 1.02 * $(mean resnet 1) && $(mean resnet 2) >= 0.98 * $(mean resnet 1)" "mean of the last losses of ResNet-20"
must "$(mean resnet 1) < $(head -n 1 "$TMP/resnet.losses")" "ResNet-20 learns"
