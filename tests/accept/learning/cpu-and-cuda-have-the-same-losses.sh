#!/usr/bin/env bash
# The same seed on the CPU and on CUDA, here with the emulated driver: the losses of 20 steps of an MLP and of LeNet within
# 1e-4, and two workers with a server under mpirun end with the same loss.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

export FLUENTPS_TEST_CUDA=emulated
tests/with-cuda.sh --emulated go test -vet=off -count=1 -tags "mpi blas cuda" -v -run '^TestParity$' ./kernels/cuda >"$TMP/log" 2>&1 || shown "go test"
steps=$(sed -n 's/.*parity_test.go:[0-9]*: //p' "$TMP/log")
[ "$(grep -c '^mlp: 20 steps\|^lenet: 20 steps' <<<"$steps")" = 2 ] || fail "not 20 steps of both models: $steps"

tests/with-cuda.sh go build -tags "mpi blas cuda" -o "$TMP/fluentps" ./cmd/fluentps
cat >"$TMP/config.yaml" <<'END'
name: two-workers
seed: 7
data: {set: generated, rows: 512, test_rows: 128, features: 40}
model: {name: mlp, layers: [64, 32]}
train:
  batch_per_worker: 32
  optimizer: {name: momentum, lr: 0.05}
  stop: {updates: 20}
END
FLUENTPS=$TMP/fluentps
for kind in cpu cuda; do
	if [ "$kind" = cuda ]; then
		MPIRUN=(tests/with-cuda.sh --emulated "${MPIRUN[@]}")
	fi
	world 3 run --out "$TMP/$kind" --set device.kind="$kind" "$TMP/config.yaml"
done
grep -q '"device": "cuda (' "$TMP/cuda/run.json" || fail "no rank computed on a GPU"
cpu=$(get "$TMP/cpu/summary.json" train_loss)
cuda=$(get "$TMP/cuda/summary.json" train_loss)
figure "$(tr '\n' ';' <<<"$steps") two workers under mpirun: train loss $cpu on CPUs, $cuda on emulated GPUs"
must "($cuda - $cpu) <= 1e-4 * $cpu && ($cpu - $cuda) <= 1e-4 * $cpu" "train loss"
