#!/usr/bin/env bash
# The coordinator of checkpoints holds its laws in 10,000 random clusters, with failing disks and memories, kills, stops and lost
# hosts, and says in each what its dumb twin says; for each law a fault is found.
#   ACCEPT_CLUSTERS=10000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

clusters=${ACCEPT_CLUSTERS:-10000}
(cd "$ROOT" && go test -count=1 ./internal/core/snapshot -run 'TestRandomClusters|TestFaultsAreFound' -v -clusters "$clusters") >"$TMP/log" 2>&1 || shown "go test ./internal/core/snapshot"
made=$(sed -n 's/.* \([0-9]*\) clusters, \([0-9]*\) checkpoints.*/\1 random clusters, \2 checkpoints with a name/p' "$TMP/log")
[ -n "$made" ] || shown "no figure"
faults=$(awk '/^\t\t\{"/ { n++ } END { print n }' "$ROOT/ps/snapshot/cluster_test.go")
figure "coordinator of checkpoints: $made, no law broken; $faults faults found"
