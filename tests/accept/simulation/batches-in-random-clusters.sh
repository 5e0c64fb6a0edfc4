#!/usr/bin/env bash
# Random clusters in virtual time deal batches by each policy of work, under random schemes, stragglers of every kind, pauses and lost workers: all laws of the simulator hold, and
# nobody waits for ever. At least 10,000 runs of dbs and r2sp_batch together.
#   ACCEPT_SEEDS=90000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

seeds=${ACCEPT_SEEDS:-90000}
FLUENTPS_SIM_SEEDS=$seeds go test ./ps/sim -count=1 -timeout 60m -run '^TestLawsOverManySeeds$' -v >"$TMP/log" 2>&1 || shown "go test ./ps/sim"
read -r runs dbs r2sp shares plans lost < <(sed -n 's/.*: \([0-9]*\) runs, .* node steps, \([0-9]*\) workers lost, .* \([0-9]*\) plans of batches dealt; \([0-9]*\) runs of dbs, \([0-9]*\) of r2sp_batch, \([0-9]*\) of shares.*/\1 \4 \5 \6 \3 \2/p' "$TMP/log")
figure "$runs random clusters hold all laws: $dbs of dbs, $r2sp of r2sp_batch, $shares of shares; $plans plans dealt, $lost workers lost"
must "$dbs + $r2sp >= 10000" "runs that deal batches"
