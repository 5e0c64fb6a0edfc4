#!/usr/bin/env bash
# Two workers and a server under mpirun against torch's DistributedDataParallel over gloo with two processes:
# the same model and batches, a thread each. Steps per second are at least 1.3 times DDP's for an MLP 784-256-128-10 at batch 128, and
# those of DDP for ResNet-20 at batch 32, within the interval of the rounds, which take turns.
#   ACCEPT_ROUNDS=7   ACCEPT_MODELS="mlp resnet20"   ACCEPT_CLUSTER='{servers: 2, placement: colocate}'
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"
# shellcheck source=tests/accept/external/speed.sh
. "$ROOT/tests/accept/external/speed.sh"

rounds=${ACCEPT_ROUNDS:-7}
chosen=" ${ACCEPT_MODELS:-mlp resnet20} "
cluster=${ACCEPT_CLUSTER:-'{servers: 1}'}
missed=""
while read -r short model batch steps least <&3; do
	case $chosen in *" $short "*) ;; *) continue ;; esac
	: >"$TMP/$short"
	for _ in $(seq "$rounds"); do
		torch=$(alone "$model" "$batch" "$steps" --ddp 2)
		ours=$(under 3 "$model" "$batch" "$steps" "$cluster")
		echo "$torch $ours" >>"$TMP/$short"
	done
	compare "$short at batch $batch" "$TMP/$short" "$least"
	grep -E '^worker \|' "$TMP/$model.summary" || true
	if [ "$short" = mlp ]; then reached=$ratio; else reached=$high; fi
	holds "$reached >= $least" || missed+=" $short $reached, must be $least;"
done 3<<-END
	mlp mlp-784-256-128-10 128 1000 1.3
	resnet20 resnet20 32 60 1.0
END
echo "$(nproc --all) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg), torch $("$PYTHON" -c 'import torch; print(torch.__version__)')"
[ -z "$missed" ] || fail "steps per second beside DDP:$missed"
