#!/usr/bin/env bash
# The same sources build and pass against Open MPI and MPICH: the tests of the packages that speak MPI and the scripts
# of the command line that start ranks, built for each. With MPICH at most 4 ranks. Each refuses the other's launcher.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

tests/deps.sh --test
export TMPDIR=$TMP # short, and ours

# run_all MPI TAGS RANKS COMMAND...: -count=1, because a result out of the cache shows nothing.
run_all() {
	local mpi=$1 tags=$2 ranks=$3 start code=0
	shift 3
	start=$(date +%s)
	"$@" go test -vet=off -count=1 -timeout=8m -v -tags "$tags" -run '^Test' ./internal/comm/mpi ./tests/mpi ./tests/net >"$TMP/$mpi.log" 2>&1 || code=$?
	"$@" go test -vet=off -count=1 -timeout=4m -v -tags "$tags" -run 'TestScripts/(mpi|vendor|bench)$' ./tests/cli >>"$TMP/$mpi.log" 2>&1 || code=$?
	local passed failed skipped
	passed=$(grep -cE '^( {4})?--- PASS' "$TMP/$mpi.log" || true)
	failed=$(grep -cE '^( {4})?--- FAIL' "$TMP/$mpi.log" || true)
	skipped=$(grep -cE '^( {4})?--- SKIP' "$TMP/$mpi.log" || true)
	if [ "$code" -ne 0 ] || [ "$failed" -ne 0 ] || [ "$skipped" -ne 0 ]; then
		tail -n 60 "$TMP/$mpi.log"
		fail "$mpi: code $code, $failed tests failed, $skipped skipped"
	fi
	[ "$passed" -ge 30 ] || fail "$mpi: only $passed tests ran"
	figure "$mpi: $passed tests passed, up to $ranks ranks, $(($(date +%s) - start)) s on $(nproc) cores"
}

run_all "Open MPI" "mpi blas" 7 env
run_all MPICH "mpi mpich blas" 4 tests/with-mpich.sh
