#!/usr/bin/env bash
# Workers give each other samples of their batches, take them back and leave some out, in random clusters with stragglers, pauses and losses, in virtual time: under dumb
# random policies, and under every policy of work that has steps. All laws of the simulator hold: each sample is in its iteration once unless it was cancelled, each part is
# merged once or dropped once, and nobody waits for ever.
#   ACCEPT_SEEDS=10000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

seeds=${ACCEPT_SEEDS:-10000}
FLUENTPS_TEST_SIM_SEEDS=$seeds go test ./internal/sim/check -count=1 -timeout 120m -run '^(TestLawsOfTasksOverManySeeds|TestLawsOfTaskPoliciesOverManySeeds)$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim"
# number WHAT: the number before these words.
number() {
	local n
	n=$(sed -n "s/.*[^0-9]\([0-9]*\) $1.*/\1/p" "$TMP/log")
	[ -n "$n" ] || fail "no number of $1 in the log"
	echo "$n"
}
random=$(number "runs, [0-9]* with gradients")
figure "$random random clusters of random policies hold all laws: $(number "given away") parts given away, $(number "returned,") returned, $(number "taken back") taken back"
figure "$(grep -o 'runs map.*' "$TMP/log")"
must "$random >= $seeds / 2" "simulated runs"
