#!/usr/bin/env bash
# The table of all schemes with one straggler at 4 times the compute time among 16 workers (internal/sim/testdata/one-straggler.md). The
# simulator makes it anew, with a row for every scheme; a row that the file has must be the same.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

go test ./internal/sim -count=1 -run '^TestTableOfSchemes$' -v >"$TMP/log" 2>&1 || shown "go test ./internal/sim -run TestTableOfSchemes"
grep -q -e '--- PASS: TestTableOfSchemes' "$TMP/log" || shown "the test of the table did not run"
sed -n '/table_test.go/,/^---/p' "$TMP/log" | sed -n 's/^        //p' >"$TMP/table"
cat "$TMP/table"
grep -q 'means over the seeds' "$TMP/table" || fail "the table does not name its seeds"
grep -q 'network  ' "$TMP/table" || fail "the table has no cost model"
wanted=$(schemes)
missing=""
for scheme in $wanted; do
	grep -q -E "^\| \`${scheme}[,\`]" "$TMP/table" || missing+=" $scheme"
done
rows=$(grep -c -E '^\| `[a-z0-9_]+' "$TMP/table")
figure "simulated: $rows schemes with one straggler, as in internal/sim/testdata/one-straggler.md"
[ -z "$missing" ] || fail "no row for:$missing"
