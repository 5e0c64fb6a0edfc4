#!/usr/bin/env bash
# A run with all sinks is killed with -9 three times and resumes. Then its event files, read by the description of their format, hold what
# metrics.jsonl holds, and metrics.prom is a whole file.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

{
	small_job records
	echo 'checkpoint: {every: 1s}'
	echo 'metrics: {sinks: [jsonl, csv, tensorboard, openmetrics], interval: 100ms}'
} >"$TMP/config.yaml"
out=$TMP/run
for kill in 1 2 3; do
	"${MPIRUN[@]}" -n 4 "$FLUENTPS" run "$TMP/config.yaml" --resume auto --out "$out" >"$TMP/log" 2>&1 &
	job=$!
	until=$(($(made "$out") + 2))
	for ((k = 0; k < 300; k++)); do
		[ "$(made "$out")" -lt "$until" ] || break
		sleep 0.2
	done
	[ "$(made "$out")" -ge "$until" ] || shown "a run that makes two checkpoints, part $kill"
	sleep 0.5 # records after the checkpoint, which do not count
	sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$out/run.json" | xargs -n 1 kill -9 || true
	wait "$job" || true
	job=""
done
code=0
"${MPIRUN[@]}" -n 4 "$FLUENTPS" run "$TMP/config.yaml" --resume "$out" --max-time 5s >"$TMP/log" 2>&1 || code=$?
[ "$code" -eq 75 ] || shown "the last part, which --max-time stops with code 75"
"$ACCEPT_TMP/inspect" tensorboard "$out" >"$TMP/counts" || fail "the event files and metrics.jsonl differ"
files=$(find "$out/tb" -name '*tfevents*' | wc -l)
must "$files == 4" "$files event files of 4 parts"
[ "$(tail -n 1 "$out/metrics.prom")" = "# EOF" ] || fail "metrics.prom has no end"
figure "$(cat "$TMP/counts") after three kills, equal to $(wc -l <"$out/metrics.jsonl") lines of metrics.jsonl"
