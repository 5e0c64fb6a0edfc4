#!/usr/bin/env bash
# Random clusters in virtual time deal batches by each policy of work, under random schemes, stragglers of every kind, pauses and lost workers: all laws of the simulator hold, and
# nobody waits for ever. At least 10,000 runs of dbs and r2sp_batch together.
#   ACCEPT_SEEDS=90000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

seeds=${ACCEPT_SEEDS:-90000}
FLUENTPS_TEST_SIM_SEEDS=$seeds go test ./internal/sim/check -count=1 -timeout 60m -run '^TestLawsOverManySeeds$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim"
# number WHAT: the number before these words.
number() {
	local n
	n=$(sed -n "s/.* \([0-9]*\) $1.*/\1/p" "$TMP/log")
	[ -n "$n" ] || fail "no number of $1 in the log"
	echo "$n"
}
dbs=$(number "runs of dbs")
r2sp=$(number "of r2sp_batch")
figure "$(number runs,) random clusters hold all laws: $dbs of dbs, $r2sp of r2sp_batch, $(number "of shares") of shares; $(number "plans of batches dealt") plans dealt, $(number "changes of scheme") changes of scheme for stragglers, $(number "workers lost") workers lost"
must "$dbs + $r2sp >= 10000" "runs that deal batches"
