#!/usr/bin/env bash
# What seldom happens and is seldom tried, done to small runs: a file system that answers every call with EIO, or turns read-only, in
# the middle of a run, while checkpoints are written; a checkpoint that cannot be read; and SIGKILLs of one rank at a random moment,
# KILLS times (60), under mpirun and under MPICH's mpiexec in turn, each followed by --resume auto. Nothing hangs; what was saved is gone on
# from, to the bits of a run that was never interrupted; no code but that of success says success.
set -eu
if [ -z "${ROUGH_MOUNTS:-}" ]; then # mounts of its own, which end with it
	[ "$(id -u)" -eq 0 ] || { echo "FAIL: only root can break file systems; this is $(id -un)" >&2 && exit 1; }
	exec env ROUGH_MOUNTS=1 unshare --mount "$0" "$@"
fi
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

kills=${KILLS:-60}
lives=${LIVES:-3000}
RANDOM=11
device=""
trap 'umount -l "$TMP/disk" 2>/dev/null || true; [ -z "$device" ] || losetup -d "$device" || true; at_exit' EXIT
tests/deps.sh --test
mpich=$TMP/fluentps-mpich
tests/with-mpich.sh go build -tags "mpi mpich blas" -o "$mpich" ./cmd/fluentps
open_mpi=("${MPIRUN[@]}" -n 4 "$FLUENTPS")
with_mpich=("$(command -v mpiexec.mpich || echo mpiexec)" -n 4 "$mpich")
small_job rough >"$TMP/job.yaml"
cat >>"$TMP/job.yaml" <<END
checkpoint: {every: 200ms}
metrics: {interval: 0.1s}
stall: {peer: 3s}
END

newest() { find "$1/checkpoints" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1; }
whole() { sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p" "$1/manifest.json"; } # CHECKPOINT KEY: a whole number in its manifest
# ended SECONDS LOG: waits for the end of the job, so long at most; sets code.
ended() {
	local until=$(($(now_ms) + $1 * 1000))
	while kill -0 "$job" 2>/dev/null; do
		if [ "$(now_ms)" -gt "$until" ]; then
			tail -n 40 "$2"
			fail "the job went on for more than $1 s"
		fi
		sleep 0.05
	done
	code=0
	wait "$job" 2>/dev/null || code=$?
	job=""
}

# goes_on DIR LAUNCHER...: the run goes on from its newest checkpoint, with the bits of one that was never interrupted.
goes_on() {
	local dir=$1 checkpoint stop end
	shift
	checkpoint=$(newest "$dir")
	stop=$(($(whole "$checkpoint" iteration) + 30))
	end=(--set "train.stop={updates: $stop}")
	timeout 120 "$@" run --resume "$dir" "${end[@]}" "$TMP/job.yaml" >"$TMP/log" 2>&1 || shown "$* run --resume $dir"
	grep -q "^Resumed: $checkpoint," "$TMP/log" || shown "the run does not go on from $checkpoint"
	rm -rf "$TMP/whole"
	local_world 4 --out "$TMP/whole" "${end[@]}" --set checkpoint.every=0s "$TMP/job.yaml"
	[ "$(get "$dir/summary.json" parameters_sha256)" = "$(get "$TMP/whole/summary.json" parameters_sha256)" ] || fail "$dir: other parameters than without a fault"
}

# mounted: the disk, with its journal replayed as after a crash.
mounted() { mount -o errors=remount-ro "$device" "$TMP/disk"; }

# broken WHAT PATTERN LAUNCHER... -- COMMAND...: a run on a disk of its own, which the command breaks while checkpoints are
# written. Training goes on, and says what is wrong; who then asks it to stop gets code 1, within 15 s.
broken() {
	local what=$1 pattern=$2 before launcher=() pid
	shift 2
	while [ "$1" != -- ]; do
		launcher+=("$1")
		shift
	done
	shift
	truncate -s 0 "$TMP/image" && truncate -s 96M "$TMP/image"
	mkfs.ext4 -q "$TMP/image"
	mkdir -p "$TMP/disk"
	device=$(losetup --find --show "$TMP/image")
	mounted
	"${launcher[@]}" run --out "$TMP/disk/run" "$TMP/job.yaml" >"$TMP/log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq 300); do
		[ "$(made "$TMP/disk/run")" -lt 3 ] || break
		kill -0 "$job" 2>/dev/null || shown "$what: the job did not begin"
		sleep 0.1
	done
	pid=$(get "$TMP/disk/run/run.json" ranks.0.pid)
	for _ in $(seq 100); do # while one is written, if that can be met
		[ ! -e "$TMP/disk/run/checkpoints/.new" ] || break
		sleep 0.005
	done
	"$@"
	for _ in $(seq 200); do
		! grep -qE "no checkpoint: .*$pattern" "$TMP/log" || break
		kill -0 "$job" 2>/dev/null || break
		sleep 0.1
	done
	grep -qE "no checkpoint: .*$pattern" "$TMP/log" || shown "$what: nobody says that there is no checkpoint"
	sleep 1
	kill -0 "$job" 2>/dev/null || shown "$what: training did not go on"
	kill -USR1 "$pid"
	ended 15 "$TMP/log"
	[ "$code" -eq 1 ] || shown "$what: exit code $code, want 1"
	before=$(grep -o "no checkpoint: .*" "$TMP/log" | head -n 1 | sed "s|$TMP/||g")
	umount "$TMP/disk"
	e2fsck -fy "$device" >"$TMP/fsck" 2>&1 || [ $? -le 1 ] || fail "$what: $(tail -n 3 "$TMP/fsck")"
	mounted
	goes_on "$TMP/disk/run" "${launcher[@]}"
	umount "$TMP/disk"
	losetup -d "$device"
	device=""
	figure "$what: training went on (\"$before\"), code 1 when it was asked to stop, and it went on from the last whole checkpoint to the same bits"
}
# The file system's own call for it: from then on all calls say EIO.
shut_down() { perl -e 'open(my $d, "<", $ARGV[0]) or die $!; my $how = pack("L", 2); ioctl($d, 0x8004587d, $how) or die $!' "$TMP/disk"; }
# An error of its own makes it read-only, as a disk that fails does.
seal() { echo broken >"/sys/fs/ext4/$(basename "$device")/trigger_fs_error"; }

broken "Open MPI, EIO" "input/output error" "${open_mpi[@]}" -- shut_down
broken "MPICH, EIO" "input/output error" "${with_mpich[@]}" -- shut_down
broken "Open MPI, read-only" "(read-only file system|input/output error)" "${open_mpi[@]}" -- seal
broken "MPICH, read-only" "(read-only file system|input/output error)" "${with_mpich[@]}" -- seal

# A manifest whose disk block cannot be read: the checkpoint before is taken.
dir=$TMP/unread
for stop in 20 40; do
	local_world 4 --resume auto --out "$dir" --set "train.stop={updates: $stop}" --set checkpoint.every=0s "$TMP/job.yaml"
done
dead=$(newest "$dir")
ln -sf /proc/self/mem "$dead/manifest.json" # whose first byte is EIO
local_world 4 --resume "$dir" --set "train.stop={updates: 60}" --set checkpoint.every=0s "$TMP/job.yaml"
grep -q "manifest.json: input/output error" "$TMP/log" || shown "nobody says that $dead cannot be read"
figure "a checkpoint that cannot be read: $(grep -o 'resume: .*' "$TMP/log" | head -n 1 | sed "s|$TMP/||g" | cut -c 1-120)"

# ranks: the processes of the run, whoever leads their sessions.
ranks() { pgrep -f "^($FLUENTPS|$mpich) run .*--out $TMP/killed( |\$)" || true; }
# left_stuck LAUNCHER: Open MPI 4.1's mpirun locks itself up some of the time where a rank dies in its first milliseconds, before
# mpirun knows its number; all ranks are dead by then, and it waits for none of them. It is killed, as whoever finds it must do.
left_stuck() {
	for _ in $(seq 150); do
		sleep 0.1
		kill -0 "$1" 2>/dev/null || return 0
	done
	[ -z "$(ranks)" ] || return 0 # this is not it
	grep -q "with PID 0 .* exited on signal 9" "$TMP/log" || return 0
	kill -9 "$1"
	return 1
}
victims=0 early=0 stuck=0
for n in $(seq "$kills"); do
	launcher=("${open_mpi[@]}")
	[ $((n % 2)) -eq 0 ] || launcher=("${with_mpich[@]}")
	before=$(newest "$TMP/killed")
	"${launcher[@]}" run --resume auto --out "$TMP/killed" "$TMP/job.yaml" >"$TMP/log" 2>&1 </dev/null &
	job=$!
	sleep "$(awk "BEGIN { print (100 + ($RANDOM * 32768 + $RANDOM) % ($lives - 100)) / 1000 }")"
	kill -0 "$job" 2>/dev/null || shown "start $n of the job"
	mapfile -t pids < <(ranks)
	if [ "${#pids[@]}" -eq 0 ]; then # the launcher has not begun any
		pids=("$job")
		early=$((early + 1))
	else
		victims=$((victims + 1))
	fi
	kill -9 "${pids[RANDOM % ${#pids[@]}]}"
	left_stuck "$job" &
	ended 25 "$TMP/log"
	wait $! || stuck=$((stuck + 1))
	case $code in 0 | 2 | 4 | 75) shown "start $n: exit code $code after a SIGKILL" ;; esac
	for _ in $(seq 100); do
		[ -n "$(ranks)" ] || break
		sleep 0.1
	done
	[ -z "$(ranks)" ] || shown "start $n: ranks $(ranks | xargs) are there 10 s after the end of the job"
	! grep -q 'resume: ' "$TMP/log" || shown "start $n: a checkpoint was refused"
	if [ -n "$before" ] && grep -q '^Run folder' "$TMP/log"; then
		grep -q "^Resumed: .*/$(basename "$before")," "$TMP/log" || shown "start $n does not go on from $before"
	fi
done
if [ -z "$(newest "$TMP/killed")" ]; then fail "no start came to its first checkpoint: LIVES=$lives is too short for this machine"; fi
goes_on "$TMP/killed" "${open_mpi[@]}"
left=$(find /dev/shm -mindepth 1 -user "$(id -u)" -newer "$TMP/job.yaml" -name 'fluentps-*' | head -n 3)
[ -z "$left" ] || fail "left behind: $left"
figure "$victims SIGKILLs of one rank at random moments, $early of a launcher before its ranks, in turn under MPICH and Open MPI: each start ended with another code than 0, 2, 4 and 75 ($stuck times mpirun itself was stuck with no rank left, and was killed), no process stayed, and the run ended with the bits of one that was never interrupted"
