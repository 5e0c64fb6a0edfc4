#!/usr/bin/env bash
# A torch program that keeps its loop, and has fp.Optimizer in place of an optimizer, trains as one with ps.steps: 2 workers and a server.
# On the same samples, parameters and test losses are within 1e-6 of each other after 200 steps of bsp with momentum: the mean of a step
# is rounded once more. With a DataLoader of its own the accuracy after 10 passes under bsp, ssp and asp is at most MARGIN below that of ps.steps.
#   MARGIN=0.03
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
margin=${MARGIN:-0.03}

# trains NAME SAMPLER SCHEME STOP ARG...: one run of ownloop.py with these arguments.
trains() {
	local name=$1 sampler=$2 scheme=$3 stop=$4 args
	shift 4
	args=$(printf ', "%s"' "$@")
	cat >"$TMP/$name.yaml" <<-END
		name: $name
		seed: 7
		cluster: {servers: 1}
		data: {set: external, rows: 4096, test_rows: 1024, sampler: $sampler}
		model: {name: external, command: [$PYTHON, $EXTERNAL/ownloop.py$args], shapes: $TMP/mlp.shapes}
		train: {batch_per_worker: 24, optimizer: {name: momentum, lr: 0.05}, stop: {$stop}}
		sync: [{match: "*", scheme: $scheme}]
		device: {threads: 1}
		evaluate: {every_epochs: 1}
	END
	[ -e "$TMP/mlp.shapes" ] || shapes "$TMP/$name.yaml" "$TMP/mlp.shapes"
	"$FLUENTPS" run --local 3 --no-report --no-what-if --out "$TMP/$name" "$TMP/$name.yaml" >"$TMP/log" 2>&1 || shown "$name"
	[ "$(get "$TMP/$name/summary.json" finished)" = ok ] || fail "$name: finished $(get "$TMP/$name/summary.json" finished)"
}
value() { get "$TMP/$1/summary.json" "$2"; }

trains steps run bsp 'updates: 200' steps "$TMP"
trains again script bsp 'updates: 200' again "$TMP"
for name in steps again; do
	"$FLUENTPS" export "$TMP/$name" "$TMP/$name.npz" >/dev/null
done
apart=$("$PYTHON" -c '
import sys, numpy as np
a, b = (np.load(f) for f in sys.argv[1:])
assert a.files == b.files
print(max(float(np.abs(a[k] - b[k]).max()) for k in a.files))' "$TMP/steps.npz" "$TMP/again.npz")
losses=$(awk -v a="$(value steps test_loss)" -v b="$(value again test_loss)" 'BEGIN { d = a - b; print d < 0 ? -d : d }')
figure "200 steps on the same samples: parameters at most $apart apart, test losses $losses (1e-6)"
must "$apart <= 1e-6 && $losses <= 1e-6" "the same training"

figures=""
for scheme in bsp 'ssp, staleness: 2' asp; do
	short=${scheme%%,*}
	trains "$short" run "$scheme" 'epochs: 10' steps "$TMP"
	trains "$short-loader" script "$scheme" 'epochs: 10' loader
	theirs=$(value "$short" test_accuracy) own=$(value "$short-loader" test_accuracy)
	figures+=" $short ${own:0:5} (${theirs:0:5});"
	must "$own >= $theirs - $margin" "accuracy of a script's own loop under $short"
done
figure "test accuracy with a DataLoader (with ps.steps):$figures at most $margin below"
