#!/usr/bin/env bash
# One worker and one server under mpirun, a thread each, beside plain torch with its own SGD: the same model and batches. Steps
# per second are at least 0.80 of torch's for an MLP 784-256-128-10 at batch 128, 0.90 for LeNet at 128 and 0.95 for ResNet-20 at 32;
# the limit is 1, where the server costs nothing. Bursts of steps take turns, in several launches, and the median of their ratios counts.
#   ACCEPT_ROUNDS=3   ACCEPT_MODELS="mlp lenet resnet20"   BURSTS=42
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"
# shellcheck source=tests/accept/external/speed.sh
. "$ROOT/tests/accept/external/speed.sh"

rounds=${ACCEPT_ROUNDS:-3}
BURSTS=${BURSTS:-42}
chosen=" ${ACCEPT_MODELS:-mlp lenet resnet20} "
missed=""
while read -r short model batch burst least <&3; do
	case $chosen in *" $short "*) ;; *) continue ;; esac
	for _ in $(seq "$rounds"); do beside alone 2 "$model" "$batch" "$burst" '{servers: 1}'; done
	compare "$short at batch $batch" "$model" "$least"
	grep -E '^worker \|' "$TMP/$model.summary" || true
	holds "$ratio >= $least" || missed+=" $short $ratio, must be $least;"
done 3<<-END
	mlp mlp-784-256-128-10 128 25 0.80
	lenet lenet 128 8 0.90
	resnet20 resnet20 32 4 0.95
END
echo "$(nproc --all) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg), torch $("$PYTHON" -c 'import torch; print(torch.__version__)')"
[ -z "$missed" ] || fail "steps per second beside torch:$missed"
