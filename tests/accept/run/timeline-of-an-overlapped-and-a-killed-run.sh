#!/usr/bin/env bash
# The timeline of an overlapped run over MPI passes a strict check of its format and shows pushes during backward, with whole arrows from
# pushes to replies. That of a run that was killed with -9 opens, too: each rank's part, the parts joined by the command of
# internal/show/metrics/README.md, and the one that a resumed run makes of them. A simulated run's passes the same check.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/config.yaml" <<-END
	name: timeline
	cluster: {servers: 2}
	data: {set: generated, rows: 4000, test_rows: 100, features: 256, classes: 10}
	model: {name: mlp, layers: [256, 256, 256]}
	train: {batch_per_worker: 32, optimizer: {name: momentum, lr: 0.01}, stop: {updates: 200}}
	send: {order: priority}
	evaluate: {every_epochs: 0}
	checkpoint: {every: 1s}
END
# traced FILE: checks a timeline; its counts are in $TMP/counts.
traced() { "$ACCEPT_TMP/inspect" trace "$1" >"$TMP/counts" || fail "$1 is no timeline"; }
count() { get "$TMP/counts" "$1"; }

world 5 run "$TMP/config.yaml" --trace --out "$TMP/whole"
traced "$TMP/whole/trace.json.gz"
pushes=$(count Pushes) overlapped=$(count Overlapped) arrows=$(count Whole)
must "$(count Ranks) == 5 && $(count Aligned) == 5 && $(count Loose) == 0" "ranks, all with arrows that begin at a push"
must "$overlapped >= 0.9 * $pushes && $arrows >= 0.9 * $pushes" "$overlapped of $pushes pushes begin during backward, $arrows have a whole arrow"
[ ! -e "$TMP/whole/trace" ] || fail "parts are left"

# A run that is killed: all of its processes at once.
"${MPIRUN[@]}" -n 5 "$FLUENTPS" run "$TMP/config.yaml" --trace --set 'train.stop={time: 1h}' --out "$TMP/killed" >"$TMP/log" 2>&1 &
job=$!
for ((k = 0; k < 300; k++)); do
	[ "$(made "$TMP/killed")" -lt 2 ] || break
	sleep 0.2
done
[ "$(made "$TMP/killed")" -ge 2 ] || shown "a run that makes two checkpoints"
sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$TMP/killed/run.json" | xargs -n 1 kill -9 || true
wait "$job" || true
job=""
spans=0
for part in "$TMP"/killed/trace/from-0-rank-*.json.gz; do
	traced "$part"
	must "$(count Ranks) == 1 && $(count Spans) > 100" "a rank's part"
	spans=$((spans + $(count Spans)))
done
# shellcheck disable=SC2002
(cd "$TMP/killed" && cat trace/from-0-* | zcat | sed '2,$s/^\[/,/' | gzip) >"$TMP/all.json.gz"
traced "$TMP/all.json.gz"
must "$(count Ranks) == 5 && $(count Spans) == $spans && $(count Whole) > 0" "the parts of the killed run joined"
world 5 run "$TMP/config.yaml" --trace --resume "$TMP/killed" --set train.stop="{updates: 100000000, time: 5s}"
traced "$TMP/killed/trace.json.gz"
must "$(count Ranks) == 5 && $(count Spans) == $spans" "the parts of the killed run joined by the run that resumed"
resumed=$(echo "$TMP"/killed/trace-from-*.json.gz)
traced "$resumed"
must "$(count Ranks) == 5 && $(count Loose) == 0" "the timeline of the part that resumed"

"$FLUENTPS" simulate "$TMP/config.yaml" --workers 3 --trace --out "$TMP/simulated" >"$TMP/log" 2>&1 || shown "simulate --trace"
traced "$TMP/simulated/simulated.trace.json.gz"
must "$(count Whole) == $(count Pushes) && $(count Overlapped) > 0" "the timeline of a simulated run"
figure "timelines: $overlapped of $pushes pushes begin during backward, $arrows have a whole arrow; a run killed with -9 leaves $spans spans that open"
