#!/usr/bin/env bash
# kill -9 of the whole job at random moments (KILLS, half under ssp and half under asp, every second one under mpirun), while
# workers pause for checkpoints too: each time --resume auto goes on, and in every checkpoint each shard has every push of
# the iterations before those that its workers go on with, once.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

kills=${KILLS:-40}
RANDOM=11
job_file() {
	small_job killed >"$TMP/$1.yaml"
	cat >>"$TMP/$1.yaml" <<END
sync: [$2]
faults: [{worker: 1, slow: {factor: 3}}]
checkpoint: {every: 100ms, keep: 4}
metrics: {interval: 0.1s}
END
}
job_file ssp '{match: "*", scheme: ssp, staleness: 3}'
job_file asp '{match: "*.bias", scheme: ssp, staleness: 2, fold: rank}, {match: "*", scheme: asp}'

# whole_of CHECKPOINT: fails unless every shard of it has each push once.
looked=0
whole_of() {
	local manifest=$1/manifest.json sum
	sum=$(tr -d ' \n' <"$manifest" | sed 's/.*"starts":\[\([0-9,]*\)\].*/\1/; s/,/+/g')
	sum=$((sum))
	while read -r accepted; do
		[ "$accepted" -eq "$sum" ] || fail "$1: a shard has $accepted pushes of $sum"
		looked=$((looked + 1))
	done < <(cat "$1"/server-*.bin | grep -ao '"accepted":[0-9]*' | cut -d: -f2)
	[ "$(sed -n 's/^  "samples": \([0-9]*\).*/\1/p' "$manifest")" -eq $((16 * sum)) ] || fail "$1: other samples than those of $sum pushes"
}

resumed=0
for n in $(seq "$kills"); do
	name=ssp
	[ $((n % 4)) -lt 2 ] || name=asp
	start=("$FLUENTPS" run --local 6)
	[ $((n % 2)) -eq 0 ] || start=("${MPIRUN[@]}" -n 6 "$FLUENTPS" run)
	setsid "${start[@]}" --resume auto --out "$TMP/$name" "$TMP/$name.yaml" >"$TMP/log" 2>&1 </dev/null &
	job=$!
	sleep "$((RANDOM % 3)).$((RANDOM % 900 + 100))"
	kill -0 "$job" 2>/dev/null || shown "start $n of the job"
	pkill -9 -s "$job" || true
	wait "$job" 2>/dev/null || true
	job=""
	if grep -q 'resume: ' "$TMP/log"; then
		cat "$TMP/log"
		fail "start $n: a checkpoint was refused"
	fi
	! grep -q '^Resumed: ' "$TMP/log" || resumed=$((resumed + 1))
	for checkpoint in "$TMP/$name"/checkpoints/0*; do
		[ ! -d "$checkpoint" ] || whole_of "$checkpoint"
	done
done
for name in ssp asp; do
	newest=$(find "$TMP/$name/checkpoints" -maxdepth 1 -name '0*' | sort | tail -n 1)
	samples=$(sed -n 's/^  "samples": \([0-9]*\).*/\1/p' "$newest/manifest.json")
	local_world 6 --resume auto --out "$TMP/$name" --set "train.stop={samples: $((samples + 20000))}" --set checkpoint.every=0s "$TMP/$name.yaml"
	[ "$(get "$TMP/$name/summary.json" finished)" = ok ] || fail "$name: finished $(get "$TMP/$name/summary.json" finished)"
	newest=$(find "$TMP/$name/checkpoints" -maxdepth 1 -name '0*' | sort | tail -n 1)
	whole_of "$newest"
done
figure "$kills times kill -9 under ssp and asp, $resumed times resumed; $looked times a shard of a checkpoint was looked at: each push once"
must "$resumed > $kills / 4" "starts that had a checkpoint to go on from"
