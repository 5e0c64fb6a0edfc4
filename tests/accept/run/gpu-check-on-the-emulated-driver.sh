#!/usr/bin/env bash
# What `make gpu-test-bins` builds is all that a machine with a GPU needs: copied elsewhere, gpu-check runs whole on the emulated
# driver with its own test binaries, and nothing fails. Rows are skipped only for what is not on this machine. The program needs no
# library of NVIDIA, of MPI or of BLAS to start. Without a driver, its first row says so, and the exit code is 1.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

make gpu-test-bins >"$TMP/log" 2>&1 || shown "make gpu-test-bins"
cp -r build/gpu "$TMP/gpu"
readelf -d "$TMP/gpu/check" >"$TMP/needs"
if grep -E 'NEEDED.*(cuda|cublas|nvidia|mpi|blas|dnn)' "$TMP/needs"; then
	fail "gpu-check needs a library that a machine with a GPU may not have"
fi

code=0
(cd / && "$ROOT/tests/with-cuda.sh" --emulated env -u FLUENTPS_TEST_CUDA "$TMP/gpu/gpu-check") >"$TMP/table" 2>"$TMP/log" || code=$?
cat "$TMP/table"
[ "$code" -eq 0 ] || shown "gpu-check, code $code"
rows=$(grep -c '^| .* | ok' "$TMP/table")
[ "$rows" -ge 100 ] || fail "$rows rows are ok, must be at least 100"
for row in "every kernel against float64" "gradients of one step" "copies, events, threads, steady memory" "two workers train as on the CPU" "two ranks on one GPU"; do
	grep -q "^| $row | .* | ok" "$TMP/table" || fail "the row \"$row\" is not ok"
done
while read -r row; do
	case $row in
	"| PyTorch"* | "| CUDA-aware MPI"* | "| compute-sanitizer"*) ;;
	*) fail "skipped: $row" ;;
	esac
done < <(grep '| skipped' "$TMP/table" || true)

code=0
LD_LIBRARY_PATH=/nonexistent "$TMP/gpu/gpu-check" >"$TMP/without" 2>"$TMP/log" || code=$?
[ "$code" -eq 1 ] || fail "without a driver: code $code, $(cat "$TMP/without")"
grep -qF '| driver | - | **FAIL**: libcuda.so.1 was not found' "$TMP/without" || fail "without a driver: $(cat "$TMP/without")"
figure "$(tail -n 1 "$TMP/table")"
