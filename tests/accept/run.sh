#!/usr/bin/env bash
# Runs the acceptance scripts, each of which shows one promise with its figure, and ends with a table.
#   tests/accept/run.sh [ONLY]   all of them, or those whose name contains ONLY: "checkpoint/", "speed/push-pull", "lenet"
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

ACCEPT_TMP=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-accept.XXXXXX")
export ACCEPT_TMP
trap 'rm -rf "$ACCEPT_TMP"' EXIT
go build -o "$ACCEPT_TMP/inspect" ./tests/accept/inspect

table=""
failed=0
count=0
for script in "$here"/*/*.sh; do
	name=${script#"$here/"}
	name=${name%.sh}
	case $name in
	*"${1:-}"*) ;;
	*) continue ;;
	esac
	count=$((count + 1))
	printf '\n== %s\n' "$name"
	start=$(date +%s)
	verdict=ok
	bash "$script" </dev/null >"$ACCEPT_TMP/out" 2>&1 || verdict=FAIL
	cat "$ACCEPT_TMP/out"
	[ "$verdict" = ok ] || failed=$((failed + 1))
	figures=$(sed -n 's/^figure: //p' "$ACCEPT_TMP/out")
	table+=$(printf '%-44s %-4s %5d s  %s' "$name" "$verdict" $(($(date +%s) - start)) "${figures//$'\n'/$'\n'$(printf '%59s' '')}")$'\n'
done
if [ "$count" -eq 0 ]; then
	echo "accept: no script is named like \"${1:-}\"; there are: $(cd "$here" && echo */*.sh)" >&2
	exit 2
fi
printf '\n%s\n%d of %d ok\n' "$table" $((count - failed)) "$count"
[ "$failed" -eq 0 ]
