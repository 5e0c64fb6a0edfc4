# Sourced: how fluentps and the references in C are launched side by side. Both get the same launch line; with more ranks
# than cores, mpirun --oversubscribe makes both yield the core when they wait inside MPI.
# shellcheck shell=bash

BENCH_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BENCH_BIN=$BENCH_ROOT/bin/bench
SIZES=${SIZES:-4KiB,64KiB,1MiB,16MiB,64MiB}
COMM_SIZES=${COMM_SIZES:-8B,64B,1KiB,4KiB,64KiB,1MiB,16MiB,64MiB}
WORLDS=${WORLDS:-1 2}
SCHEMES=${SCHEMES:-asp bsp}
SECONDS_EACH=${SECONDS_EACH:-0.2}
SHARED_MEMORY=${SHARED_MEMORY:-both}
read -ra BENCH_ARGS <<<"${BENCH_ARGS:-}"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# ranks N COMMAND ARG... with a limit, so that a hang ends a script and not a day.
ranks() {
	local n=$1
	shift
	timeout 300 "$(command -v mpirun.openmpi || echo mpirun)" --oversubscribe --bind-to none -n "$n" "$@" </dev/null
}

# ideal N SCHEME: the ideal parameter server with N servers and N workers, both variants.
ideal() {
	ranks $((2 * $1)) "$BENCH_BIN/idealps" --servers "$1" --scheme "$2" --sizes "$SIZES" --seconds "$SECONDS_EACH"
}

# ours N SCHEME: the same through fluentps.
ours() {
	ranks $((2 * $1)) "$BENCH_ROOT/bin/fluentps" bench pushpull --servers "$1" --scheme "$2" --sizes "$SIZES" --time "${SECONDS_EACH}s" --shared-memory "$SHARED_MEMORY" --format json ${BENCH_ARGS[@]+"${BENCH_ARGS[@]}"}
}

side_by_side() {
	local n scheme
	for n in $WORLDS; do
		for scheme in $SCHEMES; do
			ideal "$n" "$scheme"
			ours "$n" "$scheme"
		done
	done
}

comm_side_by_side() {
	ranks 2 "$BENCH_BIN/mpibench" --sizes "$COMM_SIZES" --seconds "$SECONDS_EACH"
	ranks 2 "$BENCH_ROOT/bin/fluentps" bench comm --sizes "$COMM_SIZES" --time "${SECONDS_EACH}s" --format json
}

# joined makes tables of the JSON lines on its input.
joined() { (cd "$BENCH_ROOT" && go run ./tests/bench/table); }
# columns is the same for scripts: by tabs, with names in the first row.
columns() { (cd "$BENCH_ROOT" && go run ./tests/bench/table -tsv); }
