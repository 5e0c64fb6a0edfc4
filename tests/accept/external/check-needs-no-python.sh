#!/usr/bin/env bash
# A login node without Python: check, plan, plan --sbatch, explain and simulate of a torch script's run need the file of shapes alone. run
# ends at once, with the name of the program that is missing.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/accept/external/torch.sh
. "$ROOT/tests/accept/external/torch.sh"

cat >"$TMP/job.yaml" <<-END
	name: login
	cluster: {servers: 2}
	data: {set: external, rows: 4096, test_rows: 1024}
	model: {name: external, command: [python3, $EXTERNAL/train.py, resnet20, generated], shapes: resnet20.shapes}
	train: {batch_per_worker: 32, optimizer: {name: adamw, lr: 0.001}, stop: {updates: 20}}
	sync: [{match: "*", scheme: ssp, staleness: 2}]
	simulate: {workers: 4, compute: 10ms}
END
PATH=$(dirname "$PYTHON"):$PATH shapes "$TMP/job.yaml" "$TMP/resnet20.shapes"

# bare ARG...: fluentps where PATH has the tools of a shell, but no Python, and no variable says where one is.
mkdir "$TMP/tools"
for tool in sh cat sed; do ln -s "$(command -v $tool)" "$TMP/tools/$tool"; done
bare() { (cd "$TMP" && env -i PATH="$TMP/tools" HOME="$TMP" "$FLUENTPS" "$@") >"$TMP/log" 2>&1; }
! PATH="$TMP/tools" command -v python3 >/dev/null || fail "there is a Python"

bare check job.yaml || shown "check"
bare plan job.yaml --ranks 6 || shown "plan"
grep -q 'fc\|conv' "$TMP/log" || shown "plan names no tensor"
bare plan job.yaml --ranks 6 --sbatch || shown "plan --sbatch"
cp "$TMP/log" "$TMP/job.sbatch"
grep -q '^#SBATCH' "$TMP/job.sbatch" || shown "plan --sbatch writes no job script"
bash -n "$TMP/job.sbatch" || shown "plan --sbatch writes a script that bash does not read"
bare simulate job.yaml --out simulated || shown "simulate"
[ "$(get "$TMP/simulated/summary.json" iterations)" -gt 0 ] || fail "simulate has computed nothing"

code=0
bare run job.yaml --local 6 || code=$?
[ "$code" -eq 1 ] || shown "run ends with code $code, must be 1"
grep -q 'model.command: .*python3 is not found in PATH' "$TMP/log" || shown "run names no missing program"
[ "$(grep -c 'is not found in PATH' "$TMP/log")" -eq 1 ] || shown "run says it more than once"
figure "check, plan, plan --sbatch ($(grep -c . "$TMP/job.sbatch") lines), simulate ($(get "$TMP/simulated/summary.json" iterations) iterations) without Python; run says: $(grep -o 'model.command: .*' "$TMP/log" | head -n 1)"
