#!/usr/bin/env bash
# What-if against reality: 4 workers and a server under mpirun, slept computing of 2 ms a sample, in three situations: no straggler, one that is always 3
# times slower, and workers that are slow in turn. From one run of bsp, what-if tells how fast six other schemes and policies would be; each is then run, and
# the ratio told must be within 10 % of the ratio measured.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/run.yaml" <<-END
	name: whatif
	data: {set: generated, rows: 1024, test_rows: 64, features: 16, classes: 4}
	model: {name: synthetic, layers: [4096], compute: {per_sample: 2ms}}
	train:
	  batch_per_worker: 16
	  optimizer: {name: sgd, lr: 0.05}
	  stop: {samples: 7680}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
	sync: [{match: "*", scheme: bsp}]
END
# faults SITUATION
faults() {
	case $1 in
	none) echo 'faults=[]' ;;
	permanent) echo 'faults=[{worker: 3, slow: {factor: 3}}]' ;;
	transient) echo 'faults=[{worker: "*", slow: {kind: two_state, factor: 4, enter: 0.1, leave: 0.3}}]' ;;
	esac
}
# change NAME: the settings that what-if tries under that name.
change() {
	case $1 in
	"ssp(3)") echo 'sync=[{match: "*", scheme: ssp, staleness: 3}]' ;;
	asp) echo 'sync=[{match: "*", scheme: asp}]' ;;
	"drop(3 of 4)") echo 'sync=[{match: "*", scheme: drop, required: 3}]' ;;
	*) echo "work={policy: $1}" ;;
	esac
}
speed() { get "$1/summary.json" samples_per_s; }
table=$(printf '%-10s %-13s %8s %9s %7s' situation what told measured off)
wrong=""
for situation in none permanent transient; do
	world 5 run "$TMP/run.yaml" --set "$(faults "$situation")" --out "$TMP/$situation"
	"$FLUENTPS" what-if "$TMP/$situation" >"$TMP/$situation.txt" || fail "what-if $situation"
	cat "$TMP/$situation.txt"
	for what in "ssp(3)" asp "drop(3 of 4)" dbs flexrr epsp; do
		out=$TMP/$situation-${what// /-}
		world 5 run "$TMP/run.yaml" --set "$(faults "$situation")" --set "$(change "$what")" --out "$out"
		told=$(awk -v what="$what" 'index($0, what "  ") == 1 { print $(NF - 1) }' "$TMP/$situation.txt")
		measured=$(awk "BEGIN { printf \"%.3f\", $(speed "$out") / $(speed "$TMP/$situation") }")
		off=$(awk "BEGIN { printf \"%+.1f\", ($told / $measured - 1) * 100 }")
		table+=$'\n'$(printf '%-10s %-13s %8s %9s %5s %%' "$situation" "$what" "$told" "$measured" "$off")
		holds "$off <= 10 && $off >= -10" || wrong+=" $situation/$what"
	done
done
echo "$table"
figure "what-if from one run of bsp, 6 others in 3 situations: off by at most $(awk '/%$/ { v = $(NF - 1); v = v < 0 ? -v : v; if (v > m) m = v } END { print m }' <<<"$table") % (must be 10)"
[ -z "$wrong" ] || fail "off by more than 10 %:$wrong"
