#!/usr/bin/env bash
# run --restarts 5 over mpirun, and kill -9 of its processes: PAIRS times (50) of mpirun, and 0.1 to 2 s later, or once there is one,
# of a rank of the next start; and KILLS times (200) of mpirun, of any process below the supervisor, or of a rank, at random moments of
# the whole run and, in every third run, just after the summary says ok. Every run ends with 0 and the bits of one that nobody
# disturbed, or is given up by the rule in ps/FAULTS.md, and has those bits once it goes on. No process, lock or shared memory of
# it stays.
set -eu
if [ -z "${OWN_SHM:-}" ]; then # a /dev/shm of its own: whatever is left there is left by these runs
	own=(--mount)
	[ "$(id -u)" -eq 0 ] || own+=(--map-root-user)
	exec env OWN_SHM=1 unshare "${own[@]}" "$0" "$@"
fi
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

pairs=${PAIRS:-50}
kills=${KILLS:-200}
RANDOM=${SEED:-5}
small_job unlost >"$TMP/job.yaml"
cat >>"$TMP/job.yaml" <<'END'
checkpoint: {every: 200ms}
metrics: {interval: 0.1s}
faults: [{worker: "*", slow: {sleep: 15ms}}]
END
args=(--set "train.stop={updates: 200}" --restarts 5)

# spread FROM TO: a random number of milliseconds. It sets ms: a subshell would draw the same one each time.
spread() { ms=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1))); }
rest() { sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"; }

# processes: those of this run but its supervisor, by what all inherit from it; the dead have no environment.
processes() {
	grep -lazsE "^LOST_RUN=$run\$" /proc/[0-9]*/environ | sed -n "/^.proc.$job.environ/!s|^/proc/\([0-9]*\)/environ|\1|p"
}
# of KIND TOKEN: the processes that are a rank, a launcher, or either (any) of the starts whose number the pattern fits.
of() {
	local pid exe
	for pid in $(processes); do
		exe=$(readlink "/proc/$pid/exe") || continue
		case $1:$exe in
		rank:"$FLUENTPS" | any:* | launcher:*/orterun | launcher:*/mpirun | launcher:*/prterun) ;;
		*) continue ;;
		esac
		! grep -qazsE "^--start=.*[.]$2\$" "/proc/$pid/cmdline" || echo "$pid"
	done
}
# starts: how often the supervisor has started the launcher.
starts() { echo $(($(grep -c 'restart [0-9]* of' "$log" || true) + 1)); }
alive() { kill -0 "$job" 2>/dev/null; }
finished() { grep -qs '"finished": "ok"' "$run/summary.json"; }

# strike WHAT PID...: kill -9 of one of them; whether there was one. struck tells of each.
strike() {
	local what=$1 pid
	shift
	[ $# -gt 0 ] || return 1
	pid=${*:RANDOM % $# + 1:1}
	kill -9 "$pid" 2>/dev/null || return 1
	struck="${struck:+$struck, }$what of start $(starts), checkpoint $(made "$run")"
	! finished || struck+=", after ok"
	done=$((done + 1))
}

# begin NAME: starts a run; sets run, job, log.
begin() {
	run=$TMP/$1 log=$TMP/$1.log struck=""
	LOST_RUN=$run "$FLUENTPS" run "${args[@]}" --resume auto --out "$run" "$TMP/job.yaml" -- "${MPIRUN[@]}" -n 4 >>"$log" 2>&1 </dev/null &
	job=$!
}

# ended: waits for the end of the run; sets code. Open MPI 4.1's mpirun locks itself up some of the time where a rank dies in its
# first milliseconds; all ranks are dead by then. It is killed, as FAULTS.md tells whoever finds it.
ended() {
	local until=$(($(now_ms) + 150000)) since=0 last
	while alive; do
		last=$(of launcher "$(starts)")
		if [ -z "$last" ] || [ -n "$(of rank "$(starts)")" ]; then
			since=0
		elif [ "$since" -eq 0 ]; then
			since=$(now_ms)
		elif [ $(($(now_ms) - since)) -gt 20000 ]; then
			grep -q "with PID 0 .* exited on signal 9" "$log" || lost "mpirun has no rank, and does not end"
			kill -9 "$last"
			stuck=$((stuck + 1)) since=0
		fi
		[ "$(now_ms)" -lt "$until" ] || lost "the run does not end"
		sleep 0.1
	done
	code=0
	wait "$job" 2>/dev/null || code=$?
}
# lost WHY: shows all of the run.
lost() {
	tail -n 60 "$log" >&2
	echo "run.json: $(head -c 300 "$run/run.json" | tr -d '\n')" >&2
	local left
	left=$(processes)
	[ -z "$left" ] || ps -o pid,ppid,stat,etime,args -p "${left//$'\n'/,}" >&2 || true
	[ -z "${KEEP:-}" ] || cp -r "$run" "$log" "$KEEP"
	# shellcheck disable=SC2086
	[ -z "$left" ] || kill -9 $left 2>/dev/null || true
	fail "$(basename "$run"), killed: $struck: $1"
}

# by_rule: whether the give-up is that of FAULTS.md, by what the supervisor has said of each start and by what lies in the folder.
by_rule() {
	local seen
	if grep -q 'all restarts of --restarts 5 are used up' "$log"; then
		[ "$(starts)" -eq 6 ] || lost "restarts are left"
		return 0
	fi
	grep -q 'the 2nd time in a row without a new checkpoint: giving up' "$log" || return 1
	# What the last start resumed from, and the one before it; 0 where it had nothing, as the first.
	seen=$({
		echo 0
		sed -n 's/.*restart [0-9]* of 5: .*checkpoints\/0*\([0-9]*\).*/\1/p; s/.*restart [0-9]* of 5: there is no checkpoint yet.*/0/p' "$log"
	} | tail -n 2 | xargs)
	[ "$seen" = "$(made "$run") $(made "$run")" ] || lost "given up, and the last two starts began at checkpoints $seen of $(made "$run")"
}

# judged: the end of a run is one of those that are promised, and it leaves nothing.
judged() {
	local left sum
	ended
	for _ in $(seq 20); do
		left=$(processes)
		[ -n "$left" ] || break
		sleep 0.1
	done
	[ -z "$left" ] || lost "its processes stay: $(echo "$left" | xargs)"
	[ ! -e "$run/run.lock" ] || [ "$code" -ne 0 ] || lost "its lock stays"
	if [ "$code" -ne 0 ]; then
		by_rule || lost "exit code $code"
		given=$((given + 1)) reasons+="$(basename "$run"): code $code, killed: $struck"$'\n'
		begin "$(basename "$run")"
		ended
		[ "$code" -eq 0 ] || lost "exit code $code when it went on after it was given up"
	fi
	left=$(find /dev/shm -mindepth 1 | head -n 5 | xargs)
	[ -z "$left" ] || lost "left in /dev/shm: $left"
	[ ! -e "$run/run.lock" ] || lost "its lock stays"
	sum=$(get "$run/summary.json" parameters_sha256)
	[ "$sum" = "$want" ] || lost "other parameters than undisturbed: ${sum:0:12}, want ${want:0:12}"
	warned=$((warned + $(grep -c 'WARNING: the launcher left with code' "$log" || true)))
	restarts=$((restarts + $(starts) - 1))
	job=""
	[ -n "${VERBOSE:-}" ] && echo "$(basename "$run"): $(starts) starts, killed: $struck"
	rm -rf "$run" "$log"
}

done=0 stuck=0 given=0 warned=0 restarts=0 reasons="" want=""
begin undisturbed
from=$(now_ms)
ended
[ "$code" -eq 0 ] || lost "exit code $code"
length=$(($(now_ms) - from))
want=$(get "$run/summary.json" parameters_sha256)

for n in $(seq "$pairs"); do
	begin "pair-$n"
	until [ "$(made "$run")" -gt 0 ]; do
		alive || lost "it ended before its first checkpoint"
		sleep 0.02
	done
	spread 0 $((length / 4))
	rest
	mapfile -t launcher < <(of launcher 1)
	strike mpirun "${launcher[@]}" || lost "there is no mpirun any more"
	spread 100 2000
	rest
	until mapfile -t victims < <(of rank 2) && strike "rank" "${victims[@]}"; do
		alive || break
	done
	[[ $struck == *rank* ]] || finished || lost "there is no second start"
	judged
done
# result RUNS WHAT: prints the figure.
result() { figure "$1 runs of $((length / 1000)) s, $done kills ($2): $(($1 - given)) ended with 0 ($warned of them with a warning, having finished), $given were given up by the rule, all have the bits of an undisturbed run; $restarts restarts, mpirun stuck without ranks $stuck times; no process, lock or segment stays"; }
result "$pairs" "mpirun, and 0.1 to 2 s later a rank of the next start"
pairs_given=$given
done=0 stuck=0 given=0 restarts=0 warned=0 runs=0

while [ "$done" -lt "$kills" ]; do
	runs=$((runs + 1))
	begin "kills-$runs"
	most=$((RANDOM % 3 + 1)) # of this run
	if [ $((runs % 3)) -eq 0 ]; then # at the end
		most=1
		while alive && ! finished; do sleep 0.005; done
		spread 0 40
		rest
	fi
	while [ "$most" -gt 0 ] && [ "$done" -lt "$kills" ] && alive; do
		if [ $((runs % 3)) -ne 0 ]; then
			spread 0 "$length"
			rest
		fi
		kinds=(launcher any rank)
		kind=${kinds[RANDOM % 3]}
		mapfile -t victims < <(of "$kind" '[0-9]*')
		strike "$kind" "${victims[@]}" || true
		most=$((most - 1))
	done
	judged
done
result "$runs" "mpirun, any process below the supervisor, or a rank"
[ -z "$reasons" ] || printf 'given up:\n%s' "$reasons"
[ "$pairs_given" -eq 0 ] || fail "each pair has a checkpoint before its first kill: none is to be given up"
