#!/usr/bin/env bash
# Runs the tests whose outcome may depend on schedules and random draws again and again, with the invariant checks on
# and under the race detector, and fuzzes every reader in between. Stops at the first failure.
#   tests/soak.sh [MINUTES]
set -eu
cd "$(dirname "$0")/.."
end=$(($(date +%s) + ${1:-120} * 60))
round=0
while [ "$(date +%s)" -lt "$end" ]; do
	round=$((round + 1))
	echo "== round $round, $(((end - $(date +%s)) / 60)) minutes left"
	go test -count=1 -tags invariants ./internal/... ./ps/...
	go test -count=1 -race -tags invariants ./internal/comm/... ./internal/rank/allreduce ./internal/rank/coordinate ./internal/core/... ./internal/rank/replica ./internal/rank/resume ./internal/rank/runtime ./internal/rank/serve ./internal/rank/station ./internal/rank/train
	go test -count=1 -tags "mpi blas invariants" ./internal/comm/mpi ./internal/rank/runtime ./tests/mpi
	FLUENTPS_TEST_SIM_FIRST=$((round * 1000000)) FLUENTPS_TEST_SIM_SEEDS=1000000 go test -count=1 -timeout 2h -run TestLawsOverManySeeds ./internal/sim/check
	tests/fuzz.sh 60
	FLUENTPS_MUTATIONS=20000 FLUENTPS_MUTATIONS_SEED=$((round + 1000)) go test -count=1 -timeout 2h ./tests/mutations
done
echo "soak: $round rounds passed"
