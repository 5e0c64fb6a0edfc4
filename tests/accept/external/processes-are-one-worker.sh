#!/usr/bin/env bash
# Two processes that train one network by torch's DistributedDataParallel, over gloo, are one worker: 2 workers and a server, bsp with momentum.
# After 200 steps on the same samples parameters and test losses are within 1e-6 of those of one process per worker, with fp.ddp_hook and without.
# A run that is killed leaves no process of it within 10 s.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

export OMP_NUM_THREADS=1
export ACCEPT_MARK=$TMP # what a process that Python spawns is called does not tell of whom it is

# configure NAME ARG...: NAME.yaml, with these arguments of ownddp.py.
configure() {
	local name=$1 args
	shift
	args=$(printf ', "%s"' "$@")
	cat >"$TMP/$name.yaml" <<-END
		name: $name
		seed: 7
		cluster: {servers: 1}
		data: {set: external, rows: 4096, test_rows: 1024, sampler: script}
		model: {name: external, command: [$PYTHON, $EXTERNAL/ownddp.py$args], shapes: $TMP/mlp.shapes}
		train: {batch_per_worker: 24, optimizer: {name: momentum, lr: 0.05}, stop: {updates: 200}}
		sync: [{match: "*", scheme: bsp}]
		device: {threads: 1}
		evaluate: {every_epochs: 0}
	END
}
value() { get "$TMP/$1/summary.json" "$2"; }
# processes: the numbers of those that are fluentps or Python, and were started by this script.
processes() {
	local file
	grep -lsz "^ACCEPT_MARK=$TMP\$" /proc/[0-9]*/environ | while read -r file; do
		case $(cat "${file%/environ}/comm" 2>/dev/null) in fluentps* | python*) basename "${file%/environ}" ;; esac
	done
}
spawned() { processes | while read -r p; do tr '\0' ' ' </proc/"$p"/cmdline 2>/dev/null | grep spawn_main || true; done; }

configure hook 2 hook
shapes "$TMP/hook.yaml" "$TMP/mlp.shapes"
configure one 1
configure plain 2
for name in one plain hook; do
	"$FLUENTPS" run --local 3 --no-report --no-what-if --out "$TMP/$name" "$TMP/$name.yaml" >"$TMP/log" 2>&1 || shown "$name"
	[ "$(value "$name" finished)" = ok ] || fail "$name: finished $(value "$name" finished)"
	"$FLUENTPS" export "$TMP/$name" "$TMP/$name.npz" >/dev/null
	[ -z "$(processes)" ] || fail "$name: processes are left: $(processes | paste -sd ' ')"
done
for name in plain hook; do
	apart=$("$PYTHON" -c '
import sys, numpy as np
a, b = (np.load(f) for f in sys.argv[1:])
assert a.files == b.files
print(max(float(np.abs(a[k] - b[k]).max()) for k in a.files))' "$TMP/one.npz" "$TMP/$name.npz")
	losses=$(awk -v a="$(value one test_loss)" -v b="$(value "$name" test_loss)" 'BEGIN { d = a - b; print d < 0 ? -d : d }')
	figure "2 processes per worker, $name, beside 1, 200 steps: parameters at most $apart apart, test losses $losses (1e-6)"
	must "$apart <= 1e-6 && $losses <= 1e-6" "the same training with two processes, $name"
done

"$FLUENTPS" run --local 3 --no-report --no-what-if --out "$TMP/killed" --set 'train.stop={time: 60s}' "$TMP/hook.yaml" >"$TMP/log" 2>&1 &
job=$!
for _ in $(seq 300); do
	[ "$(spawned | wc -l)" -lt 2 ] || break
	sleep 0.1
done
[ "$(spawned | wc -l)" -eq 2 ] || fail "not 2 processes beside those that have joined: $(processes | paste -sd ' ')"
sleep 3 # some steps
most=$(processes | wc -l)
kill -9 "$job"
wait "$job" 2>/dev/null || true
job=""
since=$(now_ms)
while [ -n "$(processes)" ]; do
	[ $(($(now_ms) - since)) -lt 10000 ] || fail "left 10 s after the run was killed: $(processes | paste -sd ' ')"
	sleep 0.1
done
figure "a killed run of $most processes: nothing left after $(($(now_ms) - since)) ms"
