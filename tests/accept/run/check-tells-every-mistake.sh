#!/usr/bin/env bash
# `check` on at least 20 broken files: exit 2, every problem with line, column and hint, in well under 0.1 s.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

count=0
problems=0
slowest=0
mkdir "$TMP/cases"
# Each archive holds files behind lines such as -- NAME.bad.yaml --.
LC_ALL=C awk -v to="$TMP/cases" '
	FNR == 1 { file = "" }
	/^-- [^ ]+ --$/ { if (file) close(file); file = to "/" $2; printf "" >file; next }
	file { print >file }' internal/configs/testdata/*.txtar
for file in "$TMP"/cases/*.bad.yaml; do
	[ -e "$file" ] || fail "no *.bad.yaml in internal/configs/testdata/*.txtar"
	# The best of three: the machine may be busy with something else.
	best=1000000
	for _ in 1 2 3; do
		code=0
		start=$(now_ms)
		"$FLUENTPS" check "$file" >"$TMP/out" 2>&1 || code=$?
		took=$(($(now_ms) - start))
		[ "$took" -ge "$best" ] || best=$took
	done
	[ "$code" -eq 2 ] || fail "$file: exit code $code, want 2"
	named=$(grep -c -F "$file:" "$TMP/out" || true)
	whole=$(grep -c -E "^$file:[0-9]+:[0-9]+: .+; .+" "$TMP/out" || true)
	if [ "$whole" -eq 0 ] || [ "$named" -ne "$whole" ]; then
		grep -F "$file:" "$TMP/out" | grep -v -E "^$file:[0-9]+:[0-9]+: .+; .+" || cat "$TMP/out"
		fail "$file: only $whole of $named problems have line, column and hint"
	fi
	count=$((count + 1))
	problems=$((problems + whole))
	[ "$best" -le "$slowest" ] || slowest=$best
done
figure "$count broken files, $problems problems with line, column and hint, slowest check $slowest ms (under 100)"
[ "$count" -ge 20 ] || fail "only $count broken files"
[ "$slowest" -lt 100 ] || fail "slowest check $slowest ms"
