#!/usr/bin/env bash
# A torch script on 2 workers, one slowed 3 times for good: asp and dbs each end an epoch at least 1.7 times sooner than bsp. The limit is 2: the
# slow worker computes a third of what the other does, and under bsp both take its time. ssp with a bound of 3 waits for it, too: its limit is 1.
#   ACCEPT_ROUNDS=3: the median counts
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
rounds=${ACCEPT_ROUNDS:-3}
cat >"$TMP/job.yaml" <<-END
	name: slow
	cluster: {servers: 1}
	data: {set: external, rows: 4096, test_rows: 1024}
	model: {name: external, command: $(command_of mlp-784-256-128-10 generated), shapes: $TMP/mlp.shapes}
	train: {batch_global: 256, optimizer: {name: sgd, lr: 0.01}, stop: {epochs: 24}}
	device: {threads: 1}
	evaluate: {every_epochs: 0}
	checkpoint: {keep: 0}
	faults: [{worker: 1, slow: {factor: 3}}]
END
shapes "$TMP/job.yaml" "$TMP/mlp.shapes"

# epoch_s SET: seconds of an epoch, the first 8 left out: dbs measures its workers there.
epoch_s() {
	world 3 run --out "$TMP/run" "$TMP/job.yaml" --set "$1"
	awk -F , 'NR > 1 { print $3 + $4 + $6, $9 }' "$TMP/run/iterations.csv" | sort -g |
		awk '{ at[NR] = $1; all += $2; sum[NR] = all }
			END {
				for (k = 1; sum[k] < all / 3; k++) { }
				printf "%.5f\n", (at[NR] - at[k]) / (all - sum[k]) * 4096
			}'
	rm -rf "$TMP/run"
}
median() { sort -g "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
declare -A sets=([bsp]="sync=[{match: '*', scheme: bsp}]" [ssp]="sync=[{match: '*', scheme: ssp, staleness: 3}]"
	[asp]="sync=[{match: '*', scheme: asp}]" [dbs]="work={policy: dbs}")
for _ in $(seq "$rounds"); do
	for name in bsp ssp asp dbs; do epoch_s "${sets[$name]}" >>"$TMP/$name"; done
done
sooner() { awk "BEGIN { printf \"%.2f\", $(median "$TMP/bsp") / $(median "$TMP/$1") }"; }
asp=$(sooner asp) dbs=$(sooner dbs)
figure "an epoch of 4096 rows under bsp $(median "$TMP/bsp") s; asp ends it $asp times sooner, dbs $dbs (must be 1.7, limit 2), ssp(3) $(sooner ssp) (limit 1)"
must "$asp >= 1.7 && $dbs >= 1.7" "asp and dbs beside bsp"
