#!/usr/bin/env bash
# A child that sends 100,000 random messages, over some thousand runs: most of them right, the others cut, longer, of another kind,
# noise, or the end. The parent goes on exactly as long as the child says what may come; otherwise it ends by itself with one error that
# names the child.
#   MESSAGES=100000
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

export FLUENTPS_TEST_CHILD_MESSAGES=${MESSAGES:-100000}
CGO_ENABLED=0 go test -count=1 -v -timeout=20m -run '^TestWhateverAChildSays$' ./ps/workload/external >"$TMP/log" 2>&1 ||
	fail "$(tail -n 40 "$TMP/log")"
said=$(grep -oE '[0-9]+ messages in [0-9]+ runs, of which [0-9]+ ended well' "$TMP/log") || fail "the test says nothing: $(cat "$TMP/log")"
[ "${said%% *}" -ge "$FLUENTPS_TEST_CHILD_MESSAGES" ] || fail "only $said"
figure "$said"
