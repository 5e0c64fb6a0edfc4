#!/usr/bin/env bash
# A script in torch as people have it becomes one that trains under our servers by at most 10 changed or added lines, in both ways that the README
# shows: with a loop of its own, and by ps.steps. Each has the accuracy of the plain script, less MARGIN, under bsp and ssp with 2 workers.
#   MARGIN=0.03
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
margin=${MARGIN:-0.03}
ten=$EXTERNAL/ten
plain=$("$PYTHON" "$ten/plain.py" | sed -n 's/accuracy //p')
figure "the plain script: accuracy $plain"
for way in loop steps; do
	lines=$(diff "$ten/plain.py" "$ten/$way.py" | grep -c '^>')
	sampler=run
	[ $way = steps ] || sampler=script
	for scheme in bsp 'ssp, staleness: 2'; do
		cat >"$TMP/$way.yaml" <<-END
			name: $way
			cluster: {servers: 1}
			data: {set: external, rows: 6000, test_rows: 1000, sampler: $sampler}
			model: {name: external, command: [$PYTHON, $ten/$way.py], shapes: $TMP/$way.shapes}
			train: {batch_per_worker: 32, optimizer: {name: momentum, lr: 0.1}, stop: {epochs: 10}}
			sync: [{match: "*", scheme: $scheme}]
		END
		[ -e "$TMP/$way.shapes" ] || shapes "$TMP/$way.yaml" "$TMP/$way.shapes"
		"$FLUENTPS" run --local 3 --no-report --no-what-if --out "$TMP/$way-${scheme%%,*}" "$TMP/$way.yaml" >"$TMP/log" 2>&1 || shown "$way"
		got=$(get "$TMP/$way-${scheme%%,*}/summary.json" test_accuracy)
		figure "$way: $lines changed or added lines, accuracy under ${scheme%%,*} $got"
		must "$lines <= 10 && $got >= $plain - $margin" "$way under ${scheme%%,*}"
	done
done
