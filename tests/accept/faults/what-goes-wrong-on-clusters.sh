#!/usr/bin/env bash
# What goes wrong on clusters, done to small runs of 2 servers and 2 workers: how long until the job ends or says so, with
# which code and message, and how much training is lost. Nothing may hang longer than stall.peer and 10 s. The table is that
# of ps/FAULTS.md.
set -eu
if [ -z "${FAULTS_MOUNTS:-}" ]; then # mounts of its own, which end with it
	[ "$(id -u)" -eq 0 ] || { echo "FAIL: only root can make hosts and small disks; this is $(id -un)" >&2 && exit 1; }
	exec env FAULTS_MOUNTS=1 unshare --mount "$0" "$@"
fi
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

filling="" # what fills a disk
trap '[ -z "$filling" ] || kill "$filling" || true; umount -l "$TMP/disk" "$TMP/sealed" 2>/dev/null || true; at_exit' EXIT
peer=3     # seconds of stall.peer
interval=1 # seconds between checkpoints
cat >"$TMP/job.yaml" <<END
name: faults
cluster: {servers: 2}
data: {set: generated, rows: 2000, test_rows: 100, features: 64, classes: 10}
model: {name: mlp, layers: [64]}
train:
  batch_per_worker: 16
  optimizer: {name: momentum, lr: 0.01, momentum: 0.9}
  stop: {time: 10m}
evaluate: {every_epochs: 0}
checkpoint: {every: ${interval}s}
metrics: {interval: 0.1s}
END
there=() # in front of what shall run on the host of rank 0: of a lock of another host it is not known at once who has died
on_this_host=("${MPIRUN[@]}" -n 4)
# So that Open MPI's launcher looks whether its hosts are there, and before it has anything to say to them: ps/FAULTS.md.
looking=(env OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=3)
on_four_hosts=(timeout -k 1 300 "$HOSTS" mpirun --map "h1,h2,h3,h4")

table=""
# row FAULT AFTER CODE MESSAGE LOST
row() {
	echo "row: $*"
	table+="| $1 | $2 | $3 | $4 | $5 |"$'\n'
}
newest() { find "$1/checkpoints" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1; }
since() { awk "BEGIN { printf \"%.1f\", ($(now_ms) - $at) / 1000 }"; } # at
iteration() { tail -n 1 "$1/metrics.jsonl" | sed 's/.*"iteration":\([0-9]*\).*/\1/'; }
pid_of() { get "$1/run.json" "ranks.$2.pid"; }

# begin DIR LIMIT LAUNCHER...: with that stall.peer, starts the job and returns some time after its second checkpoint; sets job.
begin() {
	local dir=$1 limit=$2
	shift 2
	"$@" "$FLUENTPS" run --out "$dir" --set "stall.peer=$limit" "$TMP/job.yaml" >"$dir.log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq 600); do
		if [ "$(made "$dir")" -ge 2 ]; then
			sleep 0.7
			return
		fi
		kill -0 "$job" 2>/dev/null || break
		sleep 0.1
	done
	tail -n 40 "$dir.log"
	fail "$dir: the job did not begin to train within 60 s"
}

# ended DIR SECONDS: waits for the end of the job, at most so long since the fault (at, in ms); sets code and took.
ended() {
	until ! kill -0 "$job" 2>/dev/null; do
		if [ $(($(now_ms) - at)) -gt $(($2 * 1000)) ]; then
			tail -n 40 "$1.log"
			fail "$1: the job went on for more than $2 s"
		fi
		sleep 0.05
	done
	took=$(since)
	code=0
	wait "$job" || code=$?
	job=""
}

# moves DIR SECONDS: waits until training goes on.
moves() {
	local from
	from=$(iteration "$1")
	for _ in $(seq $(($2 * 10))); do
		sleep 0.1
		[ "$(iteration "$1")" -le $((from + 1)) ] || return 0
	done
	tail -n 40 "$1.log"
	fail "$1: training did not go on within $2 s"
}

# says DIR PATTERN: a line of the job's output, without who says it, or a failure.
says() {
	local line
	line=$(grep -m 1 -E "$2" "$1.log") || {
		tail -n 40 "$1.log" >&2
		fail "$1: nobody says \"$2\""
	}
	sed -E "s/^\[[a-z]+[0-9 ]*\] (WARN|ERROR): //; s|$TMP/||g" <<<"$line"
}

# whole CHECKPOINT KEY: a whole number in its manifest.
whole() { sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p" "$1/manifest.json"; }

# fault DIR: notes the moment, and how long the run has trained by then.
fault() {
	trained=$(tail -n 1 "$1/metrics.jsonl" | sed 's/.*"at_s":\([0-9.e-]*\).*/\1/')
	at=$(now_ms)
}

# lost DIR: seconds of training between the newest checkpoint, from which the run must go on, and the fault.
lost() {
	local checkpoint
	checkpoint=$(newest "$1")
	awk "BEGIN { l = $trained - $(whole "$checkpoint" trained_ns) / 1e9; printf \"%.1f\", (l > 0 ? l : 0) }"
	"${there[@]}" "$FLUENTPS" run --local 4 "$TMP/job.yaml" --resume "$1" --set "train.stop={updates: $(($(whole "$checkpoint" iteration) + 20))}" >"$1.again" 2>&1 || {
		tail -n 40 "$1.again" >&2
		fail "$1: the run does not go on"
	}
	grep -q "^Resumed: $checkpoint," "$1.again" || fail "$1: the run does not go on from $checkpoint"
}

# over FAULT DIR SECONDS CODES PATTERN: the job ends within so long, with one of these codes and a message, and has lost an
# interval and the time of a checkpoint at most.
over() {
	local message loss
	ended "$2" "$3"
	[[ " $4 " == *" $code "* ]] || {
		tail -n 40 "$2.log"
		fail "$1: exit code $code, want one of $4"
	}
	message=$(says "$2" "$5")
	loss=$(lost "$2")
	must "$loss < 2 * $interval" "$1: seconds of training lost"
	row "$1" "$took s" "$code" "$message" "$loss s of training"
}

# carries_on FAULT DIR PATTERN: training goes on; whoever asks the job to stop then gets a checkpoint and 75.
carries_on() {
	local message=-
	moves "$2" 20
	took=$(since)
	[ -z "$3" ] || message=$(says "$2" "$3")
	kill -USR1 "$(pid_of "$2" 0)"
	local after=$took
	at=$(now_ms)
	ended "$2" 20
	[ "$code" -eq 75 ] || fail "$1: exit code $code after SIGUSR1, want 75"
	row "$1" "training goes on after $after s" "-" "$message" "nothing"
}

killed() { # killed FAULT RANK
	local dir=$TMP/killed-$2
	begin "$dir" "${peer}s" "${on_this_host[@]}"
	fault "$dir"
	kill -9 "$(pid_of "$dir" "$2")"
	over "$1" "$dir" 10 "137" "rank $2\b.*(signal 9|Killed)"
}

stopped() { # stopped FAULT RANK SECONDS; without them for ever
	local dir=$TMP/stopped-$2-${3:-ever} limit=${3:+1m} pid
	begin "$dir" "${limit:-${peer}s}" "${on_this_host[@]}"
	pid=$(pid_of "$dir" "$2")
	fault "$dir"
	kill -STOP "$pid"
	if [ -z "${3:-}" ]; then
		over "$1" "$dir" $((peer + 10)) 4 "no sign of life for ${peer}s, the limit of stall.peer, of rank $2,"
		return
	fi
	sleep "$3"
	kill -CONT "$pid"
	carries_on "$1" "$dir" "this rank did not run for $3s"
}

unplugged() { # unplugged FAULT HOST RANK SECONDS
	local dir=$TMP/unplugged-$3
	begin "$dir" 1m "${on_four_hosts[@]}"
	fault "$dir"
	"$HOSTS" exec "$2" ip link set eth0 down
	sleep "$4"
	"$HOSTS" exec "$2" ip link set eth0 up
	carries_on "$1" "$dir" ""
}

# cut_off FAULT HOST RANK: for ever. The launcher sees it; where it does not look, the ranks see it, and leave all the same.
cut_off() {
	local dir=$TMP/cut-$3 message loss pid
	begin "$dir" 1m "${looking[@]}" "${on_four_hosts[@]}"
	fault "$dir"
	"$HOSTS" exec "$2" ip link set eth0 down
	over "$1, mpirun with keepalive" "$dir" 20 205 "has lost communication with a remote daemon"
	"$HOSTS" exec "$2" ip link set eth0 up
	dir+=-unseen
	begin "$dir" "${peer}s" "${on_four_hosts[@]}"
	fault "$dir"
	"$HOSTS" exec "$2" ip link set eth0 down
	for pid in $(get "$dir/run.json" 'ranks.*.pid'); do
		while kill -0 "$pid" 2>/dev/null; do
			[ "$(now_ms)" -lt $((at + 1000 * (peer + 15))) ] || fail "$1: process $pid of the run is there $(since) s after"
			sleep 0.05
		done
	done
	took=$(since)
	message=$(says "$dir" "no sign of life for ${peer}s, the limit of stall.peer, of rank $3,")
	kill -9 "$job"
	wait "$job" 2>/dev/null || true
	job=""
	"$HOSTS" exec "$2" ip link set eth0 up
	loss=$(lost "$dir")
	must "$loss < 2 * $interval" "$1: seconds of training lost"
	row "$1, mpirun without" "$took s" "4 of the ranks; mpirun stays" "$message" "$loss s of training"
}

full_disk() {
	local dir=$TMP/disk message kept after=""
	mkdir "$dir"
	mount -t tmpfs -o size=1m small "$dir"
	begin "$dir" "${peer}s" "${on_this_host[@]}"
	at=$(now_ms)
	while :; do # what is given up, and removed, too
		head -c 1M /dev/zero >>"$dir/filler" || true
		sleep 0.1
	done >/dev/null 2>&1 &
	filling=$!
	for _ in $(seq 200); do
		sleep 0.1
		[ -n "$after" ] || ! grep -q "no checkpoint: no space" "$dir.log" || after=$(since)
		! grep -q "left out, and training goes on" "$dir.log" || ! grep -q "; the newest is" "$dir.log" || break
	done
	kept=$(newest "$dir")
	message=$(says "$dir" "no checkpoint: no space or quota left")
	says "$dir" "left out, and training goes on: metrics: write record: .*no space left" >/dev/null
	says "$dir" "; the newest is $kept" >/dev/null
	kill -USR1 "$(pid_of "$dir" 0)"
	at=$(now_ms)
	ended "$dir" 10
	kill "$filling"
	filling=""
	[ "$code" -eq 1 ] || fail "disk full: exit code $code, want 1"
	says "$dir" "exit code 1 in place of 75: it could not be written; the newest is $kept" >/dev/null
	rm "$dir/filler"
	if grep -vq '^{.*}$' "$dir/metrics.jsonl"; then fail "disk full: a record is torn"; fi
	trained=0
	lost "$dir" >/dev/null
	row "disk full" "$after s, at the next checkpoint" "1, at the end of training" "$message" "training since the last checkpoint that found room"
	umount "$dir"
}

read_only() {
	local message where=$TMP/sealed code
	mkdir "$where"
	"$FLUENTPS" run --local 4 "$TMP/job.yaml" --out "$where/run" --set "train.stop={updates: 20}" >"$TMP/sealed.log" 2>&1 || shown "a run before its folder is read-only"
	mount --bind "$where" "$where"
	mount -o remount,bind,ro "$where"
	for words in "--out $where/other" "--resume $where/run"; do
		code=0
		at=$(now_ms)
		# shellcheck disable=SC2086 # two words
		timeout 20 "$FLUENTPS" run --local 4 "$TMP/job.yaml" $words >"$where.log" 2>&1 || code=$?
		took=$(since)
		[ "$code" -eq 2 ] || fail "read-only folder, $words: exit code $code, want 2"
		message=$(says "$where" "run folder: .*cannot .*; choose .* with --out: .*read-only file system")
		row "read-only folder, ${words% *}" "$took s, before training" "$code" "$message" "nothing"
	done
	umount "$where"
}

# damaged FAULT PATTERN COMMAND...: the command damages $newest, whose file $file is at hand; the run must say so, name the
# checkpoint before it, and end with the bits that it had.
damaged() {
	local what=$1 pattern=$2
	shift 2
	rm -rf "$TMP/torn/run"
	cp -r "$TMP/torn/good" "$TMP/torn/run"
	"$@"
	at=$(now_ms)
	timeout 20 "$FLUENTPS" run --local 4 --resume "$TMP/torn/run" --set "train.stop={updates: 60}" "$TMP/job.yaml" >"$TMP/torn.log" 2>&1 || {
		cat "$TMP/torn.log"
		fail "$what: the run does not go on"
	}
	took=$(since)
	message=$(says "$TMP/torn" "checkpoint $newest: .*$pattern")
	says "$TMP/torn" "going on from the one before checkpoint=${newest%2}1" >/dev/null
	[ "$(get "$TMP/torn/run/summary.json" parameters_sha256)" = "$want" ] || fail "$what: other parameters"
}

damages() {
	local file newest=$TMP/torn/run/checkpoints/000000000002 want header size at_byte took message
	mkdir "$TMP/torn"
	for stop in 40 60; do
		"$FLUENTPS" run --local 4 --resume auto --out "$TMP/torn/good" --set "train.stop={updates: $stop}" "$TMP/job.yaml" >"$TMP/torn.log" 2>&1 || shown "two checkpoints"
	done
	want=$(get "$TMP/torn/good/summary.json" parameters_sha256)
	file=$newest/server-0001.bin
	size=$(stat -c %s "$TMP/torn/good/checkpoints/000000000002/server-0001.bin")
	header=$((16 + $(od -A n -t u4 -j 12 -N 4 "$TMP/torn/good/checkpoints/000000000002/server-0001.bin")))
	for at_byte in $(seq 0 "$header"); do
		damaged "cut off in its header" "server-0001.bin: it has $at_byte bytes, and $size were written" truncate -s "$at_byte" "$file"
	done
	row "a checkpoint cut off at each of the $header bytes of its header" "$took s, before training" 0 "$message" "the training since the checkpoint before"
	for _ in $(seq 100); do
		at_byte=$(((RANDOM * 32768 + RANDOM) % size))
		damaged "cut off" "server-0001.bin: it has $at_byte bytes, and $size were written" truncate -s "$at_byte" "$file"
	done
	row "the same at 100 random places" "$took s, before training" 0 "$message" "the same"
	damaged "one byte" "server-0001.bin: its bytes are not those that were written" dd if=/dev/urandom of="$file" bs=1 count=4 seek=$((size / 2)) conv=notrunc status=none
	row "a byte of it changed" "$took s, before training" 0 "$message" "the same"
	damaged "another's file" "server-0001.bin: .*is (another file|damaged)" cp "$TMP/torn/good/checkpoints/000000000001/server-0001.bin" "$file"
	row "a file of another checkpoint in it" "$took s, before training" 0 "$message" "the same"
	damaged "a file missing" "server-0001.bin: it is missing" rm "$file"
	row "a file of it missing" "$took s, before training" 0 "$message" "the same"
	damaged "no manifest" "there is no manifest.json" rm "$newest/manifest.json"
	row "its manifest missing" "$took s, before training" 0 "$message" "the same"
	damaged "foreign" "manifest.json: it is not a manifest of fluentps" sh -c "echo '{}' >$newest/manifest.json"
	row "a foreign manifest" "$took s, before training" 0 "$message" "the same"
}

killed "kill -9 of a server" 1
killed "kill -9 of rank 0" 0
killed "kill -9 of a worker" 3
full_disk
read_only
damages
stopped "SIGSTOP of a worker for 10 s" 3 10
stopped "SIGSTOP of a worker for ever" 3
stopped "SIGSTOP of a server for ever" 1
stopped "SIGSTOP of rank 0 for ever" 0
hosts_up 4 none
there=("$HOSTS" exec h1)
unplugged "link of a worker's host down for 5 s" h4 3 5
cut_off "link of a worker's host down for ever" h4 3
cut_off "link of a server's host down for ever" h2 1

printf '\n| fault | detected | code | message | lost |\n|---|---|---|---|---|\n%s\n' "$table"
figure "$(wc -l <<<"${table%$'\n'}") faults, stall.peer ${peer}s, a checkpoint every $interval s: each ended or went on in its time, with its code and message"
