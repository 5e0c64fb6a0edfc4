#!/usr/bin/env bash
# Fuzzes every reader for a while: each function Fuzz* of each package, one after the other. What it finds lies in testdata/fuzz
# of the package, is tried by every `go test` from then on, and is to be committed with its mend.
# An input that is only of interest is hardly made smaller: of a target that takes milliseconds nothing else would be done.
#   tests/fuzz.sh [SECONDS]   of each (10)
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
if ! [[ $seconds =~ ^[1-9][0-9]{0,5}$ ]]; then
	echo "tests/fuzz.sh: SECONDS is \"$seconds\", must be a whole number from 1" >&2
	exit 2
fi
targets=0
while read -r package; do
	mapfile -t found < <(grep -hoE '^func Fuzz[A-Za-z0-9]+' "$package"/*_test.go | sed 's/^func //')
	for target in "${found[@]}"; do
		echo "-- $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" -fuzzminimizetime 20x "./$package"
		targets=$((targets + 1))
	done
done < <(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sed 's|^\./||' | sort -u)
[ "$targets" -gt 0 ] || { echo "tests/fuzz.sh: no function Fuzz* was found" >&2 && exit 1; }
echo "fuzz: $targets targets, $seconds s each, found nothing"
