#!/usr/bin/env bash
# What `make gpu-test-bins` builds is all that a machine with a GPU needs: copied elsewhere, gpu-check runs whole on the emulated
# driver with its own test binaries, and nothing fails. Rows are skipped only for what is not on this machine. The program needs no
# library of NVIDIA, of MPI or of BLAS to start. Without a driver, its first row says so, and the exit code is 1. A PyTorch and a cuDNN that compute
# next to nothing stand in for the peers: all their rows are ok. Then each way in which a peer can be broken changes its own rows.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

make gpu-test-bins >"$TMP/log" 2>&1 || shown "make gpu-test-bins"
cp -r build/gpu "$TMP/gpu"
readelf -d "$TMP/gpu/check" >"$TMP/needs"
if grep -E 'NEEDED.*(cuda|cublas|nvidia|mpi|blas|dnn)' "$TMP/needs"; then
	fail "gpu-check needs a library that a machine with a GPU may not have"
fi

export GPU_CHECK_SECONDS=3600 # other programs may have the processor
stubs=$ROOT/kernels/gpucheck/check/testdata
mkdir "$TMP/peers"
cc -shared -fPIC -O1 -o "$TMP/peers/libcudnn.so.9" "$stubs/cudnn.c" -ldl
code=0
(cd / && LD_LIBRARY_PATH=$TMP/peers PYTHONPATH=$stubs "$ROOT/tests/with-cuda.sh" --emulated env -u FLUENTPS_TEST_CUDA "$TMP/gpu/gpu-check") \
	>"$TMP/table" 2>"$TMP/log" || code=$?
cat "$TMP/table"
[ "$code" -eq 0 ] || shown "gpu-check, code $code"
rows=$(grep -c '^| .* | ok' "$TMP/table")
[ "$rows" -ge 130 ] || fail "$rows rows are ok, must be at least 130"
peers=$(grep -c '^| \(our step\|PyTorch\|cuDNN\|ours /\).* | ok' "$TMP/table")
[ "$peers" -eq 31 ] || fail "$peers rows of peers are ok, must be 31"
for row in "every kernel against float64" "gradients of one step" "copies, events, threads, steady memory" "two workers train as on the CPU" "two ranks on one GPU" \
	"PyTorch CUDA graph, bf16: mlp" "PyTorch compiled, TF32: mlp" "cuDNN, all convolutions of a step" "ours / PyTorch's best, float32: mlp"; do
	grep -q "^| $row | .* | ok" "$TMP/table" || fail "the row \"$row\" is not ok"
done
while read -r row; do
	case $row in
	"| CUDA-aware MPI"* | "| compute-sanitizer"*) ;;
	*) fail "skipped: $row" ;;
	esac
done < <(grep '| skipped' "$TMP/table" || true)

code=0
LD_LIBRARY_PATH=/nonexistent "$TMP/gpu/gpu-check" >"$TMP/without" 2>"$TMP/log" || code=$?
[ "$code" -eq 1 ] || fail "without a driver: code $code, $(cat "$TMP/without")"
grep -qF '| driver | - | **FAIL**: libcuda.so.1 was not found' "$TMP/without" || fail "without a driver: $(cat "$TMP/without")"

# Without the stand-ins the rows of the peers say why they are skipped, and the code is 0.
code=0
(cd / && "$ROOT/tests/with-cuda.sh" --emulated env -u FLUENTPS_TEST_CUDA "$TMP/gpu/gpu-check" "our steps" PyTorch cuDNN best) >"$TMP/alone" 2>"$TMP/log" || code=$?
cat "$TMP/alone"
[ "$code" -eq 0 ] || shown "gpu-check without peers, code $code"
for row in "PyTorch CUDA graph" "PyTorch eager" "PyTorch compiled" "convolutions beside cuDNN"; do
	grep -q "^| $row | .* | skipped: ..*" "$TMP/alone" || fail "the row \"$row\" is not skipped with a reason"
done

GPU_CHECK_TEST_ALL=1 FLUENTPS_TEST_CUDA=emulated tests/with-cuda.sh --emulated go test -count=1 -vet=off -tags "mpi blas cuda" -v \
	-run '^Test(ABrokenPyTorchCostsItsOwnRows|WithoutPyTorch|CuDNNs|TheInstalledPyTorchRunsTheScript)$' ./kernels/gpucheck/check >"$TMP/log" 2>&1 || shown "broken peers"
broken=$(grep -c '^    --- PASS' "$TMP/log")
[ "$broken" -ge 14 ] || fail "$broken ways in which a peer is broken, must be at least 14"
if grep -e '--- SKIP' "$TMP/log"; then
	echo "skipped above: what is not on this machine"
fi
figure "$(tail -n 1 "$TMP/table"), of which $peers of peers; without peers $(tail -n 1 "$TMP/alone"); $broken ways in which a peer is broken change their own rows"
