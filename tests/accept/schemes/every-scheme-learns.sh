#!/usr/bin/env bash
# `explain` lists every scheme, and each runs under mpirun on Fashion-MNIST with 4 workers and reaches 0.84 with its
# example config.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

wanted=$(schemes)
listed=$("$FLUENTPS" explain)
missing=""
figures=""
for scheme in $wanted; do
	if ! grep -q -E "^  $scheme +" <<<"$listed"; then
		missing+=" $scheme"
		continue
	fi
	world 6 run --out "$TMP/$scheme" --set evaluate.every_epochs=0 "configs/examples/fashion-softmax-$scheme.yaml"
	accuracy=$(get "$TMP/$scheme/summary.json" test_accuracy)
	figures+=" $scheme $accuracy;"
	must "$accuracy >= 0.84" "$scheme, test accuracy"
done
figure "test accuracy (at least 0.84):$figures"
[ -z "$missing" ] || fail "explain does not list:$missing"
