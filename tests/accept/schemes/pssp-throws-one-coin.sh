#!/usr/bin/env bash
# PSSP throws one coin for a request of a worker: 16 shards of a server stop and let go whom a single shard does, with the same seed
# and times. Its bound in the mean holds among 8 and 16 workers with the keys that are said to keep it.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

go test ./internal/sim -count=1 -run '^TestShardsOfAServerHaveOneCoin$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim"
leads=$(sed -n 's/.*pssp_test.go:[0-9]*: c = 0.1/c = 0.1/p' "$TMP/log")
waits=$(sed -n 's/.*pssp_test.go:[0-9]*: delayed/delayed/p' "$TMP/log")
if [ -z "$leads" ] || [ -z "$waits" ]; then fail "no figures"; fi
figure "simulated, 8 workers, s = 3, $leads; $waits"
go test ./ps/scheme -count=1 -run '^TestPSSPBoundInTheMean$' -v >"$TMP/log" 2>&1 || shown "go test ./ps/scheme"
sed -n 's/.*pssp_coin_paper_test.go:[0-9]*: //p' "$TMP/log" >"$TMP/means"
must "$(wc -l <"$TMP/means") == 5" "settings"
while read -r line; do figure "$line"; done <"$TMP/means"
