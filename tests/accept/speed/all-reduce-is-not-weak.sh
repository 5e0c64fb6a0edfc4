#!/usr/bin/env bash
# The server against the best all-reduce: four hosts with links of 200 Mbit/s, 16 MiB of parameters in 16 layers, no computing. Four ranks that
# serve and work are at least 1.7 times as fast as Open MPI's own MPI_Allreduce, and take at most 1 / 0.95 of the time of our ring; the ring takes at
# most 1 / 0.9 of the least time that the network cards allow. baseline: allreduce chooses the fastest of MPI's sum, the ring and halving by itself.
# The median round of each; launches take turns.
#   ACCEPT_LAUNCHES=3
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/net.sh
. "$ROOT/tests/accept/net.sh"

cat >"$TMP/sum.c" <<-END
	#include <mpi.h>
	#include <stdio.h>
	#include <stdlib.h>
	int main(int argc, char **argv) {
		int n = 16 << 18, rank;
		MPI_Init(&argc, &argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		float *v = calloc(n, 4);
		for (int i = 0; i < 6; i++) {
			MPI_Barrier(MPI_COMM_WORLD);
			double t = MPI_Wtime();
			MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
			if (rank == 0 && i > 0)
				printf("%.6f\n", MPI_Wtime() - t);
		}
		return MPI_Finalize();
	}
END
"$(command -v mpicc.openmpi || echo mpicc)" -O2 -o "$TMP/sum" "$TMP/sum.c"
layers=$(yes 262144 | head -16 | paste -sd ,)
cat >"$TMP/config.yaml" <<-END
	name: sum
	cluster: {servers: 4, placement: colocate}
	data: {set: generated, features: 1}
	model: {name: synthetic, layers: [$layers], compute: 0s}
	train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 8}}
	evaluate: {every_epochs: 0}
END
hosts_up 4 200mbit

# rounds WHAT ARG...: the rounds of worker 0 of one more launch to $TMP/WHAT, without the first two.
rounds() {
	local what=$1 out
	shift
	out=$(mktemp -d "$TMP/run.XXXX")
	timeout 120 "$HOSTS" mpirun --map h1,h2,h3,h4 "$FLUENTPS" run "$TMP/config.yaml" --out "$out" "$@" >"$TMP/log" 2>&1 </dev/null || shown "run $*"
	awk -F , 'NR > 1 && $1 == 0 { if (++n > 3) print $3 - last; last = $3 }' "$out/iterations.csv" >>"$TMP/$what"
	get "$out/summary.json" baseline_algorithm 2>/dev/null >"$TMP/$what.algorithm" || true
}
for ((k = 0; k < ${ACCEPT_LAUNCHES:-3}; k++)); do
	timeout 120 "$HOSTS" mpirun --map h1,h2,h3,h4 "$TMP/sum" >>"$TMP/blocking" 2>"$TMP/log" </dev/null || shown "MPI_Allreduce"
	rounds server
	for algorithm in ring halving mpi auto; do rounds $algorithm --set "baseline={name: allreduce, algorithm: $algorithm}"; done
done
middle() { sort -g "$TMP/$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }
limit=$(awk 'BEGIN { print 2 * 3 / 4 * 16 * 1048576 / (0.95 * 25e6) }')
for what in server ring halving auto mpi blocking; do
	awk "BEGIN { printf \"%-9s %7.3f s a round, %.3f of the limit\n\", \"$what\", $(middle $what), $limit / $(middle $what) }"
done
of() { awk "BEGIN { printf \"%.3f\", $1 / $2 }"; }
faster=$(of "$(middle blocking)" "$(middle server)")
ring=$(of "$limit" "$(middle ring)")
beside=$(of "$(middle ring)" "$(middle server)")
figure "16 MiB on four hosts at 200 Mbit/s: the server is $faster times as fast as MPI_Allreduce (must be 1.7) and $beside times as fast as our ring (must be 0.95), which reaches $ring of its limit (must be 0.9); MPI_Iallreduce $(of "$limit" "$(middle mpi)") of it; auto takes $(cat "$TMP/auto.algorithm"), $(of "$(middle auto)" "$(middle ring)") of the ring's time"
must "$faster >= 1.7" "the server against MPI_Allreduce"
must "$ring >= 0.9" "the ring against its limit"
must "$beside >= 0.95" "the server against the ring"
must "$(of "$(middle auto)" "$(middle ring)") <= 1.1" "auto against the ring"
