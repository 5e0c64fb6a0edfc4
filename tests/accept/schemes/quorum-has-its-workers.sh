#!/usr/bin/env bash
# quorum: each version is of the pushes of K different workers, or all others wait at another shard, for a change of scheme or for their batches, as they say and as the
# other shards show. In random runs in virtual time: one to three servers with one or two shards, changes of scheme, stragglers, workers that are lost and come back.
#   ACCEPT_SEEDS=10000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

seeds=${ACCEPT_SEEDS:-10000}
FLUENTPS_TEST_SIM_SEEDS=$seeds go test ./internal/sim -count=1 -timeout 60m -run '^(TestQuorumVersionsAreOfKWorkers|TestQuorumHasItsWorkers)$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim"
figure "5 workers, required: 4, grace_max: 0, one shard: $(grep -o '[0-9]* of [0-9]* versions are of fewer than 4 workers' "$TMP/log")"
figure "$(sed -n 's/.*figure: //p' "$TMP/log")"
must "$(sed -n 's/.*figure: \([0-9]*\) seeds.*/\1/p' "$TMP/log") == $seeds" "seeds"
