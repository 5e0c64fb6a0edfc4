#!/usr/bin/env bash
# The binary with CUDA on a machine without a driver: it needs no library of NVIDIA to start, help, check, plan and runs on
# the CPU work, and device.kind: cuda gives its message once and exit code 2.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/with-cuda.sh go build -tags "mpi blas cuda" -o "$TMP/fluentps" ./cmd/fluentps
FLUENTPS=$TMP/fluentps
config=configs/examples/first.yaml
needed=$(readelf -d "$FLUENTPS" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | tr '\n' ' ')
if grep -qE 'cuda|cublas|nvidia' <<<"$needed"; then
	fail "the binary needs $needed"
fi
# Whatever driver this machine has: these processes do not find it.
mkdir "$TMP/none"
echo "no library" >"$TMP/none/libcuda.so.1"
export LD_LIBRARY_PATH=$TMP/none${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

for verb in "--help" "info" "check $config" "check --set device.kind=cuda $config" "plan --ranks 6 $config"; do
	# shellcheck disable=SC2086 # words are arguments
	"$FLUENTPS" $verb >"$TMP/log" 2>&1 || shown "fluentps $verb"
done
"$FLUENTPS" info | grep -q '^devices *cpu cuda$' || fail "info does not name the devices"
for kind in cpu auto; do
	local_world 3 --set device.kind=$kind --set train.stop.epochs=1 --out "$TMP/$kind" $config
	[ "$(get "$TMP/$kind/summary.json" finished)" = ok ] || fail "device.kind: $kind did not finish"
done
grep -q 'libcuda.so.1 ' "$TMP"/auto/logs/*.log || fail "device.kind: auto does not say why it takes the CPU"

code=0
"${MPIRUN[@]}" -n 4 "$FLUENTPS" run --set device.kind=cuda --out "$TMP/cuda" $config >"$TMP/log" 2>&1 || code=$?
[ "$code" = 2 ] || shown "a run without a driver, want 2"
message="device: cuda, but libcuda.so.1 was not found on $(uname -n) (no NVIDIA driver?)"
[ "$(grep -cF "$message" "$TMP/log")" = 1 ] || shown "a run that should say once: $message"
[ ! -e "$TMP/cuda" ] || fail "a run folder was made"
figure "needs $needed; --help, info, check, plan and runs on the CPU work; cuda: exit code 2 on 4 ranks, \"$message\""
