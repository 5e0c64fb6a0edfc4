#!/usr/bin/env bash
# kill -9 of a rank, KILLS times (6), in a run with --restarts: it comes back by itself, loses at most one interval of
# checkpoints, and ends with the bits of a run that was never interrupted; the seconds from the kill to training again.
# With checkpoint.replica: 1 the same where all files of the run folder's checkpoints are emptied before each kill.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

kills=${KILLS:-6}
every=1 # seconds
RANDOM=7
small_job restarted >"$TMP/job.yaml"
cat >>"$TMP/job.yaml" <<END
checkpoint: {every: ${every}s}
metrics: {interval: 0.1s}
END

# until_true WHAT COMMAND...: waits at most 60 s for it.
until_true() {
	local what=$1
	shift
	for _ in $(seq 1200); do
		! "$@" || return 0
		kill -0 "$job" 2>/dev/null || shown "$what"
		sleep 0.05
	done
	fail "$what: not within 60 s"
}
trains() { # since the newest start of the job: it writes run.json before it trains, and metrics while it does
	[ "$(get "$run/run.json" ranks.0.pid 2>/dev/null)" != "$old" ] && [ "$run/metrics.jsonl" -nt "$run/run.json" ]
}
newest() { find "$run/checkpoints" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1; }
has_said() { [ "$(grep -c '^Resumed: ' "$TMP/log")" -ge "$n" ]; } # the launcher hands output on in its own time
has_newer() { [ "$(newest)" != "$before" ]; }
whole() { sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p" "$1/manifest.json"; }

# killed NAME EMPTIED ARG...: a run that loses ranks; sets took and lost, the most of each, in seconds.
killed() {
	run=$TMP/$1 emptied=$2 took=0 lost=0 old=""
	shift 2
	"$FLUENTPS" run "$TMP/job.yaml" --restarts "$kills" --out "$run" "$@" -- "${MPIRUN[@]}" -n 6 >"$TMP/log" 2>&1 </dev/null &
	job=$!
	until_true "the job trains" trains
	for n in $(seq "$kills"); do
		before=$(newest)
		until_true "a checkpoint after start $n" has_newer
		sleep "0.$((RANDOM % 900 + 100))"
		old=$(get "$run/run.json" ranks.0.pid)
		victim=$(get "$run/run.json" "ranks.$((RANDOM % 6)).pid")
		at=$(tail -n 1 "$run/metrics.jsonl" | sed 's/.*"at_s":\([0-9.e-]*\).*/\1/')
		[ -z "$emptied" ] || truncate -s 0 "$run"/checkpoints/0*/*.bin
		start=$(now_ms)
		kill -9 "$victim"
		until_true "training again after kill $n" trains
		took=$(awk "BEGIN { t = ($(now_ms) - $start) / 1000; print (t > $took ? t : $took) }")
		until_true "where start $((n + 1)) went on" has_said
		from=$(sed -n 's/^Resumed: .* \([0-9.]*\)\(m*s\) of training$/\1 \2/p' "$TMP/log" | tail -n 1 | awk '{ print ($2 == "ms" ? $1 / 1000 : $1) }')
		lost=$(awk "BEGIN { l = $at - $from; print (l > $lost ? l : $lost) }")
	done
	before=$(newest)
	until_true "a checkpoint after the last start" has_newer
	kill -USR1 "$job"
	code=0
	wait "$job" || code=$?
	job=""
	[ "$code" -eq 75 ] || shown "the wish to stop: code $code"
	[ "$(grep -c 'restart [0-9]* of' "$TMP/log")" -eq "$kills" ] || shown "$kills restarts"
	cp "$TMP/log" "$TMP/restarts.log"
	stop=$(($(whole "$(newest)" iteration) + 50))
	local_world 6 --resume "$run" "$@" --set "train.stop={updates: $stop}" "$TMP/job.yaml"
	local_world 6 --out "$run-whole" --set "train.stop={updates: $stop}" --set checkpoint.every=0s "$TMP/job.yaml"
	got=$(get "$run/summary.json" parameters_sha256)
	want=$(get "$run-whole/summary.json" parameters_sha256)
}

killed files ""
figure "$kills times kill -9 of a rank under mpirun: training again after at most $took s, at most $lost s of training lost at an interval of $every s; parameters ${got:0:12}, uninterrupted ${want:0:12}"
[ "$got" = "$want" ] || fail "the parameters differ"
must "$lost < 2 * $every" "seconds of training lost"

memory() { find /dev/shm -maxdepth 1 -name "fluentps-$(id -u)-*" | sort; }
left=$(memory)
killed memory emptied --set checkpoint.replica=1
figure "the same from memory, with the files of all checkpoints in the run folder emptied: training again after at most $took s, at most $lost s lost; parameters ${got:0:12}, uninterrupted ${want:0:12}"
[ "$got" = "$want" ] || fail "the parameters differ"
must "$lost < 2 * $every" "seconds of training lost"
[ "$(grep -c '^Resumed: /dev/shm/fluentps-' "$TMP/restarts.log")" -eq "$kills" ] || fail "not every restart went on from memory"
[ "$(memory)" = "$left" ] || fail "replicas were left behind: $(memory)"
