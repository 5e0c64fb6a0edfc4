#!/usr/bin/env bash
# What a hint names can be done. All configurations of the tests and the examples, and 10,000 changed ones, are checked; each edit that a
# hint names ("set KEY: VALUE", "did you mean KEY?", "remove it") is made. No configuration refuses a key that its own hint names, and no
# edit leaves the problem as it was: the configuration passes, or has another error. The same with data files: what the error of a reader
# says to change is changed.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

FLUENTPS_HINTS=${ACCEPT_HINTS:-10000} go test ./internal/configs ./tests/mutations -run 'TestHintsCanBeFollowed|TestAdviceOnDataCanBeFollowed' -count=1 -v -timeout 60m >"$TMP/log" 2>&1 || shown "go test ./internal/configs ./tests/mutations"
said=$(sed -n 's/.*_test.go:[0-9]*: followed: //p' "$TMP/log")
[ -n "$said" ] || fail "no figures"
while read -r line; do figure "$line"; done <<<"$said"
