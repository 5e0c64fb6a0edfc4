# Sourced by the scripts beside it: paths, how to start ranks, how to read a run folder, how to judge a figure.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
FLUENTPS=$ROOT/bin/fluentps
SCRIPT=$(realpath "$0")
cd "$ROOT" || exit

# run.sh provides the folder and the helper; a script started by hand makes its own. A script that starts a job in
# the background keeps its pid in job.
job=""
own=""
at_exit() {
	[ -z "$job" ] || kill -9 "$job" 2>/dev/null || true
	[ -z "$own" ] || rm -rf "$own"
}
trap at_exit EXIT
if [ -z "${ACCEPT_TMP:-}" ]; then
	ACCEPT_TMP=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-accept.XXXXXX")
	own=$ACCEPT_TMP
	go build -o "$ACCEPT_TMP/inspect" ./tests/accept/inspect
fi
TMP=$(mktemp -d "$ACCEPT_TMP/$(basename "$0" .sh).XXXX")

# Open MPI refuses root without these; they are harmless for others.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
MPIRUN=("$(command -v mpirun.openmpi || echo mpirun)" --oversubscribe --bind-to none)

# Real data that a developer may have beside the repository; empty if there is none.
EXTRA_DATA=${FLUENTPS_TEST_DATA:-$ROOT/../shared/data}
[ -d "$EXTRA_DATA" ] || EXTRA_DATA=""

figure() { echo "figure: $*"; }
fail() {
	echo "FAIL: $*" >&2
	exit 1
}
get() { "$ACCEPT_TMP/inspect" get "$@"; }
# table PAGE SHARE FILE: the page's table by this script is that of the file, numbers within the share: another processor's kernels round otherwise. ACCEPT_UPDATE=1 writes it.
table() {
	"$ACCEPT_TMP/inspect" table "$1" "$(realpath --relative-to="$ROOT" "$SCRIPT")" "$3" "$2" || fail "$1 has other figures: ACCEPT_UPDATE=1 ${SCRIPT} writes these"
}
intact() { "$ACCEPT_TMP/inspect" intact "$1"; }

# world RANKS ARG... runs fluentps under mpirun; its output goes to $TMP/log and is shown when it fails.
world() {
	local ranks=$1
	shift
	"${MPIRUN[@]}" -n "$ranks" "$FLUENTPS" "$@" >"$TMP/log" 2>&1 || shown "mpirun -n $ranks fluentps $*"
}
# local_world RANKS ARG... is the same with goroutines for ranks: run --local.
local_world() {
	local ranks=$1
	shift
	"$FLUENTPS" run --local "$ranks" "$@" >"$TMP/log" 2>&1 || shown "fluentps run --local $ranks $*"
}
shown() {
	local code=$?
	tail -n 40 "$TMP/log" >&2
	fail "exit code $code of: $1"
}

# holds EXPRESSION: an awk comparison, for numbers with a fraction.
holds() { awk "BEGIN { exit !($1) }" </dev/null; }
# small_job NAME: the configuration of a run that goes on until it is stopped; what a script has to add comes behind it.
small_job() {
	cat <<-END
		name: $1
		cluster: {servers: 2}
		data: {set: generated, rows: 2000, test_rows: 100, features: 64, classes: 10}
		model: {name: mlp, layers: [256]}
		train:
		  batch_per_worker: 16
		  optimizer: {name: adam, lr: 0.001}
		  stop: {time: 10h}
		evaluate: {every_epochs: 0}
	END
}

# made DIR: the number of a run's newest checkpoint, 0: none. Whoever waits for one by its name may find it gone, for later ones.
made() {
	local name last=0
	for name in "$1"/checkpoints/0*; do
		[ ! -d "$name" ] || last=$((10#${name##*/}))
	done
	echo "$last"
}

# must EXPRESSION WHAT: fails unless it holds.
must() { holds "$1" || fail "$2: $1 does not hold"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# clone DIR: what a stranger gets. Commits only; whatever is not committed is not tried.
clone() {
	git clone --quiet "$ROOT" "$1"
	[ -z "$(git status --porcelain)" ] || echo "note: the clone is of the last commit; this tree has changes beyond it"
}

# schemes lists those that the program has.
schemes() {
	local names
	names=$("$FLUENTPS" info | sed -n 's/^schemes  *\(.*[^ ]\)  *(fluentps explain NAME)$/\1/p')
	[ -n "$names" ] || fail "fluentps info names no schemes"
	echo "$names"
}
