#!/usr/bin/env bash
# A clean clone and `make test`: green in less than 15 minutes.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

clone "$TMP/clone"
start=$(date +%s)
# -count=1 keeps results of earlier clones out; compiled packages may come from the cache, as they do for a developer.
GOFLAGS="${GOFLAGS:-} -count=1" make -C "$TMP/clone" test >"$TMP/log" 2>&1 || shown "make test"
seconds=$(($(date +%s) - start))
tail -n 8 "$TMP/log"
figure "make test took $seconds s (at most 900)"
[ "$seconds" -lt 900 ] || fail "make test took $seconds s"
