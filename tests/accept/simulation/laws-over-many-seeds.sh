#!/usr/bin/env bash
# The laws hold over 10,000 drawn settings of each kind: rules, stragglers, losses and joins, tasks, steps of workers' own, baselines.
#   SEEDS=10000 of each kind, FIRST=0
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

CGO_ENABLED=0 FLUENTPS_TEST_SIM_FIRST=${FIRST:-0} FLUENTPS_TEST_SIM_SEEDS=${SEEDS:-10000} \
	go test -count=1 -vet=off -timeout=60m -v -run 'OverManySeeds$' ./internal/sim/... >"$TMP/said" 2>&1 || fail "$(grep -vE '^=== ' "$TMP/said" | tail -n 40)"
ran=$(grep -cE '^--- PASS: Test.*OverManySeeds' "$TMP/said") || true
[ "$ran" -ge 4 ] || fail "only $ran tests of laws over many seeds were run"
figure "$ran tests of laws, over ${SEEDS:-10000} seeds each:"
grep -E 'runs, |runs of' "$TMP/said" | sed 's/^ *[a-z_]*\.go:[0-9]*: /  /'
