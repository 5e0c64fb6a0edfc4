#!/usr/bin/env bash
# A checkpoint of 1 GiB of parameters (WIDTH=32768), 1 server and 1 worker: it is written at 0.8 or more of the speed of a
# plain copy of as many bytes with fsync to the same file system, beside the same training, median of 5; and training that is
# never without a checkpoint being written loses at most 25 % of its speed.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

width=${WIDTH:-32768}
for_s=${SECONDS_EACH:-120}
cat >"$TMP/gib.yaml" <<END
name: gib
cluster: {servers: 1, memory_max: 16GiB}
data: {set: generated, rows: 64, test_rows: 1, features: 8192, classes: 2}
model: {name: mlp, layers: [$width]}
train:
  batch_per_worker: 4
  optimizer: {name: sgd, lr: 0.001}
  stop: {time: ${for_s}s}
evaluate: {every_epochs: 0}
checkpoint: {keep: 1}
END

median() { sort -n | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

# rate NAME ARG...: trains, and gives the samples per second.
rate() {
	local name=$1
	shift
	rm -rf "${TMP:?}/$name"
	world 2 run "$TMP/gib.yaml" --out "$TMP/$name" "$@"
	get "$TMP/$name/summary.json" samples_per_s
}
without=$(rate without --set checkpoint.keep=0)
with=$(rate with --set checkpoint.every_updates=1)
again=$(rate without --set checkpoint.keep=0)

# Of the server's log: bytes and seconds of each checkpoint on the way.
sed -n 's/.*"msg":"checkpoint".*"bytes":\([0-9]*\),"written_s":\([0-9.e+-]*\).*/\1 \2/p' "$TMP"/with/logs/rank-0000.log >"$TMP/written"
count=$(wc -l <"$TMP/written")
[ "$count" -ge 5 ] || fail "$count checkpoints were written in ${for_s}s; raise SECONDS_EACH"
bytes=$(awk 'NR == 1 { print $1 }' "$TMP/written")
ours=$(awk '{ print $2 }' "$TMP/written" | median)

"${MPIRUN[@]}" -n 2 "$FLUENTPS" run "$TMP/gib.yaml" --out "$TMP/beside" --set checkpoint.keep=0 --set train.stop.time=1h >"$TMP/log" 2>&1 </dev/null &
job=$!
for _ in $(seq 100); do
	! grep -q iteration "$TMP/log" || break
	sleep 0.5
done
file=$(find "$TMP/with/checkpoints" -name 'server-0000.bin')
cat "$file" >/dev/null
for _ in 1 2 3 4 5; do
	from=$(now_ms)
	dd if="$file" of="$TMP/copy" bs=256K conv=fsync status=none
	echo $(($(now_ms) - from))
	rm "$TMP/copy"
done >"$TMP/copied"
kill "$job"
wait "$job" || true
job=""
copy=$(median <"$TMP/copied")

speed=$(awk "BEGIN { print $copy / 1000 / $ours }")
kept=$(awk "BEGIN { print 2 * $with / ($without + $again) }")
figure "$((bytes >> 20)) MiB: written in $ours s, a plain copy takes $(awk "BEGIN { print $copy / 1000 }") s: at ${speed:0:4} of its speed; training keeps ${kept:0:4} of its speed while that goes on without end ($count times), $with of $without and $again samples/s"
must "$speed >= 0.8" "the speed of writing"
must "$kept >= 0.75" "the speed of training"
