#!/usr/bin/env bash
# Workers take steps of their own under each policy of local, in random clusters. In virtual time, with stragglers, pauses, and workers that are lost and come back: all laws of the
# simulator hold, no sample counts twice, and equal seeds give equal runs. In real runs that are stopped at random places, killed after random checkpoints, and resumed, also with other
# workers: every shard of every checkpoint has each step once, apart from those that were not pushed, and runs whose bits are fixed end with those of a run without interruption.
# At least 5,000 real runs.
#   ACCEPT_SEEDS=20000  ACCEPT_RUNS=5000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

seeds=${ACCEPT_SEEDS:-20000}
runs=${ACCEPT_RUNS:-5000}
# number WHAT: the number before these words.
number() {
	local n
	n=$(sed -n "s/.*[^0-9]\([0-9]*\) $1.*/\1/p" "$TMP/log")
	[ -n "$n" ] || fail "no number of $1 in the log"
	echo "$n"
}

FLUENTPS_TEST_SIM_SEEDS=$seeds go test ./internal/sim/check -count=1 -timeout 120m -run '^TestLawsOfStepsOverManySeeds$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim"
simulated=$(number "runs with steps of their own")
figure "$simulated random clusters hold all laws, $(number "with fragments") with fragments, $(number "open,") with open rounds, $(number "with gradients") with gradients, $(number "repeated") repeated to the bit; $(number "workers lost") workers lost, $(number "back;") back"
must "$simulated >= $seeds / 3" "simulated runs"

FLUENTPS_LOCAL_RUNS=$runs go test ./internal/rank/runtime -count=1 -timeout 300m -parallel 8 -run '^TestRandomRunsOfStepsResume$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/rank/runtime"
figure "$(number "runs in") real runs in $(number parts) parts with $(number checkpoints) checkpoints, $(number "resumed with other workers") resumed with other workers, $(number "stopped by a signal") stopped by a signal, $(number "compared bit by bit") equal to the bit to a run without interruption"
must "$(number "runs in") >= $runs" "real runs"
