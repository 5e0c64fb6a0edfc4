#!/usr/bin/env bash
# The table in ps/scheme/README.md: every scheme with one straggler at 4 times the compute time among 16 workers, made by
# the simulator and checked by `make test`. Here it is made anew and compared, and every scheme must have a row.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

go test ./ps/sim -count=1 -run '^TestTableOfSchemes$' -v >"$TMP/log" 2>&1 || shown "go test ./ps/sim -run TestTableOfSchemes"
grep -q -e '--- PASS: TestTableOfSchemes' "$TMP/log" || shown "the test of the table did not run"
sed -n '/<!-- simulated: begin/,/<!-- simulated: end/p' ps/scheme/README.md >"$TMP/table"
cat "$TMP/table"
grep -q 'means over the seeds' "$TMP/table" || fail "the table does not name its seeds"
grep -q 'network  ' "$TMP/table" || fail "the table has no cost model"
wanted=$(schemes)
missing=""
for scheme in $wanted; do
	grep -q -E "^\| \`${scheme}[,\`]" "$TMP/table" || missing+=" $scheme"
done
rows=$(grep -c -E '^\| `[a-z0-9_]+' "$TMP/table")
figure "simulated: ps/scheme/README.md is what the simulator says, in $rows rows"
[ -z "$missing" ] || fail "no row for:$missing"
