#!/usr/bin/env bash
# Files of each format that is read (idx, CIFAR-10, csv, LIBSVM, ratings, MatrixMarket, NumPy, pictures, packs), some of them packed, are changed in 10,000 ways each. Nothing
# panics, takes longer than 10 s or more than 512 MiB, or writes elsewhere. What is read as something else without a word is listed: a text has no checksum, and
# another digit, or a row more or less, is another file that is as good.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

each=${ACCEPT_MUTATIONS:-10000}
readers=$(FLUENTPS_MUTATIONS_OF="data " FLUENTPS_MUTATIONS=1 go test ./tests/mutations -run TestMutations -count=1 -v | grep -c ': reader: ')
FLUENTPS_MUTATIONS_OF="data " FLUENTPS_MUTATIONS=$((each * readers)) FLUENTPS_MUTATIONS_SECONDS=10 FLUENTPS_MUTATIONS_SEED=${ACCEPT_SEED:-1} \
	go test ./tests/mutations -run TestMutations -count=1 -v -timeout 90m >"$TMP/log" 2>&1 || shown "go test ./tests/mutations"
said() { sed -n "s/.*mutations_test.go:[0-9]*: $1: //p" "$TMP/log"; }

said accepted
while read -r line; do figure "$line"; done < <(said reader)
figure "$(said tried)"
peak=$(said tried | sed -n 's/.*at most \([0-9]*\) MiB.*/\1/p')
[ -n "$peak" ] || fail "no figures"
must "$peak <= 512" "memory"
