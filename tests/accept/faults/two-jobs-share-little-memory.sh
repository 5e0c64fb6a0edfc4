#!/usr/bin/env bash
# Two jobs that start at one time on a node with shared memory for one of them: 50 pairs (PAIRS), and none of the 100 dies; each
# ends with the bits of a run that shares no memory. /dev/shm is a file system of 110 MiB, and of a job's window about 58 MiB.
# Under MPICH so, too (PAIRS_MPICH, 10).
set -eu
if [ -z "${SMALL_MOUNTS:-}" ]; then # mounts of its own, which end with it
	[ "$(id -u)" -eq 0 ] || { echo "FAIL: only root can make a small /dev/shm; this is $(id -un)" >&2 && exit 1; }
	exec env SMALL_MOUNTS=1 unshare --mount "$0" "$@"
fi
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
mpich=$TMP/fluentps-mpich
tests/with-mpich.sh go build -tags "mpi mpich blas" -o "$mpich" ./cmd/fluentps
pairs=${PAIRS:-50}
room=110
others=()
trap 'kill "${others[@]}" 2>/dev/null || true; at_exit' EXIT
cat >"$TMP/job.yaml" <<END
name: window
cluster: {servers: 1}
data: {set: generated, rows: 256, test_rows: 64, features: 296, classes: 10}
model: {name: mlp, layers: [8192]}
train: {batch_per_worker: 16, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 4}}
evaluate: {every_epochs: 0}
checkpoint: {keep: 0}
END
"$FLUENTPS" plan --ranks 3 "$TMP/job.yaml" >"$TMP/plan"
window=$(sed -n 's/^ .* \([0-9.]* [KMG]iB\) of \/dev\/shm: .*/\1/p' "$TMP/plan")
world 3 run --out "$TMP/messages" --set cluster.shared_memory=off "$TMP/job.yaml"
want=$(get "$TMP/messages/summary.json" parameters_sha256)

# pair NUMBER LAUNCHER... PROGRAM: two jobs at one time, each with a session folder of its own.
pair() {
	local n=$1 k code
	shift
	mount -t tmpfs -o size=${room}m small /dev/shm
	for k in 1 2; do
		mkdir -p "$TMP/$n-$k"
		TMPDIR=$TMP/$n-$k timeout -k 5 120 "$@" run --out "$TMP/$n-$k/run" "$TMP/job.yaml" >"$TMP/$n-$k/log" 2>&1 </dev/null &
		others[k]=$!
	done
	for k in 1 2; do
		code=0
		wait "${others[k]}" || code=$?
		if [ "$code" -ne 0 ]; then
			tail -n 40 "$TMP/$n-$k/log"
			fail "pair $n, job $k: exit code $code"
		fi
		[ "$(get "$TMP/$n-$k/run/summary.json" parameters_sha256)" = "$want" ] || fail "pair $n, job $k: other bits than without a window"
		case $(get "$TMP/$n-$k/run/summary.json" bytes_shared) in
		0)
			[ "$(grep -c 'no shared memory: ' "$TMP/$n-$k/log")" -eq 1 ] || fail "pair $n, job $k: it sent messages, and did not say so once"
			messages=$((messages + 1))
			;;
		*) windows=$((windows + 1)) ;;
		esac
	done
	others=()
	left=$(find /dev/shm -mindepth 1 | head -n 3)
	umount -l /dev/shm
	[ -z "$left" ] || fail "pair $n left behind: $left"
	rm -rf "$TMP/$n-1" "$TMP/$n-2"
}

# together NAME PAIRS LAUNCHER... PROGRAM
together() {
	local name=$1 n=$2 k
	shift 2
	windows=0 messages=0
	for k in $(seq "$n"); do pair "$k" "$@"; done
	figure "$name: $n pairs of jobs at one time, a window of $window each in $room MiB: none died, $windows got their window, $messages said that they send messages, all with the bits of a run without windows"
}
together "Open MPI" "$pairs" "${MPIRUN[@]}" -n 3 "$FLUENTPS"
together MPICH "${PAIRS_MPICH:-10}" "$(command -v mpiexec.mpich || echo mpiexec)" -n 3 "$mpich"
