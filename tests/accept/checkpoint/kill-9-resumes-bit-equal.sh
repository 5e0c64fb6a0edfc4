#!/usr/bin/env bash
# kill -9 of the whole job at 200 random moments (KILLS) within LIVES milliseconds after its start (3000), while it writes
# checkpoints too, every second one under mpirun: each time --resume auto goes on, nothing is refused, and the BSP result
# equals, to the bit, that of a run that was never interrupted.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

kills=${KILLS:-200}
lives=${LIVES:-3000}
RANDOM=7
small_job killed >"$TMP/job.yaml"
cat >>"$TMP/job.yaml" <<'END'
checkpoint: {every: 200ms}
metrics: {interval: 0.1s}
END

# begin NUMBER: starts the job in a session of its own, which can be killed whole; sets job and its session.
begin() {
	local start=("$FLUENTPS" run --local 6)
	[ $(($1 % 2)) -eq 0 ] || start=("${MPIRUN[@]}" -n 6 "$FLUENTPS" run)
	setsid "${start[@]}" --resume auto --out "$TMP/run" "$TMP/job.yaml" >"$TMP/log" 2>&1 </dev/null &
	job=$!
}

# whole CHECKPOINT KEY: a whole number in its manifest.
whole() { sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p" "$TMP/run/checkpoints/$1/manifest.json"; }
newest() { find "$TMP/run/checkpoints" -maxdepth 1 -name '0*' 2>/dev/null | sort | tail -n 1 | xargs -r basename; }

# end: kills all of the job. The shell would tell of it each time.
end() {
	{
		pkill -9 -s "$job" || true
		wait "$job" || true
	} 2>/dev/null
	job=""
}

torn=0
lost_most=0
for n in $(seq "$kills"); do
	before=$(newest)
	begin "$n"
	sleep "$(awk "BEGIN { print (100 + ($RANDOM * 32768 + $RANDOM) % ($lives - 100)) / 1000 }")"
	kill -0 "$job" 2>/dev/null || shown "start $n of the job"
	end
	[ ! -e "$TMP/run/checkpoints/.new" ] || torn=$((torn + 1))
	if grep -q 'resume: ' "$TMP/log"; then
		cat "$TMP/log"
		fail "start $n: a checkpoint was refused"
	fi
	if [ -n "$before" ] && grep -q '^Run folder' "$TMP/log"; then
		grep -q "^Resumed: .*/$before," "$TMP/log" || shown "start $n does not go on from $before"
	fi
	checkpoint=$(newest)
	if [ -n "$checkpoint" ]; then
		at=$(tail -n 1 "$TMP/run/metrics.jsonl" | sed 's/.*"at_s":\([0-9.e-]*\).*/\1/')
		trained=$(whole "$checkpoint" trained_ns)
		lost_most=$(awk "BEGIN { l = $at - $trained / 1e9; print (l > $lost_most ? l : $lost_most) }")
	fi
done
if [ -z "$(newest)" ]; then # the machine is so slow that none of them came so far
	begin 0
	for _ in $(seq 600); do
		[ -z "$(newest)" ] || break
		sleep 0.1
	done
	end
fi
checkpoint=$(newest)
stop=$(($(whole "$checkpoint" iteration) + 50))
end=(--set "train.stop={updates: $stop}")
local_world 6 --resume auto --out "$TMP/run" "${end[@]}" "$TMP/job.yaml"
local_world 6 --out "$TMP/whole" "${end[@]}" --set checkpoint.every=0s "$TMP/job.yaml"
got=$(get "$TMP/run/summary.json" parameters_sha256)
want=$(get "$TMP/whole/summary.json" parameters_sha256)
figure "$kills times kill -9 ($torn while a checkpoint was written), $stop iterations: parameters ${got:0:12}, uninterrupted ${want:0:12}; at most ${lost_most:0:5} s of training lost, at an interval of 0.2 s"
[ "$got" = "$want" ] || fail "the parameters differ"
must "$lost_most < 2" "seconds of training lost"
