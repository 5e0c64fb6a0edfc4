#!/usr/bin/env bash
# Seven ways to train with a straggler, three seeds of each, and one page that settles who won, by how much and why. A headless browser opens that page, the page of a run, and the page of runs with hostile names, at two widths and in both themes: all
# plots are there, nothing is wider than the window, the console is silent, and no request leaves the file. SCREENSHOTS=DIR keeps the pictures.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
	apt-get install -y --no-install-recommends chromium >"$TMP/apt" 2>&1 || fail "there is no Chromium, and apt-get cannot install one: $(tail -n 1 "$TMP/apt")"
	browser=$(command -v chromium)
fi
go build -o "$TMP/browser" ./tests/accept/browser

# train NAME SETTING... trains one of the seven.
train() {
	local name=$1 settings=(--set name="$1" --set train.stop.samples=65536 --set evaluate.every_samples=4096)
	shift
	for setting; do settings+=(--set "$setting"); done
	local_world 6 configs/examples/straggler.yaml "${settings[@]}" --set seed="$SEED" --out "$TMP/runs/$name-$SEED"
}
for SEED in 1 2 3; do
	train bsp
	train ssp 'sync[0].scheme=ssp'
	train asp 'sync[0].scheme=asp'
	train r2sp 'sync[0].scheme=r2sp'
	train drop 'sync=[{match: "*", scheme: drop, required: 3}]'
	train dbs 'work={policy: dbs}'
	train diloco 'local={policy: diloco, steps: 8}'
done
tail -n 1 "$TMP/log" | grep -q "^Report: $TMP/runs/diloco-3/report.html$" || fail "the run did not end with the path of its report"

"$FLUENTPS" report "$TMP/runs" --out "$TMP/page" >"$TMP/said" || fail "report: $(cat "$TMP/said")"
grep -qE '^((asp|drop|dbs|diloco|ssp|r2sp) (won|is ahead): it|No clear winner: .* are level\. [a-z0-9]+) reached test accuracy 0\.[0-9]+ after' <(tr '\n' ' ' <"$TMP/said" | tr -s ' ') || fail "the first sentence does not say who won: $(head -n 2 "$TMP/said")"
table=$TMP/page/report/comparison.csv
grep -q '^bsp,3,' "$table" || fail "the seeds of bsp are not one line: $(cat "$TMP/page/report/comparison.csv")"
[ "$(wc -l <"$TMP/page/report/comparison.csv")" -eq 8 ] || fail "not seven lines: $(cat "$TMP/page/report/comparison.csv")"
tr '\n' ' ' <"$TMP/said" | tr -s ' ' | grep -qE 'waiting for (worker 3|slower workers)' || fail "the straggler is not named: $(cat "$TMP/said")"

# Two runs whose names are those of somebody who means harm.
for i in 1 2; do
	mkdir "$TMP/evil$i"
	cp "$TMP/runs/bsp-1/metrics.jsonl" "$TMP/runs/bsp-1/iterations.csv" "$TMP/runs/bsp-1/histograms.csv" "$TMP/evil$i"
	sed "s|\"name\": \"bsp\"|\"name\": \"$i</title></style><script>console.log(1)</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\"|" "$TMP/runs/bsp-1/summary.json" >"$TMP/evil$i/summary.json"
done
"$FLUENTPS" report "$TMP/evil1" "$TMP/evil2" --out "$TMP/evil" >/dev/null || fail "report of hostile names"

figures="loss-by-time loss-by-step loss-by-samples accuracy-by-time accuracy-by-step accuracy-by-samples staleness lead causes bytes"
shots=${SCREENSHOTS:-$TMP/shots}
# look PAGE NAME FIGURE... opens a page.
look() {
	local page=$1 name=$2
	shift 2
	mkdir -p "$shots/$name"
	"$TMP/browser" "$browser" "$page" "$shots/$name" "$@" 2>"$TMP/complaints" || fail "$name: $(cat "$TMP/complaints")"
}
# shellcheck disable=SC2046,SC2086 # words are meant to be split
{
	look "$TMP/page/report.html" comparison $(printf 'figure-%s ' $figures) $(printf 'figure-run%s-gantt ' 0 1 2 3 4 5 6)
	look "$TMP/runs/bsp-1/report.html" run $(printf 'figure-%s ' $figures gantt)
	look "$TMP/evil/report.html" hostile $(printf 'figure-%s ' $figures)
}
slower=$(awk -F , '$1 == "bsp" { print $5 }' "$table")
must "$slower > 1" "bsp against the first"
pages=$(find "$shots" -name '[0-9]*.png' | wc -l)
figure "$(tr '\n' ' ' <"$TMP/said" | tr -s ' ' | awk -F '[.] ' '{ print $1 ". " $2 }'). bsp took ${slower:0:4} times as long; $(stat -c %s "$TMP/page/report.html") bytes; $pages screenshots: no console message, no request, all plots there"
