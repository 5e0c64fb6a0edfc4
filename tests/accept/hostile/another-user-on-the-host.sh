#!/usr/bin/env bash
# Another user on the same host: whoever can write a run folder, or make folders beside it, neither has a run write files
# elsewhere, nor has it take up a run of his own, nor has it print what a terminal obeys or propose what a user should not type.
# Once root is attacked by user 65534, once 65534 by root; once in folders that are sticky, as /tmp, once in others, since the kernel
# may keep links in sticky folders from being followed, and would hide what the program does.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
	fail "only root can act as two users, with setpriv of util-linux"
fi
readonly NOBODY=65534
S=$(mktemp -d /tmp/fluentps-other.XXXXXX)
forger=""
trap '[ -z "$forger" ] || kill -9 "$forger" 2>/dev/null || true; rm -rf "$S"; at_exit' EXIT
chmod 755 "$S"
cp "$FLUENTPS" "$S/fluentps"
cp "$ACCEPT_TMP/inspect" "$S/inspect"
echo "found: $(sysctl fs.protected_symlinks fs.protected_regular fs.protected_fifos fs.protected_hardlinks 2>/dev/null | paste -sd ' ')"
cat >"$S/tiny.yaml" <<-END
	name: tiny
	cluster: {servers: 1}
	data: {set: generated, rows: 64, features: 4, classes: 2}
	model: {name: softmax}
	train: {batch_per_worker: 8, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 1}}
	evaluate: {every_epochs: 0}
END
chmod 755 "$S/fluentps" "$S/inspect"
chmod 644 "$S/tiny.yaml"

# as USER COMMAND...; exec_as is the same in place of this shell, so that $! is the command's.
as() { (exec_as "$@"); }
exec_as() {
	local user=$1
	shift
	exec setpriv --reuid "$user" --regid "$user" --clear-groups env HOME="$S" "$@"
}
# train USER LOG ARG... runs the program as a user who shares all with everybody, and keeps its code.
train() {
	local user=$1 log=$2
	shift 2
	code=0
	(umask 000 && exec_as "$user" timeout 120 "$S/fluentps" run "$S/tiny.yaml" --local 2 "$@") >"$log" 2>&1 || code=$?
}
# harmless LOG: no byte in it does anything in a terminal.
harmless() {
	if LC_ALL=C grep -q "[^[:print:][:blank:]]" <(LC_ALL=C tr -d '\200-\377' <"$1"); then
		cat -v "$1"
		fail "$1 holds control characters"
	fi
	! grep -Eq '(scancel|kill) ' "$1" || fail "$(cat "$1")"
}
said() { grep -Eq "$2" "$1" || { cat -v "$1" && fail "$1 does not say $2"; }; }

# attack VICTIM ATTACKER MODE
attack() {
	local victim=$1 attacker=$2 mode=$3 dir=$S/$1-$3 name
	echo "== user $victim attacked by $attacker, in folders of mode $mode"
	mkdir "$dir"
	chmod "$mode" "$dir"
	cd "$dir"

	# Files through links. The victim shares its run with everybody; the attacker puts links where the run will write.
	train "$victim" "$dir/first.log" --out "$dir/out"
	[ "$code" = 0 ] || fail "code $code: $(cat "$dir/first.log")"
	said "$dir/first.log" "anybody may write the run folder .*: chmod o-w"
	install -o "$victim" -m 600 /dev/null "$dir/treasure"
	echo precious >"$dir/treasure"
	for name in .run.json.new .plan.txt.new .config.yaml.new .resolved.yaml.new .summary.json.new .summary.txt.new .histograms.csv.new .iterations.csv.new run.json summary.txt; do
		as "$attacker" rm -f "out/$name"
		as "$attacker" ln -s "$dir/treasure" "out/$name"
	done
	as "$attacker" ln -s "$dir/nothing" "out/checkpoints/.new"
	as "$attacker" rm -f out/logs/rank-0000.log out/logs/rank-0001.log
	as "$attacker" ln -s "$dir/treasure" out/logs/rank-0000.log
	as "$attacker" ln -s "$dir/nothing" out/logs/rank-0001.log
	train "$victim" "$dir/links.log" --resume "$dir/out" --set train.stop.epochs=2
	[ "$(cat "$dir/treasure")" = precious ] || fail "a file of user $victim was written through a link: $(head -c 200 "$dir/treasure")"
	[ ! -e "$dir/nothing" ] || fail "a file was made through a link"
	[ "$code" = 0 ] || fail "code $code: $(cat "$dir/links.log")"
	said "$dir/links.log" 'logs/rank-0000.log\\?" is a symbolic link, and none is followed here'
	grep -q '"finished": "ok"' out/summary.json || fail "no summary"
	as "$attacker" rm -f out/metrics.csv out/metrics.jsonl
	as "$attacker" ln -s "$dir/treasure" out/metrics.jsonl
	as "$attacker" ln -s "$dir/treasure" out/metrics.csv
	train "$victim" "$dir/sinks.log" --resume "$dir/out" --set train.stop.epochs=3
	[ "$(cat "$dir/treasure")" = precious ] || fail "a file of user $victim was cut off or written through a link for metrics"
	[ "$code" != 0 ] || fail "metrics were written through links: $(cat "$dir/sinks.log")"
	as "$attacker" rm -f out/metrics.csv out/metrics.jsonl

	# A folder of the attacker's, of the name that a job script gives.
	as "$attacker" mkdir -m 777 "$dir/batch"
	train "$victim" "$dir/batch.log" --out "$dir/batch" --resume auto
	[ "$code" = 2 ] || fail "code $code in the folder of another user: $(cat "$dir/batch.log")"
	said "$dir/batch.log" "batch belongs to user .*choose another folder with --out"
	[ -z "$(ls -A batch)" ] || fail "left in the folder of another user: $(ls -A batch)"

	# A run of the attacker's, of a late date, that auto could take up.
	mkdir -p runs/tiny
	chmod "$mode" runs runs/tiny
	train "$attacker" "$dir/theirs.log"
	[ "$code" = 0 ] || fail "code $code: $(cat "$dir/theirs.log")"
	as "$attacker" sh -c 'mv runs/tiny/2[0-9]*-local runs/tiny/29991231T235959Z-1'
	train "$victim" "$dir/auto.log" --resume auto
	[ "$code" = 0 ] || fail "code $code: $(cat "$dir/auto.log")"
	! grep -q '^Resumed' "$dir/auto.log" || fail "took up another user's run: $(cat "$dir/auto.log")"
	said "$dir/auto.log" "1 run folders in runs/tiny belong to other users and are ignored"
	train "$victim" "$dir/auto.log" --resume auto --set train.stop.epochs=2
	said "$dir/auto.log" '^Resumed: runs/tiny/20'
	[ "$code" = 0 ] || fail "code $code: $(cat "$dir/auto.log")"

	# What a lock and a checkpoint say of themselves.
	as "$attacker" rm -f out/run.lock
	# shellcheck disable=SC2016 # the shell of the attacker expands it
	exec_as "$attacker" bash -c 'n=0; while [ -d out ]; do
		printf "{\"host\":\"\\\\u001b[2J\",\"pid\":7,\"job\":\"7; rm -rf ~\",\"token\":\"x\"}\n%016d\n" $((n += 1)) >out/.forged && mv -f out/.forged out/run.lock; sleep 0.1; done' >/dev/null 2>&1 &
	forger=$!
	until [ -e out/run.lock ]; do sleep 0.1; done
	train "$victim" "$dir/lock.log" --resume "$dir/out" --set train.stop.epochs=4
	kill -9 "$forger"
	wait "$forger" 2>/dev/null || true
	forger=""
	[ "$code" = 2 ] || fail "code $code with a lock of somebody who lives: $(cat -v "$dir/lock.log")"
	said "$dir/lock.log" 'job "7; rm -rf ~", process 7 on "\\x1b\[2J"'
	harmless "$dir/lock.log"
	as "$attacker" rm -f out/run.lock
	name=$(find out/checkpoints -maxdepth 1 -name '0*' | sort | tail -1)
	as "$attacker" "$S/inspect" forge "$name/manifest.json" seed $'\e]0;x\a'
	as "$attacker" "$S/inspect" forge "$name/manifest.json" $'x;rm -rf ~)\e[2J' 1
	train "$victim" "$dir/manifest.log" --resume "$dir/out" --set train.stop.epochs=4
	[ "$code" = 2 ] || fail "code $code with a forged manifest: $(cat -v "$dir/manifest.log")"
	said "$dir/manifest.log" 'seed: "\\x1b\]0;x\\a" in the checkpoint, 1 now'
	! grep -q 'allow-changed' "$dir/manifest.log" || fail "proposes what was forged: $(cat -v "$dir/manifest.log")"
	harmless "$dir/manifest.log"
	as "$attacker" rm -f "$name/manifest.json"
	as "$attacker" mkfifo "$name/manifest.json"
	train "$victim" "$dir/fifo.log" --resume "$dir/$name" --set train.stop.epochs=4
	[ "$code" = 2 ] || fail "code $code with a FIFO for a manifest: $(cat -v "$dir/fifo.log")"
	said "$dir/fifo.log" 'is a FIFO, must be a regular file'
	cd "$S"
}

attack 0 $NOBODY 1777
attack 0 $NOBODY 777
attack $NOBODY 0 1777
attack $NOBODY 0 777

# The number of a job comes from the environment.
cd "$S"
code=0
SLURM_JOB_ID=$'7; rm -rf ~\e[2J' "$S/fluentps" run tiny.yaml --local 2 --out "$S/job" >"$S/job.log" 2>&1 || code=$?
[ "$code" = 2 ] || fail "code $code with a number of a job that is none"
said "$S/job.log" 'SLURM_JOB_ID is "7; rm -rf ~\\x1b\[2J": not the number of a job'
harmless "$S/job.log"
figure "12 links, 3 pipes and locks, a foreign folder and a foreign run, in sticky folders and others: nothing of user 0 was written, taken up or obeyed through 65534, nor the other way round"
