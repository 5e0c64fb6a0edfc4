#!/usr/bin/env bash
# A sweep over three schemes and five seeds, and one whose names are long: sentences, tables, LaTeX, legends and bars call each series what the user chose, the table of
# the sweep and the list of runs tell all rows apart, and a headless browser finds every text of every picture inside it, at two widths. SCREENSHOTS=DIR keeps the pictures.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
	apt-get install -y --no-install-recommends chromium >"$TMP/apt" 2>&1 || fail "there is no Chromium, and apt-get cannot install one: $(tail -n 1 "$TMP/apt")"
	browser=$(command -v chromium)
fi
go build -o "$TMP/browser" ./tests/accept/browser

# sweep NAME LINE...: trains the runs that the lines below sweep list.
sweep() {
	local name=$1
	shift
	{
		cat <<-END
			name: $name
			cluster: {servers: 1}
			data: {set: generated, rows: 2000, test_rows: 200, features: 32, classes: 10}
			model: {name: mlp, layers: [32]}
			train:
			  batch_per_worker: 16
			  optimizer: {name: momentum, momentum: 0.9, lr: 0.02}
			  stop: {epochs: 4}
			evaluate: {every_epochs: 0.25}
			sync: [{match: "*", scheme: bsp}]
			sweep:
		END
		printf '  %s\n' "$@"
	} >"$TMP/$name.yaml"
	"$FLUENTPS" sweep "$TMP/$name.yaml" --local 4 --out "$TMP/$name" >"$TMP/log" 2>&1 || shown "sweep $name"
	"$FLUENTPS" report "$TMP/$name" --out "$TMP/$name-page" >"$TMP/$name-said" || fail "report $name"
	mkdir -p "$shots/$name"
	texts=$((texts + $("$TMP/browser" "$browser" "$TMP/$name-page/report.html" "$shots/$name" 2>"$TMP/complaints" || true)))
	[ ! -s "$TMP/complaints" ] || fail "$name: $(cat "$TMP/complaints")"
	"$FLUENTPS" runs "$TMP/$name" --no-index | tail -n +2 | sed 's/   *.*//' | sort | uniq -d >"$TMP/twice"
	[ ! -s "$TMP/twice" ] || fail "runs $name: two rows are called $(cat "$TMP/twice")"
}
shots=${SCREENSHOTS:-$TMP/shots}
texts=0

sweep schemes '"sync[0].scheme": [bsp, ssp, asp]' 'seed: [1, 2, 3, 4, 5]'
page=$TMP/schemes-page
[ "$(tail -n +2 "$page/report/comparison.csv" | cut -d , -f 1,2 | sort | tr '\n' ' ')" = "asp,5 bsp,5 ssp,5 " ] || fail "the series: $(cut -d , -f 1,2 "$page/report/comparison.csv")"
for file in "$TMP/schemes-said" "$page/report/comparison.tex" "$page/report/loss-by-time.svg"; do
	! grep -E '(fold|cache|release|strict|staleness)=' "$file" || fail "$file names a default"
	for name in bsp ssp asp; do grep -qw "$name" "$file" || fail "$file does not name $name"; done
done
for figure in "$page"/report/*.svg; do
	for name in bsp ssp asp; do
		case $figure in */run*) continue ;; esac
		grep -o '<desc.*</desc>' "$figure" | grep -qw "$name" || fail "the text of $figure for those who cannot see does not name $name"
	done
done
"$FLUENTPS" runs "$TMP/schemes" --no-index >"$TMP/list"
grep -q '^schemes ssp seed=3 ' "$TMP/list" || fail "the list of runs: $(cat "$TMP/list")"
headline=$(tr '\n' ' ' <"$TMP/schemes-said" | tr -s ' ' | awk -F '[.] ' '{ print $1 }')

sweep long 'train.optimizer.momentum: [0.9, 0.8]' 'train.optimizer.weight_decay: [0.00001, 0.00002]' 'train.schedule.warm_up: [0, 4]'
[ "$(tail -n +2 "$TMP/long-page/report/comparison.csv" | cut -d , -f 1 | sort -u | wc -l)" -eq 8 ] || fail "eight series have not eight names: $(cut -d , -f 1 "$TMP/long-page/report/comparison.csv")"

# One seed is no victory.
"$FLUENTPS" report "$TMP/schemes/0000" "$TMP/schemes/0005" "$TMP/schemes/0010" --out "$TMP/one" >"$TMP/one-said" || fail "report of one seed"
! head -n 1 "$TMP/one-said" | grep -q ' won' || fail "one seed won: $(cat "$TMP/one-said")"
figure "three schemes, five seeds: \"$headline\"; names of $(tail -n +2 "$TMP/long-page/report/comparison.csv" | cut -d , -f 1 | awk '{ if (length($0) > n) n = length($0) } END { print n }') characters; $texts texts inside their pictures at 400 and 1280 pixels, in both themes"
