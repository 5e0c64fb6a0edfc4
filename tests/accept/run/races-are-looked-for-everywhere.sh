#!/usr/bin/env bash
# Stage race runs all tests of the rooms of a rank and of the packages below them, and those of internal/rank/runtime that
# tests/raced.txt lists. Of the statements that all tests of internal/rank/runtime run in packages that are not pure, those run at least 99.5 %. Statements that they do not run are listed.
#   ACCEPT_TESTS='^TestA'   of all tests, these only
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

# shellcheck source=tests/lists.sh
. tests/lists.sh

pure=$(pure_packages)
packages=$(go list ./ps/... ./internal/... | grep -vE "^fluentps/(($pure)$|(${alone// /|}|internal/rank/bench|internal/verbs)(/|$))" | paste -sd ,)
raced=$(raced_tests)

CGO_ENABLED=0 go test -c -vet=off -tags invariants -cover -coverpkg="$packages" -o "$TMP/runtime.test" ./internal/rank/runtime
cover() { # NAME PATTERN: the statements that the tests run, one a line
	(cd internal/rank/runtime && "$TMP/runtime.test" -test.run "$2" -test.timeout=30m -test.coverprofile "$TMP/$1.profile" >"$TMP/$1.log" 2>&1) ||
		fail "tests failed: $(tail -n 40 "$TMP/$1.log")"
	awk '$NF > 0 && !/^mode:/ { print $1 }' "$TMP/$1.profile" | sort -u >"$TMP/$1.blocks"
}
cover all "${ACCEPT_TESTS:-.}"
cover raced "$raced"
# The rooms and what they stand on, with the detector: their tests leave out under it what is the same once more.
# shellcheck disable=SC2046 # one argument per package
go test -race -vet=off -tags invariants -covermode=atomic -coverpkg="$packages" -coverprofile="$TMP/rooms.profile" \
	$(go list ./internal/{disk,rank,show}/... | grep -vE "^fluentps/($pure)\$|/(bench|runtime)\$") >"$TMP/rooms.log" 2>&1 || fail "tests failed: $(tail -n 40 "$TMP/rooms.log")"
awk '$NF > 0 && !/^mode:/ { print $1 }' "$TMP/rooms.profile" | sort -u - "$TMP/raced.blocks" >"$TMP/both.blocks"

comm -23 "$TMP/all.blocks" "$TMP/both.blocks" >"$TMP/left"
all=$(wc -l <"$TMP/all.blocks")
left=$(wc -l <"$TMP/left")
figure "$((all - left)) of $all blocks of statements are run under the race detector, too; the others:"
sed 's/^fluentps./  /' "$TMP/left"
[ "$all" -ge 5000 ] || [ -n "${ACCEPT_TESTS:-}" ] || fail "only $all blocks were run: has the package lost its tests?"
[ $((left * 200)) -le "$all" ] || fail "$left of $all blocks are run neither by the tests of tests/raced.txt nor by those of the rooms and of what they stand on: add tests that run them"
