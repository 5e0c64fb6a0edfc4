#!/usr/bin/env bash
# Apache Arrow's own writer (arrow-go, a module of its own beside the acceptance tests) writes one table of 16 types, 2 versions of pages, 5 codecs, with and without dictionaries: each file
# is the table of the CSV of its rows, and trains to the same parameters to the bit. LZ4 and columns of six other kinds are refused by name. 10^6 x 100 numbers are read.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

(cd tests/accept/arrow && go build -o "$TMP/arrow" .) || fail "tests/accept/arrow does not build"
mkdir "$TMP/files"
"$TMP/arrow" "$TMP/files" 3000
wide='i64: standardize, u64: standardize, i32: standardize, u32: standardize, i16: standardize, u16: standardize, double: standardize, price: standardize'
config() { # config SET PATH
	cat >"$TMP/$1.yaml" <<-END
		name: table
		cluster: {servers: 1}
		data: {set: $1, path: $2, label: buys, missing: mean, split: {test: 0.2}, columns: {city: onehot, kind: onehot, $wide}}
		model: {name: mlp, layers: [16]}
		train: {batch_per_worker: 32, optimizer: {name: momentum, lr: 0.05}, stop: {updates: 60}}
		sync: [{match: "*", scheme: bsp}]
	END
}
trained() { # trained SET PATH: what is seen of the set, and the parameters
	config "$1" "$2"
	"$FLUENTPS" data "$TMP/$1.yaml" >"$TMP/log" 2>&1 || shown "data $2"
	grep -v 'sha256\|class in column' "$TMP/log" | sed "s/^$1: /set: /" >"$TMP/seen-$1"
	rm -rf "$TMP/run"
	local_world 3 --no-report --out "$TMP/run" "$TMP/$1.yaml"
	get "$TMP/run/summary.json" parameters_sha256
}
want=$(trained csv "$TMP/files/table.csv")
n=0
for file in "$TMP"/files/{plain,snappy,gzip,zstd,brotli}-*.parquet; do
	[ "$(trained parquet "$file")" = "$want" ] || fail "$(basename "$file") trains to other parameters than its CSV"
	cmp -s "$TMP/seen-csv" "$TMP/seen-parquet" || fail "$(basename "$file") is another table than its CSV: $(diff "$TMP/seen-csv" "$TMP/seen-parquet" | head -3)"
	n=$((n + 1))
done
[ "$n" -eq 20 ] || fail "$n files"
refused=0
for file in "$TMP"/files/lz4-*.parquet; do
	! "$FLUENTPS" data parquet "$file" --set data.label=buys >"$TMP/said" 2>&1 || fail "$(basename "$file") is taken"
	grep -q 'packed with LZ4; write the file with compression snappy or zstd' "$TMP/said" || fail "$(cat "$TMP/said")"
done
for file in "$TMP"/files/refused-*.parquet; do
	! "$FLUENTPS" data parquet "$file" >"$TMP/said" 2>&1 || fail "$(basename "$file") is taken"
	grep -q 'column "odd" has .*, which are not read: leave it out by data.drop: \["odd"\]' "$TMP/said" || fail "$(cat "$TMP/said")"
	"$FLUENTPS" data parquet "$file" --set 'data.drop=[odd]' >"$TMP/log" 2>&1 || shown "data $file, odd left out"
	refused=$((refused + 1))
done
figure "$n files of Arrow are the table of their CSV to the bit, also trained; LZ4 and $refused other kinds of columns refused by name, and left out by data.drop"
