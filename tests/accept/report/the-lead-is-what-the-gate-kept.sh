#!/usr/bin/env bash
# The lead that a reader computes from the records of a run is never above the largest that the gates let pass, nor above the bound of its schemes: in RUNS
# random runs whose ranks lose the processor and whose clocks differ (default 1000), in runs on this machine while it is busy, in processes of MPI, and on
# hosts, where the machine lets us make them.
set -eu
# shellcheck source=tests/accept/lib.sh
. "$(dirname "$0")/../lib.sh"

runs=${RUNS:-1000}
(cd "$ROOT" && go test -vet=off -count=1 -timeout 60m ./internal/rank/runtime -run '^TestTheLeadInTheRecordsIsWhatTheGateKept$' -v -lead.runs "$runs") >"$TMP/log" 2>&1 || shown "$runs random runs"
random=$(sed -n 's/^ *lead_test.go:[0-9]*: \([0-9]* runs: .*\)/\1/p' "$TMP/log")
[ -n "$random" ] || shown "the test told no figure"

# Everything else competes for the processor.
spinners=()
for _ in $(seq 4); do
	(while :; do :; done) &
	spinners+=($!)
done
stop_spinners() {
	[ ${#spinners[@]} -eq 0 ] || kill "${spinners[@]}" 2>/dev/null || true
	spinners=()
}
trap 'stop_spinners; at_exit' EXIT

# within DIR BOUND: the lead in the records of a run is that of its summary or less, and so is the bound.
most=0
within() {
	local lead max
	lead=$("$ACCEPT_TMP/inspect" lead "$1")
	max=$(get "$1/summary.json" max_lead)
	[ "$lead" -le "$max" ] || fail "$1: the records show a lead of $lead, the gates let $max pass"
	[ "$max" -le "$2" ] || fail "$1: a lead of $max under a bound of $2"
	[ "$lead" -le "$most" ] || most=$lead
}
for i in 1 2 3; do
	local_world 6 configs/examples/first.yaml --set seed="$i" --out "$TMP/local-$i"
	within "$TMP/local-$i" 2
	world 6 run configs/examples/first.yaml --set 'sync=[{match: "*", scheme: ssp, staleness: 3}]' --set seed="$i" --out "$TMP/mpi-$i"
	within "$TMP/mpi-$i" 3
done
stop_spinners

hosts="no hosts on this machine"
if "$ROOT/tests/net/hosts.sh" up 3 200mbit >"$TMP/log" 2>&1; then
	"$ROOT/tests/net/hosts.sh" mpirun --per-host 2 "$FLUENTPS" run "$ROOT/configs/examples/first.yaml" --set 'sync=[{match: "*", scheme: ssp, staleness: 3}]' --out "$TMP/hosts" >"$TMP/log" 2>&1 || shown "the run on hosts"
	"$ROOT/tests/net/hosts.sh" down
	within "$TMP/hosts" 3
	hosts="on 3 hosts, their clocks known within $(get "$TMP/hosts/summary.json" clock_error_ns) ns"
else
	code=$?
	[ "$code" -eq 77 ] || shown "hosts.sh up"
fi
figure "$random; 3 runs of first.yaml and 3 of MPI on a busy machine, $hosts: at most $most"
