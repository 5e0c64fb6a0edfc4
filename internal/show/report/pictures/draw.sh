#!/usr/bin/env bash
# Draws the pictures of the pages, with the program itself: four schemes with a slow worker, simulated with real gradients, so that they come out alike anywhere.
#   make pictures
set -eu
cd "$(dirname "$0")/../../.."
program=${FLUENTPS:-bin/fluentps}
pictures=internal/show/report/pictures
tmp=$(mktemp -d "${TMPDIR:-/tmp}/fluentps-pictures.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/run.yaml" <<-END
	name: straggler
	data: {set: generated, rows: 8192, test_rows: 2048, features: 64, classes: 10}
	model: {name: mlp, layers: [32]}
	train:
	  batch_per_worker: 16
	  optimizer: {name: sgd, lr: 0.1}
	  stop: {samples: 16384}
	evaluate: {where: online, every_samples: 512}
	faults: [{worker: 3, slow: {factor: 3}}]
	simulate: {workers: 4, compute: {per_sample: 1ms}, network: {bandwidth: 125MB, latency: 50us}, gradients: true}
	sync: [{match: "*", scheme: bsp}]
END
for rule in bsp "ssp, staleness: 3" asp "drop, required: 3"; do
	"$program" simulate "$tmp/run.yaml" --set "sync=[{match: \"*\", scheme: $rule}]" --out "$tmp/${rule%%,*}" >/dev/null
done
"$program" report "$tmp/bsp" "$tmp/ssp" "$tmp/asp" "$tmp/drop" --target accuracy=0.82 --out "$tmp/page"
"$program" report "$tmp/ssp" --out "$tmp/one" >/dev/null
cp "$tmp/page/report/accuracy-by-time.svg" "$pictures/accuracy-by-time.svg"
cp "$tmp/one/report/gantt.svg" "$pictures/gantt.svg"
echo "$pictures: accuracy-by-time.svg, gantt.svg"
